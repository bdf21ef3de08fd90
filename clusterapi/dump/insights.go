package dump

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// An Insights archive has these two files.
const (
	insightsVersion = "config/version.json"
	insightsGathers = "insights-operator/gathers.json"
)

// insightsPath is a path of an Insights archive with objects of a kind.
type insightsPath struct {
	path string
	// below is how many more parts a path has: none for a single object, 1 for the
	// name, 2 for namespace and name.
	below      int
	apiVersion string
	kind       string
	// gatherer is the one that writes all objects of the kind; empty if none does.
	gatherer string
}

// gathererOperators writes ClusterOperators and what belongs to them.
const gathererOperators = "clusterconfig/operators"

// insightsPaths are all paths that are read, also those of older versions
// (https://github.com/openshift/insights-operator/blob/master/docs/gathered-data.md).
func insightsPaths() []insightsPath {
	const (
		machine  = "machine.openshift.io/v1beta1"
		config   = "config.openshift.io/v1"
		mco      = "machineconfiguration.openshift.io/v1"
		admit    = "admissionregistration.k8s.io/v1"
		registry = "imageregistry.operator.openshift.io/v1"
	)
	return []insightsPath{
		{"config/apiserver", 0, config, "APIServer", ""},
		{"config/authentication", 0, config, "Authentication", ""},
		{"config/featuregate", 0, config, "FeatureGate", ""},
		{"config/image", 0, config, "Image", ""},
		{"config/imagepruner", 0, registry, "ImagePruner", ""}, // before 4.6
		{"config/imageregistry", 0, registry, "Config", ""},    // before 4.7
		{"config/infrastructure", 0, config, "Infrastructure", ""},
		{"config/ingress", 0, config, "Ingress", ""},
		{"config/network", 0, config, "Network", ""},
		{"config/oauth", 0, config, "OAuth", ""},
		{"config/proxy", 0, config, "Proxy", ""},
		{"config/version", 0, config, "ClusterVersion", ""},

		{"config/clusteroperator", 1, config, "ClusterOperator", gathererOperators},
		{"config/clusteroperator/imageregistry.operator.openshift.io/config", 1, registry, "Config", ""},
		{"config/clusteroperator/imageregistry.operator.openshift.io/imagepruner", 1, registry, "ImagePruner", ""},
		{"config/clusterrolebinding", 1, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", ""},
		{"config/containerruntimeconfigs", 1, mco, "ContainerRuntimeConfig", ""},
		{"config/crd", 1, "apiextensions.k8s.io/v1", "CustomResourceDefinition", ""},
		{"config/kubeletconfigs", 1, mco, "KubeletConfig", ""},
		{"config/machineconfigpools", 1, mco, "MachineConfigPool", "clusterconfig/machine_config_pools"},
		{"config/machineconfigs", 1, mco, "MachineConfig", ""},
		{"config/mutatingwebhookconfigurations", 1, admit, "MutatingWebhookConfiguration", ""},
		{"config/node", 1, "v1", "Node", ""},
		{"config/persistentvolumes", 1, "v1", "PersistentVolume", ""},
		{"config/schedulers", 1, config, "Scheduler", ""},
		{"config/securitycontextconstraint", 1, "security.openshift.io/v1", "SecurityContextConstraints", ""},
		{"config/storage/storageclasses", 1, "storage.k8s.io/v1", "StorageClass", "clusterconfig/storage_classes"},
		{"config/validatingwebhookconfigurations", 1, admit, "ValidatingWebhookConfiguration", ""},

		{"conditional/imagestreams", 2, "image.openshift.io/v1", "ImageStream", ""},
		{"conditional/pods", 2, "v1", "Pod", ""},
		{"config/controlplanemachinesets", 2, "machine.openshift.io/v1", "ControlPlaneMachineSet", ""},
		{"config/machineautoscalers", 2, "autoscaling.openshift.io/v1beta1", "MachineAutoscaler", ""},
		{"config/machinehealthchecks", 2, machine, "MachineHealthCheck", ""},
		{"config/machines", 2, machine, "Machine", ""},
		{"config/pdbs", 2, "policy/v1", "PodDisruptionBudget", ""},
		{"config/pod", 2, "v1", "Pod", ""},
		{"config/subscriptions", 2, "operators.coreos.com/v1alpha1", "Subscription", ""},
		{"machinesets", 2, machine, "MachineSet", ""},
	}
}

var insightsByPath = sync.OnceValue(func() map[string]insightsPath {
	all := make(map[string]insightsPath)
	for _, p := range insightsPaths() {
		all[p.path] = p
	}
	return all
})

// insightsFolders are those of an archive that have files of the table.
var insightsFolders = []string{"conditional", "config", "insights-operator", "machinesets"}

// insightsPlace returns the place of a file of an Insights archive. rel is its path
// below root.
func insightsPlace(root, rel string) place {
	p := place{root: root}
	switch rel {
	case insightsGathers:
		p.role = roleGathers
		return p
	case "config/alerts.json":
		p.role = roleActive
		return p
	}
	stem, isJSON := strings.CutSuffix(rel, ".json")
	if !isJSON {
		return p
	}
	parts := strings.Split(stem, "/")
	// conditional/namespaces/a/pods/b/b stands for conditional/pods/a/b, and
	// conditional/namespaces/a/imagestreams/b for conditional/imagestreams/a/b.
	if len(parts) >= 5 && parts[0] == "conditional" && parts[1] == namespaceFolder {
		if len(parts) == 6 && parts[4] == parts[5] {
			parts = parts[:5]
		}
		parts = append([]string{parts[0], parts[3], parts[2]}, parts[4:]...)
	}
	for below := range min(3, len(parts)) {
		at := len(parts) - below
		row, known := insightsByPath()[strings.Join(parts[:at], "/")]
		if !known || row.below != below {
			continue
		}
		p.role, p.gatherer = roleInsights, row.gatherer
		p.kind = schema.FromAPIVersionAndKind(row.apiVersion, row.kind)
		p.group, p.resource = p.kind.Group, guess(p.kind.GroupKind()).Resource
		if below > 0 {
			p.name = parts[len(parts)-1]
		}
		if below > 1 {
			p.namespace = parts[at]
		}
		return p
	}
	if len(parts) > 3 && parts[1] == "clusteroperator" {
		p.role, p.gatherer = roleFragment, gathererOperators
	}
	return p
}

// insightsMayHold reports whether a folder of an Insights archive may hold a file
// that has a place.
func insightsMayHold(rel string) bool {
	if rel == "." {
		return true
	}
	parts := strings.Split(rel, "/")
	return slices.Contains(insightsFolders, parts[0]) && len(parts) <= 5 && !slices.Contains(parts, "logs")
}

// mayBeInsights reports whether a file may be one of an Insights archive. Whether it
// is one shows at the end of a stream.
func mayBeInsights(name string) bool {
	if path.Ext(name) != ".json" {
		return false
	}
	for _, folder := range insightsFolders {
		if strings.HasPrefix(name, folder+"/") || strings.Contains(name, "/"+folder+"/") {
			return true
		}
	}
	return false
}

// insightsRoots returns the folders that are Insights archives, of files in order:
// outer ones first.
func insightsRoots(names []string) []string {
	var roots []string
	for _, name := range names {
		root, ok := strings.CutSuffix("/"+name, "/"+insightsVersion)
		root = path.Join(".", root)
		if _, complete := slices.BinarySearch(names, path.Join(root, insightsGathers)); ok && complete {
			roots = append(roots, root)
		}
	}
	slices.Sort(roots)
	return roots
}

// isFragment reports whether a document of an Insights archive has only the spec of
// an object. Before 4.6.16 those had the paths of ClusterOperators.
func isFragment(doc document) bool {
	return field(doc.text, "metadata") == "" && field(doc.text, "spec") != ""
}

// checkInsightsName returns an error for an object with another name than its file.
func checkInsightsName(o *object, p place) error {
	if p.name == "" || p.name == strings.ReplaceAll(o.key.Name, ":", "_") {
		return nil
	}
	return fmt.Errorf("it holds %s %s, and by its name should hold %s", o.gvk.Kind, keyText(o.key), bounded.Quote(p.name))
}

// gathers is what gathers.json reports of the gatherers that ran.
type gathers struct {
	Reports []gathererReport `json:"status_reports"`
}

type gathererReport struct {
	Name    string   `json:"name"`
	Records int      `json:"records_count"`
	Errors  []string `json:"errors"`
	Panic   any      `json:"panic"`
}

// takeInsights takes from each gathers.json which kinds are whole: those whose
// gatherer takes all and ran to its end, if everything that it wrote is there.
func (a *assembly) takeInsights() {
	for _, f := range a.c.files {
		if f.place.role != roleGathers || f.raw == nil {
			continue
		}
		var all gathers
		if err := json.Unmarshal(f.raw, &all); err != nil {
			a.problem(Problem{Path: f.path, Err: err})
			continue
		}
		for _, report := range all.Reports {
			if len(report.Errors) == 0 && report.Panic == nil {
				a.takeGatherer(f.place.root, report)
			}
		}
	}
}

func (a *assembly) takeGatherer(root string, report gathererReport) {
	files := 0
	for _, f := range a.c.files {
		if f.place.root == root && f.place.gatherer == report.Name {
			files++
		}
	}
	if a.incomplete[root] || files < report.Records {
		return
	}
	for _, row := range insightsPaths() {
		gk := schema.FromAPIVersionAndKind(row.apiVersion, row.kind).GroupKind()
		if row.gatherer != report.Name || a.c.skip[gk] || len(a.lost[spot{root, guess(gk)}]) > 0 {
			continue
		}
		k := a.kind(gk)
		k.versions[schema.FromAPIVersionAndKind(row.apiVersion, row.kind).Version] = true
		k.whole = true
	}
}
