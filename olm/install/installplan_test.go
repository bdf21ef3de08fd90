package install_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/install"
)

// plan is an InstallPlan; nothing but what matters is set.
func plan(name string, generation int64, phase olmapi.InstallPlanPhase, csvs ...string) olmapi.InstallPlan {
	p := olmapi.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID("uid-" + name)}}
	p.Spec = olmapi.InstallPlanSpec{ClusterServiceVersionNames: csvs, Approval: olmapi.ApprovalAutomatic, Approved: true, Generation: generation}
	p.Status.Phase = phase
	for _, c := range csvs {
		if phase != olmapi.PlanPhaseNone {
			p.Status.Plan = append(p.Status.Plan, step(c, olmapi.StepUnknown))
		}
	}
	return p
}

func step(csv string, status olmapi.StepStatus) *olmapi.Step {
	return &olmapi.Step{Resolving: csv, Status: status, Resource: olmapi.StepResource{
		CatalogSource: "c", CatalogSourceNamespace: "olm",
		Group: olmapi.Group, Version: "v1alpha1", Kind: "ClusterServiceVersion", Name: csv, Manifest: "{}",
	}}
}

func changes(csvs ...string) *install.Changes {
	c := &install.Changes{Namespace: ns, CSVs: csvs}
	for _, name := range csvs {
		c.Steps = append(c.Steps, step(name, olmapi.StepUnknown))
	}
	return c
}

func manual(s *olmapi.Subscription) { s.Spec.InstallPlanApproval = olmapi.ApprovalManual }

func atGeneration(n int64) func(*olmapi.Subscription) {
	return func(s *olmapi.Subscription) { s.Status.InstallPlanGeneration = n }
}

