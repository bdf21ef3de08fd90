package preconditions_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

// seenOfRules is what all tests together have seen of each check.
var seenOfRules = struct {
	sync.Mutex
	read       map[string]map[string]bool                 // kinds by check
	severities map[string]map[preconditions.Severity]bool // by check
}{read: map[string]map[string]bool{}, severities: map[string]map[preconditions.Severity]bool{}}

// checkRules compares what checks did with what they say of themselves.
func checkRules(t testing.TB, checks []preconditions.Check, r *fakeReader, report *preconditions.Report) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	seenOfRules.Lock()
	defer seenOfRules.Unlock()
	for i, c := range checks {
		described, ok := c.(preconditions.Described)
		if !ok {
			continue
		}
		rule := described.Rule()
		if len(checks) == 1 {
			for call := range r.calls {
				_, what, _ := strings.Cut(call, " ")
				kind, _, _ := strings.Cut(what, "/")
				note(seenOfRules.read, rule.Name, kind)
				if !slices.ContainsFunc(rule.Reads, kindIs(kind)) {
					t.Errorf("check %s reads %s, and does not say so", rule.Name, kind)
				}
			}
		}
		result := report.Results[i]
		for j, f := range result.Findings {
			if result.State == preconditions.NotApplicable || result.Err != nil && j == len(result.Findings)-1 {
				continue // not a finding of its own
			}
			note(seenOfRules.severities, rule.Name, f.Severity)
			if !slices.Contains(rule.Severities, f.Severity) {
				t.Errorf("check %s: %s is %s, which its rule does not have", rule.Name, f.Reason, f.Severity)
			}
			if rule.Link == "" {
				continue // the operator's own, with its texts
			}
			if f.Source == "" || f.Remedy == "" || len(f.Objects) == 0 || !strings.HasSuffix(f.Message, f.Remedy) {
				t.Errorf("check %s: incomplete finding %+v", rule.Name, f)
			}
		}
	}
}

func note[K comparable](seen map[string]map[K]bool, name string, what K) {
	if seen[name] == nil {
		seen[name] = map[K]bool{}
	}
	seen[name][what] = true
}

// TestMain looks, after all tests, for what a rule has and no test has seen.
func TestMain(m *testing.M) {
	code := m.Run()
	if f := flag.Lookup("test.run"); code == 0 && f.Value.String() == "" && flag.Lookup("test.fuzz").Value.String() == "" && flag.Lookup("test.bench").Value.String() == "" {
		for _, c := range rules.Documented(rules.Options{}) {
			rule := c.(preconditions.Described).Rule()
			for _, s := range rule.Severities {
				if !seenOfRules.severities[rule.Name][s] {
					println("no test has seen a finding of check", rule.Name, "that is", s.String())
					code = 1
				}
			}
			for _, gvk := range rule.Reads {
				if !seenOfRules.read[rule.Name][gvk.Kind] {
					println("no test has seen check", rule.Name, "read", gvk.Kind)
					code = 1
				}
			}
		}
	}
	os.Exit(code)
}

