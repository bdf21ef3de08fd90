package view_test

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// Any part of a cluster, with fields that are missing or of another type, has a
// status or an error.
func TestStatusOfAnything(t *testing.T) {
	clusters := wireClusters(t)
	rapid.Check(t, func(t *rapid.T) {
		c := *rapid.SampledFrom(clusters).Draw(t, "cluster")
		for kind := range c {
			if rapid.IntRange(0, 3).Draw(t, "subset") > 0 {
				continue
			}
			seed := rapid.Uint64().Draw(t, "seed")
			r := rand.New(rand.NewPCG(seed, 0))
			c[kind] = slices.DeleteFunc(slices.Clone(c[kind]), func(map[string]any) bool { return r.IntN(2) == 0 })
		}
		for range rapid.IntRange(0, 12).Draw(t, "edits") {
			c.edit(rapid.IntRange(0, wireKinds-1).Draw(t, "kind"), rapid.IntRange(0, 99).Draw(t, "object"),
				rapid.IntRange(0, 999).Draw(t, "value"), rapid.IntRange(0, len(oddValues)).Draw(t, "what"))
		}
		o := c.decode()
		before := inputs(t, o)
		checkStatus(t, o)
		if inputs(t, o) != before {
			t.Fatal("the objects have changed")
		}
	})
}

// inputs are all objects as text.
func inputs(t *rapid.T, o *view.Objects) string {
	text := checktest.Get(json.Marshal(o))(t)
	return string(text)
}

