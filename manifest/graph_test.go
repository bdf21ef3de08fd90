package manifest_test

import (
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// tasks makes a task for each short name: "10_a" is 0000_10_a_0.yaml; a name
// with "job" is a Job, one without an underscore matches no pattern.
func tasks(names ...string) []*manifest.Task {
	manifests := make([]*manifest.Manifest, len(names))
	for i, name := range names {
		file := "0000_" + name + "_.yaml"
		if !strings.Contains(name, "_") {
			file = name + ".yaml"
		}
		kind, version := "ConfigMap", "v1"
		switch {
		case strings.Contains(name, "job"):
			kind, version = "Job", "batch/v1"
		case strings.Contains(name, "beta"):
			kind, version = "Job", "batch/v1beta1"
		case strings.Contains(name, "foreign"):
			kind, version = "Job", "g/v1"
		}
		manifests[i], _ = manifest.New(file, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name},
		}})
	}
	return manifest.NewTasks(manifests)
}

func list(s string) []*manifest.Task { return tasks(strings.Fields(s)...) }

// format writes buckets as "(a b) (c) -> (d)".
func format(buckets [][][]*manifest.Task) string {
	parts := make([]string, len(buckets))
	for i, b := range buckets {
		nodes := make([]string, len(b))
		for j, n := range b {
			nodes[j] = "(" + names(n) + ")"
		}
		parts[i] = strings.Join(nodes, " ")
	}
	return strings.Join(parts, " -> ")
}

func names(tasks []*manifest.Task) string {
	parts := make([]string, len(tasks))
	for i, t := range tasks {
		parts[i] = t.Manifest.Identity().Name
	}
	return strings.Join(parts, " ")
}

func TestParseName(t *testing.T) {
	tests := map[string]string{
		"0000_10_a_x.yaml": "10 a", "0000_010_a_x": "010 a", "0000_5_a-b-C9_": "5 a-b-C9", "0000_9_Az-Za-09_x": "9 Az-Za-09", "0000_10_a_b_c.yaml": "10 a", "0000_00_9_x": "00 9",
		"0001_10_a_x.yaml": "", "0000_10_a.yaml": "", "0000_10_a--b_x.yaml": "", "x.yaml": "", "0000_10_-a_x": "", "0000_10_a-_x": "", "0000__a_x": "", "0000_1a_a_x": "", "0000_10__x": "",
		"0000_10_a.b_x": "", " 0000_10_a_x": "", "0000_١_a_x": "", "0000_10_ä_x": "", "0000_": "", "": "", "0000_-1_a_x": "",
	}
	for file, want := range tests {
		level, component, ok := manifest.ParseName(file)
		if got := strings.TrimSpace(level + " " + component); got != want || ok != (want != "") {
			t.Errorf("%s: %q", file, got)
		}
	}
}

func TestGroupings(t *testing.T) {
	tests := []struct{ tasks, byNumber, flat string }{
		{"", "", ""},
		{"10_a", "", ""},
		{"10_a 10_a", "(10_a 10_a)", "(10_a 10_a)"},
		{"10_a 10_b", "(10_a) (10_b)", "(10_a) (10_b)"},
		{"10_a 10_b 20_c 20_c 30_d 40_e 40_f", "(10_a) (10_b) -> (20_c 20_c 30_d) -> (40_e) (40_f)", "(10_a) (10_b) (20_c 20_c) (30_d) (40_e) (40_f)"},
		{"10_a 10_b 10_a", "(10_a) (10_b) (10_a)", "(10_a) (10_b) (10_a)"},
		{"10_a x 10_a 10_b", "(10_a x) -> (10_a) (10_b)", "(10_a) (x) (10_a) (10_b)"},
		{"x x y", "(x x y)", "(x) (x) (y)"},
		{"10_a 010_a 10_b 10_c", "(10_a 010_a) -> (10_b) (10_c)", "(10_a) (010_a) (10_b) (10_c)"},
		{"10_a 20_a 30_a", "(10_a 20_a 30_a)", "(10_a) (20_a) (30_a)"},
		{"10_a 10_a 10_b 20_c 20_d", "(10_a 10_a) (10_b) -> (20_c) (20_d)", "(10_a 10_a) (10_b) (20_c) (20_d)"},
	}
	for _, tt := range tests {
		checktest.Equal(t, tt.byNumber, format(manifest.ByNumberAndComponent(list(tt.tasks))), "%s", tt.tasks)
		checktest.Equal(t, tt.flat, format(manifest.FlattenByNumberAndComponent(list(tt.tasks))), "%s: flat", tt.tasks)
	}
}

