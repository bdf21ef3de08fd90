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
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		checktest.FailIf(t, len(rule.Reads)+len(rule.Needs) == 0, "%s neither reads nor needs anything", rule.Name)
		for _, gvk := range rule.Reads {
			checktest.FailIf(t, gvk.Kind == "" || gvk.Version == "", "%s reads %q", rule.Name, gvk)
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

func pool(name string, paused bool, degraded ...mcfgv1.MachineConfigPoolConditionType) *mcfgv1.MachineConfigPool {
	p := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Paused = paused
	for _, t := range []mcfgv1.MachineConfigPoolConditionType{mcfgv1.MachineConfigPoolUpdated, mcfgv1.MachineConfigPoolDegraded} {
		if !slices.Contains(degraded, t) {
			p.Status.Conditions = append(p.Status.Conditions, mcfgv1.MachineConfigPoolCondition{Type: t, Status: corev1.ConditionFalse})
		}
	}
	for _, t := range degraded {
		p.Status.Conditions = append(p.Status.Conditions, mcfgv1.MachineConfigPoolCondition{Type: t, Status: corev1.ConditionTrue, Message: "why"})
	}
	return p
}

func featureGate(set string) *configv1.FeatureGate {
	g := &configv1.FeatureGate{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	g.Spec.FeatureSet = configv1.FeatureSet(set)
	return g
}

// brief renders a result without the remedies.
func brief(r preconditions.Result) string {
	lines := []string{string(r.State)}
	for _, f := range r.Findings {
		message := f.Message
		if f.Remedy != "" {
			message = strings.TrimSuffix(message, ". "+f.Remedy)
		}
		lines = append(lines, f.Severity.String()+" "+f.Reason+": "+message)
	}
	return strings.Join(lines, "\n")
}

func TestDocumented(t *testing.T) {
	good := []configv1.ClusterOperatorStatusCondition{coCond("Available", "True", "", ""), coCond("Degraded", "False", "", "")}
	down := clusterOperator("down", coCond("Available", "False", "R", "m"), coCond("Degraded", "False", "", ""))
	unknown := clusterOperator("dns", coCond("Available", "True", "", ""), coCond("Degraded", "Unknown", "", ""))
	bare := clusterOperator("bare")
	held := clusterOperator("held", append([]configv1.ClusterOperatorStatusCondition{coCond("Upgradeable", "False", "H", "h")}, good...)...)
	const gateText = "Gate ack-4.18-x is open: read"
	runCases(t, nil, []checkCase{
		{check: "PoolsPaused", name: "none", objects: []any{pool("master", false), pool("worker", false)}, want: "Passed"},
		{check: "PoolsPaused", name: "control plane", objects: []any{pool("master", true)}, target: "4.18.6@T", want: "Failed\nBlocking ControlPlanePoolPaused: The pool of the control plane is paused, its nodes would not be updated: master"},
		{check: "PoolsPaused", name: "others", objects: []any{pool("worker", true), pool("infra", true)}, want: "Failed\nWarning PoolPaused: Pools are paused, their nodes are not updated until they are unpaused: infra, worker"},
		{check: "PoolsPaused", name: "canary", objects: []any{pool("worker", true)}, plan: preconditions.Canary, want: "Passed\nInfo PoolPaused: Pools are paused, as a canary update wants it: worker"},
		{check: "PoolsPaused", name: "canary does not excuse the control plane", objects: []any{pool("master", true)}, plan: preconditions.Canary, want: "Failed\nBlocking ControlPlanePoolPaused: The pool of the control plane is paused, its nodes would not be updated: master"},
		{check: "PoolsPaused", name: "control plane only, to even", objects: []any{pool("worker", true)}, target: "4.20.1@T", plan: preconditions.ControlPlaneOnly, want: "Passed\nInfo PoolPaused: Pools are paused, as a control-plane-only update wants it: worker"},
		{check: "PoolsPaused", name: "control plane only, to odd", objects: []any{pool("worker", true)}, plan: preconditions.ControlPlaneOnly, planTarget: "4.19.1", want: "Failed\nWarning PoolPaused: Pools are paused for a control-plane-only update, but 4.19, where it ends, is not a minor version with extended update support: worker"},
		{check: "PoolsPaused", name: "control plane only, first hop", objects: []any{pool("worker", true)}, plan: preconditions.ControlPlaneOnly, planTarget: "4.20.1", want: "Passed\nInfo PoolPaused: Pools are paused, as a control-plane-only update wants it: worker"},
		{check: "PoolsPaused", name: "control plane only, first hop, its end not known", objects: []any{pool("worker", true)}, plan: preconditions.ControlPlaneOnly,
			want: "Passed\nInfo PoolPaused: Pools are paused, as a control-plane-only update wants it, which goes on from here to a minor version with extended update support: worker"},
		{check: "PoolsPaused", name: "control plane only, to 5.2 over 5.0", cv: clusterVersion("4.22.5@A"), objects: []any{pool("worker", true)}, target: "5.0.1@T", plan: preconditions.ControlPlaneOnly, planTarget: "5.2.0", want: "Passed\nInfo PoolPaused: Pools are paused, as a control-plane-only update wants it: worker"},
		{check: "PoolsPaused", name: "control plane only, to 5.4", cv: clusterVersion("5.2.5@A"), objects: []any{pool("worker", true)}, target: "5.3.1@T", plan: preconditions.ControlPlaneOnly, planTarget: "5.4.0",
			want: "Failed\nWarning PoolPaused: Pools are paused for a control-plane-only update, but 5.4, where it ends, is not a minor version with extended update support: worker"},
		{check: "PoolsPaused", name: "no pools", fail: map[string]error{"MachineConfigPool": noKind("MachineConfigPool")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no machine config pools"},

		{check: "PoolsDegraded", name: "none", objects: []any{pool("master", false)}, want: "Passed"},
		{check: "PoolsDegraded", name: "minor", objects: []any{pool("worker", false, mcfgv1.MachineConfigPoolNodeDegraded), pool("infra", false, mcfgv1.MachineConfigPoolRenderDegraded)}, want: "Failed\nBlocking DegradedPool: Machine config pools are degraded: infra (RenderDegraded: why), worker (NodeDegraded: why)"},
		{check: "PoolsDegraded", name: "major", objects: []any{pool("master", false, mcfgv1.MachineConfigPoolDegraded)}, target: "5.0.1@T", want: "Failed\nBlocking DegradedPool: Machine config pools are degraded: master (Degraded: why)"},
		{check: "PoolsDegraded", name: "rollback", objects: []any{pool("worker", false, mcfgv1.MachineConfigPoolNodeDegraded)}, target: "4.18.4@T", want: "Failed\nWarning DegradedPool: Machine config pools are degraded: worker (NodeDegraded: why)"},
		{check: "PoolsDegraded", name: "patch", objects: []any{pool("worker", false, mcfgv1.MachineConfigPoolNodeDegraded)}, target: "4.18.6@T", want: "Failed\nWarning DegradedPool: Machine config pools are degraded: worker (NodeDegraded: why)"},

		{check: "ClusterOperators", name: "good", objects: []any{clusterOperator("a", good...)}, want: "Passed"},
		{check: "ClusterOperators", name: "minor", objects: []any{clusterOperator("a", good...), unknown, down, bare, held},
			want: "Failed\nBlocking ClusterOperatorNotAvailable: Cluster operators are not available: bare (no condition Available), down (Available=False R: m)\n" +
				"Blocking ClusterOperatorDegraded: Cluster operators are degraded: bare (no condition Degraded), dns (Degraded=Unknown)\n" +
				"Blocking ClusterOperatorNotUpgradeable: Cluster operators must not be updated to another minor version: held (Upgradeable=False H: h)"},
		{check: "ClusterOperators", name: "patch", objects: []any{down, held}, target: "4.18.6@T", want: "Failed\nWarning ClusterOperatorNotAvailable: Cluster operators are not available: down (Available=False R: m)"},
		{check: "ClusterOperators", name: "multi", objects: []any{down, held}, target: "4.18.5@T", arch: "Multi", want: "Failed\nBlocking ClusterOperatorNotAvailable: Cluster operators are not available: down (Available=False R: m)"},

		{check: "AdminAcks", name: "open", objects: []any{gates(map[string]string{"ack-4.18-x": "read", "ack-4.17-x": "old"}), acks(nil)}, want: "Failed\nBlocking AdminAckRequired: " + gateText},
		{check: "AdminAcks", name: "acknowledged", objects: []any{gates(map[string]string{"ack-4.18-x": "read"}), acks(map[string]string{"ack-4.18-x": "true"})}, want: "Passed"},
		{check: "AdminAcks", name: "patch", objects: []any{gates(map[string]string{"ack-4.18-x": "read"}), acks(nil)}, target: "4.18.6@T", want: "NotApplicable"},
		{check: "AdminAcks", name: "two gates, one without text", objects: []any{gates(map[string]string{"ack-4.18-y": "", "ack-4.18-x": "read"}), acks(map[string]string{"ack-4.18-y": "true"})},
			want: "Failed\nBlocking AdminAckRequired: " + gateText + "\nBlocking AdminAckRequired: Gate ack-4.18-y is open: admin-gates configmap gate ack-4.18-y must contain a non-empty value"},
		{check: "AdminAcks", name: "rollback", objects: []any{gates(map[string]string{"ack-4.18-x": "read"}), acks(nil)}, target: "4.17.6@T", want: "NotApplicable"},
		{check: "AdminAcks", name: "no ConfigMap", want: `Unknown` + "\n" + `Warning UnknownError: Failed to retrieve ConfigMap admin-gates from namespace openshift-config-managed: configmap "admin-gates" not found`},
		{check: "AdminAcks", name: "current is not a version", cv: clusterVersion("4.18@A"), want: `Unknown` + "\n" + `Warning UnknownError: current version "4.18": No Major.Minor.Patch elements found`},

		{check: "VersionOverrides", name: "none", cv: clusterVersion("4.18.5@A", override(false)), want: "Passed"},
		{check: "VersionOverrides", name: "minor", cv: clusterVersion("4.18.5@A", override(true)), want: "Failed\nBlocking ClusterVersionOverridesSet: Overrides keep resources from being updated: version (Deployment ns/n)"},
		{check: "VersionOverrides", name: "patch", cv: clusterVersion("4.18.5@A", override(true)), target: "4.18.6@T", want: "Failed\nWarning ClusterVersionOverridesSet: Overrides keep resources from being updated: version (Deployment ns/n)"},
		{check: "VersionOverrides", name: "sorted", cv: clusterVersion("4.18.5@A", override(true), func(cv *configv1.ClusterVersion) {
			cv.Spec.Overrides = append(cv.Spec.Overrides, configv1.ComponentOverride{Kind: "ClusterRole", Name: "z", Unmanaged: true})
		}), want: "Failed\nBlocking ClusterVersionOverridesSet: Overrides keep resources from being updated: version (ClusterRole z), version (Deployment ns/n)"},
		{check: "VersionOverrides", name: "absent", fail: map[string]error{"ClusterVersion": noKind("ClusterVersion")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no ClusterVersion"},

		{check: "Channel", name: "good", cv: clusterVersion("4.18.5@A", channel("eus-4.20")), want: "Passed"},
		{check: "Channel", name: "none", cv: clusterVersion("4.18.5@A", channel("")), want: "Passed\nInfo NoChannel: No channel is set, so no updates are retrieved"},
		{check: "Channel", name: "candidate, behind, unknown version", cv: clusterVersion("4.18.5@A", channel("candidate-4.18"), cond("RetrievedUpdates", "False", "VersionNotFound", "")),
			want: "Failed\nWarning UnsupportedChannel: Releases of channel candidate-4.18 are not supported unless they are in another channel too\n" +
				"Warning ChannelBehindTarget: Channel candidate-4.18 has no releases of 4.19\nWarning VersionNotFound: The current version 4.18.5 is not in channel candidate-4.18"},
		{check: "Channel", name: "minors are numbers", cv: clusterVersion("4.8.5@A", channel("stable-4.9")), target: "4.10.1@T", want: "Failed\nWarning ChannelBehindTarget: Channel stable-4.9 has no releases of 4.10"},
		{check: "Channel", name: "the version follows the last hyphen", cv: clusterVersion("4.18.5@A", channel("my-stable-4.18")), want: "Failed\nWarning ChannelBehindTarget: Channel my-stable-4.18 has no releases of 4.19"},
		{check: "Channel", name: "without a minor", cv: clusterVersion("4.18.5@A", channel("stable-scos-4")), want: "Passed"},
		{check: "Channel", name: "majors are compared", cv: clusterVersion("4.22.5@A", channel("stable-4.22")), target: "5.0.1@T", want: "Failed\nWarning ChannelBehindTarget: Channel stable-4.22 has no releases of 5.0"},
		{check: "Channel", name: "other faults of retrieval", cv: clusterVersion("4.18.5@A", channel("stable-4.19"), cond("RetrievedUpdates", "False", "RemoteFailed", "")), want: "Passed"},
		{check: "Channel", name: "of our own", cv: clusterVersion("4.18.5@A", channel("internal")), want: "Passed"},

		{check: "FeatureSet", name: "default", objects: []any{featureGate("")}, want: "Passed"},
		{check: "FeatureSet", name: "absent", want: "Passed"},
		{check: "FeatureSet", name: "minor", objects: []any{featureGate("TechPreviewNoUpgrade")}, want: "Failed\nBlocking FeatureSetNoUpgrade: Feature set TechPreviewNoUpgrade prevents updates to other minor versions"},
		{check: "FeatureSet", name: "patch", objects: []any{featureGate("CustomNoUpgrade")}, target: "4.18.6@T", want: "Failed\nWarning FeatureSetNoUpgrade: Feature set CustomNoUpgrade prevents updates to other minor versions"},
		{check: "FeatureSet", name: "no kind", fail: map[string]error{"FeatureGate": noKind("FeatureGate")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no FeatureGates"},
		{check: "FeatureSet", name: "development", objects: []any{featureGate("DevPreviewNoUpgrade")}, want: "Failed\nBlocking FeatureSetNoUpgrade: Feature set DevPreviewNoUpgrade prevents updates to other minor versions"},

		{check: "UpdateInProgress", name: "settled", cv: clusterVersion("4.18.5@A", history("4.18.5@A C"), cond("Progressing", "False", "", "")), want: "Passed"},
		{check: "UpdateInProgress", name: "partial", cv: clusterVersion("4.18.5@A", history("4.18.5@A P")), want: "Failed\nBlocking UpdateInProgress: An update to 4.18.5 is in progress"},
		{check: "UpdateInProgress", name: "progressing", cv: clusterVersion("4.18.5@A", history("4.18.5@A C"), cond("Progressing", "True", "", "")), target: "4.18.6@T", want: "Failed\nWarning UpdateInProgress: An update to 4.18.5 is in progress"},
		{check: "UpdateInProgress", name: "partial, patch", cv: clusterVersion("4.18.5@A", history("4.18.5@A P", "4.18.4@Z C")), target: "4.18.6@T", want: "Failed\nWarning UpdateInProgress: An update to 4.18.5 is in progress"},
		{check: "UpdateInProgress", name: "image of an older entry", cv: clusterVersion("4.18.5@A", history("4.18.5@A P", "4.19.1@T P")), want: "Failed\nBlocking UpdateInProgress: An update to 4.18.5 is in progress"},
		{check: "UpdateInProgress", name: "images are not known", cv: clusterVersion("4.18.5", history("4.18.5 P")), target: "4.19.1", want: "Failed\nBlocking UpdateInProgress: An update to 4.18.5 is in progress"},
		{check: "UpdateInProgress", name: "to the target itself", cv: clusterVersion("4.18.5@A", history("4.19.1@T P")), want: "Passed"},
		{check: "UpdateInProgress", name: "to the target itself, mirrored", cv: clusterVersion("4.18.5@A", history("4.19.1@quay.io/r@sha256:1 P")), target: "4.19.1@mirror.local/r@sha256:1", want: "Passed"},
		{check: "UpdateInProgress", name: "to the target's version", cv: clusterVersion("4.18.5@A", history("4.19.1@T P")), target: "4.19.1", want: "Passed"},
	})
}

// TestGateMessage: the whole of it, with the command that acknowledges.
func TestGateMessage(t *testing.T) {
	cv := clusterVersion("4.18.5@A")
	r := reader(t, cv, gates(map[string]string{"ack-4.18-x": "APIs are removed."}), acks(nil))
	result, _ := run(t, rules.Default(rules.Options{}), input(r, cv, "4.19.1@T")).Result("AdminAcks")
	want := `Gate ack-4.18-x is open: APIs are removed. Then acknowledge with: oc -n openshift-config patch cm admin-acks --patch '{"data":{"ack-4.18-x":"true"}}' --type=merge`
	checktest.FailIf(t, len(result.Findings) != 1 || result.Findings[0].Message != want, "%+v", result.Findings)
}
