package install_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/install"
)

var statusNow = metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))

func refersTo(name string) func(*olmapi.Subscription) {
	return func(s *olmapi.Subscription) {
		s.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: ns, Name: name}
	}
}

func progressing(current string) func(*olmapi.Subscription) {
	return func(s *olmapi.Subscription) {
		s.Status.CurrentCSV = current
		s.Status.State = olmapi.StateUpgradePending
	}
}

func generatedBy(name, starting string) func(*olmapi.Subscription) {
	return func(s *olmapi.Subscription) {
		s.Annotations = map[string]string{"olm.generated-by": name}
		s.Spec.StartingCSV = starting
	}
}

func withCondition(typ string) func(*olmapi.Subscription) {
	return func(s *olmapi.Subscription) {
		s.Status.Conditions = append(s.Status.Conditions, olmapi.Condition{Type: typ, Status: corev1.ConditionTrue, Reason: "Old"})
	}
}

// conditionsText lists the conditions but for those of catalogs.
func conditionsText(s *olmapi.SubscriptionStatus) string {
	var out []string
	for _, c := range s.Conditions {
		if c.Type != "CatalogSourcesUnhealthy" {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s=%s %s %s", c.Type, c.Status, c.Reason, c.Message)))
		}
	}
	return strings.Join(out, "; ")
}

func statusText(s *olmapi.SubscriptionStatus) string {
	ref := "-"
	if s.InstallPlanRef != nil {
		ref = s.InstallPlanRef.Name
	}
	return strings.TrimSpace(fmt.Sprintf("%s current=%s installed=%s plan=%s; %s", s.State, s.CurrentCSV, s.InstalledCSV, ref, conditionsText(s)))
}

// around is a namespace with a Subscription and catalogs.
func around(s *olmapi.Subscription, catalogs ...olm.SnapshotCatalog) *install.State {
	return &install.State{Now: statusNow.Time, Snapshot: &olm.Snapshot{
		Namespace: ns, Subscriptions: []olmapi.Subscription{*s}, Catalogs: catalogs,
	}}
}

