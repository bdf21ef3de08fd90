package view_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

// The kinds of objects that a status reads, as indices of a wireCluster.
const (
	wireVersion = iota
	wireOperator
	wirePool
	wireNode
	wireConfig
	wireDeployment
	wireKinds
)

var wireNames = [wireKinds]string{"ClusterVersion", "ClusterOperator", "MachineConfigPool", "Node", "MachineConfig", "Deployment"}

// wireCluster is a cluster's objects as they come from an API, by kind.
type wireCluster [wireKinds][]map[string]any

// wireClusters are the cluster of the documentation's example and, where there is
// real data, the recorded ones.
func wireClusters(t testing.TB) []*wireCluster {
	t.Helper()
	own := documented()
	own.Deployments = operatorImage("image")
	own.Nodes[1].Annotations[mcd+"state"], own.Nodes[1].Annotations[mcd+"reason"] = "Degraded", "broken"
	nodeSays(own.Nodes[0], "Ready=False", after(0), "gone")
	clusters := []*wireCluster{wire(t, own)}
	dir := os.Getenv(testdata.Env)
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	if _, err := os.Stat(filepath.Join(dir, "clusters")); err == nil {
		for _, dir := range dumps(t) {
			clusters = append(clusters, wire(t, readDump(t, dir)))
		}
	}
	return clusters
}

// wire encodes objects.
func wire(t testing.TB, o *view.Objects) *wireCluster {
	t.Helper()
	configs := make([]*mcfgv1.MachineConfig, len(o.MachineConfigs)) // without their large files
	for i, mc := range o.MachineConfigs {
		configs[i] = &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: mc.Name, Annotations: mc.Annotations}}
	}
	var c wireCluster
	for kind, objects := range []any{[]any{o.ClusterVersion}, o.ClusterOperators, o.MachineConfigPools, o.Nodes, configs, o.Deployments} {
		text := checktest.Get(json.Marshal(objects))(t)
		checktest.OK(t, json.Unmarshal(text, &c[kind]))
		for _, object := range c[kind] {
			delete(object["metadata"].(map[string]any), "managedFields")
		}
	}
	return &c
}

// decode decodes what can be decoded; a kind of which something cannot is missing.
func (c *wireCluster) decode() *view.Objects {
	o := &view.Objects{}
	if versions := decodeKind[configv1.ClusterVersion](o, c, wireVersion); len(versions) > 0 {
		o.ClusterVersion = versions[0]
	}
	o.ClusterOperators = decodeKind[configv1.ClusterOperator](o, c, wireOperator)
	o.MachineConfigPools = decodeKind[mcfgv1.MachineConfigPool](o, c, wirePool)
	o.Nodes = decodeKind[corev1.Node](o, c, wireNode)
	o.MachineConfigs = decodeKind[mcfgv1.MachineConfig](o, c, wireConfig)
	o.Deployments = decodeKind[appsv1.Deployment](o, c, wireDeployment)
	return o
}

func decodeKind[T any](o *view.Objects, c *wireCluster, kind int) []*T {
	var all []*T
	for _, object := range c[kind] {
		t, err := clusterapi.FromUnstructured[T](&unstructured.Unstructured{Object: object})
		if err == nil {
			all = append(all, t)
		} else if len(o.Missing) == 0 || o.Missing[len(o.Missing)-1].Kind != wireNames[kind] {
			o.Missing = append(o.Missing, view.Missing{Kind: wireNames[kind], Reason: err.Error()})
		}
	}
	return all
}

// oddValues are what a field may hold that should hold something else.
var oddValues = []any{
	nil, "", "True", "Unknown", "master", "4.14.1", "a\tb\n\nc\f\v\x00é", "0001-01-01T00:00:00Z", "2262-05-01T00:00:00+05:30",
	map[string]any{}, []any{}, int64(-1), true, float64(1.5), map[string]any{"": nil},
}

// editNth changes the nth value of a tree, counted by depth with keys in order: it
// deletes that, or puts in something else. The tree is not changed; what is
// returned shares what is equal.
func editNth(tree any, n *int, what int) (edited any, keep bool) {
	if *n--; *n < 0 {
		if what %= len(oddValues) + 1; what < len(oddValues) {
			return oddValues[what], true
		}
		return nil, false
	}
	switch v := tree.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if child, keep := editNth(v[key], n, what); *n < 0 {
				v = maps.Clone(v)
				if v[key] = child; !keep {
					delete(v, key)
				}
				return v, true
			}
		}
	case []any:
		for i := range v {
			if child, keep := editNth(v[i], n, what); *n < 0 {
				if !keep {
					return slices.Delete(slices.Clone(v), i, i+1), true
				}
				v = slices.Clone(v)
				v[i] = child
				return v, true
			}
		}
	}
	return tree, true
}

