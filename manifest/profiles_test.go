package manifest_test

import (
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
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

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