// State, plan and the conditions that speak of it.
func TestObservedState(t *testing.T) {
	failedWith := plan("p", 1, olmapi.PlanPhaseFailed)
	failedWith.Status.Conditions = []olmapi.Condition{{Type: "Installed", Status: "False", Reason: "InstallComponentFailed", Message: "boom"}}
	for _, tc := range []struct {
		name        string
		sub         olmapi.Subscription
		csvs        []olmapi.ClusterServiceVersion
		plans       []olmapi.InstallPlan
		failForward bool
		want        string
	}{
		{"new", sub("a", ""), nil, nil, false, "current= installed= plan=-;"},
		{"not there yet", sub("a", "", progressing("a.v1"), refersTo("p")), nil, []olmapi.InstallPlan{plan("p", 1, olmapi.PlanPhaseInstalling)}, false,
			"UpgradePending current=a.v1 installed= plan=p; InstallPlanPending=True Installing"},
		{"there", sub("a", "", progressing("a.v1"), refersTo("p")), []olmapi.ClusterServiceVersion{newCSV("a.v1")}, []olmapi.InstallPlan{plan("p", 1, olmapi.PlanPhaseComplete)}, false,
			"AtLatestKnown current=a.v1 installed=a.v1 plan=p;"},
		{"update there", sub("a", "a.v1", progressing("a.v2"), refersTo("p")), []olmapi.ClusterServiceVersion{newCSV("a.v2")}, []olmapi.InstallPlan{plan("p", 1, olmapi.PlanPhaseComplete)}, false,
			"AtLatestKnown current=a.v2 installed=a.v2 plan=p;"},
		{"gone again", sub("a", "a.v1", refersTo("p")), nil, []olmapi.InstallPlan{plan("p", 1, olmapi.PlanPhaseComplete)}, false,
			"UpgradePending current=a.v1 installed=a.v1 plan=p;"},
		{"approval", sub("a", "", progressing("a.v1"), refersTo("p")), nil, []olmapi.InstallPlan{plan("p", 1, olmapi.PlanPhaseRequiresApproval)}, false,
			"UpgradePending current=a.v1 installed= plan=p; InstallPlanPending=True RequiresApproval"},
		{"plan without phase", sub("a", "", progressing("a.v1"), refersTo("p")), nil, []olmapi.InstallPlan{plan("p", 1, olmapi.PlanPhaseNone)}, false,
			"UpgradePending current=a.v1 installed= plan=p; InstallPlanPending=True InstallPlanNotYetReconciled"},
		{"plan failed", sub("a", "", progressing("a.v1"), refersTo("p"), withCondition("InstallPlanPending")), nil, []olmapi.InstallPlan{plan("p", 1, olmapi.PlanPhaseFailed)}, false,
			"UpgradePending current=a.v1 installed= plan=p; InstallPlanFailed=True InstallPlanFailed"},
		{"plan failed with a reason", sub("a", "", progressing("a.v1"), refersTo("p")), nil, []olmapi.InstallPlan{failedWith}, false,
			"UpgradePending current=a.v1 installed= plan=p; InstallPlanFailed=True InstallComponentFailed boom"},
		{"fail forward", sub("a", "", progressing("a.v1"), refersTo("p")), nil, []olmapi.InstallPlan{plan("p", 1, olmapi.PlanPhaseFailed)}, true,
			"UpgradeFailed current=a.v1 installed= plan=p; InstallPlanFailed=True InstallPlanFailed"},
		{"fail forward, not failed", sub("a", "", progressing("a.v1"), refersTo("p")), nil, []olmapi.InstallPlan{plan("p", 1, olmapi.PlanPhaseInstalling)}, true,
			"UpgradePending current=a.v1 installed= plan=p; InstallPlanPending=True Installing"},
		{"plan missing while pending", sub("a", "a.v1", progressing("a.v2"), refersTo("p"), withCondition("InstallPlanPending")), []olmapi.ClusterServiceVersion{newCSV("a.v1")}, nil, false,
			"current= installed=a.v1 plan=-;"},
		{"plan missing later", sub("a", "a.v1", refersTo("p"), withCondition("InstallPlanFailed"), func(s *olmapi.Subscription) { s.Status.State = olmapi.StateAtLatestKnown }), []olmapi.ClusterServiceVersion{newCSV("a.v1")}, nil, false,
			"AtLatestKnown current=a.v1 installed=a.v1 plan=p; InstallPlanMissing=True ReferencedInstallPlanNotFound"},
		{"plan found again", sub("a", "a.v1", refersTo("p"), withCondition("InstallPlanMissing")), []olmapi.ClusterServiceVersion{newCSV("a.v1")}, []olmapi.InstallPlan{plan("p", 1, olmapi.PlanPhaseComplete)}, false,
			"AtLatestKnown current=a.v1 installed=a.v1 plan=p;"},
		{"created by a plan", sub("a", "", generatedBy("p", "a.v1")), nil, []olmapi.InstallPlan{plan("p", 4, olmapi.PlanPhaseInstalling)}, false,
			"UpgradePending current=a.v1 installed= plan=p; InstallPlanPending=True Installing"},
		{"created by a plan, there already", sub("a", "", generatedBy("p", "a.v1")), []olmapi.ClusterServiceVersion{newCSV("a.v1")}, []olmapi.InstallPlan{plan("p", 4, olmapi.PlanPhaseComplete)}, false,
			"AtLatestKnown current=a.v1 installed=a.v1 plan=p;"},
		{"created by a plan that is gone", sub("a", "", generatedBy("p", "a.v1")), nil, nil, false, "current= installed= plan=-;"},
		{"refers to another than created it", sub("a", "", generatedBy("p", "a.v1"), progressing("a.v2"), refersTo("q")), nil, []olmapi.InstallPlan{plan("p", 4, ""), plan("q", 5, olmapi.PlanPhaseInstalling)}, false,
			"UpgradePending current=a.v2 installed= plan=q; InstallPlanPending=True Installing"},
		{"conditions of a resolution stay", sub("a", "", withCondition("ResolutionFailed"), withCondition("BundleUnpacking")), nil, nil, false,
			"current= installed= plan=-; ResolutionFailed=True Old; BundleUnpacking=True Old"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := around(&tc.sub)
			o.Plans, o.Snapshot.Installed = tc.plans, tc.csvs
			if tc.failForward {
				o.Snapshot.OperatorGroups = []olmapi.OperatorGroup{{Spec: olmapi.OperatorGroupSpec{UpgradeStrategy: "TechPreviewUnsafeFailForward"}}}
			}
			got := install.ObservedStatus(&tc.sub, o)
			checktest.Same(t, tc.want, statusText(&got))
			if !got.LastUpdated.Equal(&statusNow) {
				t.Errorf("lastUpdated is %v", got.LastUpdated)
			}
			// A second look, later, changes nothing.
			tc.sub.Status = got
			o.Now = statusNow.Add(time.Hour)
			checktest.Same(t, got, install.ObservedStatus(&tc.sub, o))
		})
	}
}

