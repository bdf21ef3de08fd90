package manifest_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// inclusionRelease has a manifest for most rules, in an order that is not that of
// their files.
func inclusionRelease(t *testing.T) *manifest.Payload {
	t.Helper()
	p := checktest.Get(load(t, payload(map[string]string{
		"manifests/0000_20_b_own.yaml": object("own", included),
		"release-manifests/0000_10_a_1.yaml": object("plain", included) + "---\n" + object("other", "note: none") + "---\n" + object("console", included+", capability.openshift.io/name: Console") +
			"---\n" + object("gone", included+`, release.openshift.io/delete: "true"`),
		"release-manifests/0000_10_a_2.yaml": object("preview", included+", release.openshift.io/feature-set: TechPreviewNoUpgrade") + "---\n" + object("\"odd\\nname\"", included),
		"release-manifests/0000_30_c_1.yaml": object("mine", included),
		"release-manifests/bare.json":        `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bare", "namespace": "n"}}`,
	})))(t)
	return p
}

var inclusionFilter = manifest.Filter{
	Capabilities: &manifest.Capabilities{Known: sets.New("Console"), Enabled: sets.New[string]()},
	Overrides:    []configv1.ComponentOverride{{Group: "example.com", Kind: "K", Name: "mine", Unmanaged: true}},
}

func TestInclusion(t *testing.T) {
	p := inclusionRelease(t)
	in := p.Inclusion(inclusionFilter)
	const want = `VERDICT      OBJECT               FILE                REASON
included     K plain              0000_10_a_1.yaml
Profile      K other              0000_10_a_1.yaml    include.release.openshift.io/self-managed-high-availability unset
Capability   K console            0000_10_a_1.yaml    disabled capabilities: Console
included     K gone (deletes it)  0000_10_a_1.yaml
FeatureSet   K preview            0000_10_a_2.yaml    "Default" is required, and release.openshift.io/feature-set=TechPreviewNoUpgrade
included     K "odd\nname"        0000_10_a_2.yaml
included     K own                0000_20_b_own.yaml
Override     K mine               0000_30_c_1.yaml    overridden
Annotations  ConfigMap n/bare     bare.json           no annotations

9 manifests of 4.20.1: 4 included, 5 excluded: Annotations 1, FeatureSet 1, Profile 1, Capability 1, Override 1
`
	text := func(o manifest.InclusionTextOptions) string {
		var out strings.Builder
		checktest.OK(t, in.WriteText(&out, o))
		return out.String()
	}
	checktest.Same(t, want, text(manifest.InclusionTextOptions{}))
	summary := want[strings.LastIndex(want, "\n\n")+2:]
	for _, tt := range []struct {
		o     manifest.InclusionTextOptions
		lines int // of the table
	}{
		{manifest.InclusionTextOptions{Component: "a"}, 6},
		{manifest.InclusionTextOptions{Component: "a", Excluded: true}, 3},
		{manifest.InclusionTextOptions{Kind: "ConfigMap"}, 1},
		{manifest.InclusionTextOptions{Excluded: true}, 5},
	} {
		if got := text(tt.o); strings.Count(got, "\n") != tt.lines+3 || !strings.HasSuffix(got, "\n\n"+summary) {
			t.Errorf("%+v:\n%s", tt.o, got)
		}
	}
	checktest.Equal(t, summary, text(manifest.InclusionTextOptions{Component: "none"}), "nothing is shown")
	data := checktest.Get(json.Marshal(in))(t)
	var read manifest.Inclusion
	checktest.OK(t, json.Unmarshal(data, &read))
	checktest.SameIn(t, "read again", in, &read, cmpopts.IgnoreFields(manifest.JudgedManifest{}, "Manifest"))
	for _, m := range in.Manifests { // each is the payload's, under its own verdict
		v := manifest.DefaultFilter().Judge(m.Manifest)
		if v.Included {
			v = inclusionFilter.Judge(m.Manifest)
		}
		if got := (manifest.Verdict{Included: m.Included, Rule: m.Rule, Reason: m.Reason}); got != v || m.Identity != m.Manifest.Identity() {
			t.Errorf("%s: %v, want %v", m.Manifest, got, v)
		}
	}
}

