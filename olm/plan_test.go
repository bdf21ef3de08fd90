package olm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// limit is a property that limits OpenShift, as the catalogs of tests write it.
func limit(v string) string { return ` prop=olm.maxOpenShiftVersion:"` + v + `"` }

func planFor(t *testing.T, target string, snapshots ...olm.Snapshot) *olm.ClusterPlan {
	t.Helper()
	var list []*olm.Snapshot
	for i := range snapshots {
		list = append(list, &snapshots[i])
	}
	p := checktest.Get(olm.Plan(context.Background(), list, olm.PlanOptions{Target: target}))(t)
	return p
}

// A fault of one namespace does not hide the plan of another.
func TestPlanNamespaces(t *testing.T) {
	c := contents("a.v1 X"+limit("4.18"), "a.v2 X -Y >a.v1", "a.v3 X -Y >a.v2", "b.v1 Y", "d.v1 Z -Q >d.v0")
	bad := snapshot(c, nil, sub("a", ""))
	bad.OperatorGroups = nil
	s := snapshot(c, installed("a.v1 X"+limit("4.18"), "d.v0 Z"), sub("a", "a.v1"), sub("d", "d.v0"))
	idle := snapshot(c, installed("b.v1 Y"), sub("b", "b.v1"))
	p := planFor(t, "", bad, s, idle)
	if err := p.Namespaces[0].Err; err == nil || len(p.Namespaces[1].Generations) != 3 || p.Target != nil || p.Complete() {
		t.Errorf("error %v, plan:\n%s", err, p)
	}
	const want = `Namespace ops:
  failed: expected 1 OperatorGroup in the namespace, found 0
Namespace ops:
  1: updated a.v1 to a.v2 (channel stable, catalog olm/c) for subscription a
  1: added b.v1 (channel stable, catalog olm/c): a.v2 requires an operator providing an API with group: g, version: v1, kind: Y
  2: updated a.v2 to a.v3 (channel stable, catalog olm/c) for subscription a
held back: subscription d: not taken d.v1; instead d.v0
Namespace ops:
  nothing changes
`
	checktest.SameIn(t, "plan", want, p.String())
	const target = `Update of the cluster to OpenShift 4.19:
  maximum supported OCP version for ops/a.v1 is 4.18: goes on to a.v2 after 1 generation
  possible after generation 1
`
	checktest.SameIn(t, "plan for a target", want+target, planFor(t, "4.19", bad, s, idle).String())
}