func TestPlanReference(t *testing.T) {
	s := sub("a", "", generatedBy("p", "a.v1"))
	o := around(&s)
	o.Plans = []olmapi.InstallPlan{plan("p", 4, olmapi.PlanPhaseInstalling)}
	got := install.ObservedStatus(&s, o)
	checktest.Same(t, &corev1.ObjectReference{APIVersion: "operators.coreos.com/v1alpha1", Kind: "InstallPlan", Namespace: ns, Name: "p", UID: "uid-p"}, got.InstallPlanRef)
	checktest.Same(t, &olmapi.InstallPlanReference{APIVersion: "operators.coreos.com/v1alpha1", Kind: "InstallPlan", Name: "p", UUID: "uid-p"}, got.InstallPlan)
	checktest.Equal(t, 4, got.InstallPlanGeneration, "generation")
}

func TestCatalogHealth(t *testing.T) {
	catalogs := func(texts ...string) []olm.SnapshotCatalog {
		var out []olm.SnapshotCatalog
		for _, text := range texts {
			name, fault, _ := strings.Cut(text, "!")
			c := olm.SnapshotCatalog{Key: types.NamespacedName{Namespace: "olm", Name: name}}
			if fault != "" {
				c.Err = errors.New(fault)
			}
			out = append(out, c)
		}
		return out
	}
	for _, tc := range []struct {
		name     string
		sub      olmapi.Subscription
		catalogs []olm.SnapshotCatalog
		want     string
	}{
		{"all healthy", sub("a", ""), catalogs("d", "c"), "False AllCatalogSourcesHealthy all available catalogsources are healthy: c d"},
		{"none", sub("a", ""), nil, "True NoCatalogSourcesFound dependency resolution requires at least one catalogsource:"},
		{"target missing", sub("a", ""), catalogs("d"), "True UnhealthyCatalogSourceFound targeted catalogsource olm/c missing: d"},
		{"target missing and another sick", sub("a", ""), catalogs("d!x"), "True UnhealthyCatalogSourceFound targeted catalogsource olm/c missing: d!"},
		{"target sick", sub("a", ""), catalogs("c!down", "b!down"), "True UnhealthyCatalogSourceFound targeted catalogsource olm/c unhealthy: b! c!"},
		{"another sick", sub("a", ""), catalogs("c", "d!down"), "True UnhealthyCatalogSourceFound catalogsource olm/d unhealthy: c d!"},
		{"no target", sub("a", "", source("", "")), catalogs("d"), "False AllCatalogSourcesHealthy all available catalogsources are healthy: d"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := around(&tc.sub, tc.catalogs...)
			s := install.ObservedStatus(&tc.sub, o)
			c := s.Conditions[0]
			got := fmt.Sprintf("%s %s %s:", c.Status, c.Reason, c.Message)
			for _, h := range s.CatalogHealth {
				got += " " + h.CatalogSourceRef.Name
				if !h.Healthy {
					got += "!"
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || len(s.Conditions) != 1 {
				t.Error(diff, s.Conditions)
			}
			if tc.name == "no target" {
				return
			}
			// The time moves only where something changes.
			tc.sub.Status = s
			o.Now = statusNow.Add(time.Hour)
			checktest.Same(t, s, install.ObservedStatus(&tc.sub, o))
		})
	}

	// A change is the reason once, where nothing is wrong.
	for _, tc := range []struct {
		before, after []olm.SnapshotCatalog
		want          string
	}{
		{catalogs("c"), catalogs("c", "d"), "False CatalogSourcesAdded, then AllCatalogSourcesHealthy"},
		{catalogs("c", "d"), catalogs("c"), "False CatalogSourcesDeleted, then AllCatalogSourcesHealthy"},
		{catalogs("c!down"), catalogs("c"), "False CatalogSourcesUpdated, then AllCatalogSourcesHealthy"},
		{catalogs("c"), catalogs("c!down"), "True UnhealthyCatalogSourceFound, then UnhealthyCatalogSourceFound"},
		{catalogs("c", "d"), catalogs("d"), "True UnhealthyCatalogSourceFound, then UnhealthyCatalogSourceFound"},
		{catalogs("c"), nil, "True NoCatalogSourcesFound, then NoCatalogSourcesFound"},
		{nil, catalogs("c"), "False AllCatalogSourcesHealthy, then AllCatalogSourcesHealthy"},
	} {
		s := sub("a", "")
		s.Status = install.ObservedStatus(&s, around(&s, tc.before...))
		o := around(&s, tc.after...)
		s.Status = install.ObservedStatus(&s, o)
		first := s.Status.Conditions[0]
		s.Status = install.ObservedStatus(&s, o)
		checktest.Same(t, tc.want, fmt.Sprintf("%s %s, then %s", first.Status, first.Reason, s.Status.Conditions[0].Reason))
	}

	health := func(texts ...string) []olmapi.CatalogHealth {
		s := sub("a", "")
		return install.ObservedStatus(&s, around(&s, catalogs(texts...)...)).CatalogHealth
	}
	for _, tc := range []struct {
		before, after []olmapi.CatalogHealth
		want          string
	}{
		{nil, health("c"), "CatalogSourcesAdded"},
		{health("c", "d"), health("c"), "CatalogSourcesDeleted"},
		{health("c"), health("d"), "CatalogSourcesUpdated"},
		{health("c"), health("c!x"), "CatalogSourcesUpdated"},
		{health("c", "d"), health("d", "c"), ""},
	} {
		checktest.Same(t, tc.want, install.CatalogsChange(tc.before, tc.after))
	}
}

func TestResolvedStatus(t *testing.T) {
	p := plan("p", 4, olmapi.PlanPhaseInstalling)
	unsatisfiable := &olm.NotSatisfiable{Facts: []olm.Fact{{Message: "subscription a exists"}}}
	held := install.HeldBackBy(t.Context(), &olm.Generation{HeldBack: []olm.HeldBack{
		{Subscription: "f", NotTaken: []olm.Option{{Entry: &olm.Entry{Name: "f.v2"}}}, Taken: "f.v1"},
		{Subscription: "b", Err: &olm.Fact{Kind: "NoPackage", Message: "no operators found in package b"}},
		{Subscription: "c", Err: &olm.ChannelError{Package: "c", Channel: "stable"}},
		{Subscription: "e", NotTaken: []olm.Option{{}}, Err: &olm.LimitError{Where: "gave up on subscription e", Limit: "MaxConflicts", Max: 7, What: "conflicts"}},
	}})
	current := []install.CurrentCSV{{Subscription: "a", CSV: "a.v2"}}
	for _, tc := range []struct {
		name string
		sub  olmapi.Subscription
		r    install.Resolution
		want string
	}{
		{"no generation", sub("a", "a.v1"), install.Resolution{Err: unsatisfiable},
			"current=a.v1 installed=a.v1 plan=-; ResolutionFailed=True ConstraintsNotSatisfiable constraints not satisfiable: subscription a exists"},
		{"prevented", sub("b", "b.v1"), install.Resolution{Err: &olm.Prevented{Errs: []error{errors.New("boom")}}},
			"current=b.v1 installed=b.v1 plan=-; ResolutionFailed=True ErrorPreventedResolution boom"},
		{"success", sub("a", "a.v1", withCondition("ResolutionFailed"), withCondition("BundleUnpackFailed"), withCondition("BundleUnpacking")), install.Resolution{},
			"current=a.v1 installed=a.v1 plan=-;"},
		{"leads nowhere", sub("b", "b.v1"), install.Resolution{HeldBack: held},
			"current=b.v1 installed=b.v1 plan=-; ResolutionFailed=True ConstraintsNotSatisfiable no operators found in package b"},
		{"channel in disorder", sub("c", ""), install.Resolution{HeldBack: held},
			`current= installed= plan=-; ResolutionFailed=True ErrorPreventedResolution no channel heads (entries not replaced by another entry) found in channel "stable" of package "c"`},
		{"given up", sub("e", "e.v1"), install.Resolution{HeldBack: held},
			"current=e.v1 installed=e.v1 plan=-; ResolutionFailed=True ErrorPreventedResolution gave up on subscription e: more than 7 conflicts (limit MaxConflicts)"},
		{"no explanation", sub("f", "f.v1"), install.Resolution{HeldBack: held},
			"current=f.v1 installed=f.v1 plan=-; ResolutionFailed=True ConstraintsNotSatisfiable held back: subscription f: not taken f.v2; instead f.v1: " +
				"no such subscription, package or operator in the generation: catalog /"},
		{"another's is in disorder", sub("d", ""), install.Resolution{HeldBack: held}, "current= installed= plan=-;"},
		{"progresses", sub("a", "a.v1"), install.Resolution{Plan: &p, Current: current},
			"UpgradePending current=a.v2 installed=a.v1 plan=p;"},
		{"another progresses", sub("b", "b.v1"), install.Resolution{Plan: &p, Current: current},
			"current=b.v1 installed=b.v1 plan=-;"},
		{"an update was given up", sub("a", "a.v1", func(s *olmapi.Subscription) { s.Status.CurrentCSV = "" }), install.Resolution{},
			"AtLatestKnown current=a.v1 installed=a.v1 plan=-;"},
		{"unpacking", sub("a", "a.v1", withCondition("BundleUnpackFailed")), install.Resolution{Unpacking: true},
			"current=a.v1 installed=a.v1 plan=-; BundleUnpacking=True UnpackingInProgress"},
		{"unpacking failed", sub("a", "a.v1", withCondition("BundleUnpacking")), install.Resolution{Unpack: &install.UnpackError{Reason: "DeadlineExceeded", Message: "too slow"}, UnpackReason: "BundleUnpackFailed"},
			"current=a.v1 installed=a.v1 plan=-; BundleUnpackFailed=True BundleUnpackFailed Bundle unpacking failed - DeadlineExceeded: too slow"},
		{"unpacking prevented", sub("a", "a.v1"), install.Resolution{Unpack: errors.New("no registry"), UnpackReason: "ErrorPreventedUnpacking"},
			"current=a.v1 installed=a.v1 plan=-; BundleUnpackFailed=True ErrorPreventedUnpacking no registry"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := fmt.Sprintf("%+v", tc.sub.Status)
			got := install.ResolvedStatus(&tc.sub, &tc.r, statusNow)
			checktest.Same(t, tc.want, statusText(&got))
			checktest.SameIn(t, "the argument was changed", before, fmt.Sprintf("%+v", tc.sub.Status))
			tc.sub.Status = got
			checktest.Same(t, got, install.ResolvedStatus(&tc.sub, &tc.r, metav1.NewTime(statusNow.Add(time.Hour))))
		})
	}
}