// The order of nodes, configs and deployments does not matter; that of operators
// and pools decides in which order they are shown, and nothing else.
func TestStatusOrderOfInput(t *testing.T) {
	clusters := wireClusters(t)
	rapid.Check(t, func(t *rapid.T) {
		c := *rapid.SampledFrom(clusters).Draw(t, "cluster")
		for range rapid.IntRange(0, 4).Draw(t, "edits") {
			c.edit(wireNode, rapid.IntRange(0, 99).Draw(t, "object"), rapid.IntRange(0, 999).Draw(t, "value"), rapid.IntRange(0, len(oddValues)).Draw(t, "what"))
		}
		o := c.decode()
		// Names tell objects apart in a cluster.
		slices.SortStableFunc(o.Nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
		o.Nodes = slices.CompactFunc(o.Nodes, func(a, b *corev1.Node) bool { return a.Name == b.Name })
		now := latestTransition(o).Add(recordedClock)
		s, err := view.AssessStatus(o, now)
		if err != nil {
			return
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		mixed := *o
		mixed.Nodes, mixed.MachineConfigs, mixed.Deployments = shuffled(r, o.Nodes), shuffled(r, o.MachineConfigs), shuffled(r, o.Deployments)
		m := checktest.Get(view.AssessStatus(&mixed, now))(t)
		equal(t, "control plane", s.ControlPlane, m.ControlPlane)
		equal(t, "pools", s.Pools, m.Pools)
		equal(t, "waits", s.Waits, m.Waits)
		equal(t, "health", byText(s.Health), byText(m.Health))

		mixed.ClusterOperators, mixed.MachineConfigPools = shuffled(r, o.ClusterOperators), shuffled(r, o.MachineConfigPools)
		if m, err = view.AssessStatus(&mixed, now); err != nil {
			t.Fatal(err)
		}
		equal(t, "pools, mixed", byText(s.Pools), byText(m.Pools))
		equal(t, "health, mixed", byText(s.Health), byText(m.Health))
		if a, b := s.ControlPlane, m.ControlPlane; a != nil {
			equal(t, "operators, mixed", byText(a.Updating), byText(b.Updating))
			a.Updating, b.Updating = nil, nil
			equal(t, "control plane, mixed", a, b)
		}
	})
}

func shuffled[T any](r *rand.Rand, all []T) []T {
	all = slices.Clone(all)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func equal(t *rapid.T, name string, want, got any) {
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Fatalf("%s: %s", name, diff)
	}
}

// byText sorts by what things say.
func byText[T any](all []T) []string {
	texts := make([]string, len(all))
	for i := range all {
		text, _ := json.Marshal(all[i])
		texts[i] = string(text)
	}
	slices.Sort(texts)
	return texts
}

// Where the clock of the reader stands does not matter: all times are shown in UTC.
func TestStatusTimeZone(t *testing.T) {
	text := func(zone *time.Location) string {
		o := updating()
		o.ClusterVersion.Status.Conditions[1] = says("Failing=True", metav1.NewTime(updateStart.In(zone)), "F", "f")
		o.ClusterVersion.Status.History[0] = complete("4.14.1", metav1.NewTime(updateStart.In(zone)), time.Minute)
		conditionOf(o.ClusterOperators[2], "Progressing").LastTransitionTime = metav1.NewTime(updateStart.In(zone))
		o = withNodes(o, nodeSays(oldNode("w", "worker"), "Ready=False", metav1.NewTime(updateStart.In(zone)), ""))
		s, err := view.AssessStatus(o, updateStart.Add(time.Hour).In(zone))
		checktest.OK(t, err)
		all := checktest.Get(json.MarshalIndent(s, "", " "))(t)
		return string(all)
	}
	same(t, "elsewhere", text(time.UTC), text(time.FixedZone("far", 3*60*60)))
	if !strings.Contains(text(time.UTC), `"completedAt": "2024-05-01T12:01:00Z"`) {
		t.Error(text(time.UTC))
	}
}

// Nothing but what time itself changes makes a status another.
func TestStatusSame(t *testing.T) {
	o := withNodes(updating(), oldNode("w", "worker"))
	o.ClusterVersion.Status.Conditions = o.ClusterVersion.Status.Conditions[:1] // no Failing: so it is now
	at := func(d time.Duration) *view.Status { return assess(t, o, d) }
	if !at(time.Minute).Same(at(2 * time.Minute)) {
		t.Error("a minute makes a difference")
	}
	if at(time.Minute).Same(at(3 * time.Hour)) {
		t.Error("an update that has stalled is another")
	}
	before := at(time.Minute)
	for name, edit := range map[string]func(){
		"operator": func() { o.ClusterOperators[2] = platformOperator("network", "4.14.1") },
		"node":     func() { o.Nodes[0] = newNode("w", "worker") },
		"health": func() {
			o.ClusterVersion.Status.Conditions = append(o.ClusterVersion.Status.Conditions, says("Failing=True", after(0), "F", "f"))
		},
		"unknown": func() { o.Missing = []view.Missing{{Kind: "Node", Reason: "lost"}} },
		"alert": func() {
			o.Alerts = []clusterapi.Alert{{Labels: map[string]string{"alertname": "A", "severity": "critical"}, ActiveAt: updateStart.Add(time.Second)}}
		},
		"version": func() { o.ClusterVersion.Status.History[0].Version = "4.14.2" },
	} {
		saved := *o
		saved.ClusterOperators, saved.Nodes = slices.Clone(o.ClusterOperators), slices.Clone(o.Nodes)
		saved.ClusterVersion = o.ClusterVersion.DeepCopy()
		edit()
		checktest.FailIf(t, at(time.Minute).Same(before), "%s makes no difference", name)
		*o = saved
	}
	var none *view.Status
	if !none.Same(nil) || none.Same(before) || before.Same(nil) {
		t.Error("nil is the same as nil alone")
	}
}

// Nil elements are passed over.
func TestNilObjects(t *testing.T) {
	o := withNodes(updating(), nil, oldNode("w", "worker"), nil)
	o.ClusterOperators = append([]*configv1.ClusterOperator{nil}, o.ClusterOperators...)
	o.MachineConfigPools = append(o.MachineConfigPools, nil)
	o.MachineConfigs = append(o.MachineConfigs, nil)
	o.Deployments = append(operatorImage("i"), nil)
	s := assess(t, o, time.Minute)
	checktest.FailIf(t, s.ControlPlane.Total != 4 || len(s.Pools) != 2 || s.Pools[1].Total != 1, "%+v", s)
	o.ClusterOperators = []*configv1.ClusterOperator{nil}
	if _, err := view.AssessStatus(o, updateStart); err == nil || !strings.HasPrefix(err.Error(), "no cluster operator information") {
		t.Error(err)
	}
}

// FuzzStatus deletes and changes fields of clusters, those recorded included where
// there are any. An input is the number of a cluster, and edits of six bytes: a
// kind, an object, a value below that (two bytes), and what becomes of it (two bytes).
func FuzzStatus(f *testing.F) {
	clusters := wireClusters(f)
	for i := range clusters {
		f.Add(byte(i), []byte{})
		for kind := range byte(wireKinds) {
			f.Add(byte(i), []byte{kind, 0, 0, 9, 0, byte(len(oddValues)), kind, 1, 0, 14, 0, kind})
		}
	}
	f.Fuzz(func(t *testing.T, cluster byte, edits []byte) {
		c := *clusters[int(cluster)%len(clusters)]
		for ; len(edits) >= 6; edits = edits[6:] {
			c.edit(int(edits[0]), int(edits[1]), int(edits[2])<<8|int(edits[3]), int(edits[4])<<8|int(edits[5]))
		}
		checkStatus(t, c.decode())
	})
}
