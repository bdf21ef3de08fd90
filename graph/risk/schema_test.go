package risk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// statusSchemas reads the schema of ClusterVersion's status for each feature set
// from the CRDs in the module of the API.
func statusSchemas(t *testing.T) map[string]*spec.Schema {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	checktest.OK(t, err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "config/v1/zz_generated.crd-manifests/*_clusterversions-*.crd.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%d CRDs, error %v", len(files), err)
	}
	schemas := map[string]*spec.Schema{}
	for _, file := range files {
		text := checktest.Must(os.ReadFile(file))
		var crd struct {
			Spec struct {
				Versions []struct {
					Schema struct {
						OpenAPIV3Schema spec.Schema `json:"openAPIV3Schema"`
					} `json:"schema"`
				} `json:"versions"`
			} `json:"spec"`
		}
		checktest.OK(t, yaml.Unmarshal(text, &crd))
		_, set, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".crd.yaml"), "clusterversions-")
		status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
		if _, ok := status.Properties["conditionalUpdates"]; !ok {
			t.Fatalf("%s has no conditional updates", file)
		}
		schemas[set] = &status
	}
	return schemas
}

// refused says what an API server would refuse about a status.
func refused(schema *spec.Schema, status configv1.ClusterVersionStatus) []string {
	text, err := json.Marshal(status)
	if err != nil {
		return []string{err.Error()}
	}
	var value map[string]any
	if err := json.Unmarshal(text, &value); err != nil {
		return []string{err.Error()}
	}
	var faults []string
	for _, err := range validate.NewSchemaValidator(schema, nil, "status", strfmt.Default).Validate(value).Errors {
		faults = append(faults, err.Error())
	}
	return append(faults, refusedBeside(schema, "status", value)...)
}

// refusedBeside checks what the validator of OpenAPI does not: fields that the
// schema lacks, keys of lists, and rules in CEL.
func refusedBeside(schema *spec.Schema, path string, value any) (faults []string) {
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			property, ok := schema.Properties[key]
			if !ok {
				faults = append(faults, path+"."+key+" is not in the schema")
				continue
			}
			faults = append(faults, refusedBeside(&property, path+"."+key, v)...)
		}
	case []any:
		keys := []string{}
		if list, _ := schema.Extensions.GetString("x-kubernetes-list-type"); list == "map" {
			keys, _ = schema.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
		} else if list != "set" {
			keys = nil
		}
		seen := map[string]bool{}
		for i, item := range value {
			at := fmt.Sprintf("%s[%d]", path, i)
			if keys != nil {
				id := fmt.Sprint(item)
				if len(keys) > 0 {
					id = ""
					for _, key := range keys {
						id += fmt.Sprintf("%q ", item.(map[string]any)[key])
					}
				}
				if seen[id] {
					faults = append(faults, at+" comes twice")
				}
				seen[id] = true
			}
			faults = append(faults, refusedBeside(schema.Items.Schema, at, item)...)
		}
		if rules, ok := schema.Extensions["x-kubernetes-validations"]; ok {
			if text, _ := json.Marshal(rules); !strings.Contains(string(text), `"self.exists_one(x, x.type == 'Applies')"`) || strings.Count(string(text), `"rule"`) != 1 {
				faults = append(faults, fmt.Sprintf("%s has rules that this test does not know: %s", path, text))
			}
			applies := 0
			for _, item := range value {
				if item.(map[string]any)["type"] == "Applies" {
					applies++
				}
			}
			if applies != 1 {
				faults = append(faults, fmt.Sprintf("%s has %d conditions of type Applies", path, applies))
			}
		}
	}
	return faults
}

func statusOf(u *graph.Updates, available []configv1.Release, conditional []configv1.ConditionalUpdate, gate bool) configv1.ClusterVersionStatus {
	s := configv1.ClusterVersionStatus{AvailableUpdates: available, ConditionalUpdates: conditional, Desired: u.Current}
	if gate {
		s.ConditionalUpdateRisks = risk.ConditionalUpdateRisks(conditional)
	}
	return s
}

