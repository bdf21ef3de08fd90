package manifest_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// baselines are the capabilities that each set adds to the one before.
var baselines = []struct{ name, adds string }{
	{"None", ""}, {"v4.11", "baremetal marketplace openshift-samples MachineAPI"}, {"v4.12", "Console Insights Storage CSISnapshot"}, {"v4.13", "NodeTuning"},
	{"v4.14", "Build DeploymentConfig ImageRegistry"}, {"v4.15", "OperatorLifecycleManager CloudCredential"}, {"v4.16", "Ingress CloudControllerManager"}, {"v4.17", ""},
	{"v4.18", "OperatorLifecycleManagerV1"}, {"vCurrent", "CompatibilityRequirements ClusterAPI"},
}

func TestBaselines(t *testing.T) {
	gates := sets.New("ClusterAPIMachineManagement")
	want := sets.New[string]()
	for _, b := range baselines {
		want.Insert(strings.Fields(b.adds)...)
		c := manifest.ResolveCapabilities(&configv1.ClusterVersionCapabilitiesSpec{BaselineCapabilitySet: configv1.ClusterVersionCapabilitySet(b.name)}, nil, gates)
		if diff := cmp.Diff(sets.List(want), sets.List(c.Enabled)); diff != "" || len(c.Known) != 19 || len(c.Implicit) != 0 {
			t.Errorf("%s: %s known %d, implicit %v", b.name, diff, len(c.Known), c.Implicit)
		}
	}
	checktest.Equal(t, 19, len(want), "len(want)")
	for _, spec := range []*configv1.ClusterVersionCapabilitiesSpec{nil, {}} {
		if c := manifest.ResolveCapabilities(spec, nil, gates); !c.Enabled.Equal(want) {
			t.Error(c.Enabled)
		}
	}
}

func TestResolveCapabilities(t *testing.T) {
	spec := func(baseline string, additional ...configv1.ClusterVersionCapability) *configv1.ClusterVersionCapabilitiesSpec {
		return &configv1.ClusterVersionCapabilitiesSpec{BaselineCapabilitySet: configv1.ClusterVersionCapabilitySet(baseline), AdditionalEnabledCapabilities: additional}
	}
	tests := []struct {
		name              string
		spec              *configv1.ClusterVersionCapabilitiesSpec
		mustStay          []string
		gates             []string
		enabled, implicit string
		known             int
	}{
		{"none", spec("None"), nil, nil, "", "", 17},
		{"unknown set", spec("v9.9"), nil, nil, "", "", 17},
		{"additional", spec("None", "Console", "Build"), nil, nil, "Build Console", "", 17},
		{"must stay", spec("None", "Console"), []string{"Console", "Insights", "Unheard"}, nil, "Console Insights Unheard", "Insights Unheard", 17},
		{"gated away", spec("None", "ClusterAPI"), []string{"CompatibilityRequirements"}, nil, "", "", 17},
		{"one gate", spec("None", "ClusterAPI", "CompatibilityRequirements"), nil, []string{"CRDCompatibilityRequirementOperator"}, "CompatibilityRequirements", "", 18},
		{"other gate", spec("None", "ClusterAPI"), []string{"CompatibilityRequirements"}, []string{"ClusterAPIMachineManagement"}, "ClusterAPI CompatibilityRequirements", "CompatibilityRequirements", 19},
	}
	for _, tt := range tests {
		c := manifest.ResolveCapabilities(tt.spec, tt.mustStay, sets.New(tt.gates...))
		if got := strings.Join(sets.List(c.Enabled), " "); got != tt.enabled || strings.Join(sets.List(c.Implicit), " ") != tt.implicit || len(c.Known) != tt.known {
			t.Errorf("%s: %s, implicit %v, known %d", tt.name, got, c.Implicit, len(c.Known))
		}
		status := c.Status()
		if len(status.KnownCapabilities) != tt.known || !slices.IsSorted(status.EnabledCapabilities) || !slices.IsSorted(status.KnownCapabilities) || status.EnabledCapabilities == nil {
			t.Errorf("%s: %v", tt.name, status)
		}
	}
	a := manifest.Capabilities{Enabled: sets.New("A"), Known: sets.New("A"), Implicit: sets.New("A")}
	if !a.Equal(manifest.Capabilities{Enabled: sets.New("A")}) || a.Equal(manifest.Capabilities{}) {
		t.Error("only what is enabled counts")
	}
}

