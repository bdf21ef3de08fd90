package dump_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// files reads a tree from a text in which a line "-- path --" begins each file.
// A path that ends in a slash is a folder; "path -> target" is a link.
func files(text string) fstest.MapFS {
	out := fstest.MapFS{}
	for _, part := range strings.Split("\n"+strings.TrimLeft(text, "\n"), "\n-- ")[1:] {
		name, data, _ := strings.Cut(part, " --\n")
		name = strings.TrimSuffix(name, " --")
		link, target, isLink := strings.Cut(name, " -> ")
		switch {
		case isLink:
			out[link] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
		case strings.HasSuffix(name, "/"):
			out[path.Clean(name)] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
		default:
			out[name] = &fstest.MapFile{Data: []byte(strings.TrimSuffix(data, "\n") + "\n"), Mode: 0o644}
		}
	}
	return out
}

// gvk reads "v1 Pod" and "apps/v1 Deployment".
func gvk(text string) schema.GroupVersionKind {
	version, kind, _ := strings.Cut(text, " ")
	return schema.FromAPIVersionAndKind(version, kind)
}

func resources(names ...string) []schema.GroupResource {
	out := []schema.GroupResource{}
	for _, name := range names {
		out = append(out, schema.ParseGroupResource(name))
	}
	return out
}

// answer asks a recording a question and returns the answer in a word or two:
//
//	get VERSION KIND [NAMESPACE/]NAME   found, NotFound, NoMatch, NotCollected
//	list VERSION KIND [NAMESPACE]       names, and what is missing
//	grade VERSION KIND [NAMESPACE]      none, some, whole, and whether that is assumed
func answer(ctx context.Context, r *dump.Recording, question string) string {
	parts := strings.Fields(question + " .")
	kind := gvk(parts[1] + " " + parts[2])
	what := strings.TrimSuffix(parts[3], ".")
	switch parts[0] {
	case "get":
		namespace, name, ok := strings.Cut(parts[3], "/")
		if !ok {
			namespace, name = "", namespace
		}
		u, err := r.Get(ctx, kind, types.NamespacedName{Namespace: namespace, Name: name})
		if err == nil {
			if u.GroupVersionKind() != kind {
				return "found as " + u.GroupVersionKind().String()
			}
			return "found"
		}
		return fault(err)
	case "list":
		list, err := r.List(ctx, kind, clusterapi.ListOptions{Namespace: what})
		var out []string
		if list != nil {
			for i := range list.Items {
				out = append(out, strings.TrimPrefix(clusterapi.KeyOf(&list.Items[i]).String(), "/"))
			}
			if len(out) == 0 {
				out = []string{"empty"}
			}
		}
		if err != nil {
			out = append(out, fault(err))
		}
		return strings.Join(out, " ")
	case "grade":
		c := r.Coverage(kind)
		grade := c.Cluster
		if what != "" {
			grade = c.In(what)
		}
		if c.Assumed {
			return grade + " assumed"
		}
		return grade
	}
	return "what?"
}

func fault(err error) string {
	var partial *dump.PartialError
	switch {
	case errors.As(err, &partial):
		if !errors.Is(err, clusterapi.ErrNotCollected) {
			return "a PartialError that is not ErrNotCollected"
		}
		more := "..."
		if partial.AllKnown {
			more = "."
		}
		return fmt.Sprintf("missing%v%s", partial.Namespaces, more)
	case errors.Is(err, clusterapi.ErrNotCollected):
		return "NotCollected"
	case apierrors.IsNotFound(err):
		return "NotFound"
	case meta.IsNoMatchError(err):
		return "NoMatch"
	}
	return err.Error()
}

// check compares the answers to questions, each a line "question: answer".
func check(t *testing.T, r *dump.Recording, want string) {
	t.Helper()
	var got, lines []string
	for line := range strings.Lines(want) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		question, _, _ := strings.Cut(line, ": ")
		lines = append(lines, line)
		got = append(got, question+": "+answer(t.Context(), r, question))
	}
	checktest.SameIn(t, "answers", lines, got)
}

// checkProblems compares the problems, each a line.
func checkProblems(t *testing.T, r *dump.Recording, want string) {
	t.Helper()
	var got []string
	for _, p := range r.Problems() {
		got = append(got, p.String())
	}
	var lines []string
	for line := range strings.Lines(want) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	checktest.SameIn(t, "problems", lines, got)
}

func mustOpen(t testing.TB, tree fs.FS, o dump.Options) *dump.Recording {
	t.Helper()
	r := checktest.Must(dump.Open(t.Context(), tree, o))
	return r
}

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	checktest.OK(t, yaml.Unmarshal([]byte(text), &u.Object))
	return u
}

// fsCopy copies all files of a tree.
func fsCopy(to fstest.MapFS, from fs.FS) error {
	return fs.WalkDir(from, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(from, name)
		to[name] = &fstest.MapFile{Data: data, Mode: 0o644}
		return err
	})
}