// Which operators must move before OpenShift 4.19, whether they can, and after
// how many generations.
func TestPlanTarget(t *testing.T) {
	for _, tc := range []struct {
		name      string
		catalog   []string
		installed []string
		subs      []olmapi.Subscription
		target    string
		want      []string
	}{
		{"nothing in the way", []string{"a.v1 X" + limit("4.19")}, []string{"a.v1 X" + limit("4.19")}, []olmapi.Subscription{sub("a", "a.v1")}, "4.19.3", []string{"0"}},
		{"no limit", []string{"a.v1 X"}, []string{"a.v1 X"}, []olmapi.Subscription{sub("a", "a.v1")}, "4.19", []string{"0"}},
		{"next version", []string{"a.v1 X" + limit("4.18"), "a.v2 X >a.v1" + limit("4.19")}, []string{"a.v1 X" + limit("4.18")}, []olmapi.Subscription{sub("a", "a.v1")}, "4.19",
			[]string{"1", "Moves a.v1 [a]: 1 a.v2, path 1, []: maximum supported OCP version for ops/a.v1 is 4.18: goes on to a.v2 after 1 generation"}},
		{"the one after", []string{"a.v1 X" + limit("4.18"), "a.v2 X >a.v1" + limit("4.18"), "a.v3 X >a.v2"}, []string{"a.v1 X" + limit("4.18")}, []olmapi.Subscription{sub("a", "a.v1")}, "4.19",
			[]string{"2", "Moves a.v1 [a]: 2 a.v3, path 2, []: maximum supported OCP version for ops/a.v1 is 4.18: goes on to a.v3 after 2 generations", "introduces a.v2"}},
		{"held back", []string{"a.v1 X" + limit("4.18"), "a.v2 X -Q >a.v1"}, []string{"a.v1 X" + limit("4.18")}, []olmapi.Subscription{sub("a", "a.v1")}, "4.19",
			[]string{"-1", "Withheld a.v1 [a]: 0 , path 1, []: maximum supported OCP version for ops/a.v1 is 4.18: could go on to a.v2, but that is withheld"}},
		{"another channel", []string{"a.v1 X" + limit("4.18"), "a.v1 X @beta", "a.v2 X @beta >a.v1" + limit("4.20")}, []string{"a.v1 X" + limit("4.18")}, []olmapi.Subscription{sub("a", "a.v1")}, "4.20",
			[]string{"-1", "OtherChannel a.v1 [a]: 0 , path 0, [beta]: maximum supported OCP version for ops/a.v1 is 4.18: needs another channel: beta"}},
		{"no way", []string{"a.v1 X" + limit("4.18"), "a.v2 X >a.v1" + limit("4.18")}, []string{"a.v1 X" + limit("4.18")}, []olmapi.Subscription{sub("a", "a.v1")}, "4.19",
			[]string{"-1", "NoPath a.v1 [a]: 0 , path 0, []: maximum supported OCP version for ops/a.v1 is 4.18: its catalog has no update that supports the target", "introduces a.v2"}},
		{"a limit that cannot be read is none", []string{"a.v1 X" + limit("4.18"), "a.v2 X >a.v1" + limit("x")}, []string{"a.v1 X" + limit("4.18")}, []olmapi.Subscription{sub("a", "a.v1")}, "4.19",
			[]string{"-1", "NoPath a.v1 [a]: 0 , path 0, []: maximum supported OCP version for ops/a.v1 is 4.18: its catalog has no update that supports the target", "introduces a.v2"}},
		{"freestanding", []string{"a.v1 X" + limit("4.18"), "a.v2 X >a.v1"}, []string{"a.v1 X" + limit("4.18")}, nil, "4.19",
			[]string{"-1", "Freestanding a.v1 []: 0 , path 0, []: maximum supported OCP version for ops/a.v1 is 4.18: no Subscription updates it"}},
		{"unreadable limit", []string{"a.v1 X", "a.v2 X >a.v1"}, []string{"a.v1 X" + limit("")}, []olmapi.Subscription{sub("a", "a.v1")}, "4.19",
			[]string{"1", `Moves a.v1 [a]: 1 a.v2, path 1, []: ops/a.v1 has invalid olm.maxOpenShiftVersion properties: value cannot be "" (an empty string): goes on to a.v2 after 1 generation`}},
		{"two at different speeds", []string{"a.v1 X" + limit("4.18"), "a.v2 X >a.v1", "b.v1 Y" + limit("4.18"), "b.v2 Y >b.v1" + limit("4.18"), "b.v3 Y >b.v2"}, []string{"a.v1 X" + limit("4.18"), "b.v1 Y" + limit("4.18")},
			[]olmapi.Subscription{sub("a", "a.v1"), sub("b", "b.v1")}, "4.19",
			[]string{"2", "Moves a.v1 [a]: 1 a.v2, path 1, []: maximum supported OCP version for ops/a.v1 is 4.18: goes on to a.v2 after 1 generation",
				"Moves b.v1 [b]: 2 b.v3, path 2, []: maximum supported OCP version for ops/b.v1 is 4.18: goes on to b.v3 after 2 generations", "introduces b.v2"}},
		{"two become one", []string{"x.v2 X >a.v1 ~b.v1"}, []string{"a.v1 A" + limit("4.18"), "b.v1 B" + limit("4.18")},
			[]olmapi.Subscription{sub("x", "a.v1", named("a")), sub("x", "b.v1", named("b"))}, "4.19",
			[]string{"1", "Moves a.v1 [a]: 1 x.v2, path 1, []: maximum supported OCP version for ops/a.v1 is 4.18: goes on to x.v2 after 1 generation",
				"Moves b.v1 [b]: 1 x.v2, path 1, []: maximum supported OCP version for ops/b.v1 is 4.18: goes on to x.v2 after 1 generation"}},
		{"two names of one release", []string{"a.v1 X" + limit("4.22"), "a.v2 X >a.v1" + limit("4.23")}, []string{"a.v1 X" + limit("4.22")}, []olmapi.Subscription{sub("a", "a.v1")}, "5.0",
			[]string{"1", "Moves a.v1 [a]: 1 a.v2, path 1, []: maximum supported OCP version for ops/a.v1 is 4.22: goes on to a.v2 after 1 generation"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := snapshot(contents(tc.catalog...), installed(tc.installed...), tc.subs...)
			p := planFor(t, tc.target, s).Target
			got := []string{fmt.Sprint(p.Generations)}
			for _, o := range p.Operators {
				got = append(got, fmt.Sprintf("%s %s %v: %d %s, path %d, %v: %s", o.Answer, o.Name, o.Subscriptions, o.Generations, o.By, len(o.Path), o.Channels, o))
			}
			for _, b := range p.Introduced {
				got = append(got, "introduces "+b.Name)
			}
			checktest.Same(t, tc.want, got)
		})
	}
}