// TestReconcilingOrder holds the orders that attempts of a reconciliation have.
func TestReconcilingOrder(t *testing.T) {
	for attempt, want := range map[int]string{0: "c d b a e", 1: "d b a e c", 3: "a e c d b", 8: "c a b e d", 9: "a b e d c"} {
		f := manifest.ShiftOrder(manifest.PermuteOrder(manifest.FlattenByNumberAndComponent, rand.New(rand.NewSource(int64(attempt/8)))), attempt%8, 8)
		var got []string
		for _, node := range f(list("1_a 1_b 1_c 1_d 1_e"))[0] {
			got = append(got, names(node)[2:])
		}
		checktest.SameIn(t, fmt.Sprintf("attempt %d", attempt), want, strings.Join(got, " "))

		got = nil
		for _, node := range manifest.AttemptGraph(list("1_a 1_b 1_c 1_d 1_e"), attempt).Nodes[1:] { // behind the anchor
			got = append(got, names(node.Tasks)[2:])
		}
		checktest.SameIn(t, fmt.Sprintf("graph of attempt %d", attempt), want, strings.Join(got, " "))
	}
}

// One generator serves the whole graph: what follows a Job is not shuffled as what
// stands before it.
func TestReconcilingOrderAcrossJobs(t *testing.T) {
	different := false
	for attempt := 0; attempt < 80; attempt += 8 {
		order := map[string]string{}
		for _, node := range manifest.AttemptGraph(list("1_a 1_b 1_c 1_d 2_job 3_a 3_b 3_c 3_d"), attempt).Nodes {
			if level, component, ok := strings.Cut(names(node.Tasks), "_"); ok {
				order[level] += component
			}
		}
		different = different || order["1"] != order["3"]
	}
	if !different {
		t.Error("both sides of a Job have one order in ten attempts")
	}
}

func TestShiftOrder(t *testing.T) {
	shift := func(m, step, stride int) int {
		bucket := make([][]*manifest.Task, m)
		for i := range bucket {
			bucket[i] = []*manifest.Task{{Index: i}}
		}
		f := func([]*manifest.Task) [][][]*manifest.Task { return [][][]*manifest.Task{bucket} }
		return manifest.ShiftOrder(f, step, stride)(nil)[0][0][0].Index
	}
	for _, tt := range []struct {
		m    int
		want []int
	}{{1, []int{0, 0, 0, 0, 0, 0, 0, 0}}, {5, []int{0, 1, 2, 3, 4, 0, 1, 2}}, {8, []int{0, 1, 2, 3, 4, 5, 6, 7}}, {16, []int{0, 2, 4, 6, 8, 10, 12, 14}}, {10, []int{0, 1, 2, 3, 5, 6, 7, 8}}} {
		for step, want := range tt.want {
			checktest.Equal(t, want, shift(tt.m, step, 8), "m=%d step %d", tt.m, step)
		}
	}
	checktest.Equal(t, 1, shift(3, 7, 8), "shift(3, 7, 8)")
	checktest.Equal(t, 0, shift(3, -1, 0), "shift(3, -1, 0)")
	if got := shift(16, math.MaxInt, 8); got != 14 { // the seventh step of eight
		t.Error(got)
	}
}

