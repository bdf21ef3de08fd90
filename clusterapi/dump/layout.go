package dump

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// role is what a file of a recording is for.
type role int

const (
	roleNone      role = iota
	roleHeap           // documents of any kind
	roleObject         // documents: one object by its name
	roleNamespace      // documents: the Namespace
	roleList           // documents: all objects of a resource
	roleRequests       // documents: the list of APIRequestCounts
	roleInsights       // documents: one object, often without apiVersion and kind
	roleFragment       // the spec of an object, which is not read
	roleGroups         // discovery of the named groups
	roleCore           // discovery of the core group
	roleKinds          // kinds.json
	roleTime           // timestamp
	roleRules          // an answer with rules and their alerts
	roleAlerts         // an answer with alerts
	roleActive         // alerts of the Alertmanager
	roleGathers        // gathers.json
)

// holdsObjects distinguishes what is decoded from what is kept as it is.
func (r role) holdsObjects() bool { return r >= roleHeap && r <= roleInsights }

// place is where a file is: what its path says, not what is in it.
type place struct {
	role role
	// root is the folder of the recording, "." for the whole tree.
	root string
	// group and resource are those of an object or list. The core group is "".
	group, resource string
	// namespace is the folder's namespace, empty outside "namespaces".
	namespace string

	// Of an Insights archive: the kind and name of the object, and the gatherer that
	// writes all of the kind.
	kind           schema.GroupVersionKind
	name, gatherer string
}

// The folders of which each makes its parent a recording.
const (
	clusterFolder   = "cluster-scoped-resources"
	namespaceFolder = "namespaces"
)

var folders = []string{clusterFolder, namespaceFolder}

// rolesByPath are those of single files of a recording.
var rolesByPath = map[string]role{
	"aggregated-discovery-apis.yaml":    roleGroups,
	"aggregated-discovery-api.yaml":     roleCore,
	"kinds.json":                        roleKinds,
	"timestamp":                         roleTime,
	"monitoring/prometheus/rules.json":  roleRules,
	"monitoring/prometheus/alerts.json": roleAlerts,
	"monitoring/alerts.json":            roleAlerts,
	"requests/apirequestscounts.json":   roleRequests,
}

// placeOf returns the place of a file of a recording. rel is its path below
// root.
func placeOf(root, rel string) place {
	p := place{root: root, role: rolesByPath[rel]}
	if p.role == roleRequests {
		p.group, p.resource = "apiserver.openshift.io", "apirequestcounts"
	}
	parts := strings.Split(rel, "/")
	stem, isYAML := strings.CutSuffix(parts[len(parts)-1], ".yaml")
	if p.role != roleNone || !isYAML {
		return p
	}
	if parts[0] == namespaceFolder && len(parts) > 2 {
		p.namespace = parts[1]
		parts = parts[1:]
	} else if parts[0] != clusterFolder {
		return p
	}
	// parts are now: the folder or namespace, the group, ...
	switch {
	case len(parts) == 2 && p.namespace != "" && stem == p.namespace:
		p.role, p.namespace, p.resource = roleNamespace, "", "namespaces"
	case p.namespace != "" && parts[1] == "pods":
		if len(parts) == 4 && parts[2] == stem { // the others are logs
			p.role, p.resource = roleObject, "pods"
		}
	case len(parts) == 3:
		p.role, p.group, p.resource = roleList, parts[1], stem
	case len(parts) == 4:
		p.role, p.group, p.resource = roleObject, parts[1], parts[2]
	}
	if p.group == "core" {
		p.group = ""
	}
	return p
}

// placeIn returns the place of a file of a recording by its path below root.
func (c *collection) placeIn(root, rel string) place {
	if c.insights[root] {
		return insightsPlace(root, rel)
	}
	return placeOf(root, rel)
}

// mayHold reports whether a folder of a recording may hold a file that has a
// place. rel is its path below root.
func (c *collection) mayHold(root, rel string) bool {
	if c.insights[root] {
		return insightsMayHold(rel)
	}
	parts := strings.Split(rel, "/")
	switch parts[0] {
	case clusterFolder:
		return len(parts) <= 3
	case namespaceFolder:
		return len(parts) <= 4
	case "monitoring":
		return len(parts) == 1 || len(parts) == 2 && parts[1] == "prometheus"
	case "requests":
		return len(parts) == 1
	}
	return rel == "."
}

// inHeap returns the place of a file of a heap. Alerts count there too.
func inHeap(name string) place {
	p := place{root: "."}
	for rel, role := range rolesByPath {
		if (role == roleRules || role == roleAlerts) && strings.HasSuffix("/"+name, "/"+rel) {
			p.role = role
			return p
		}
	}
	switch path.Ext(strings.TrimSuffix(name, ".gz")) {
	case ".yaml", ".yml", ".json":
		p.role = roleHeap
	}
	if path.Base(name) == "timestamp" {
		p.role = roleTime
	}
	return p
}

// rootOf returns the folder that a path shows to be a recording: the parent of
// the first folder of a certain name. ok is false where the path has none.
func rootOf(folder string) (root string, ok bool) {
	parts := strings.Split(folder, "/")
	i := slices.IndexFunc(parts, func(s string) bool { return slices.Contains(folders, s) })
	if i < 0 || i > 0 && parts[i] == namespaceFolder && parts[i-1] == "conditional" { // of an Insights archive
		return "", false
	}
	return path.Join(".", path.Join(parts[:i]...)), true
}

// below returns a path as seen from a folder. ok is false if it is elsewhere.
func below(folder, name string) (rel string, ok bool) {
	if folder == "." {
		return name, true
	}
	if name == folder {
		return ".", true
	}
	return strings.CutPrefix(name, folder+"/")
}

// gathered are names beside cluster-scoped-resources that the scripts of
// must-gather make, and oc adm inspect does not.
var gathered = []string{"must-gather.logs", "version", "monitoring", "requests", "audit_logs", "host_service_logs", "insights-data", "metrics"}