func TestPlanErrors(t *testing.T) {
	if _, err := olm.Plan(context.Background(), nil, olm.PlanOptions{Target: "latest"}); err == nil || !strings.Contains(err.Error(), "latest") {
		t.Errorf("a target that is none: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := snapshot(contents("a.v1 X"), nil, sub("a", ""))
	if _, err := olm.Plan(ctx, []*olm.Snapshot{&s}, olm.PlanOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Only the catalogs of a Subscription are asked for a way.
func TestPlanTargetCatalogs(t *testing.T) {
	old, fresh := contents("a.v1 X"+limit("4.18")), contents("a.v1 X"+limit("4.18"), "a.v2 X >a.v1")
	for _, tc := range []struct {
		sub  olmapi.Subscription
		want string
	}{
		{sub("a", "a.v1"), "NoPath"},
		{sub("a", "a.v1", source("d", "olm")), "Moves"},
		{sub("a", "a.v1", source("e", "olm")), "NoPath"},
		{sub("a", "a.v1", source("", "")), "Moves"},
	} {
		s := snapshot(old, installed("a.v1 X"+limit("4.18")), tc.sub)
		s.Catalogs = append(s.Catalogs, olm.SnapshotCatalog{Key: clusterapi.Key("olm", "d"), Contents: fresh}, olm.SnapshotCatalog{Key: clusterapi.Key("olm", "e"), Contents: contents("b.v1 Y")})
		p := planFor(t, "4.19", s).Target
		if len(p.Operators) != 1 || p.Operators[0].Answer != tc.want {
			t.Errorf("%s/%s: %v, want %s", tc.sub.Spec.SourceNamespace, tc.sub.Spec.Source, p.Operators, tc.want)
		}
	}
}

// An update that is in progress comes to its end by itself.
func TestPlanTargetInProgress(t *testing.T) {
	csvs := phase(installed("a.v1 X"+limit("4.18"), "a.v2 >a.v1"), olmapi.CSVPhaseReplacing, "Installing")
	s := snapshot(contents("a.v1 X"+limit("4.18"), "a.v2 X >a.v1"), csvs, sub("a", "a.v2"))
	const want = `Namespace ops:
  1: update in progress: a.v2 replaces a.v1
Update of the cluster to OpenShift 4.19:
  maximum supported OCP version for ops/a.v1 is 4.18: goes on to a.v2 after 1 generation
  possible after generation 1
`
	checktest.Same(t, want, planFor(t, "4.19", s).String())

	// Generations that end early have no remarks, which would name it.
	early := olm.NamespacePlan{Namespace: "ops", Err: errors.New("cycle"), Generations: []*olm.Generation{
		{InProgress: []olm.InProgressUpdate{{Old: "a.v1", New: "a.v2"}}},
	}}
	text := (&olm.ClusterPlan{Namespaces: []olm.NamespacePlan{early}}).String()
	checktest.Same(t, "Namespace ops:\n  1: update in progress: a.v2 replaces a.v1\n  failed: cycle\n", text)
}

// A plan changes neither snapshots nor itself.
func TestPlanIsPure(t *testing.T) {
	s := snapshot(contents("a.v1 X", "a.v2 X -Y >a.v1", "b.v1 Y"), installed("a.v1 X"), sub("a", "a.v1"))
	before := fmt.Sprintf("%+v %+v", s.Installed, s.Subscriptions)
	one, two := planFor(t, "4.19", s), planFor(t, "4.19", s)
	if after := fmt.Sprintf("%+v %+v", s.Installed, s.Subscriptions); after != before {
		t.Error("the snapshot was changed")
	}
	checktest.Same(t, one.String(), two.String())
}