func TestPermuteKeepsBucketsOfOne(t *testing.T) {
	// A bucket of one draws nothing, so the second bucket is shuffled as if it
	// were the first.
	r := rand.New(rand.NewSource(7))
	with := format(manifest.PermuteOrder(manifest.ByNumberAndComponent, r)(list("1_x 2_a 2_b 2_c 2_d")))
	r = rand.New(rand.NewSource(7))
	without := format(manifest.PermuteOrder(manifest.ByNumberAndComponent, r)(list("2_a 2_b 2_c 2_d")))
	checktest.Equal(t, "(1_x) -> "+without, with, "with (%v)", without)
}

func TestGraphExample(t *testing.T) {
	g := updating(list("10_a 10_b 10_job 20_c 20_d"))
	const want = `digraph tasks {
  labelloc=t;
  rankdir=TB;
  0 [ label="job 10_job (3 of 5)" shape="box" ];
  1 [ label="no manifests" shape="box" ];
  2 [ label="no manifests" shape="box" ];
  3 [ label="configmap 10_a (1 of 5)" shape="box" ];
  4 [ label="configmap 10_b (2 of 5)" shape="box" ];
  5 [ label="no manifests" shape="box" ];
  6 [ label="configmap 20_c (4 of 5)" shape="box" ];
  7 [ label="configmap 20_d (5 of 5)" shape="box" ];
  0 -> 2;
  1 -> 3;
  1 -> 4;
  2 -> 6;
  2 -> 7;
  3 -> 5;
  4 -> 5;
  5 -> 0;
}`
	checktest.Same(t, want, g.DOT())
	checktest.Has(t, manifest.UpdateGraph(list("x y")).DOT(),
		`0 [ label="configmap x (1 of 2)\nconfigmap y (2 of 2)" shape="box" ];`)
}

func updating(tasks []*manifest.Task) *manifest.Graph {
	return manifest.UpdateGraph(tasks)
}

// shape writes a graph as its nodes with their outputs.
func shape(g *manifest.Graph) string {
	parts := make([]string, len(g.Nodes))
	for i, n := range g.Nodes {
		parts[i] = fmt.Sprintf("%d(%s)%v", i, names(n.Tasks), n.Out)
	}
	return strings.Join(parts, " ")
}

func TestGraphShapes(t *testing.T) {
	tests := []struct{ name, tasks, want string }{
		{"nothing", "", "0()[]"},
		{"one task", "10_a", "0(10_a)[]"},
		{"a single job", "10_job", "0(10_job)[]"},
		{"one component", "10_a 10_a", "0(10_a 10_a)[]"},
		{"job first", "10_job 10_a", "0(10_job)[1] 1(10_a)[]"},
		{"job last", "10_a 10_job", "0(10_job)[] 1(10_a)[0]"},
		{"only jobs", "1_job 1_job 1_job", "0(1_job)[1] 1(1_job)[2] 2(1_job)[]"},
		{"a job of another group", "10_a 10_foreign", "0()[1 2] 1(10_a)[] 2(10_foreign)[]"},
		{"a job of another version", "10_a 10_beta", "0()[1 2] 1(10_a)[] 2(10_beta)[]"},
		{"two buckets", "10_a 10_b 20_a 20_b", "0()[1 2] 1(10_a)[3] 2(10_b)[3] 3()[4 5] 4(20_a)[] 5(20_b)[]"},
		{"a single node between", "10_a 10_b 20_a 30_a 30_b", "0()[1 2] 1(10_a)[3] 2(10_b)[3] 3(20_a)[4 5] 4(30_a)[] 5(30_b)[]"},
		{"last bucket of one before outputs", "10_a 10_b 20_a 30_job", "0(30_job)[] 1()[2 3] 2(10_a)[4] 3(10_b)[4] 4(20_a)[5] 5()[0]"},
	}
	for _, tt := range tests {
		g := updating(list(tt.tasks))
		checktest.Good(t, g.Validate())
		checktest.SameIn(t, tt.name, tt.want, shape(g))
	}
}

