package manifest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
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
	return checktest.Get(manifest.New("f", u))(t)
}

func ptr[T any](v T) *T { return &v }

// inputs are those of all checks; judge asks first what a load decides, then
// what a pass does.
type inputs struct {
	ExcludeIdentifier        string
	FeatureSet               *string
	Gates                    sets.Set[string]
	MajorVersion             *uint64
	Profile                  *string
	Capabilities             *manifest.Capabilities
	AllowUnknownCapabilities bool
	Overrides                []configv1.ComponentOverride
}

func (in inputs) judge(m *manifest.Manifest) manifest.Verdict {
	load := manifest.LoadFilter{ExcludeIdentifier: in.ExcludeIdentifier, FeatureSet: in.FeatureSet, Gates: in.Gates, MajorVersion: in.MajorVersion, Profile: in.Profile}
	if v := load.Judge(m); !v.Included {
		return v
	}
	return manifest.Filter{Gates: in.Gates, Capabilities: in.Capabilities, AllowUnknownCapabilities: in.AllowUnknownCapabilities, Overrides: in.Overrides}.Judge(m)
}

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
		filter inputs
		want   string
	}{
		{"absent annotations", "", nil, inputs{}, "no annotations"},
		{"absent annotations come first", "", nil, inputs{Profile: ptr("p"), Overrides: []configv1.ComponentOverride{{Group: "g", Kind: "K", Namespace: "ns", Name: "n", Unmanaged: true}}}, "no annotations"},
		{"empty annotations", "", a{}, inputs{}, ""},
		{"empty annotations and a profile", "", a{}, inputs{Profile: ptr("p")}, profile + " unset"},
		{"excluded", "", a{hosted: "true"}, inputs{ExcludeIdentifier: "internal-openshift-hosted"}, hosted + "=true"},
		{"exclude annotation of another value", "", a{hosted: "True"}, inputs{ExcludeIdentifier: "internal-openshift-hosted"}, ""},
		{"exclude identifier unset", "", a{hosted: "true"}, inputs{}, ""},
		{"set and gate, both inputs", "", a{set: "Default", gate: ""}, inputs{FeatureSet: ptr(""), Gates: none}, both},
		{"set and gate, set only", "", a{set: "Default", gate: "G"}, inputs{FeatureSet: ptr("")}, ""},
		{"set and gate, gates only", "", a{set: "X", gate: "G"}, inputs{Gates: none}, "feature gate G is required but not enabled"},
		{"exclusion before set and gate", "", a{hosted: "true", set: "", gate: ""}, inputs{ExcludeIdentifier: "internal-openshift-hosted", FeatureSet: ptr(""), Gates: none}, hosted + "=true"},

		{"feature set", "", a{set: "Default,OKD"}, inputs{FeatureSet: ptr("")}, ""},
		{"feature set by its name", "", a{set: "TechPreviewNoUpgrade"}, inputs{FeatureSet: ptr("TechPreviewNoUpgrade")}, ""},
		{"other feature set", "", a{set: "TechPreviewNoUpgrade,CustomNoUpgrade"}, inputs{FeatureSet: ptr("")}, `"Default" is required, and ` + set + "=CustomNoUpgrade,TechPreviewNoUpgrade"},
		{"other feature set of a cluster", "", a{set: "Default"}, inputs{FeatureSet: ptr("OKD")}, `"OKD" is required, and ` + set + "=Default"},
		{"unknown feature set", "", a{set: "Default,Other"}, inputs{FeatureSet: ptr("")}, `unrecognized value "Other" in ` + set + "=Default,Other" + known},
		{"feature set with a blank", "", a{set: "OKD, Default"}, inputs{FeatureSet: ptr("")}, `unrecognized value " Default" in ` + set + "=OKD, Default" + known},
		{"feature set empty", "", a{set: ""}, inputs{FeatureSet: ptr("")}, `unrecognized value "" in ` + set + "=" + known},
		{"feature set, input unset", "", a{set: "Other"}, inputs{}, ""},
		{"no feature set", "", a{}, inputs{FeatureSet: ptr("OKD")}, ""},

		{"gates", "", a{gate: " A ,,-B,"}, inputs{Gates: sets.New("A")}, ""},
		{"gate missing", "", a{gate: "A,B"}, inputs{Gates: sets.New("A")}, "feature gate B is required but not enabled"},
		{"gate forbidden", "", a{gate: "- B, -A"}, inputs{Gates: sets.New("A")}, "feature gate A is enabled but manifest requires it to be disabled"},
		{"gate, input empty", "", a{gate: "A"}, inputs{Gates: none}, "feature gate A is required but not enabled"},
		{"gate, input unset", "", a{gate: "A"}, inputs{}, ""},

		{"major included", crd, a{major: "4"}, inputs{MajorVersion: ptr(uint64(4))}, ""},
		{"major included for a feature gate", fg, a{major: " 5 ,, 4"}, inputs{MajorVersion: ptr(uint64(4))}, ""},
		{"major on another kind", "", a{major: "4"}, inputs{MajorVersion: ptr(uint64(4))}, onlyFor},
		{"major on another FeatureGate", "g/FeatureGate", a{major: "4"}, inputs{MajorVersion: ptr(uint64(4))}, onlyFor},
		{"major, input unset", "", a{major: "4"}, inputs{}, ""},
		{"major excluded", crd, a{major: "-4"}, inputs{MajorVersion: ptr(uint64(4))}, "major version 4 matches excluded version 4"},
		{"major without a match", crd, a{major: "5,-6"}, inputs{MajorVersion: ptr(uint64(4))}, "major version 4 does not match any required versions"},
		{"major with only negatives", crd, a{major: "-5,-6"}, inputs{MajorVersion: ptr(uint64(4))}, ""},
		{"major empty", crd, a{major: " ,"}, inputs{MajorVersion: ptr(uint64(4))}, ""},
		{"major bad", crd, a{major: "4,x"}, inputs{MajorVersion: ptr(uint64(4))}, `invalid included major version "x" in annotation: strconv.ParseUint: parsing "x": invalid syntax`},
		{"major bad negative", crd, a{major: "4,-4.1"}, inputs{MajorVersion: ptr(uint64(4))}, `invalid excluded major version "4.1" in annotation: strconv.ParseUint: parsing "4.1": invalid syntax`},
		{"major in another base", crd, a{major: "0x4"}, inputs{MajorVersion: ptr(uint64(4))}, `invalid included major version "0x4" in annotation: strconv.ParseUint: parsing "0x4": invalid syntax`},
		{"major with zeros ahead", crd, a{major: "010"}, inputs{MajorVersion: ptr(uint64(10))}, ""},
		{"major with a plus", crd, a{major: "+4"}, inputs{MajorVersion: ptr(uint64(4))}, `invalid included major version "+4" in annotation: strconv.ParseUint: parsing "+4": invalid syntax`},
		{"major with two dashes", crd, a{major: "--4"}, inputs{MajorVersion: ptr(uint64(4))}, `invalid excluded major version "-4" in annotation: strconv.ParseUint: parsing "-4": invalid syntax`},
		{"major too large", crd, a{major: "18446744073709551616"}, inputs{MajorVersion: ptr(uint64(4))}, `invalid included major version "18446744073709551616" in annotation: strconv.ParseUint: parsing "18446744073709551616": value out of range`},
		{"feature set before major", crd, a{set: "OKD", major: "5"}, inputs{FeatureSet: ptr(""), MajorVersion: ptr(uint64(4))}, `"Default" is required, and ` + set + "=OKD"},
		{"gate before major", crd, a{gate: "G", major: "5"}, inputs{Gates: none, MajorVersion: ptr(uint64(4))}, "feature gate G is required but not enabled"},
		{"major before profile", crd, a{major: "5"}, inputs{Profile: ptr("p"), MajorVersion: ptr(uint64(4))}, "major version 4 does not match any required versions"},
		{"major both ways", crd, a{major: "4,-4"}, inputs{MajorVersion: ptr(uint64(4))}, "inclusion and exclusion requirements overlap: [4]"},
		{"major both ways, several", crd, a{major: "10,-10,9,-9,4"}, inputs{MajorVersion: ptr(uint64(4))}, "inclusion and exclusion requirements overlap: [9 10]"},

		{"profile", "", a{profile: "true"}, inputs{Profile: ptr("p")}, ""},
		{"profile absent", "", a{"include.release.openshift.io/q": "true"}, inputs{Profile: ptr("p")}, profile + " unset"},
		{"profile of another value", "", a{profile: "True"}, inputs{Profile: ptr("p")}, "unrecognized value " + profile + "=True"},
		{"profile empty", "", a{profile: ""}, inputs{Profile: ptr("p")}, "unrecognized value " + profile + "="},
		{"profile before capability", "", a{capability: "B"}, inputs{Profile: ptr("p"), Capabilities: caps}, profile + " unset"},

		{"capability", "", a{capability: "A"}, inputs{Capabilities: caps}, ""},
		{"capability empty", "", a{capability: ""}, inputs{Capabilities: caps}, ""},
		{"capabilities disabled", "", a{capability: "C+A+B"}, inputs{Capabilities: caps}, "disabled capabilities: C, B"},
		{"capabilities unknown", "", a{capability: "Z+B+Y"}, inputs{Capabilities: caps}, "unrecognized capability names: Z, Y"},
		{"capability with a blank", "", a{capability: "A + B"}, inputs{Capabilities: caps}, "unrecognized capability names: A ,  B"},
		{"unknown capability enabled", "", a{capability: "X"}, inputs{Capabilities: caps}, "unrecognized capability names: X"},
		{"unknown allowed and enabled", "", a{capability: "X+A"}, inputs{Capabilities: caps, AllowUnknownCapabilities: true}, ""},
		{"unknown allowed and disabled", "", a{capability: "Z+B"}, inputs{Capabilities: caps, AllowUnknownCapabilities: true}, "disabled capabilities: Z, B"},
		{"capability, input unset", "", a{capability: "Z"}, inputs{}, ""},
		{"capability before override", "", a{capability: "B"}, inputs{Capabilities: caps, Overrides: []configv1.ComponentOverride{{Group: "g", Kind: "K", Namespace: "ns", Name: "n", Unmanaged: true}}}, "disabled capabilities: B"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.kind == "" {
				tt.kind = "g/K"
			}
			got := tt.filter.judge(annotated(t, tt.kind, tt.a))
			if got.Reason != tt.want || got.Included != (tt.want == "") || got.Included != (got.Rule == "") {
				t.Errorf("%+v\nwant %q", got, tt.want)
			}
		})
	}
}

