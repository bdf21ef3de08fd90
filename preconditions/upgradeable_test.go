package preconditions_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

const (
	docs         = "https://docs.redhat.com/en/documentation/openshift_container_platform/"
	conditionURL = docs + "4.18/html/updating_clusters/understanding-openshift-updates-1#understanding_clusteroperator_conditiontypes_understanding-openshift-updates"
	deletionURL  = docs + "4.18/html/updating_clusters/understanding-openshift-updates-1#update-manifest-application_how-updates-work"
	overrideURL  = docs + "4.18/html/config_apis/clusterversion-config-openshift-io-v1#spec-8"

	updatingText  = "An update is already in progress and the details are in the Progressing condition."
	overridesText = "Disabling ownership via cluster version overrides prevents updates between minor or major versions. Please remove overrides before requesting a minor or major version update."
)

func noKind(kind string) error {
	return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: kind}, SearchedVersions: []string{"v1"}}
}

// render writes risks as NAME | MESSAGE | URL lines, then the error.
func render(risks []configv1.ConditionalUpdateRisk, err error) string {
	var lines []string
	for _, r := range risks {
		lines = append(lines, r.Name+" | "+r.Message+" | "+r.URL)
	}
	if err != nil {
		lines = append(lines, "error: "+err.Error())
	}
	return strings.Join(lines, "\n")
}

