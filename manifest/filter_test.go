package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/manifest"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
)

// annotated makes a manifest of a kind "group/Kind" with annotations, nil for
// none.
func annotated(t testing.TB, kind string, annotations map[string]string) *manifest.Manifest {
	t.Helper()
	group, kind, _ := strings.Cut(kind, "/")
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": kind, "metadata": map[string]any{"name": "n", "namespace": "ns"}}}
	if annotations != nil {
		m := map[string]any{}
		for k, v := range annotations {
			m[k] = v
		}
		u.Object["metadata"].(map[string]any)["annotations"] = m
	}
	m, err := manifest.New("f", u)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ptr[T any](v T) *T { return &v }

func TestExcluded(t *testing.T) {
	type a = map[string]string
	const (
		set, gate, major, capability = "release.openshift.io/feature-set", "release.openshift.io/feature-gate", "release.openshift.io/major-version", "capability.openshift.io/name"
		hosted                       = "exclude.release.openshift.io/internal-openshift-hosted"
		profile                      = "include.release.openshift.io/p"
		both                         = "both feature set and feature gate annotations are present: manifests may specify either a feature set or a feature gate, but not both"
		known                        = "; known values are: CustomNoUpgrade,Default,DevPreviewNoUpgrade,OKD,TechPreviewNoUpgrade"
		crd, fg                      = "apiextensions.k8s.io/CustomResourceDefinition", "config.openshift.io/FeatureGate"
		onlyFor                      = "major version filtering is only supported for feature gates and custom resources"
	)
	caps := &manifest.Capabilities{Known: sets.New("A", "B", "C"), Enabled: sets.New("A", "X")}
	none := sets.New[string]()
	tests := []struct {
		name   string
		kind   string // default g/K
		a      a
		filter manifest.Filter
		want   string
	}{
		{"absent annotations", "", nil, manifest.Filter{}, "no annotations"},
		{"absent annotations come first", "", nil, manifest.Filter{Profile: ptr("p"), Overrides: []configv1.ComponentOverride{{Group: "g", Kind: "K", Namespace: "ns", Name: "n", Unmanaged: true}}}, "no annotations"},
		{"empty annotations", "", a{}, manifest.Filter{}, ""},
		{"empty annotations and a profile", "", a{}, manifest.Filter{Profile: ptr("p")}, profile + " unset"},
		{"excluded", "", a{hosted: "true"}, manifest.Filter{ExcludeIdentifier: "internal-openshift-hosted"}, hosted + "=true"},
		{"exclude annotation of another value", "", a{hosted: "True"}, manifest.Filter{ExcludeIdentifier: "internal-openshift-hosted"}, ""},
		{"exclude identifier unset", "", a{hosted: "true"}, manifest.Filter{}, ""},
		{"set and gate, both inputs", "", a{set: "Default", gate: ""}, manifest.Filter{FeatureSet: ptr(""), Gates: none}, both},
		{"set and gate, set only", "", a{set: "Default", gate: "G"}, manifest.Filter{FeatureSet: ptr("")}, ""},
		{"set and gate, gates only", "", a{set: "X", gate: "G"}, manifest.Filter{Gates: none}, "feature gate G is required but not enabled"},
		{"exclusion before set and gate", "", a{hosted: "true", set: "", gate: ""}, manifest.Filter{ExcludeIdentifier: "internal-openshift-hosted", FeatureSet: ptr(""), Gates: none}, hosted + "=true"},

		{"feature set", "", a{set: "Default,OKD"}, manifest.Filter{FeatureSet: ptr("")}, ""},
		{"feature set by its name", "", a{set: "TechPreviewNoUpgrade"}, manifest.Filter{FeatureSet: ptr("TechPreviewNoUpgrade")}, ""},
		{"other feature set", "", a{set: "TechPreviewNoUpgrade,CustomNoUpgrade"}, manifest.Filter{FeatureSet: ptr("")}, `"Default" is required, and ` + set + "=CustomNoUpgrade,TechPreviewNoUpgrade"},
		{"other feature set of a cluster", "", a{set: "Default"}, manifest.Filter{FeatureSet: ptr("OKD")}, `"OKD" is required, and ` + set + "=Default"},
		{"unknown feature set", "", a{set: "Default,Other"}, manifest.Filter{FeatureSet: ptr("")}, `unrecognized value "Other" in ` + set + "=Default,Other" + known},
		{"feature set with a blank", "", a{set: "OKD, Default"}, manifest.Filter{FeatureSet: ptr("")}, `unrecognized value " Default" in ` + set + "=OKD, Default" + known},
		{"feature set empty", "", a{set: ""}, manifest.Filter{FeatureSet: ptr("")}, `unrecognized value "" in ` + set + "=" + known},
		{"feature set, input unset", "", a{set: "Other"}, manifest.Filter{}, ""},
		{"no feature set", "", a{}, manifest.Filter{FeatureSet: ptr("OKD")}, ""},

		{"gates", "", a{gate: " A ,,-B,"}, manifest.Filter{Gates: sets.New("A")}, ""},
		{"gate missing", "", a{gate: "A,B"}, manifest.Filter{Gates: sets.New("A")}, "feature gate B is required but not enabled"},
		{"gate forbidden", "", a{gate: "- B, -A"}, manifest.Filter{Gates: sets.New("A")}, "feature gate A is enabled but manifest requires it to be disabled"},
		{"gate, input empty", "", a{gate: "A"}, manifest.Filter{Gates: none}, "feature gate A is required but not enabled"},
		{"gate, input unset", "", a{gate: "A"}, manifest.Filter{}, ""},

		{"major included", crd, a{major: "4"}, manifest.Filter{MajorVersion: ptr(uint64(4))}, ""},
		{"major included for a feature gate", fg, a{major: " 5 ,, 4"}, manifest.Filter{MajorVersion: ptr(uint64(4))}, ""},
		{"major on another kind", "", a{major: "4"}, manifest.Filter{MajorVersion: ptr(uint64(4))}, onlyFor},
		{"major on another FeatureGate", "g/FeatureGate", a{major: "4"}, manifest.Filter{MajorVersion: ptr(uint64(4))}, onlyFor},
		{"major, input unset", "", a{major: "4"}, manifest.Filter{}, ""},
		{"major excluded", crd, a{major: "-4"}, manifest.Filter{MajorVersion: ptr(uint64(4))}, "major version 4 matches excluded version 4"},
		{"major without a match", crd, a{major: "5,-6"}, manifest.Filter{MajorVersion: ptr(uint64(4))}, "major version 4 does not match any required versions"},
		{"major with only negatives", crd, a{major: "-5,-6"}, manifest.Filter{MajorVersion: ptr(uint64(4))}, ""},
		{"major empty", crd, a{major: " ,"}, manifest.Filter{MajorVersion: ptr(uint64(4))}, ""},
		{"major bad", crd, a{major: "4,x"}, manifest.Filter{MajorVersion: ptr(uint64(4))}, `invalid included major version "x" in annotation: strconv.ParseUint: parsing "x": invalid syntax`},
		{"major bad negative", crd, a{major: "4,-4.1"}, manifest.Filter{MajorVersion: ptr(uint64(4))}, `invalid excluded major version "4.1" in annotation: strconv.ParseUint: parsing "4.1": invalid syntax`},
		{"major with a plus", crd, a{major: "+4"}, manifest.Filter{MajorVersion: ptr(uint64(4))}, `invalid included major version "+4" in annotation: strconv.ParseUint: parsing "+4": invalid syntax`},
		{"major with two dashes", crd, a{major: "--4"}, manifest.Filter{MajorVersion: ptr(uint64(4))}, `invalid excluded major version "-4" in annotation: strconv.ParseUint: parsing "-4": invalid syntax`},
		{"major too large", crd, a{major: "18446744073709551616"}, manifest.Filter{MajorVersion: ptr(uint64(4))}, `invalid included major version "18446744073709551616" in annotation: strconv.ParseUint: parsing "18446744073709551616": value out of range`},
		{"feature set before major", crd, a{set: "OKD", major: "5"}, manifest.Filter{FeatureSet: ptr(""), MajorVersion: ptr(uint64(4))}, `"Default" is required, and ` + set + "=OKD"},
		{"gate before major", crd, a{gate: "G", major: "5"}, manifest.Filter{Gates: none, MajorVersion: ptr(uint64(4))}, "feature gate G is required but not enabled"},
		{"major before profile", crd, a{major: "5"}, manifest.Filter{Profile: ptr("p"), MajorVersion: ptr(uint64(4))}, "major version 4 does not match any required versions"},
		{"major both ways", crd, a{major: "4,-4"}, manifest.Filter{MajorVersion: ptr(uint64(4))}, "inclusion and exclusion requirements overlap: [4]"},
		{"major both ways, several", crd, a{major: "10,-10,9,-9,4"}, manifest.Filter{MajorVersion: ptr(uint64(4))}, "inclusion and exclusion requirements overlap: [9 10]"},

		{"profile", "", a{profile: "true"}, manifest.Filter{Profile: ptr("p")}, ""},
		{"profile absent", "", a{"include.release.openshift.io/q": "true"}, manifest.Filter{Profile: ptr("p")}, profile + " unset"},
		{"profile of another value", "", a{profile: "True"}, manifest.Filter{Profile: ptr("p")}, "unrecognized value " + profile + "=True"},
		{"profile empty", "", a{profile: ""}, manifest.Filter{Profile: ptr("p")}, "unrecognized value " + profile + "="},
		{"profile before capability", "", a{capability: "B"}, manifest.Filter{Profile: ptr("p"), Capabilities: caps}, profile + " unset"},

		{"capability", "", a{capability: "A"}, manifest.Filter{Capabilities: caps}, ""},
		{"capability empty", "", a{capability: ""}, manifest.Filter{Capabilities: caps}, ""},
		{"capabilities disabled", "", a{capability: "C+A+B"}, manifest.Filter{Capabilities: caps}, "disabled capabilities: C, B"},
		{"capabilities unknown", "", a{capability: "Z+B+Y"}, manifest.Filter{Capabilities: caps}, "unrecognized capability names: Z, Y"},
		{"capability with a blank", "", a{capability: "A + B"}, manifest.Filter{Capabilities: caps}, "unrecognized capability names: A ,  B"},
		{"unknown capability enabled", "", a{capability: "X"}, manifest.Filter{Capabilities: caps}, "unrecognized capability names: X"},
		{"unknown allowed and enabled", "", a{capability: "X+A"}, manifest.Filter{Capabilities: caps, AllowUnknownCapabilities: true}, ""},
		{"unknown allowed and disabled", "", a{capability: "Z+B"}, manifest.Filter{Capabilities: caps, AllowUnknownCapabilities: true}, "disabled capabilities: Z, B"},
		{"capability, input unset", "", a{capability: "Z"}, manifest.Filter{}, ""},
		{"capability before override", "", a{capability: "B"}, manifest.Filter{Capabilities: caps, Overrides: []configv1.ComponentOverride{{Group: "g", Kind: "K", Namespace: "ns", Name: "n", Unmanaged: true}}}, "disabled capabilities: B"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.kind == "" {
				tt.kind = "g/K"
			}
			if got := tt.filter.Excluded(annotated(t, tt.kind, tt.a)); got != tt.want {
				t.Errorf("%q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestOverrides(t *testing.T) {
	o := func(group, kind, namespace, name string, unmanaged bool) configv1.ComponentOverride {
		return configv1.ComponentOverride{Group: group, Kind: kind, Namespace: namespace, Name: name, Unmanaged: unmanaged}
	}
	inNamespace := annotated(t, "g/K", map[string]string{})
	global, err := manifest.New("f", &unstructured.Unstructured{Object: map[string]any{"apiVersion": "g/v1", "kind": "K", "metadata": map[string]any{"name": "n", "annotations": map[string]any{}}}})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		m         *manifest.Manifest
		overrides []configv1.ComponentOverride
		want      bool
	}{
		{inNamespace, nil, false},
		{inNamespace, []configv1.ComponentOverride{o("g", "K", "ns", "n", true)}, true},
		{inNamespace, []configv1.ComponentOverride{o("g", "K", "ns", "n", false), o("g", "K", "ns", "n", true)}, false},
		{inNamespace, []configv1.ComponentOverride{o("g", "K", "ns", "n", true), o("g", "K", "ns", "n", false)}, true},
		{inNamespace, []configv1.ComponentOverride{o("g", "K", "", "n", true)}, false},
		{inNamespace, []configv1.ComponentOverride{o("h", "K", "ns", "n", true), o("g", "k", "ns", "n", true), o("g", "K", "ns", "m", true)}, false},
		{global, []configv1.ComponentOverride{o("g", "K", "anything", "n", true)}, true},
	}
	for i, tt := range tests {
		f := manifest.Filter{Overrides: tt.overrides}
		if got := f.Excluded(tt.m) == "overridden"; got != tt.want {
			t.Errorf("case %d: %v", i, got)
		}
	}
}

func TestFilterParts(t *testing.T) {
	full := manifest.Filter{
		ExcludeIdentifier: "x", FeatureSet: ptr("OKD"), Gates: sets.New("G"), MajorVersion: ptr(uint64(4)), Profile: ptr("p"),
		Capabilities: &manifest.Capabilities{}, AllowUnknownCapabilities: true, Overrides: []configv1.ComponentOverride{{Name: "a"}},
	}
	load, task := full.ForLoad(), full.ForTask()
	if load.ExcludeIdentifier == "" || load.FeatureSet == nil || load.Gates == nil || load.MajorVersion == nil || load.Profile == nil || load.Capabilities != nil || load.Overrides != nil {
		t.Errorf("%+v", load)
	}
	if task.ExcludeIdentifier != "" || task.FeatureSet != nil || task.Gates == nil || task.MajorVersion != nil || task.Profile != nil || task.Capabilities == nil || task.Overrides == nil {
		t.Errorf("%+v", task)
	}
	if (manifest.Filter{}).ForTask().Gates != nil {
		t.Error("unset gates must stay unset")
	}
}

func TestReleaseGates(t *testing.T) {
	fg := &configv1.FeatureGate{}
	fg.Spec.FeatureSet = "TechPreviewNoUpgrade"
	fg.Status.FeatureGates = []configv1.FeatureGateDetails{
		{Version: "4.20.1", Enabled: []configv1.FeatureGateAttributes{{Name: "A"}, {Name: "B"}}, Disabled: []configv1.FeatureGateAttributes{{Name: "C"}}},
		{Version: "4.21.0", Enabled: []configv1.FeatureGateAttributes{{Name: "C"}}},
	}
	tests := []struct {
		fg      *configv1.FeatureGate
		version string
		want    string
	}{{fg, "4.20.1", "TechPreviewNoUpgrade [A B]"}, {fg, "4.21.0", "TechPreviewNoUpgrade [C]"}, {fg, "4.22.0", "TechPreviewNoUpgrade []"}, {nil, "4.20.1", " []"}}
	for _, tt := range tests {
		set, gates := manifest.ReleaseGates(tt.fg, tt.version)
		if got := fmt.Sprint(set, " ", sets.List(gates)); got != tt.want || gates == nil {
			t.Errorf("%s: %s", tt.version, got)
		}
	}
	if _, _, err := manifest.RenderGates(fg); err == nil {
		t.Error("two entries must be an error")
	}
	fg.Status.FeatureGates = fg.Status.FeatureGates[:1]
	if set, gates, err := manifest.RenderGates(fg); err != nil || set != "TechPreviewNoUpgrade" || len(gates) != 2 {
		t.Error(set, gates, err)
	}
	fg.Status.FeatureGates = nil
	if _, gates, err := manifest.RenderGates(fg); err != nil || gates == nil || len(gates) != 0 {
		t.Error(gates, err)
	}
}
