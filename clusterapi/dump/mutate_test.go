package dump_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
)

// TestBrokenHeaps: what a broken file of a heap had is not denied, and all else is
// there.
func TestBrokenHeaps(t *testing.T) {
	kinds := []string{"v1 Node", "config.openshift.io/v1 ClusterOperator", "made.up.io/v1 Thing"}
	rapid.Check(t, func(rt *rapid.T) {
		tree, where := fstest.MapFS{}, map[string]string{}
		for i := range rapid.IntRange(1, 6).Draw(rt, "objects") {
			kind := rapid.SampledFrom(kinds).Draw(rt, "kind")
			g := gvk(kind)
			name := fmt.Sprintf("f%d.json", rapid.IntRange(0, 2).Draw(rt, "file"))
			text := asJSON(map[string]any{"apiVersion": g.GroupVersion().String(), "kind": g.Kind, "metadata": map[string]any{"name": fmt.Sprintf("x%d", i)}})
			old := tree[name]
			if old == nil {
				old = &fstest.MapFile{}
			}
			tree[name] = &fstest.MapFile{Data: append(slices.Clone(old.Data), text+"\n"...)}
			where[fmt.Sprintf("%s x%d", kind, i)] = name
		}
		tree["whole.yaml"] = &fstest.MapFile{Data: []byte(nodeNamed("w"))}
		broken := rapid.SampledFrom([]string{"f0.json", "f1.json", "f2.json"}).Draw(rt, "broken")
		if f := tree[broken]; f != nil {
			f.Data = f.Data[:rapid.IntRange(0, len(f.Data)-3).Draw(rt, "at")]
		}
		r := checktest.Must(dump.Open(rt.Context(), tree, dump.Options{}))
		for what, file := range where {
			got := answer(rt.Context(), r, "get "+what)
			if file != broken && got != "found" || got != "found" && got != "NotCollected" {
				// A file that is cut off between two objects shows nothing.
				if data := tree[broken].Data; file == broken && len(data) > 0 && (data[len(data)-1] == '\n' || data[len(data)-1] == '}') {
					continue
				}
				rt.Errorf("%s of %s: %s", what, file, got)
			}
		}
	})
}