// What the documented checks say of themselves is complete.
func TestRules(t *testing.T) {
	fields := []string{"TargetPayload", "CurrentPayload", "TargetKernel", "Alerts", "Backups", "VSphere", "Signatures", "Now"}
	seen := map[string]bool{}
	for _, c := range rules.Documented(rules.Options{}) {
		described, ok := c.(preconditions.Described)
		if !ok {
			t.Errorf("%s does not describe itself", c.Name())
			continue
		}
		rule := described.Rule()
		if rule.Name != c.Name() || seen[rule.Name] {
			t.Errorf("%s is called %s", c.Name(), rule.Name)
		}
		seen[rule.Name] = true
		if rule.Source == "" || !strings.HasPrefix(rule.Link, "https://") {
			t.Errorf("%s: source %q, link %q", rule.Name, rule.Source, rule.Link)
		}
		if len(rule.Severities) == 0 || !slices.IsSorted(rule.Severities) || len(slices.Compact(slices.Clone(rule.Severities))) != len(rule.Severities) {
			t.Errorf("%s: severities %v", rule.Name, rule.Severities)
		}
		if len(rule.Reads)+len(rule.Needs) == 0 {
			t.Errorf("%s neither reads nor needs anything", rule.Name)
		}
		for _, gvk := range rule.Reads {
			if gvk.Kind == "" || gvk.Version == "" {
				t.Errorf("%s reads %q", rule.Name, gvk)
			}
		}
		for _, need := range rule.Needs {
			if !slices.Contains(fields, need) {
				t.Errorf("%s needs %q, which Input does not have", rule.Name, need)
			}
		}
	}
	checktest.Equal(t, 34, len(seen), "checks")
	var names []string
	for _, c := range rules.Default(rules.Options{}) {
		names = append(names, c.Name())
	}
	slices.Sort(names)
	checktest.Equal(t, 41, len(slices.Compact(names)), "checks %v", names)
}

func TestScope(t *testing.T) {
	const all, minor, at417 = "PoolsPaused", "AdminAcks", "NetworkPlugin"
	for _, tt := range []struct {
		check, current, target string
		want                   bool
	}{
		{all, "4.18.5", "4.18.6", true},
		{all, "", "", true},
		{minor, "4.18.5", "4.18.6", false},
		{minor, "4.18.5", "4.19.0", true},
		{minor, "4.22.5", "5.0.0", true},
		{minor, "4.19.5", "4.18.0", false},
		{minor, "x", "4.18.0", true},
		{minor, "4.18.0", "", true},
		{at417, "4.16.9", "4.17.0", true},
		{at417, "4.16.9", "4.17.0-rc.1", true},
		{at417, "4.16.9", "4.18.0", true},
		{at417, "4.16.9", "5.0.0", true},
		{at417, "4.17.0-ec.1", "4.17.0", false},
		{at417, "4.17.1", "4.18.0", false},
		{at417, "5.0.1", "5.1.0", false},
		{at417, "4.16.1", "4.16.2", false},
		{at417, "4.17.1", "4.16.2", false},
		{at417, "4.9.1", "4.10.2", false},
		{at417, "4.9.1", "4.100.2", true},
		{at417, "x", "4.18.0", true},
		{at417, "4.16.1", "", true},
	} {
		tr := preconditions.NewTransition(clusterVersion(tt.current), configv1.Release{Version: tt.target}, false, preconditions.Full)
		checktest.Equal(t, tt.want, checkNamed(t, tt.check).Applies(tr), "%s covers %q to %q", tt.check, tt.current,
			tt.target)
	}
}

// A check that is bound to a kind of step never says less of a step that is not
// known than of one that is.
func TestScopeUnknown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.StringMatching(`4\.(1[5-9]|2[0-2])\.[0-9]`)
		current, target := version.Draw(t, "current"), version.Draw(t, "target")
		for _, c := range rules.Documented(rules.Options{}) {
			applies := func(current, target string) bool {
				return c.Applies(preconditions.NewTransition(clusterVersion(current), configv1.Release{Version: target}, false, preconditions.Full))
			}
			if applies(current, target) && (!applies("", target) || !applies(current, "") || !applies("", "")) {
				t.Errorf("%s applies to %s to %s, and not where a version is not known", c.Name(), current, target)
			}
		}
	})
}

func TestRuleIsConstant(t *testing.T) {
	for _, c := range rules.Documented(rules.Options{}) {
		rule := c.(preconditions.Described).Rule()
		for i := range rule.Reads {
			rule.Reads[i].Kind = "Changed"
		}
		if diff := cmp.Diff(0, len(slices.DeleteFunc(slices.Clone(checkNamed(t, c.Name()).(preconditions.Described).Rule().Reads), func(k gvk) bool { return k.Kind != "Changed" }))); diff != "" {
			t.Errorf("%s: the rule of one check changes another's", c.Name())
		}
	}
}