// TestGraphInvariants checks what must hold of the graph of any list: it is
// valid, each task is there once, and the order that the rules promise holds
// along its edges.
func TestGraphInvariants(t *testing.T) {
	word := rapid.SampledFrom([]string{"10_a", "10_a", "10_b", "10_c", "20_a", "20_b", "30_a", "x", "10_job", "20_job", "10_beta"})
	rapid.Check(t, func(t *rapid.T) {
		input := tasks(rapid.SliceOfN(word, 0, 40).Draw(t, "tasks")...)
		checktest.OK(t, manifest.NewGraph(input, manifest.OneNode).Validate())
		strict := rapid.Bool().Draw(t, "strict")
		g := manifest.FlatGraph(input)
		if strict {
			g = manifest.UpdateGraph(input)
		}
		checktest.OK(t, g.Validate())
		home := make(map[*manifest.Task]int)
		for i, n := range g.Nodes {
			for _, task := range n.Tasks {
				home[task] = i
			}
		}
		before := reachability(g)
		for i, a := range input {
			for _, b := range input[i+1:] {
				ordered := home[a] == home[b] || before[home[a]][home[b]]
				la, ca, oka := manifest.ParseName(a.Manifest.Filename)
				lb, cb, okb := manifest.ParseName(b.Manifest.Filename)
				isJob := a.Manifest.GVK().Kind == "Job" && a.Manifest.GVK().Version == "v1" || b.Manifest.GVK().Kind == "Job" && b.Manifest.GVK().Version == "v1"
				switch {
				case isJob && !ordered:
					t.Fatalf("%s and %s: a job is a barrier\n%s", a, b, shape(g))
				case strict && (la != lb || !oka || !okb) && !ordered:
					t.Fatalf("%s before %s\n%s", a, b, shape(g))
				case strict && ordered && oka && okb && la == lb && ca != cb && b.Index == a.Index+1 && !isJob:
					t.Fatalf("%s and %s may run in parallel\n%s", a, b, shape(g))
				}
				if before[home[b]][home[a]] {
					t.Fatalf("%s comes before %s\n%s", b, a, shape(g))
				}
			}
		}
	})
}

func reachability(g *manifest.Graph) []map[int]bool {
	reach := make([]map[int]bool, len(g.Nodes))
	var visit func(i int) map[int]bool
	visit = func(i int) map[int]bool {
		if reach[i] == nil {
			reach[i] = map[int]bool{}
			for _, j := range g.Nodes[i].Out {
				reach[i][j] = true
				for k := range visit(j) {
					reach[i][k] = true
				}
			}
		}
		return reach[i]
	}
	for i := range g.Nodes {
		visit(i)
	}
	return reach
}

func TestValidate(t *testing.T) {
	two := list("a b")
	tests := []struct {
		name, want string
		g          *manifest.Graph
	}{
		{"cycle", "2 of 2 nodes are in or after a cycle", &manifest.Graph{Nodes: []manifest.Node{{In: []int{1}, Out: []int{1}}, {In: []int{0}, Out: []int{0}}}}},
		{"no input", "node 0 leads to node 1, which does not have it as an input", &manifest.Graph{Nodes: []manifest.Node{{Out: []int{1}}, {}}}},
		{"no output", "node 1 has input 0, which does not lead to it", &manifest.Graph{Nodes: []manifest.Node{{}, {In: []int{0}}}}},
		{"double", "node 0 leads to node 1 twice", &manifest.Graph{Nodes: []manifest.Node{{Out: []int{1, 1}}, {In: []int{0, 0}}}}},
		{"nowhere", "node 0: no node 5 to lead to", &manifest.Graph{Nodes: []manifest.Node{{Out: []int{5}}}}},
		{"task twice", "is in node 0 and in node 1", &manifest.Graph{Nodes: []manifest.Node{{Tasks: two}, {Tasks: two[:1]}}}},
	}
	for _, tt := range tests {
		checktest.ErrorHas(t, tt.want, tt.g.Validate())
	}
	g := manifest.NewGraph(two, manifest.OneNode)
	g.Nodes[0].Tasks = []*manifest.Task{two[1], two[0]}
	checktest.ErrorHas(t, "stands after", g.Validate())
	g.Nodes[0].Tasks = two[:1]
	checktest.ErrorHas(t, "is in no node", g.Validate())
}