// The time of a transition moves with the status of a condition, not with its
// reason.
func TestTransitionTime(t *testing.T) {
	s := sub("a", "a.v1")
	fail := func(text string, at time.Duration) {
		s.Status = install.ResolvedStatus(&s, &install.Resolution{Err: errors.New(text)}, metav1.NewTime(statusNow.Add(at)))
	}
	fail("one", 0)
	fail("two", time.Hour)
	if c := s.Status.Conditions[0]; c.Message != "two" || !c.LastTransitionTime.Equal(&statusNow) {
		t.Errorf("condition %+v", c)
	}
	if want := statusNow.Add(time.Hour); !s.Status.LastUpdated.Time.Equal(want) {
		t.Errorf("lastUpdated %v, want %v", s.Status.LastUpdated, want)
	}
}

// What is deprecated of the installed bundle, and nothing of others.
func TestDeprecationConditions(t *testing.T) {
	type blob = map[string]any
	var text strings.Builder
	write := func(v any) {
		data := checktest.Get(json.Marshal(v))(t)
		text.Write(data)
	}
	write(blob{"schema": "olm.package", "name": "a", "defaultChannel": "stable"})
	for _, ch := range []string{"stable", "beta"} {
		write(blob{"schema": "olm.channel", "package": "a", "name": ch, "entries": []blob{{"name": "a.v1"}, {"name": "a.v2", "replaces": "a.v1"}}})
	}
	for _, v := range []string{"1", "2"} {
		write(blob{"schema": "olm.bundle", "package": "a", "name": "a.v" + v, "image": "registry.example/a:" + v,
			"properties": []blob{{"type": "olm.package", "value": blob{"packageName": "a", "version": v + ".0.0"}}}})
	}
	write(blob{"schema": "olm.deprecations", "package": "a", "entries": []blob{
		{"reference": blob{"schema": "olm.package"}, "message": "use b"},
		{"reference": blob{"schema": "olm.channel", "name": "stable"}, "message": "use beta"},
		{"reference": blob{"schema": "olm.bundle", "name": "a.v1"}, "message": "too old"},
	}})
	c := faultless(t, text.String())
	const pkg, ch, bundle = "olm.package/a: use b", "olm.channel/stable: use beta", "olm.bundle/a.v1: too old"
	for _, tc := range []struct {
		name string
		sub  olmapi.Subscription
		err  error
		want string
	}{
		{"all three", sub("a", "a.v1"), nil, "PackageDeprecated=True  " + pkg + "; ChannelDeprecated=True  " + ch + "; BundleDeprecated=True  " + bundle + "; Deprecated=True  " + pkg + "; " + ch + "; " + bundle},
		{"another bundle", sub("a", "a.v2"), nil, "PackageDeprecated=True  " + pkg + "; ChannelDeprecated=True  " + ch + "; Deprecated=True  " + pkg + "; " + ch},
		{"another channel", sub("a", "a.v2", channel("beta")), nil, "PackageDeprecated=True  " + pkg + "; Deprecated=True  " + pkg},
		{"no channel", sub("a", "a.v2", channel("")), nil, "PackageDeprecated=True  " + pkg + "; Deprecated=True  " + pkg},
		{"nothing installed", sub("a", "", withCondition("Deprecated"), withCondition("BundleDeprecated")), nil, ""},
		{"installed from elsewhere", sub("a", "x.v1", withCondition("PackageDeprecated")), nil, ""},
		{"another package", sub("b", "a.v1"), nil, ""},
		{"catalog not readable", sub("a", "a.v1", withCondition("Deprecated")), errors.New("down"), "Deprecated=True Old"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			catalog := olm.SnapshotCatalog{Key: types.NamespacedName{Namespace: "olm", Name: "c"}, Contents: c, Err: tc.err}
			o := around(&tc.sub, catalog)
			o.Snapshot.Installed = []olmapi.ClusterServiceVersion{newCSV("a.v1"), newCSV("a.v2"), newCSV("x.v1")}
			got := install.ObservedStatus(&tc.sub, o)
			checktest.Same(t, tc.want, conditionsText(&got))
		})
	}
}