func countTree(tree any) int {
	n := 1
	switch v := tree.(type) {
	case map[string]any:
		for _, child := range v {
			n += countTree(child)
		}
	case []any:
		for _, child := range v {
			n += countTree(child)
		}
	}
	return n
}

// edit changes a value below an object, and leaves out the object if that has
// nothing below.
func (c *wireCluster) edit(kind, object, value, what int) {
	objects := c[kind%wireKinds]
	if len(objects) == 0 {
		return
	}
	i := object % len(objects)
	n := 1 + value%countTree(objects[i]) // not the object itself
	edited, _ := editNth(objects[i], &n, what)
	objects = slices.Clone(objects)
	if objects[i] = edited.(map[string]any); n >= 0 {
		objects = slices.Delete(objects, i, i+1)
	}
	c[kind%wireKinds] = objects
}

// checkStatus holds that whatever is given, a status is an error, or is printed
// whole in all its forms and again the same, and says what it does not know.
func checkStatus(t interface {
	Helper()
	Fatalf(string, ...any)
}, o *view.Objects) {
	t.Helper()
	now := latestTransition(o).Add(recordedClock)
	s, err := view.AssessStatus(o, now)
	if err != nil {
		return
	}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatalf("encoding: %v", err)
	}
	var decoded view.Status
	if err := json.Unmarshal(data, &decoded); err != nil {
		t.Fatalf("decoding: %v", err)
	}
	later, err := view.AssessStatus(o, now)
	if err != nil || !s.Same(later) || !later.Same(s) {
		t.Fatalf("another time it is another: %v", err)
	}
	if !s.Same(&decoded) {
		t.Fatalf("decoded it is another:\n%s", cmp.Diff(s, &decoded))
	}
	if s.String() == "" || s.String() != decoded.String() || s.Verdict() != decoded.Verdict() {
		t.Fatalf("%q, decoded %q", s, &decoded)
	}
	for _, d := range []view.Details{"", "all", "nodes", "health", "operators"} {
		for _, waits := range []bool{false, true} {
			var out, errOut, again bytes.Buffer
			opts := view.StatusText{Details: d, Waits: waits}
			if err := s.WriteText(&out, &errOut, opts); err != nil {
				t.Fatalf("writing: %v", err)
			}
			if err := decoded.WriteText(&again, &again, opts); err != nil || !bytes.Equal(again.Bytes(), append(errOut.Bytes(), out.Bytes()...)) {
				t.Fatalf("decoded it is printed otherwise: %v\n%s", err, cmp.Diff(errOut.String()+out.String(), again.String()))
			}
			if control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }; bytes.ContainsFunc(again.Bytes(), control) {
				t.Fatalf("control characters reach the terminal: %q", again.String())
			}
			for _, m := range o.Missing {
				var reason bytes.Buffer
				text.NewWriter(&reason).Print(m.Reason)
				if m.Kind != "Deployment" && !bytes.Contains(errOut.Bytes(), reason.Bytes()) {
					t.Fatalf("does not say that %s: %s", m.Kind, m.Reason)
				}
			}
		}
	}
	if c := s.ControlPlane; c != nil {
		if c.Healthy+c.Unavailable+c.Degraded != c.Total || c.Updated+len(c.Updating)+c.Waiting > c.Total || c.Healthy < 0 || c.Remaining.Duration.Abs() > 100*365*24*time.Hour {
			t.Fatalf("counts: %+v", c)
		}
	}
	nodes := 0
	for _, p := range s.Pools {
		nodes += p.Total
		if p.Total != len(p.Nodes) || p.Updated+p.Outdated != p.Total || p.Available > p.Total || p.Progressing+p.Excluded+p.Pending > p.Outdated {
			t.Fatalf("counts: %+v", p)
		}
	}
	if nodes > len(o.Nodes) {
		t.Fatalf("%d nodes of %d", nodes, len(o.Nodes))
	}
}