func TestOverrides(t *testing.T) {
	o := func(group, kind, namespace, name string, unmanaged bool) configv1.ComponentOverride {
		return configv1.ComponentOverride{Group: group, Kind: kind, Namespace: namespace, Name: name, Unmanaged: unmanaged}
	}
	inNamespace := annotated(t, "g/K", map[string]string{})
	global := checktest.Get(manifest.New("f",
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "g/v1", "kind": "K", "metadata": map[string]any{"name": "n", "annotations": map[string]any{}}}}))(t)
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
		checktest.Equal(t, tt.want, f.Judge(tt.m).Reason == "overridden", "case %d", i)
	}
}

// TestVerdictNamesTheRule has a manifest for each rule, which the checks
// before it let pass.
func TestVerdictNamesTheRule(t *testing.T) {
	in := inputs{
		ExcludeIdentifier: "x", FeatureSet: ptr(""), Gates: sets.New("On"), MajorVersion: ptr(uint64(4)), Profile: ptr("p"),
		Capabilities: &manifest.Capabilities{Known: sets.New("A", "B"), Enabled: sets.New("A")},
		Overrides:    []configv1.ComponentOverride{{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Namespace: "ns", Name: "n", Unmanaged: true}},
	}
	annotations := func(changes ...string) map[string]string {
		m := map[string]string{
			manifest.AnnotationExcludePrefix + "x": "false", manifest.AnnotationFeatureSet: "Default",
			manifest.AnnotationMajorVersion: "4", manifest.AnnotationIncludePrefix + "p": "true", manifest.AnnotationCapability: "A",
		}
		for i := 0; i < len(changes); i += 2 {
			if m[changes[i]] = changes[i+1]; changes[i+1] == "" {
				delete(m, changes[i])
			}
		}
		return m
	}
	for rule, a := range map[manifest.Rule]map[string]string{
		"Annotations":         nil,
		"ExcludeIdentifier":   annotations(manifest.AnnotationExcludePrefix+"x", "true", manifest.AnnotationFeatureSet, "OKD"),
		"Features":            annotations(manifest.AnnotationFeatureGate, "Off"),
		"FeatureSet":          annotations(manifest.AnnotationFeatureSet, "OKD", manifest.AnnotationMajorVersion, "5"),
		"FeatureGate":         annotations(manifest.AnnotationFeatureSet, "", manifest.AnnotationFeatureGate, "Off", manifest.AnnotationMajorVersion, "5"),
		"MajorVersion":        annotations(manifest.AnnotationMajorVersion, "5", manifest.AnnotationIncludePrefix+"p", ""),
		"Profile":             annotations(manifest.AnnotationIncludePrefix+"p", "", manifest.AnnotationCapability, "B"),
		"Capability":          annotations(manifest.AnnotationCapability, "B"),
		manifest.RuleOverride: annotations(),
	} {
		v := in.judge(annotated(t, "apiextensions.k8s.io/CustomResourceDefinition", a))
		if v.Included || v.Rule != rule || v.Reason == "" || v.String() != string(rule)+": "+v.Reason {
			t.Errorf("%s: %+v", rule, v)
		}
	}
	in.Overrides = nil
	if v := in.judge(annotated(t, "apiextensions.k8s.io/CustomResourceDefinition", annotations())); v != (manifest.Verdict{Included: true}) || v.String() != "included" {
		t.Errorf("%+v", v)
	}
}