func TestSources(t *testing.T) {
	boom := errors.New("boom")
	updating := cond("Progressing", "True", "", "")
	none := map[string]string{}
	for _, tt := range []struct {
		name    string
		source  int
		objects []any
		fail    map[string]error
		own     string // empty: 4.18.5
		pending []string
		want    string
	}{
		{name: "updating", source: 0, objects: []any{clusterVersion("4.18.5", updating)}, want: "ClusterVersionUpdating | " + updatingText + " | " + conditionURL},
		{name: "updating: the own release does not matter", source: 0, own: "x", objects: []any{clusterVersion("4.18.5", updating)}, want: "ClusterVersionUpdating | " + updatingText + " | " + conditionURL},
		{name: "not updating", source: 0, objects: []any{clusterVersion("x", cond("Progressing", "False", "", ""))}},
		{name: "progressing unknown", source: 0, objects: []any{clusterVersion("4.18.5", cond("Progressing", "Unknown", "", ""))}},
		{name: "updating, bad version", source: 0, objects: []any{clusterVersion("4.18", updating)}, want: `error: failed to parse current target "4.18" to SemVer: No Major.Minor.Patch elements found`},
		{name: "updating, absent", source: 0},
		{name: "updating, no kind", source: 0, fail: map[string]error{"ClusterVersion": noKind("ClusterVersion")}},
		{name: "updating, unreadable", source: 0, fail: map[string]error{"ClusterVersion": boom}, want: "error: boom"},
		{name: "updating, not in the dump", source: 0, fail: map[string]error{"ClusterVersion": clusterapi.ErrNotCollected}, want: "error: not collected in this recording"},

		{name: "overrides", source: 1, objects: []any{clusterVersion("4.18.5", override(false), override(true))}, want: "ClusterVersionOverrides | " + overridesText + " | " + overrideURL},
		{name: "managed overrides", source: 1, objects: []any{clusterVersion("x", override(false))}},
		{name: "overrides, bad version", source: 1, objects: []any{clusterVersion("4.18.05", override(true))}, want: `error: failed to parse current target "4.18.05" to SemVer: Patch number must not contain leading zeroes "05"`},
		{name: "overrides, absent", source: 1},
		{name: "overrides, unreadable", source: 1, fail: map[string]error{"ClusterVersion": boom}},

		{name: "deletions", source: 2, pending: []string{`job "b/x"`, `deployment "a/y"`}, want: `ResourceDeletionInProgress | Cluster minor or major version upgrades are not allowed while resource deletions are in progress; resources=deployment "a/y",job "b/x" | ` + deletionURL},
		{name: "no deletions", source: 2},
		{name: "no deletions, bad version", source: 2, own: "4", want: "ResourceDeletionInProgressUnknown | Failed to parse cluster version to check resource deletion: No Major.Minor.Patch elements found | " + docs + "\nerror: Failed to parse cluster version to check resource deletion: No Major.Minor.Patch elements found"},

		{name: "ack: nothing", source: 3, objects: []any{gates(none), acks(none)}},
		{name: "ack: no gates", source: 3, objects: []any{acks(none)}, want: `AdminAckUnknown | Failed to retrieve ConfigMap admin-gates from namespace openshift-config-managed: configmap "admin-gates" not found | ` + docs + "\n" + `error: Failed to retrieve ConfigMap admin-gates from namespace openshift-config-managed: configmap "admin-gates" not found`},
		{name: "ack: no acks, and no gate applies", source: 3, objects: []any{gates(none)}, want: `AdminAckUnknown | Failed to retrieve ConfigMap admin-acks from namespace openshift-config: configmap "admin-acks" not found | ` + docs + "\n" + `error: Failed to retrieve ConfigMap admin-acks from namespace openshift-config: configmap "admin-acks" not found`},
		{name: "ack: gates unreadable", source: 3, objects: []any{acks(none)}, fail: map[string]error{"ConfigMap/admin-gates": boom}, want: "AdminAckUnknown | Failed to retrieve ConfigMap admin-gates from namespace openshift-config-managed: boom | " + docs + "\nerror: Failed to retrieve ConfigMap admin-gates from namespace openshift-config-managed: boom"},
		{name: "ack: acks unreadable", source: 3, objects: []any{gates(none)}, fail: map[string]error{"ConfigMap/admin-acks": boom}, want: "AdminAckUnknown | Failed to retrieve ConfigMap admin-acks from namespace openshift-config: boom | " + docs + "\nerror: Failed to retrieve ConfigMap admin-acks from namespace openshift-config: boom"},
		{name: "ack: no kind", source: 3, fail: map[string]error{"ConfigMap": noKind("ConfigMap")}},
		{name: "ack: not in the dump", source: 3, fail: map[string]error{"ConfigMap": clusterapi.ErrNotCollected}, want: "AdminAckUnknown | Failed to retrieve ConfigMap admin-gates from namespace openshift-config-managed: not collected in this recording | " + docs + "\nerror: Failed to retrieve ConfigMap admin-gates from namespace openshift-config-managed: not collected in this recording"},
		{name: "ack: bad version goes first", source: 3, own: "v4.18.5", want: `AdminAckUnknown | Failed to parse cluster version to check admin-acks: Invalid character(s) found in major number "v4" | ` + docs + "\n" + `error: Failed to parse cluster version to check admin-acks: Invalid character(s) found in major number "v4"`},
		{name: "ack: sorted by name, acknowledged left out", source: 3, objects: []any{
			gates(map[string]string{"ack-4.18-z": "z", "ack-4.18-a": "a https://x.y/z", "ack-4.18-k": "k"}), acks(map[string]string{"ack-4.18-k": "true"})},
			want: "AdminAck-ack-4.18-a | a https://x.y/z | https://x.y/z\nAdminAck-ack-4.18-z | z | " + docs},

		{name: "operators", source: 4, objects: []any{
			clusterOperator("z", coCond("Upgradeable", "False", "R", "zm")), clusterOperator("etcd", coCond("Available", "True", "", ""), coCond("Upgradeable", "False", "", "")),
			clusterOperator("t", coCond("Upgradeable", "True", "", "")), clusterOperator("u", coCond("Upgradeable", "Unknown", "", "")), clusterOperator("n")},
			want: "ClusterOperatorUpgradeable-etcd |  | " + conditionURL + "\nClusterOperatorUpgradeable-z | zm | " + conditionURL},
		{name: "operators: none", source: 4},
		{name: "operators: no kind", source: 4, fail: map[string]error{"ClusterOperator": noKind("ClusterOperator")}},
		{name: "operators: unreadable", source: 4, fail: map[string]error{"ClusterOperator": boom}, want: "ClusterOperatorUpgradeableUnknown | Failed to retrieve ClusterOperators to check Upgradeable conditions: boom | " + conditionURL + "\nerror: Failed to retrieve ClusterOperators to check Upgradeable conditions: boom"},
		{name: "operators: bad version, even with none", source: 4, own: "4.18.x", want: `ClusterOperatorUpgradeableUnknown | Failed to parse cluster version to check Upgradeable conditions: Invalid character(s) found in patch number "x" | ` + docs + "\n" + `error: Failed to parse cluster version to check Upgradeable conditions: Invalid character(s) found in patch number "x"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := reader(t, tt.objects...)
			for what, err := range tt.fail {
				r.failing(what, err)
			}
			o := preconditions.RiskOptions{Reader: r, OwnVersion: "4.18.5"}
			if tt.own != "" {
				o.OwnVersion = tt.own
			}
			if tt.pending != nil {
				o.Deletions = func() []string { return tt.pending }
			}
			risks, err := preconditions.Sources(o)[tt.source].Risks(context.Background(), nil)
			checktest.Same(t, tt.want, render(risks, err))
			for _, risk := range risks {
				checktest.Same(t, []configv1.ClusterCondition{{Type: "Always"}}, risk.MatchingRules)
			}
		})
	}
}

func TestSourceNames(t *testing.T) {
	var names []string
	for _, s := range preconditions.Sources(preconditions.RiskOptions{}) {
		names = append(names, s.Name())
	}
	want := []string{"ClusterVersionUpdating", "ClusterVersionOverrides", "ResourceDeletionInProgress", "AdminAck", "ClusterOperatorUpgradeable"}
	checktest.Same(t, want, names)
}

// fixed is a source with a fixed answer.
type fixed struct {
	name  string
	risks []configv1.ConditionalUpdateRisk
	err   error
}

func (f fixed) Name() string { return f.name }
func (f fixed) Risks(context.Context, []string) ([]configv1.ConditionalUpdateRisk, error) {
	return f.risks, f.err
}

func aRisk(name, message string, rules ...string) configv1.ConditionalUpdateRisk {
	r := configv1.ConditionalUpdateRisk{Name: name, Message: message, URL: "https://u"}
	for _, rule := range rules {
		r.MatchingRules = append(r.MatchingRules, configv1.ClusterCondition{Type: rule})
	}
	return r
}

func applies(r configv1.ConditionalUpdateRisk, status string) configv1.ConditionalUpdateRisk {
	r.Conditions = []metav1.Condition{{Type: "Applies", Status: metav1.ConditionStatus(status)}}
	return r
}

// renderCondition writes STATUS REASON: MESSAGE.
func renderCondition(c *configv1.ClusterOperatorStatusCondition) string {
	if c == nil {
		return "removed"
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

func TestUpgradeableFolding(t *testing.T) {
	always := func(name, message string) configv1.ConditionalUpdateRisk { return aRisk(name, message, "Always") }
	one := func(r ...configv1.ConditionalUpdateRisk) risk.RiskSource { return fixed{name: "S", risks: r} }
	const many = "False MultipleReasons: Cluster should not be upgraded between minor or major versions for multiple reasons:"
	for _, tt := range []struct {
		name    string
		sources []risk.RiskSource
		want    string
		errs    string
	}{
		{"nothing", []risk.RiskSource{one(), one()}, "removed", ""},
		{"errors alone", []risk.RiskSource{fixed{name: "A", err: errors.New("a")}, one(), fixed{name: "B", err: errors.New("b\nb2")}}, "Unknown EvaluationFailed: a\nb\nb2", "a|b\nb2"},
		{"error along with a risk", []risk.RiskSource{fixed{name: "A", err: errors.New("a")}, one(always("R", "m"))}, "False R: m", "a"},
		{"source with both", []risk.RiskSource{fixed{name: "A", err: errors.New("a"), risks: []configv1.ConditionalUpdateRisk{always("R", "m")}}}, "False R: m", "a"},
		{"two", []risk.RiskSource{one(always("Z", "z"), always("A", "a")), one(always("M", ""))}, many + "\n* z\n* a\n* ", ""},
		{"equal twice", []risk.RiskSource{one(always("R", "m")), one(applies(always("R", "m"), "True"))}, "False R: m", ""},
		{"divergent twice", []risk.RiskSource{one(always("R", "m")), fixed{name: "T", risks: []configv1.ConditionalUpdateRisk{always("R", "other")}}}, "False R: m",
			"divergent definitions of risk \"R\" from \"T\":\n- message: m\n+ message: other"},
		{"divergent in one source", []risk.RiskSource{one(always("R", "m"), aRisk("R", "m", "PromQL"))}, "False R: m",
			"divergent definitions of risk \"R\" from \"S\":\n- matchingRules: Always\n+ matchingRules: PromQL"},
		{"first is kept, though it does not apply", []risk.RiskSource{one(applies(always("R", "m"), "False")), one(always("R", "m"))}, "removed", ""},
		{"verdict False", []risk.RiskSource{one(applies(always("R", "m"), "False"))}, "removed", ""},
		{"verdict Unknown counts", []risk.RiskSource{one(applies(aRisk("R", "m", "Strange"), "Unknown"))}, "False R: m", ""},
		{"unknown rule types", []risk.RiskSource{one(aRisk("R", "m", "Strange", "Other"))}, "removed", ""},
		{"unknown before known", []risk.RiskSource{one(aRisk("R", "m", "Strange", "Always"))}, "False R: m", ""},
		{"a rule that fails counts", []risk.RiskSource{one(aRisk("R", "m", "PromQL"))}, "False R: m", ""},
		{"only risks that apply count as reasons", []risk.RiskSource{one(applies(always("R", "m"), "False"), always("Q", "q"))}, "False Q: q", ""},
		{"incompatible name: the source's", []risk.RiskSource{fixed{name: "Src", risks: []configv1.ConditionalUpdateRisk{always("R-1", "m")}}}, "False Src: m", ""},
		{"incompatible names", []risk.RiskSource{fixed{name: "Src-1", risks: []configv1.ConditionalUpdateRisk{always("R.1", "m")}}}, "False RiskNameNotCompatibleWithReasonProperty: m", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := preconditions.Upgradeable(context.Background(), tt.sources, nil, "", nil)
			checktest.Same(t, tt.want, renderCondition(u.Condition))
			var errs []string
			for _, err := range u.Errors {
				errs = append(errs, err.Error())
			}
			checktest.Same(t, tt.errs, strings.Join(errs, "|"))
			if c := u.Condition; c != nil && (c.Type != "Upgradeable" || !c.LastTransitionTime.IsZero()) {
				t.Errorf("type %s, time %s", c.Type, c.LastTransitionTime)
			}
		})
	}
}

func TestUpgradeableMatcher(t *testing.T) {
	source := fixed{name: "S", risks: []configv1.ConditionalUpdateRisk{aRisk("R", "m", "PromQL", "Always")}}
	no := matcherFunc(func(rule configv1.ClusterCondition) (bool, error) { return false, nil })
	fails := matcherFunc(func(rule configv1.ClusterCondition) (bool, error) {
		if rule.Type == "PromQL" {
			return false, errors.New("no")
		}
		return false, nil
	})
	for name, m := range map[string]graph.RiskMatcher{"no match": no, "the first that evaluates decides": fails} {
		if u := preconditions.Upgradeable(context.Background(), []risk.RiskSource{source}, nil, "", m); u.Condition != nil {
			t.Errorf("%s: %s", name, renderCondition(u.Condition))
		}
	}
}

type matcherFunc func(configv1.ClusterCondition) (bool, error)

func (f matcherFunc) Match(_ context.Context, rule configv1.ClusterCondition) (bool, error) {
	return f(rule)
}

// TestUpgradeableStyles: the same states in each style.
func TestUpgradeableStyles(t *testing.T) {
	const kube = "Kubernetes removes APIs. See https://a.b/c."
	open := []any{gates(map[string]string{"ack-4.18-x": kube}), acks(nil)}
	clear := []any{gates(nil), acks(nil)}
	plain := clusterVersion("4.18.5")
	etcd := clusterOperator("etcd", coCond("Upgradeable", "False", "Skew", "m"))
	mco := clusterOperator("machine-config", coCond("Upgradeable", "False", "", "p"))
	const many = "False MultipleReasons: Cluster should not be upgraded between minor or major versions for multiple reasons:"
	const legacyMany = "False MultipleReasons: Cluster should not be upgraded between minor versions for multiple reasons: "
	const twoOperators = "Multiple cluster operators should not be upgraded between minor versions:\n* Cluster operator etcd should not be upgraded between minor versions: Skew: m\n* Cluster operator machine-config should not be upgraded between minor versions: p"
	for _, tt := range []struct {
		name                     string
		objects                  []any
		pending                  []string
		byDefault, today, legacy string
	}{
		{"nothing", append([]any{plain}, clear...), nil, "removed", "removed", "removed"},
		{"gate", append([]any{plain}, open...), nil,
			"False AdminAck: " + kube, "False RiskNameNotCompatibleWithReasonProperty: " + kube, "False AdminAckRequired: " + kube},
		{"two gates", []any{plain, gates(map[string]string{"ack-4.18-y": "y", "ack-4.18-x": "x"}), acks(nil)}, nil,
			many + "\n* x\n* y", many + "\n* x\n* y", "False AdminAckRequired: x y"},
		{"no gates", []any{plain, acks(nil)}, nil,
			`False AdminAckUnknown: Failed to retrieve ConfigMap admin-gates from namespace openshift-config-managed: configmap "admin-gates" not found`,
			`False AdminAckUnknown: Failed to retrieve ConfigMap admin-gates from namespace openshift-config-managed: configmap "admin-gates" not found`,
			`False AdminAckUnknown: Failed to retrieve ConfigMap admin-gates from namespace openshift-config-managed: configmap "admin-gates" not found`},
		{"operator", append([]any{plain, etcd}, clear...), nil,
			"False ClusterOperatorUpgradeable: m", "False RiskNameNotCompatibleWithReasonProperty: m",
			"False Skew: Cluster operator etcd should not be upgraded between minor versions: m"},
		{"operator without reason", append([]any{plain, mco}, clear...), nil,
			"False ClusterOperatorUpgradeable: p", "False RiskNameNotCompatibleWithReasonProperty: p",
			"False ClusterOperatorsNotUpgradeable: Cluster operator machine-config should not be upgraded between minor versions: p"},
		{"two operators", append([]any{plain, mco, etcd}, clear...), nil,
			many + "\n* m\n* p", many + "\n* m\n* p", "False ClusterOperatorsNotUpgradeable: " + twoOperators},
		{"overrides", append([]any{clusterVersion("4.18.5", override(true))}, clear...), nil,
			"False ClusterVersionOverrides: " + overridesText, "False ClusterVersionOverrides: " + overridesText, "False ClusterVersionOverridesSet: " + overridesText},
		{"updating", append([]any{clusterVersion("4.18.5", cond("Progressing", "True", "", ""))}, clear...), nil,
			"False ClusterVersionUpdating: " + updatingText, "False ClusterVersionUpdating: " + updatingText, "False UpdateInProgress: " + updatingText},
		{"deleting", append([]any{plain}, clear...), []string{"job \"a/b\""},
			"False ResourceDeletionInProgress: Cluster minor or major version upgrades are not allowed while resource deletions are in progress; resources=job \"a/b\"",
			"False ResourceDeletionInProgress: Cluster minor or major version upgrades are not allowed while resource deletions are in progress; resources=job \"a/b\"",
			"False ResourceDeletesInProgress: Cluster minor or major version upgrades are not allowed while resource deletions are in progress; resources=job \"a/b\""},
		{"all five", append([]any{clusterVersion("4.18.5", override(true), cond("Progressing", "True", "", "")), etcd}, open...), []string{`job "b"`},
			many + "\n* " + updatingText + "\n* " + overridesText + "\n* Cluster minor or major version upgrades are not allowed while resource deletions are in progress; resources=job \"b\"\n* " + kube + "\n* m",
			many + "\n* " + updatingText + "\n* " + overridesText + "\n* Cluster minor or major version upgrades are not allowed while resource deletions are in progress; resources=job \"b\"\n* " + kube + "\n* m",
			legacyMany + "UpdateInProgress,ClusterVersionOverridesSet,ResourceDeletesInProgress,AdminAckRequired,Skew\n* " + updatingText + "\n* " + overridesText + "\n* Cluster minor or major version upgrades are not allowed while resource deletions are in progress; resources=job \"b\"\n* " + kube +
				"\n* Cluster operator etcd should not be upgraded between minor versions: m"},
		{"overrides, gate and operators", append([]any{clusterVersion("4.18.5", override(true)), etcd, mco}, open...), nil,
			many + "\n* " + overridesText + "\n* " + kube + "\n* m\n* p",
			many + "\n* " + overridesText + "\n* " + kube + "\n* m\n* p",
			legacyMany + "ClusterVersionOverridesSet,AdminAckRequired,ClusterOperatorsNotUpgradeable\n* " + overridesText + "\n* " + kube + "\n* " + twoOperators},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sources := preconditions.Sources(preconditions.RiskOptions{
				Reader: reader(t, tt.objects...), OwnVersion: "4.18.5", Deletions: func() []string { return tt.pending },
			})
			for style, want := range map[preconditions.ReasonStyle]string{"": tt.byDefault, preconditions.RiskName: tt.today, preconditions.Legacy: tt.legacy} {
				c := preconditions.Upgradeable(context.Background(), sources, []string{"4.18.6"}, style, nil).Condition
				checktest.SameIn(t, fmt.Sprintf("style %q", style), want, renderCondition(c))
			}
		})
	}
}

// TestUpgradeableReasons: which names can be reasons.
func TestUpgradeableReasons(t *testing.T) {
	for name, compatible := range map[string]bool{
		"R": true, "r9": true, "R_": true, "R,x": true, "R:x_1": true, "R,:,x": true,
		"": false, "9R": false, "_R": false, "R:": false, "R,": false, "R-x": false, "R.x": false, "R x": false, "É": false,
		"R\n": false,
	} {
		want := "False " + name + ": m"
		if !compatible {
			want = "False RiskNameNotCompatibleWithReasonProperty: m"
		}
		source := fixed{name: "Src", risks: []configv1.ConditionalUpdateRisk{aRisk(name, "m", "Always")}}
		c := preconditions.Upgradeable(context.Background(), []risk.RiskSource{source}, nil, preconditions.RiskName, nil).Condition
		checktest.SameIn(t, fmt.Sprintf("%q", name), want, renderCondition(c))
	}
}

// TestLegacyUnknown: what could not be found out keeps its name.
func TestLegacyUnknown(t *testing.T) {
	sources := preconditions.Sources(preconditions.RiskOptions{Reader: reader(t, gates(nil), acks(nil)), OwnVersion: "4.18"})
	for i, want := range map[int]string{
		2: "False ResourceDeletionInProgressUnknown: Failed to parse cluster version to check resource deletion: No Major.Minor.Patch elements found",
		3: "False AdminAckUnknown: Failed to parse cluster version to check admin-acks: No Major.Minor.Patch elements found",
		4: "False ClusterOperatorUpgradeableUnknown: Failed to parse cluster version to check Upgradeable conditions: No Major.Minor.Patch elements found",
	} {
		for _, style := range []preconditions.ReasonStyle{"", preconditions.RiskName, preconditions.Legacy} {
			c := preconditions.Upgradeable(context.Background(), sources[i:i+1], nil, style, nil).Condition
			checktest.SameIn(t, fmt.Sprintf("style %q", style), want, renderCondition(c))
		}
	}
}

// TestUpgradeableDetails: the operator's own reason is not lost.
func TestUpgradeableDetails(t *testing.T) {
	sources := preconditions.Sources(preconditions.RiskOptions{
		Reader:     reader(t, gates(nil), acks(nil), clusterOperator("etcd", coCond("Upgradeable", "False", "Skew", "m"))),
		OwnVersion: "4.18.5",
	})
	u := preconditions.Upgradeable(context.Background(), sources, nil, "", nil)
	if len(u.Risks) != 1 {
		t.Fatalf("%d risks", len(u.Risks))
	}
	r := u.Risks[0]
	if r.Source != "ClusterOperatorUpgradeable" || r.Operator != "etcd" || r.OperatorReason != "Skew" || r.Name != "ClusterOperatorUpgradeable-etcd" {
		t.Errorf("%+v", r)
	}
}

const badFormat = `has invalid format; must comply with "^ack-([4-5][.][0-9]{1,})-[^-]"`

func TestGates(t *testing.T) {
	for _, tt := range []struct {
		key, text string
		want      preconditions.Gate
	}{
		{"ack-4.18-x", "Read https://a.b/c.", preconditions.Gate{From: "4.18", URL: "https://a.b/c."}},
		{"ack-4.18-x", "no link, http://a.b", preconditions.Gate{From: "4.18", URL: docs}},
		{"ack-4.18-x", "https://%zz or https://b.c/d", preconditions.Gate{From: "4.18", URL: "https://b.c/d"}},
		{"ack-4.18-x", "(https://) and https://b", preconditions.Gate{From: "4.18", URL: "https://)"}},
		{"ack-4.18-x", "https:// first", preconditions.Gate{From: "4.18", URL: "https://"}},
		{"ack-4.18-x", "a\thttps://q\nb", preconditions.Gate{From: "4.18", URL: "https://q"}},
		{"ack-5.0-x", "t", preconditions.Gate{From: "5.0", URL: docs}},
		{"ack-4.18-x", " ", preconditions.Gate{From: "4.18", URL: docs}},
		{"ack-4.18-x", "", preconditions.Gate{From: "4.18", URL: docs, Problem: "admin-gates configmap gate ack-4.18-x must contain a non-empty value."}},
		{"ack-4.18--x", "t", preconditions.Gate{URL: docs, Problem: `admin-gates configmap gate "ack-4.18--x" is invalid: admin-gates configmap gate name ack-4.18--x ` + badFormat}},
		{"ack-4.18-", "t", preconditions.Gate{URL: docs, Problem: `admin-gates configmap gate "ack-4.18-" is invalid: admin-gates configmap gate name ack-4.18- ` + badFormat}},
		{"ack-4.18", "t", preconditions.Gate{URL: docs, Problem: `admin-gates configmap gate "ack-4.18" is invalid: admin-gates configmap gate name ack-4.18 ` + badFormat}},
		{"ack-6.0-x", "t", preconditions.Gate{URL: docs, Problem: `admin-gates configmap gate "ack-6.0-x" is invalid: admin-gates configmap gate name ack-6.0-x ` + badFormat}},
		{"ack-4.-x", "t", preconditions.Gate{URL: docs, Problem: `admin-gates configmap gate "ack-4.-x" is invalid: admin-gates configmap gate name ack-4.-x ` + badFormat}},
		{"xack-4.18-x", "https://a", preconditions.Gate{URL: docs, Problem: `admin-gates configmap gate "xack-4.18-x" is invalid: admin-gates configmap gate name xack-4.18-x ` + badFormat}},
		{"ack-4.08-x", "t", preconditions.Gate{URL: docs, Problem: `admin-gates configmap gate "ack-4.08-x" is invalid: failed to parse SemVer ack version from admin-gate "ack-4.08-x": Minor number must not contain leading zeroes "08"`}},
		{"ack-4.18446744073709551616-x", "t", preconditions.Gate{URL: docs, Problem: `admin-gates configmap gate "ack-4.18446744073709551616-x" is invalid: failed to parse SemVer ack version from admin-gate "ack-4.18446744073709551616-x": strconv.ParseUint: parsing "18446744073709551616": value out of range`}},
	} {
		tt.want.Key, tt.want.Text = tt.key, tt.text
		checktest.SameIn(t, fmt.Sprintf("%s=%q", tt.key, tt.text), []preconditions.Gate{tt.want},
			preconditions.Gates(map[string]string{tt.key: tt.text}))
	}
}

func TestOpenGates(t *testing.T) {
	gates := preconditions.Gates(map[string]string{
		"ack-4.18-x": "x", "ack-4.18-empty": "", "ack-4.17-y": "y", "ack-4.17-empty": "", "ack-4.1-z": "z", "bad": "b", "ack-4.08-q": "q",
	})
	for _, tt := range []struct {
		minor string
		acks  map[string]string
		want  string
	}{
		{"4.18", nil, "ack-4.08-q ack-4.18-empty ack-4.18-x bad"},
		{"4.18", map[string]string{"ack-4.18-x": "true"}, "ack-4.08-q ack-4.18-empty bad"},
		{"4.18", map[string]string{"ack-4.18-x": "True"}, "ack-4.08-q ack-4.18-empty ack-4.18-x bad"},
		{"4.18", map[string]string{"ack-4.18-x": "true "}, "ack-4.08-q ack-4.18-empty ack-4.18-x bad"},
		{"4.18", map[string]string{"ack-4.18-empty": "true", "bad": "true", "ack-4.08-q": "true", "ack-4.17-y": "true"}, "ack-4.08-q ack-4.18-empty ack-4.18-x bad"},
		{"4.17", nil, "ack-4.08-q ack-4.17-empty ack-4.17-y bad"},
		{"4.1", nil, "ack-4.08-q ack-4.1-z bad"},
		{"4.8", nil, "ack-4.08-q bad"},
	} {
		var keys []string
		for _, g := range preconditions.OpenGates(gates, tt.acks, tt.minor) {
			keys = append(keys, g.Key)
		}
		checktest.SameIn(t, fmt.Sprintf("%s, %v", tt.minor, tt.acks), tt.want, strings.Join(keys, " "))
	}
}

// FuzzGates: every gate is either bound to a minor version that its key names,
// or says what is wrong with it and cannot be acknowledged.
func FuzzGates(f *testing.F) {
	for _, key := range []string{"ack-4.18-x", "ack-4.18--x", "ack-4.08-x", "ack-5.0-y", "ack-4.99999999999999999999-x", "", "ack-4.1-\n"} {
		f.Add(key, "see https://a.b/c. ok")
	}
	minor := regexp.MustCompile(`^[45]\.(0|[1-9][0-9]*)$`)
	f.Fuzz(func(t *testing.T, key, text string) {
		g := preconditions.Gates(map[string]string{key: text})[0]
		checktest.FatalIf(t, g.Key != key || g.Text != text || g.URL == "", "%+v", g)
		acks := map[string]string{key: "true"}
		if g.From == "" {
			if g.Problem == "" || len(preconditions.OpenGates([]preconditions.Gate{g}, acks, "4.18")) != 1 {
				t.Fatalf("%+v does not block", g)
			}
			return
		}
		checktest.FatalIf(t, !minor.MatchString(g.From) || !strings.HasPrefix(key, "ack-"+g.From+"-"), "%+v", g)
		open := len(preconditions.OpenGates([]preconditions.Gate{g}, acks, g.From)) == 1
		checktest.Equal(t, text == "", open, "%+v: open", g)
	})
}