func TestImplicitlyEnabled(t *testing.T) {
	// m is a definition, which may name major versions.
	m := func(name, annotations string) *manifest.Manifest {
		list := checktest.Get(manifest.Parse("f", []byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"+
			"metadata: {name: "+name+", annotations: {"+annotations+"}}"), manifest.Limits{}))(t)
		return list[0]
	}
	p := func(version string, manifests ...*manifest.Manifest) *manifest.Payload {
		return &manifest.Payload{Release: configv1.Release{Version: version}, Manifests: manifests}
	}
	needs := func(caps string) string { return "capability.openshift.io/name: " + caps + ", " }
	gate := func(names string) string { return "release.openshift.io/feature-gate: '" + names + "', " }
	major := func(versions string) string { return "release.openshift.io/major-version: '" + versions + "', " }
	off := sets.New[string]()
	for _, tt := range []struct {
		name            string
		current, update *manifest.Payload
		gates           sets.Set[string]
		want            string
	}{
		{"moved into a disabled one", p("4.1.0", m("a", "")), p("4.2.0", m("a", needs("Away+Here+New"))), off, "Away New Old"},
		{"new resource", p("4.1.0", m("b", "")), p("4.2.0", m("a", needs("Away"))), off, "Old"},
		{"not managed now", p("4.1.0", m("a", needs("Away"))), p("4.2.0", m("a", needs("Away+New"))), off, "Old"},
		{"still included", p("4.1.0", m("a", "")), p("4.2.0", m("a", needs("Here"))), off, "Old"},
		{"unknown and enabled is included", p("4.1.0", m("a", needs("Also"))), p("4.2.0", m("a", needs("New"))), off, "New Old"},
		{"no payload yet", nil, p("4.2.0", m("a", needs("Away"))), off, "Old"},
		// Of several manifests of one resource, what the update needs beyond any of them.
		{"doubles", p("4.1.0", m("a", needs("Old+Here")), m("a", needs("Also+Here")), m("a", needs("Off"))),
			p("4.2.0", m("a", needs("X+Old+Here")), m("a", needs("Y+Off"))), off, "Off Old X Y"},

		// What a gate excludes takes part though its capabilities are enabled, and what
		// it excludes now does not.
		{"excluded by a gate", p("4.1.0", m("a", "")), p("4.2.0", m("a", needs("Here+Away")+gate("G"))), off, "Away Old"},
		{"excluded by a gate now", p("4.1.0", m("a", gate("Off")+needs("Here"))), p("4.2.0", m("a", needs("Away"))), sets.New("On"), "Old"},
		{"included by a gate now", p("4.1.0", m("a", gate("On")+needs("Here"))), p("4.2.0", m("a", needs("Away"))), sets.New("On"), "Away Old"},
		{"gates unset", p("4.1.0", m("a", gate("Off")+needs("Here"))), p("4.2.0", m("a", needs("Away"))), nil, "Away Old"},

		// Each payload's filter is its own major version.
		{"included in both", p("4.20.0", m("a", major("4"))), p("5.0.0", m("a", major("5")+needs("New"))), off, "New Old"},
		{"excluded now", p("4.20.0", m("a", major("5"))), p("5.0.0", m("a", major("5")+needs("New"))), off, "Old"},
		{"by the major version of the other", p("5.0.0", m("a", major("4"))), p("4.20.0", m("a", major("5")+needs("New"))), off, "Old"},
		{"excluded by its own major version", p("4.1.0", m("a", major("4"))), p("5.0.0", m("a", needs("Away")+major("4"))), off, "Away Old"},
		{"excluded by it alone", p("4.20.0", m("a", major("4"))), p("5.0.0", m("a", major("-5")+needs("Here+Also"))), off, "Old"},
		{"no version", p("", m("a", major("5"))), p("", m("a", major("-5")+needs("New"))), off, "New Old"},
	} {
		got := manifest.ImplicitlyEnabled(tt.current, tt.update, manifest.Filter{
			Capabilities: &manifest.Capabilities{Known: sets.New("Here", "Away", "Old"), Enabled: sets.New("Here", "Also", "Old"), Implicit: sets.New("Old")},
			Gates:        tt.gates,
			// Overrides do not count.
			Overrides: []configv1.ComponentOverride{{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "a", Unmanaged: true}},
		})
		checktest.SameIn(t, tt.name, strings.Fields(tt.want), got)
	}
	nothing := manifest.Filter{Capabilities: &manifest.Capabilities{}} // was enabled before
	checktest.Same(t, []string{"Away"}, manifest.ImplicitlyEnabled(p("4.1.0", m("a", "")), p("4.2.0", m("a", needs("Away"))), nothing))
}

// TestImplicitOfRealPayloads: an update from 4.17.30 to 4.18.15 enables nothing
// implicitly.
func TestImplicitOfRealPayloads(t *testing.T) {
	for _, baseline := range []configv1.ClusterVersionCapabilitySet{"None", "v4.11", "v4.14", "v4.17", "vCurrent"} {
		caps := manifest.ResolveCapabilities(&configv1.ClusterVersionCapabilitiesSpec{BaselineCapabilitySet: baseline}, nil, nil)
		got := manifest.ImplicitlyEnabled(realPayload(t, "payload-4.17.30"), realPayload(t, "payload-4.18.15"), manifest.Filter{Capabilities: &caps})
		checktest.Equal(t, 0, len(got), "%s: implicit: %v", baseline, got)
	}
}

// TestCostOfManyNames: what grows with the square of a payload's size would
// not end here.
func TestCostOfManyNames(t *testing.T) {
	var b strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&b, "C%d+", i)
	}
	many := b.String() + "On"
	caps := &manifest.Capabilities{Enabled: sets.New(strings.Split(many, "+")...)}
	current := &manifest.Payload{Manifests: []*manifest.Manifest{annotated(t, "g/K", map[string]string{manifest.AnnotationCapability: many})}}
	update := &manifest.Payload{Manifests: []*manifest.Manifest{annotated(t, "g/K", map[string]string{manifest.AnnotationCapability: many + "+New"})}}
	checktest.Same(t, []string{"New"}, manifest.ImplicitlyEnabled(current, update, manifest.Filter{Capabilities: caps}))

	p := &manifest.Payload{}
	add := func(apiVersion, kind string) {
		m := checktest.Get(manifest.New("0000_50_a_b.yaml",
			&unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "a"}}}))(t)
		p.Manifests = append(p.Manifests, m)
	}
	for range 10_000 {
		add("apps/v1", "Deployment")
	}
	for range 10_000 {
		add("config.openshift.io/v1", "ClusterOperator")
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if operators := p.Operators(); len(operators) != 10_000 || len(operators[9_999].Workloads) != 10_000 {
		t.Error(len(operators))
	}
	runtime.ReadMemStats(&after)
	if spent := after.TotalAlloc - before.TotalAlloc; spent > 64<<20 {
		t.Errorf("%d bytes allocated", spent)
	}
}