// A ClusterOperator is applied whatever its annotation about deletion says, as the
// version operator does it.
func TestOperatorsAreNotDeleted(t *testing.T) {
	release := func(annotations string) *manifest.Payload {
		p, err := load(t, payload(map[string]string{
			"release-manifests/0000_10_a_1.yaml": kind("config.openshift.io/v1", "ClusterOperator", "a", "", annotations, "status: {versions: [{name: operator, version: 4.20.1}]}"),
			"release-manifests/0000_10_a_2.yaml": kind("config.openshift.io/v2", "ClusterOperator", "a", "", annotations, ""), // of another version, like any kind
		}))
		checktest.OK(t, err)
		return p
	}
	p := release(`release.openshift.io/delete: "true"`)
	var deletes []bool
	for _, m := range p.Inclusion(manifest.Filter{}).Manifests {
		deletes = append(deletes, m.Deletes)
	}
	checktest.Same(t, []bool{false, true}, deletes)
	d := manifest.Diff(release(""), p, manifest.DiffOptions{})
	if len(d.Changed) != 1 || len(d.Removed) != 1 || len(d.DeletesAdded) != 1 || d.DeletesAdded[0].File != "0000_10_a_2.yaml" {
		t.Errorf("%+v", d)
	}
}

func TestInclusionOfNothing(t *testing.T) {
	var none *manifest.Payload
	in := none.Inclusion(manifest.Filter{})
	if n, rules := in.Count(); n != 0 || len(rules) != 0 || len(in.Manifests) != 0 {
		t.Errorf("%+v", in)
	}
	checktest.ErrorIs(t, errRefused, in.WriteText(refusing{}, manifest.InclusionTextOptions{}))
}

var errRefused = errors.New("refused")

// refusing takes nothing.
type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, errRefused }

// ClusterFilter takes from a ClusterVersion what a pass goes by.
func TestClusterFilter(t *testing.T) {
	load := func(annotations string) *manifest.Payload {
		p := checktest.Get(load(t,
			payload(map[string]string{"release-manifests/0000_10_a_1.yaml": object("a", annotations)})))(t)
		return p
	}
	old, next := load(included), load(included+", capability.openshift.io/name: Console")
	cv := &configv1.ClusterVersion{}
	cv.Spec.Capabilities = &configv1.ClusterVersionCapabilitiesSpec{
		BaselineCapabilitySet: "None", AdditionalEnabledCapabilities: []configv1.ClusterVersionCapability{"Build", "ClusterAPI"},
	}
	cv.Status.Capabilities.EnabledCapabilities = []configv1.ClusterVersionCapability{"Insights"}
	cv.Spec.Overrides = []configv1.ComponentOverride{{Kind: "K", Group: "example.com", Name: "a", Unmanaged: true}}
	gate := sets.New("ClusterAPIMachineManagement")
	for _, tt := range []struct {
		name            string
		gates           sets.Set[string]
		current, target *manifest.Payload
		enabled         []string
	}{
		{"an update", nil, old, next, []string{"Build", "Console", "Insights"}},
		{"one release", nil, nil, next, []string{"Build", "Insights"}},
		{"nothing", nil, nil, nil, []string{"Build", "Insights"}},
		{"with a gate", gate, old, next, []string{"Build", "ClusterAPI", "Console", "Insights"}},
	} {
		f := manifest.ClusterFilter(cv, tt.gates, tt.current, tt.target)
		if diff := cmp.Diff(tt.enabled, sets.List(f.Capabilities.Enabled)); diff != "" || !f.Gates.Equal(tt.gates) || (f.Gates == nil) != (tt.gates == nil) {
			t.Errorf("%s: gates %v, capabilities %s", tt.name, f.Gates, diff)
		}
		checktest.Equal(t, manifest.RuleOverride, f.Judge(old.Manifests[0]).Rule, "%s", tt.name)
	}
}