func TestSplitComponents(t *testing.T) {
	for input, want := range map[string]string{
		"10_a 10_b 20_a":                     "",
		"10_a 10_b 10_a":                     "component a comes back in runlevel 10",
		"10_a x 10_a 10_b":                   "",
		"10_a 10_b 10_c 10_b":                "component b comes back in runlevel 10",
		"x x 010_a 10_b 10_a":                "",
		"10_a 10_job 10_a":                   "", // a Job is a barrier
		"10_a 10_b 10_beta 10_a 10_job 10_b": "component a comes back in runlevel 10",
		"10_a 10_job 10_b 10_c 10_b":         "component b comes back in runlevel 10",
	} {
		p := &manifest.Payload{}
		for _, task := range list(input) {
			p.Manifests = append(p.Manifests, task.Manifest)
		}
		got := ""
		for _, f := range manifest.Lint(p, manifest.Filter{}) {
			if f.Rule == "component-split" && got == "" {
				got = f.Message
			}
		}
		if (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q", input, got)
		}
	}
}

func TestTaskString(t *testing.T) {
	named := &unstructured.Unstructured{Object: map[string]any{"kind": "DaemonSet", "metadata": map[string]any{"namespace": "ns", "name": "n"}}}
	m, _ := manifest.New("f.yaml", named)
	noFile, _ := manifest.New("", named)
	nameless, _ := manifest.New("f.yaml", &unstructured.Unstructured{Object: map[string]any{"kind": "K"}})
	var got []string
	for _, task := range manifest.NewTasks([]*manifest.Manifest{m, nameless}) {
		got = append(got, task.String())
	}
	got = append(got, m.String(), noFile.String(), nameless.String())
	checktest.Same(t, []string{`daemonset "ns/n" (1 of 2)`, `k "f.yaml" (2 of 2)`,
		`Filename: "f.yaml" Group: "" Kind: "DaemonSet" Namespace: "ns" Name: "n"`, `Group: "" Kind: "DaemonSet" Namespace: "ns" Name: "n"`, `Filename: "f.yaml" Group: "" Kind: "K" Name: ""`}, got)
}

func BenchmarkGraph(b *testing.B) {
	for _, n := range []int{1000, 10000, 50000} {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("%d_c%d", 10+i*50/n, i)
		}
		input := tasks(names...)
		b.Run(fmt.Sprintf("components=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if g := updating(input); len(g.Nodes) < n {
					b.Fatal(len(g.Nodes))
				}
			}
		})
	}
}

func TestMermaid(t *testing.T) {
	const want = `flowchart TD
  n0["job 10_job (3 of 5)"]
  n1["no manifests"]
  n2["no manifests"]
  n3["configmap 10_a (1 of 5)"]
  n4["configmap 10_b (2 of 5)"]
  n5["no manifests"]
  n6["configmap 20_c (4 of 5)"]
  n7["configmap 20_d (5 of 5)"]
  n0 --> n2
  n1 --> n3
  n1 --> n4
  n2 --> n6
  n2 --> n7
  n3 --> n5
  n4 --> n5
  n5 --> n0
`
	checktest.Same(t, want, updating(list("10_a 10_b 10_job 20_c 20_d")).Mermaid())
	const long = `flowchart TD
  n0["configmap a (1 of 7)<br>configmap b (2 of 7)<br>configmap c (3 of 7)<br>configmap d (4 of 7)<br>configmap e (5 of 7)<br>and 2 more"]
`
	checktest.Same(t, long, updating(list("a b c d e f g")).Mermaid())
}

// TestMermaidOfRealPayload: the picture of a real release stays within the 50,000
// characters and 500 edges that Mermaid draws by default.
func TestMermaidOfRealPayload(t *testing.T) {
	g := manifest.UpdateGraph(realPayload(t, "payload-4.18.15").Tasks())
	text := g.Mermaid()
	if n := strings.Count(text, " --> "); n != 115 || len(text) > 50_000 {
		t.Errorf("%d edges, %d bytes", n, len(text))
	}
}