// TestMutatedDumps damages real dumps in every way and looks for panics, and for
// objects that come out changed though their file is as it was.
func TestMutatedDumps(t *testing.T) {
	root := dataFolder(t, "clusters")
	entries := checktest.Must(os.ReadDir(root))
	rounds := 60
	if testing.Short() || israce.Enabled {
		rounds = 5
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, e := range entries {
		names, err := filepath.Glob(filepath.Join(root, e.Name(), "*.yaml"))
		if err != nil || len(names) < 2 {
			continue
		}
		tree := fstest.MapFS{}
		for _, name := range names {
			data := checktest.Must(os.ReadFile(name))
			tree[filepath.Base(name)] = &fstest.MapFile{Data: data}
		}
		kinds := []schema.GroupVersionKind{gvk("config.openshift.io/v1 ClusterVersion"), gvk("config.openshift.io/v1 ClusterOperator"), gvk("v1 Node"), gvk("machineconfiguration.openshift.io/v1 MachineConfigPool"), gvk("machineconfiguration.openshift.io/v1 MachineConfig")}
		before := mustOpen(t, tree, dump.Options{})
		for range rounds {
			broken := filepath.Base(names[random.IntN(len(names))])
			old := tree[broken]
			tree[broken] = &fstest.MapFile{Data: damage(random, old.Data)}
			r, err := dump.Open(t.Context(), tree, dump.Options{})
			checktest.FatalIf(t, err != nil, "%s: %v", broken, err)
			for _, kind := range kinds {
				was := checktest.Must(before.ListShared(t.Context(), kind, clusterapi.ListOptions{}))
				for _, o := range was {
					_, err := r.Get(t.Context(), kind, o.Key())
					ok := err == nil || apierrors.IsNotFound(err) || errors.Is(err, clusterapi.ErrNotCollected)
					inBroken := strings.Contains(string(old.Data), "name: "+o.Name()+"\n") && strings.Contains(string(old.Data), "kind: "+kind.Kind+"\n")
					checktest.FailIf(t, !ok || err != nil && !inBroken,
						"%s is damaged; %s %s: %v", broken, kind.Kind, o.Name(), err)
				}
			}
			tree[broken] = old
		}
	}
}

// damage cuts data off, flips bytes, doubles or removes a part, or makes it binary.
func damage(random *rand.Rand, data []byte) []byte {
	data = slices.Clone(data)
	at, to := random.IntN(len(data)), random.IntN(len(data))
	at, to = min(at, to), max(at, to)
	switch random.IntN(6) {
	case 0:
		return data[:at]
	case 1:
		for range 1 + random.IntN(20) {
			data[random.IntN(len(data))] = byte(random.IntN(256))
		}
		return data
	case 2:
		return append(data[:at:at], data[to:]...)
	case 3:
		return slices.Insert(data, at, data[at:min(to, at+5000)]...)
	case 4:
		for i := range data {
			data[i] = byte(random.IntN(256))
		}
		return data
	}
	return bytes.ReplaceAll(data, []byte("\n"), []byte("\r"))
}

// TestManyFiles: a tree of very many files, most of which are not read.
func TestManyFiles(t *testing.T) {
	n := 100_000
	if testing.Short() || israce.Enabled {
		n = 2_000
	}
	tree := fstest.MapFS{}
	for i := range n {
		name := fmt.Sprintf("mg/namespaces/n%d/core/configmaps/c%d.yaml", i%100, i)
		text := fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c%d\n  namespace: n%d\n", i, i%100)
		if i%2 == 0 {
			name, text = fmt.Sprintf("mg/host_service_logs/l%d.yaml", i), "kind: ["
		}
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	r := mustOpen(t, tree, dump.Options{})
	list, err := r.ListShared(t.Context(), gvk("v1 ConfigMap"), clusterapi.ListOptions{})
	checktest.FailIf(t, !errors.Is(err, clusterapi.ErrNotCollected) || len(list) != n/2,
		"%d objects, %v", len(list), err)
	checkProblems(t, r, "")
}

// TestLinksOfARealTree: links of a file system, which follows them by itself.
func TestLinksOfARealTree(t *testing.T) {
	outside := t.TempDir()
	checktest.OK(t, os.WriteFile(filepath.Join(outside, "secret.yaml"), []byte(nodeNamed("outside")), 0o600))
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(root, filepath.FromSlash(name))
		checktest.OK(t, os.MkdirAll(filepath.Dir(name), 0o755))
		checktest.OK(t, os.WriteFile(name, []byte(text), 0o600))
	}
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(root, filepath.FromSlash(name))); err != nil {
			t.Skip(err)
		}
	}
	write("mg/cluster-scoped-resources/core/nodes/n1.yaml", nodeNamed("n1"))
	write("mg/store/n2.yaml", nodeNamed("n2"))
	link("../../../store/n2.yaml", "mg/cluster-scoped-resources/core/nodes/n2.yaml")
	link(filepath.Join(outside, "secret.yaml"), "mg/cluster-scoped-resources/core/nodes/n3.yaml")
	link("../../../../../"+filepath.Base(outside)+"/secret.yaml", "mg/cluster-scoped-resources/core/nodes/n4.yaml")
	link(outside, "mg/cluster-scoped-resources/core/out")
	link("out/secret.yaml", "mg/cluster-scoped-resources/core/nodes.yaml")
	link("..", "mg/cluster-scoped-resources/core/loop")
	r := mustOpen(t, os.DirFS(root), dump.Options{Whole: resources("nodes")})
	check(t, r, "list v1 Node: n1 n2 missing[]...")
	checkProblems(t, r, `
mg/cluster-scoped-resources/core/loop: a link to a folder that it is in
mg/cluster-scoped-resources/core/nodes.yaml: a link out of the tree
mg/cluster-scoped-resources/core/nodes/n3.yaml: a link out of the tree
mg/cluster-scoped-resources/core/nodes/n4.yaml: a link out of the tree
mg/cluster-scoped-resources/core/out: a link out of the tree
`)
}