// odd draws a text that something may refuse, or a usual one.
func odd(t *rapid.T, label string, usual ...string) string {
	odds := []string{"", " ", "-", "a b", "1", "é", "\x00", "\x7f", "\xff", "a\nb", "<&>", "%zz", "http://[::1", "https://x.io/%zz", "/path", "u", "urn:x",
		strings.Repeat("x", 256), strings.Repeat("x", 257), strings.Repeat("é", 256), strings.Repeat("é", 257), strings.Repeat("A", 1025),
		strings.Repeat("\"", 20_000), strings.Repeat("m", 32_768), strings.Repeat("m", 32_769), strings.Repeat("世", 32_768), strings.Repeat("世", 50_000)}
	if rapid.IntRange(0, 9).Draw(t, label+" is odd") == 0 {
		return rapid.SampledFrom(odds).Draw(t, label)
	}
	return rapid.SampledFrom(usual).Draw(t, label)
}

func adversarialRisk(t *rapid.T) configv1.ConditionalUpdateRisk {
	risk := configv1.ConditionalUpdateRisk{
		Name: odd(t, "name", "A", "B", "C", "net-slow", "a.b"), Message: odd(t, "message", "m", "Some nodes\nmay not come back."),
		URL: odd(t, "url", "https://x.io/a", "https://x.io/b?c=d", "HTTP://x.io"),
	}
	for range rapid.SampledFrom([]int{0, 1, 1, 1, 1, 2, 3}).Draw(t, "rules") {
		rule := configv1.ClusterCondition{Type: odd(t, "type", "Always", "PromQL", "PromQL", "CEL")}
		if rule.Type == "PromQL" || rapid.IntRange(0, 9).Draw(t, "query besides") == 0 {
			rule.PromQL = &configv1.PromQLClusterCondition{PromQL: odd(t, "query", "T", "F", "U")}
		}
		risk.MatchingRules = append(risk.MatchingRules, rule)
	}
	return risk
}

// adversarialGraph draws a graph of which the first release leads to all others.
func adversarialGraph(t *rapid.T) *graph.Graph {
	n := rapid.SampledFrom([]int{2, 3, 5, 10, 10, 700}).Draw(t, "nodes")
	var d graph.Data
	for i := range n {
		node := graph.Node{Version: semver.MustParse(fmt.Sprintf("4.%d.%d", i%7, i)), Image: fmt.Sprintf("i-%d", i)}
		metadata := map[string]string{}
		if i > 0 && rapid.IntRange(0, 19).Draw(t, "odd image") == 0 {
			node.Image = rapid.SampledFrom([]string{"i-1", strings.Repeat("i", 100_000), "\xff"}).Draw(t, "image")
		}
		for _, m := range [...]struct {
			key   string
			value func() string
		}{
			{graph.MetadataURL, func() string { return odd(t, "release url", "https://x.io/r", "r") }},
			{graph.MetadataChannels, func() string { return odd(t, "channels", "a,b", "b,a,b, a", ",,a", strings.Repeat("c,", 500)) }},
			{graph.MetadataArchitecture, func() string { return odd(t, "arch", "multi") }},
		} {
			if n < 100 && rapid.Bool().Draw(t, m.key) {
				metadata[m.key] = m.value()
			}
		}
		if i > 0 { // a graph without a current release answers nothing
			node.Metadata = graph.NewMetadata(metadata)
		}
		d.Nodes = append(d.Nodes, node)
		if rapid.IntRange(0, 3).Draw(t, "edge") == 0 {
			d.Edges = append(d.Edges, [2]int{0, i})
		}
	}
	for range rapid.IntRange(0, 4).Draw(t, "entries") {
		var entry graph.ConditionalEdges
		first := rapid.IntRange(0, n-1).Draw(t, "first")
		last := rapid.SampledFrom([]int{first, first, n - 1}).Draw(t, "last")
		for i := first; i <= last; i++ {
			entry.Edges = append(entry.Edges, graph.VersionPair{From: "4.0.0", To: d.Nodes[i].Version.Original()})
		}
		for i := range rapid.SampledFrom([]int{0, 1, 1, 2, 3, 200, 201}).Draw(t, "risks") {
			if i < 5 {
				entry.Risks = append(entry.Risks, adversarialRisk(t))
			} else {
				entry.Risks = append(entry.Risks, graphtest.Risk(fmt.Sprint("R", i), "F"))
			}
		}
		d.ConditionalEdges = append(d.ConditionalEdges, entry)
	}
	g := checktest.Must(graph.New(d, graph.DecodeOptions{}))
	return g
}