func TestDecidePlan(t *testing.T) {
	for _, tc := range []struct {
		name  string
		c     *install.Changes
		subs  []olmapi.Subscription
		plans []olmapi.InstallPlan
		want  string
	}{
		{"nothing to do", changes(), []olmapi.Subscription{sub("a", "")}, nil, "none"},
		{"first", changes("a.v1"), []olmapi.Subscription{sub("a", "")}, nil, "create 1 Automatic Installing"},
		{"manual", changes("a.v1"), []olmapi.Subscription{sub("a", ""), sub("b", "", manual)}, nil, "create 1 Manual RequiresApproval"},
		{"neither manual nor automatic", changes("a.v1"), []olmapi.Subscription{sub("a", "", func(s *olmapi.Subscription) { s.Spec.InstallPlanApproval = "Never" })}, nil, "create 1 Automatic Installing"},
		{"generation of a Subscription", changes("a.v1"), []olmapi.Subscription{sub("a", "", atGeneration(7))}, []olmapi.InstallPlan{plan("p", 3, olmapi.PlanPhaseComplete)}, "create 8 Automatic Installing"},
		{"generation of a plan", changes("a.v1"), []olmapi.Subscription{sub("a", "", atGeneration(2))}, []olmapi.InstallPlan{plan("p", 3, olmapi.PlanPhaseComplete), plan("q", 1, olmapi.PlanPhaseComplete)}, "create 4 Automatic Installing"},
		{"the same, waiting", changes("a.v1"), nil, []olmapi.InstallPlan{plan("p", 3, olmapi.PlanPhaseRequiresApproval, "a.v1")}, "reuse p"},
		{"the same, failed", changes("a.v1"), nil, []olmapi.InstallPlan{plan("p", 3, olmapi.PlanPhaseFailed, "a.v1")}, "reuse p"},
		{"the same, complete", changes("a.v1"), nil, []olmapi.InstallPlan{plan("p", 3, olmapi.PlanPhaseComplete, "a.v1")}, "create 4 Automatic Installing"},
		{"the same, but not the newest", changes("a.v1"), nil, []olmapi.InstallPlan{plan("p", 3, olmapi.PlanPhaseInstalling, "a.v1"), plan("q", 4, olmapi.PlanPhaseComplete, "b.v1")}, "create 5 Automatic Installing"},
		{"other operators", changes("a.v2"), nil, []olmapi.InstallPlan{plan("p", 3, olmapi.PlanPhaseRequiresApproval, "a.v1")}, "create 4 Automatic Installing"},
		{"in another order", changes("b.v1", "a.v1"), nil, []olmapi.InstallPlan{plan("p", 3, olmapi.PlanPhaseInstalling, "a.v1", "b.v1")}, "reuse p"},
		{"interrupted before its status", changes("a.v1"), nil, []olmapi.InstallPlan{plan("p", 3, olmapi.PlanPhaseNone, "a.v1")}, "reuse p, write status Installing"},
		{"interrupted, other operators", changes("a.v2"), nil, []olmapi.InstallPlan{plan("p", 3, olmapi.PlanPhaseNone, "a.v1")}, "create 4 Automatic Installing"},
		{"other steps", &install.Changes{Namespace: ns, CSVs: []string{"a.v1"}, Steps: []*olmapi.Step{{Resolving: "a.v1"}}}, nil, []olmapi.InstallPlan{plan("p", 3, olmapi.PlanPhaseInstalling, "a.v1")}, "create 4 Automatic Installing"},
		{"a lookup that it lacks", &install.Changes{Namespace: ns, CSVs: []string{"a.v1"}, Lookups: []olmapi.BundleLookup{{Path: "i", Identifier: "a.v1", CatalogSourceRef: &corev1.ObjectReference{Name: "c"}}}}, nil, []olmapi.InstallPlan{plan("p", 3, olmapi.PlanPhaseInstalling, "a.v1")}, "create 4 Automatic Installing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := install.DecidePlan(tc.c, tc.subs, tc.plans, statusNow.Time)
			got := "none"
			switch {
			case d.Create != nil:
				got = fmt.Sprintf("create %d %s %s", d.Create.Spec.Generation, d.Create.Spec.Approval, d.Create.Status.Phase)
				checktest.Equal(t, d.Create.Spec.Approval == olmapi.ApprovalAutomatic, d.Create.Spec.Approved, "approved")
			case d.Reuse != nil && d.Status != nil:
				got = fmt.Sprintf("reuse %s, write status %s", d.Reuse.Name, d.Status.Phase)
			case d.Reuse != nil:
				got = "reuse " + d.Reuse.Name
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestNewInstallPlan(t *testing.T) {
	a, b := sub("a", ""), sub("b", "")
	a.UID, b.UID = "1", "2"
	c := changes("a.v1", "b.v1")
	c.Steps[1].Resource.CatalogSource = "b"
	c.Lookups = []olmapi.BundleLookup{{Path: "i", CatalogSourceRef: &corev1.ObjectReference{Name: "a"}}}
	got := install.NewInstallPlan(c, []olmapi.Subscription{b, a}, 9)
	no := false
	owner := func(name string, uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "operators.coreos.com/v1alpha1", Kind: "Subscription", Name: name, UID: uid, BlockOwnerDeletion: &no, Controller: &no}
	}
	want := &olmapi.InstallPlan{
		TypeMeta:   metav1.TypeMeta{APIVersion: "operators.coreos.com/v1alpha1", Kind: "InstallPlan"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "install-", OwnerReferences: []metav1.OwnerReference{owner("a", "1"), owner("b", "2")}},
		Spec:       olmapi.InstallPlanSpec{ClusterServiceVersionNames: []string{"a.v1", "b.v1"}, Approval: olmapi.ApprovalAutomatic, Approved: true, Generation: 9},
		Status:     olmapi.InstallPlanStatus{Phase: olmapi.PlanPhaseInstalling, CatalogSources: []string{"a", "b", "c"}, Plan: c.Steps, BundleLookups: c.Lookups},
	}
	checktest.Same(t, want, got)
}

func TestOldPlans(t *testing.T) {
	var plans []olmapi.InstallPlan
	for _, n := range []int64{3, 1, 2, 12, 11, 10, 9, 8, 7, 6, 5, 4} {
		plans = append(plans, plan(fmt.Sprintf("p%d", n), n, olmapi.PlanPhaseComplete))
	}
	for _, tc := range []struct {
		plans []olmapi.InstallPlan
		want  []string
	}{
		{plans, []string{"p1", "p2", "p3", "p4", "p5"}}, // five at a time
		{plans[:7], []string{"p1", "p2"}},
		{plans[:5], nil},
		{nil, nil},
		{[]olmapi.InstallPlan{plan("b", 1, ""), plan("a", 1, ""), plan("c", 2, ""), plan("d", 3, ""), plan("e", 4, ""), plan("f", 5, "")}, []string{"a"}},
	} {
		checktest.Same(t, tc.want, install.OldPlans(tc.plans))
	}
}

func TestPlanPhases(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, "r", errors.New("not you"))
	boom := errors.New("boom")
	started := func(p olmapi.InstallPlan) olmapi.InstallPlan {
		at := metav1.NewTime(start)
		p.Status.StartTime = &at
		return p
	}
	withLookup := plan("p", 1, olmapi.PlanPhaseInstalling, "a.v1")
	withLookup.Status.BundleLookups = []olmapi.BundleLookup{{Conditions: []olmapi.Condition{{Type: "BundleLookupPending", Status: "True"}}}}
	for _, tc := range []struct {
		name   string
		plan   olmapi.InstallPlan
		status olmapi.StepStatus
		err    error
		after  time.Duration
		want   string
	}{
		{"first failure", plan("p", 1, olmapi.PlanPhaseInstalling, "a.v1"), olmapi.StepUnknown, boom, time.Hour, "Installing: retrying execution due to error: boom"},
		{"within a minute", started(plan("p", 1, olmapi.PlanPhaseInstalling, "a.v1")), olmapi.StepUnknown, boom, 59 * time.Second, "Installing: retrying execution due to error: boom"},
		{"after a minute", started(plan("p", 1, olmapi.PlanPhaseInstalling, "a.v1")), olmapi.StepUnknown, boom, time.Minute, "Failed: boom Installed=False InstallComponentFailed boom"},
		{"forbidden forever", started(plan("p", 1, olmapi.PlanPhaseInstalling, "a.v1")), olmapi.StepUnknown, forbidden, 24 * time.Hour, "Installing: retrying execution due to error: " + forbidden.Error()},
		{"done", started(plan("p", 1, olmapi.PlanPhaseInstalling, "a.v1")), olmapi.StepCreated, nil, time.Second, "Complete:  Installed=True  "},
		{"present", plan("p", 1, olmapi.PlanPhaseInstalling, "a.v1"), olmapi.StepPresent, nil, 0, "Complete:  Installed=True  "},
		{"waiting for an API", plan("p", 1, olmapi.PlanPhaseInstalling, "a.v1"), olmapi.StepWaitingForAPI, nil, 0, "Installing: "},
		{"bundle not unpacked", withLookup, olmapi.StepCreated, nil, 0, "Installing: "},
		{"not approved", plan("p", 1, olmapi.PlanPhaseRequiresApproval, "a.v1"), olmapi.StepCreated, nil, 0, "RequiresApproval: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := tc.plan.Status.Plan[0].Status
			s := install.AttemptedStatus(&tc.plan, []*olmapi.Step{step("a.v1", tc.status)}, tc.err, start.Add(tc.after), 0)
			got := fmt.Sprintf("%s: %s", s.Phase, s.Message)
			for _, c := range s.Conditions {
				got += fmt.Sprintf(" %s=%s %s %s", c.Type, c.Status, c.Reason, c.Message)
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if tc.plan.Status.Plan[0].Status != before {
				t.Error("the plan itself was changed")
			}
		})
	}
}

// Conditions of other types stay, and the time of a transition moves with the
// status alone.
func TestPlanCondition(t *testing.T) {
	early, late := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	old := metav1.NewTime(early)
	for _, tc := range []struct {
		status corev1.ConditionStatus
		want   time.Time
	}{{corev1.ConditionTrue, early}, {corev1.ConditionFalse, late}} {
		p := plan("p", 1, olmapi.PlanPhaseInstalling)
		p.Status.Conditions = []olmapi.Condition{
			{Type: "Other", Status: corev1.ConditionTrue},
			{Type: "Installed", Status: tc.status, Reason: "Old", LastTransitionTime: &old, LastUpdateTime: &old},
		}
		s := install.AttemptedStatus(&p, nil, nil, late, 0)
		if len(s.Conditions) != 2 || s.Conditions[0].Type != "Other" || p.Status.Conditions[1].Reason != "Old" {
			t.Fatalf("conditions %+v, before %+v", s.Conditions, p.Status.Conditions)
		}
		c := s.Conditions[1]
		if c.Status != corev1.ConditionTrue || c.Reason != "" || !c.LastTransitionTime.Time.Equal(tc.want) || !c.LastUpdateTime.Time.Equal(late) {
			t.Errorf("was %s: %+v", tc.status, c)
		}
	}
}

func TestApprovedStatus(t *testing.T) {
	for _, tc := range []struct {
		phase    olmapi.InstallPlanPhase
		approved bool
		want     olmapi.InstallPlanPhase
	}{
		{olmapi.PlanPhaseRequiresApproval, false, olmapi.PlanPhaseRequiresApproval},
		{olmapi.PlanPhaseRequiresApproval, true, olmapi.PlanPhaseInstalling},
		{olmapi.PlanPhaseComplete, true, olmapi.PlanPhaseComplete},
		{olmapi.PlanPhaseFailed, true, olmapi.PlanPhaseFailed},
	} {
		p := plan("p", 1, tc.phase)
		p.Spec.Approved = tc.approved
		if got := install.ApprovedStatus(&p).Phase; got != tc.want {
			t.Errorf("%s, approved %v: %s", tc.phase, tc.approved, got)
		}
	}
}

func TestUnpackLimits(t *testing.T) {
	group := func(timeout, retry string) []olmapi.OperatorGroup {
		g := olmapi.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "og", Annotations: map[string]string{}}}
		if timeout != "" {
			g.Annotations["operatorframework.io/bundle-unpack-timeout"] = timeout
		}
		if retry != "" {
			g.Annotations["operatorframework.io/bundle-unpack-min-retry-interval"] = retry
		}
		return []olmapi.OperatorGroup{g}
	}
	for _, tc := range []struct {
		groups []olmapi.OperatorGroup
		want   string
	}{
		{nil, "10m0s 5m0s"},
		{group("", ""), "10m0s 5m0s"},
		{group("0s", "1h"), "0s 1h0m0s"},
		{group("soon", ""), `operatorgroup ops/og: annotation operatorframework.io/bundle-unpack-timeout: time: invalid duration "soon"`},
		{group("", "-1m"), `operatorgroup ops/og: annotation operatorframework.io/bundle-unpack-min-retry-interval: negative duration "-1m"`},
		{append(group("", ""), group("", "")...), "found 2 operatorGroups, expected 1"},
	} {
		l, err := install.UnpackLimitsOf(tc.groups)
		got := fmt.Sprintf("%s %s", l.Timeout, l.Retry)
		if err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
	}
}