func TestReadGates(t *testing.T) {
	fg := &configv1.FeatureGate{}
	fg.Spec.FeatureSet = "TechPreviewNoUpgrade"
	fg.Status.FeatureGates = []configv1.FeatureGateDetails{
		{Version: "4.20.1", Enabled: []configv1.FeatureGateAttributes{{Name: "A"}, {Name: "B"}}, Disabled: []configv1.FeatureGateAttributes{{Name: "C"}}},
		{Version: "4.21.0", Enabled: []configv1.FeatureGateAttributes{{Name: "C"}}},
	}
	fg.Name = "cluster"
	cluster := memory.NewOpenShift(memory.Options{})
	checktest.OK(t, cluster.Load(checktest.Get(clusterapi.ToUnstructured(fg))(t)))
	away := errors.New("away")
	broken := memory.New(memory.Options{Intercept: func(context.Context, memory.Call, func(context.Context) error) error { return away }})
	for _, tt := range []struct {
		reader   clusterapi.Reader
		versions []string
		want     string
		err      error
	}{
		{cluster, []string{"4.20.1"}, "TechPreviewNoUpgrade [A B]", nil},
		{cluster, []string{"4.22.0", "4.21.0", "4.20.1"}, "TechPreviewNoUpgrade [C]", nil},
		{cluster, []string{"4.22.0"}, "TechPreviewNoUpgrade []", nil},
		{memory.NewOpenShift(memory.Options{}), []string{"4.20.1"}, " []", nil},
		{memory.New(memory.Options{}), []string{"4.20.1"}, " []", nil},
		{broken, []string{"4.20.1"}, " []", away},
	} {
		set, gates, err := manifest.ReadGates(t.Context(), tt.reader, tt.versions...)
		checktest.ErrorIs(t, tt.err, err)
		if got := fmt.Sprint(set, " ", sets.List(gates)); got != tt.want || gates == nil {
			t.Errorf("%s: %s", tt.versions, got)
		}
	}
}
