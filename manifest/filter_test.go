package manifest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
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

var update = flag.Bool("update", false, "write the wanted results in testdata")

// TestLoadVerdicts loads the payloads of testdata/load. Each is a txtar archive:
// a text that says what it shows, lines "option = value" among it, the files of
// the payload, and last the file "verdicts", which go test -update writes. What
// a payload needs besides its manifests is there by itself.
func TestLoadVerdicts(t *testing.T) {
	paths, err := filepath.Glob("testdata/load/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			data := checktest.Get(os.ReadFile(path))(t)
			text, want, _ := strings.Cut(string(data), "-- verdicts --\n")
			got := verdicts(t, text)
			if *update {
				checktest.OK(t, os.WriteFile(path, []byte(text+"-- verdicts --\n"+got), 0o644))
				return
			}
			checktest.Same(t, want, got)
		})
	}
}

// verdicts loads the payload of an archive and writes what came of it.
func verdicts(t *testing.T, archive string) string {
	comment, files := unpack(archive)
	o := manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: manifest.DefaultFilter()}
	var pass manifest.Filter
	raw := false
	for line := range strings.Lines(comment) {
		option, value, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if !ok {
			continue
		}
		switch option {
		case "feature set":
			o.Filter.FeatureSet = &value
		case "gates":
			o.Filter.Gates = sets.New(strings.Fields(value)...)
		case "exclude identifier":
			o.Filter.ExcludeIdentifier = value
		case "capabilities":
			pass.Capabilities = &manifest.Capabilities{Known: sets.New("Console", "Storage", "Insights"), Enabled: sets.New(strings.Fields(value)...)}
		case "unmanaged":
			pass.Overrides = append(pass.Overrides, configv1.ComponentOverride{Group: "example.com", Kind: "K", Name: value, Unmanaged: true})
		case "show":
			raw = value == "raw"
		default:
			t.Fatalf("unknown option %q", option)
		}
	}
	var out strings.Builder
	p, err := manifest.Load(t.Context(), payload(files), o)
	if fault, ok := errors.AsType[*manifest.Error](err); ok {
		fmt.Fprintf(&out, "error     %s\n", fault.Reason)
		for _, f := range fault.Faults {
			fmt.Fprintf(&out, "fault     %s\n          %s\n", f.Position(), f)
		}
		return out.String()
	}
	if err != nil {
		return fmt.Sprintf("error     %s\n", err)
	}
	included, excluded := p.Included(pass)
	for _, m := range included {
		fmt.Fprintf(&out, "included  %s, document %d: %s\n", m.Filename, m.Document, m.Identity().Name)
		if raw {
			fmt.Fprintf(&out, "          %s\n", m.Raw)
		}
	}
	for _, e := range append(p.Excluded, excluded...) {
		fmt.Fprintf(&out, "excluded  %s, document %d: %s\n          %s\n", e.Manifest.Filename, e.Manifest.Document, e.Manifest.Identity().Name, e.Verdict)
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(&out, "warning   %s\n", w)
	}
	fmt.Fprintf(&out, "hash      %s\n", p.Hash)
	return out.String()
}

// unpack reads an archive in the format of golang.org/x/tools/txtar.
func unpack(archive string) (comment string, files map[string]string) {
	files = make(map[string]string)
	name := ""
	for line := range strings.Lines(archive) {
		if n, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(n, " --\n") {
			name = strings.TrimSuffix(n, " --\n")
			files[name] = ""
		} else if name == "" {
			comment += line
		} else {
			files[name] += line
		}
	}
	return comment, files
}

const profilesFile = "testdata/profiles.txt"

// unset is a choice that nobody made.
const unset = "unset"

// profileChoices are the cluster profiles, the last ones with an exclude identifier.
var (
	profileChoices = []string{unset, "hypershift", "ibm-cloud-managed", "self-managed-high-availability", "single-node-developer", "no-such-profile",
		"ibm-cloud-managed internal-openshift-hosted", "self-managed-high-availability internal-openshift-hosted"}
	featureSetChoices = []string{unset, "Default", "TechPreviewNoUpgrade", "DevPreviewNoUpgrade", "CustomNoUpgrade", "OKD"}
	capabilityChoices = []string{unset, "None", "v4.11", "v4.12", "v4.13", "v4.14", "v4.15", "v4.16", "v4.17", "v4.18", "vCurrent",
		"None Console", "None Storage", "None Storage CloudCredential", "v4.11 ImageRegistry"}
)