func adversarialAlerts(t *rapid.T) []clusterapi.Alert {
	var alerts []clusterapi.Alert
	for i := range rapid.SampledFrom([]int{0, 1, 3, 250}).Draw(t, "alerts") {
		name := fmt.Sprint("Alert", i)
		a := clusterapi.Alert{Labels: map[string]string{"severity": "critical"}, Annotations: map[string]string{}, State: "firing", ActiveAt: graphtest.Start}
		if i < 3 {
			name = odd(t, "alert", "KubeNodeNotReady", "A", "PodDisruptionBudgetAtLimit")
			a.State = odd(t, "state", "firing")
			a.Annotations["summary"], a.Annotations["runbook_url"] = odd(t, "summary", "s"), odd(t, "runbook", "https://x.io/r")
			a.Annotations["description"] = odd(t, "description", "d")
			a.ActiveAt = rapid.SampledFrom([]time.Time{graphtest.Start, {}, time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)}).Draw(t, "since")
		}
		a.Labels["alertname"] = name
		alerts = append(alerts, a)
	}
	return alerts
}

// Every list that leaves Updates and Evaluate is one that the API server takes,
// whatever the graph, the alerts, the cluster's metrics and the lists before.
func TestListsAreAccepted(t *testing.T) {
	schemas := statusSchemas(t)
	matcher := graph.RiskMatcherFunc(func(_ context.Context, rule configv1.ClusterCondition) (bool, error) {
		switch q := rule.PromQL.PromQL; {
		case strings.HasPrefix(q, "T"):
			return true, nil
		case strings.HasPrefix(q, "F"):
			return false, nil
		}
		return false, errors.New(strings.Repeat("no data\x00\xff ", 10_000))
	})
	custom := graph.NewRules(matcher)
	checktest.OK(t, custom.Register("CEL", celRule{}))
	rapid.Check(t, func(t *rapid.T) {
		g := adversarialGraph(t)
		q := graph.UpdatesQuery{Version: "4.0.0", UnionDuplicates: rapid.Bool().Draw(t, "union")}
		gate := rapid.Bool().Draw(t, "gate")
		e := risk.Evaluator{Matcher: matcher, RiskConditions: gate, Accepted: []string{"A"}, ByName: rapid.Bool().Draw(t, "by name")}
		if rapid.IntRange(0, 3).Draw(t, "custom rules") == 0 {
			q.Rules, e.Rules = custom, custom
		}
		u := checktest.Must(g.Updates(q))
		check := func(what string, status configv1.ClusterVersionStatus) {
			for set, schema := range schemas {
				if _, ok := schema.Properties["conditionalUpdateRisks"]; gate && !ok {
					continue // the API has the fields with the gate alone
				}
				if faults := refused(schema, status); len(faults) > 0 {
					t.Fatalf("%s, %s: %s", what, set, strings.Join(faults[:min(3, len(faults))], "\n"))
				}
			}
			if text, _ := json.Marshal(status); len(text) > 1<<20+10_000 {
				t.Fatalf("%s: %d bytes", what, len(text))
			}
		}
		if q.Rules == nil {
			check("Updates", statusOf(u, u.Available, u.Conditional, false))
		}
		available, conditional := u.Available, u.Conditional
		if gate {
			alerts := risk.OfAlerts(adversarialAlerts(t))
			risks := risk.Set{Risks: append(alerts, configv1.ConditionalUpdateRisk{Name: "Bare"}), Versions: map[string][]string{}}
			for _, r := range risks.Risks {
				risks.Versions[r.Name] = risk.TargetVersions(available, conditional)
			}
			available, conditional, _ = risk.Merge(available, conditional, risks)
		}
		prev := slices.Clone(conditional)
		for i := range prev {
			prev[i].Conditions = []metav1.Condition{
				{Type: odd(t, "type before", "Other"), Status: "True", Reason: odd(t, "reason before", "R"), Message: odd(t, "message before", "m")},
				{Type: "Recommended", Status: "True"}, {Type: "Recommended", Status: "False"},
			}
			if i == 3 {
				break
			}
		}
		now := graphtest.Start
		for range 2 {
			evaluation := e.Evaluate(context.Background(), available, conditional, prev, now)
			check("Evaluate", statusOf(u, evaluation.Available, evaluation.Conditional, gate))
			prev, now = evaluation.Conditional, now.Add(time.Minute)
		}
	})
}

type celRule struct{}

func (celRule) Valid(configv1.ClusterCondition) error                          { return nil }
func (celRule) Match(context.Context, configv1.ClusterCondition) (bool, error) { return true, nil }