// TestProfiles judges real payloads under every profile, feature set and set of
// capabilities. The numbers are those of the file, which go test -update writes:
// a plain reading of the annotations by another program came to the same.
func TestProfiles(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile(profilesFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	wanted := map[string]bool{}
	for line := range strings.Lines(string(file)) {
		wanted[strings.TrimSpace(line)] = true
	}
	var out strings.Builder
	for _, name := range []string{"payload-4.17.30", "payload-4.18.15"} {
		if israce.Enabled && name != "payload-4.18.15" {
			continue
		}
		dir := filepath.Join(testdata.Dir(t), name)
		all := checktest.Get(manifest.Load(t.Context(), os.DirFS(dir), manifest.LoadOptions{}))(t)
		for i, profile := range profileChoices {
			for j, set := range featureSetChoices {
				if israce.Enabled && (i+j)%5 != 0 {
					continue
				}
				r := profileRow{T: t, dir: dir, profile: profile, set: set}
				p := r.judge(all)
				if j == 1+i%4 { // a sample, as it takes longer
					r.load(p)
				}
				row := fmt.Sprintf("%s, %s, %s: %s", name, profile, set, r.numbers(p))
				fmt.Fprintln(&out, row)
				if !*update && !wanted[row] {
					t.Errorf("not in %s: %s", profilesFile, row)
				}
			}
		}
	}
	if *update && !israce.Enabled {
		checktest.OK(t, os.WriteFile(profilesFile, []byte(out.String()), 0o644))
	} else if n := strings.Count(out.String(), "\n"); n != len(wanted) && !israce.Enabled {
		t.Errorf("%d rows, and %d in %s", n, len(wanted), profilesFile)
	}
	// what the cluster-version operator was seen to include
	for row, numbers := range map[string]string{
		"payload-4.17.30, self-managed-high-availability, Default: ":                           "794 with 33 operators",
		"payload-4.18.15, self-managed-high-availability, Default: ":                           "806 with 34 operators; None 359/.* v4.11 467/.* v4.14 639/.* v4.17 798/.* vCurrent 806/",
		"payload-4.17.30, self-managed-high-availability internal-openshift-hosted, Default: ": ".* with 16 operators",
	} {
		if !israce.Enabled && !regexp.MustCompile("(?m)^"+row+numbers).MatchString(out.String()) {
			t.Errorf("the operator includes %s%s", row, numbers)
		}
	}
}

// profileRow is a payload under one profile and feature set.
type profileRow struct {
	*testing.T
	dir          string
	profile, set string
}

func (r *profileRow) filter() manifest.LoadFilter {
	f := manifest.LoadFilter{Gates: sets.New[string]()}
	profile, exclude, _ := strings.Cut(r.profile, " ")
	if f.ExcludeIdentifier = exclude; profile != unset {
		f.Profile = &profile
	}
	switch r.set {
	case unset:
	case "Default":
		f.FeatureSet = new(string)
	default:
		f.FeatureSet = &r.set
	}
	return f
}

// judge returns what of a payload that was loaded without a filter passes one.
func (r *profileRow) judge(all *manifest.Payload) *manifest.Payload {
	f, p := r.filter(), &manifest.Payload{Excluded: slices.Clone(all.Excluded)}
	for _, m := range all.Manifests {
		v := f.Judge(m)
		if v.Included {
			p.Manifests = append(p.Manifests, m)
		} else {
			p.Excluded = append(p.Excluded, manifest.Exclusion{Manifest: m, Verdict: v})
		}
	}
	return p
}

// load makes sure that loading with the filter leaves out the same manifests.
func (r *profileRow) load(want *manifest.Payload) {
	p := checktest.Get(manifest.Load(r.Context(), os.DirFS(r.dir), manifest.LoadOptions{Filter: r.filter()}))(r)
	verdicts := func(p *manifest.Payload) map[string]manifest.Verdict {
		out := map[string]manifest.Verdict{}
		for _, m := range p.Manifests {
			out[m.String()] = manifest.Verdict{Included: true}
		}
		for _, e := range p.Excluded {
			out[e.Manifest.String()] = e.Verdict
		}
		return out
	}
	if diff := cmp.Diff(verdicts(want), verdicts(p)); diff != "" {
		r.Errorf("%s, %s: judged and loaded: %s", r.profile, r.set, diff)
	}
}

// numbers says how many manifests and operators of a payload passes include, and
// why the others are not.
func (r *profileRow) numbers(p *manifest.Payload) string {
	row := fmt.Sprintf("%d with %d operators", len(p.Manifests), len(p.Operators()))
	for _, capabilities := range capabilityChoices {
		f := manifest.Filter{Gates: sets.New[string]()}
		baseline, additional, _ := strings.Cut(capabilities, " ")
		if capabilities != unset {
			spec := configv1.ClusterVersionCapabilitiesSpec{BaselineCapabilitySet: configv1.ClusterVersionCapabilitySet(baseline)}
			for _, c := range strings.Fields(additional) {
				spec.AdditionalEnabledCapabilities = append(spec.AdditionalEnabledCapabilities, configv1.ClusterVersionCapability(c))
			}
			resolved := manifest.ResolveCapabilities(&spec, nil, f.Gates)
			f.Capabilities = &resolved
		}
		included, excluded := p.Included(f)
		operators := 0
		for _, m := range included {
			if m.GVK().Kind == "ClusterOperator" {
				operators++
			}
		}
		switch {
		case len(included)+len(excluded) != len(p.Manifests):
			r.Errorf("%s: %d included and %d excluded of %d", capabilities, len(included), len(excluded), len(p.Manifests))
		case capabilities != unset:
			row += fmt.Sprintf("; %s %d/%d", capabilities, len(included), operators)
		case len(excluded) > 0 || operators != len(p.Operators()):
			r.Errorf("%d with %d operators without capabilities, not %s", len(included), operators, row)
		}
	}
	rules := map[manifest.Rule]int{}
	for _, e := range p.Excluded {
		rules[e.Verdict.Rule]++
	}
	row += "; excluded:"
	for _, rule := range slices.Sorted(maps.Keys(rules)) {
		row += fmt.Sprintf(" %s %d", rule, rules[rule])
	}
	return row
}
