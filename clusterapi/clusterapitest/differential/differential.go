package differential

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/internal/probe"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/options"
)

// Options are the options of [Run]. The zero value works.
type Options struct {
	// Seed is what all sequences are drawn from: the same seed gives the same
	// sequences, on any machine. Zero is a seed like any other.
	Seed uint64
	// Sequences is how many sequences to run; 0 means 50.
	Sequences int
	// Kinds restricts the sequences to some of [Kinds]; empty means
	// all of them. An unknown name fails the test.
	Kinds []string
	// Meant lists the differences between the two backends that are not faults.
	// One that nothing needed fails the test, so that the list stays true,
	// unless Kinds is set or -run selects some sequences only.
	Meant []Difference
	// Whole reports a sequence that fails as it is, without trying shorter ones.
	Whole bool
	// Failures is after how many failed sequences to stop; 0 means 3.
	Failures int
}

// Difference is a difference between two backends that is meant. Each pattern
// must match; an empty one matches everything, and "*" in one stands for any
// text.
type Difference struct {
	// Reason explains why the difference is right. It must not be empty.
	Reason string
	// Verb is the name of the method, such as "Create"; "Final" is the state
	// after the last step, "Event" an event of a watch.
	Verb string
	// Kind is the name of a kind of [Kinds].
	Kind string
	// Field is the path of the difference, such as "spec.replicas", "spec.ports[0].name"
	// or `metadata.labels["a.b/c"]`. "error" is the class of the error and "error.causes"
	// the fields that an Invalid error names.
	//
	// "metadata.resourceVersion" is "new", "moved" or "same", compared with what
	// the backend said of the object before. A field that somebody owns is a
	// separate path: metadata.managedFields, manager, operation and subresource in
	// brackets, then the parts of the field:
	// `metadata.managedFields[first/Update/status].f:status.f:phase`.
	Field string
	// A and B are the values at the two backends as JSON, "absent" if there is
	// none. Of an error it is the class, or the class, a colon, a space and the
	// text, such as "Invalid: *spec.replicas*". Classes are "none", "NotFound",
	// "NoMatch", "AlreadyExists", "Conflict", "Invalid", "BadRequest",
	// "TooManyRequests", "Limit", "NotCollected", "Canceled", "DeadlineExceeded",
	// other reasons of apierrors, or "other". If one of them is "none", the object
	// is left alone from then on.
	A, B string
}

// Run runs random sequences of verbs on two backends and fails where
// their answers differ: results, classes of errors, lists, events and the
// state at the end. Valid and invalid values are mixed, several field managers
// take turns, and resourceVersions, UIDs, propagation, finalizers, budgets and
// contexts that have ended take part.
//
// Neither backend needs controllers: a bare kube-apiserver will do. What only
// a controller would do does not count. Objects that wait for a garbage
// collector are released by the test, a namespace that is being deleted is
// left alone from then on, and a CustomResourceDefinition is waited for. Pods
// on nodes keep their grace period (see GracefulPods in package memory), and a
// namespace must exist before anything is created in it (see CheckNamespaces
// there).
//
// Both backends may have other objects. Each sequence makes its own namespaces and
// cluster-wide objects, with a random part in their names that stands as RUN in all
// that is compared and printed.
//
// Each sequence is a sub-test. One that fails is shortened for as long as it
// fails, and printed.
func Run(t *testing.T, a, b clusterapi.ClusterAPI, o Options) {
	t.Helper()
	d := checktest.Get(newDifferential(a, b, o))(t)
	checktest.OK(t, d.prepare(t.Context()))
	t.Cleanup(d.cleanUp)
	ran, failed := 0, 0
	for i := range d.o.Sequences {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			ran++
			if failed >= d.o.Failures {
				t.Skipf("%d sequences failed before", failed)
			}
			steps := d.sequence(i)
			found := checktest.Get(d.run(t.Context(), steps))(t)
			if len(found) == 0 {
				return
			}
			failed++
			steps, found = d.shrink(t.Context(), steps, found)
			t.Errorf("the backends differ (seed %d, sequence %d):\n%s", d.o.Seed, i, report(steps, found))
		})
	}
	if ran < d.o.Sequences || failed > 0 || len(o.Kinds) > 0 {
		return
	}
	for i, m := range d.o.Meant {
		checktest.FailIf(t, !d.used[i],
			"no sequence needed the difference that is meant because %q (%+v)", m.Reason, m)
	}
}

// Kinds returns the names of the kinds that [Run] uses,
// in a fixed order. Widget and Gadget are custom kinds, namespaced and
// cluster-wide, that it defines itself.
func Kinds() []string {
	var out []string
	all, _ := readFile("")
	for _, k := range all {
		out = append(out, k.Name)
	}
	return out
}

const (
	length = 25  // steps of a sequence
	tries  = 150 // shorter sequences that are tried for one that fails
)

// differential is one call of [Run].
type differential struct {
	o           Options
	apis        [2]clusterapi.ClusterAPI
	kinds       []*kind
	definitions []map[string]any    // of the custom kinds
	patterns    [][5]*regexp.Regexp // by index into o.Meant
	used        []bool              // likewise
	id          string              // a random part of all names
	runs        int
}

func newDifferential(a, b clusterapi.ClusterAPI, o Options) (*differential, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	o.Sequences, o.Failures = cmp.Or(o.Sequences, 50), cmp.Or(o.Failures, 3)
	var random [4]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	d := &differential{o: o, apis: [2]clusterapi.ClusterAPI{a, b}, used: make([]bool, len(o.Meant)), id: hex.EncodeToString(random[:])}
	for i, m := range o.Meant {
		if m.Reason == "" {
			return nil, fmt.Errorf("difference %d that is meant has no reason: %+v", i, m)
		}
		d.patterns = append(d.patterns, [5]*regexp.Regexp{pattern(m.Verb), pattern(m.Kind), pattern(m.Field), pattern(m.A), pattern(m.B)})
	}
	d.kinds, d.definitions = readFile("d" + d.id + ".clusterupdate.github.io")
	for _, name := range o.Kinds {
		if !slices.Contains(Kinds(), name) {
			return nil, fmt.Errorf("unknown kind %q, want some of %v", name, Kinds())
		}
	}
	d.kinds = slices.DeleteFunc(d.kinds, func(k *kind) bool { return len(o.Kinds) > 0 && !slices.Contains(o.Kinds, k.Name) })
	return d, nil
}

// prepare defines the custom kinds on both backends.
func (d *differential) prepare(ctx context.Context) error {
	for i, api := range d.apis {
		for _, content := range d.definitions {
			if err := probe.Define(ctx, api, (&unstructured.Unstructured{Object: content}).DeepCopy()); err != nil {
				return fmt.Errorf("backend %s: %w", sideNames[i], err)
			}
		}
	}
	return nil
}

// cleanUp deletes what prepare made. What remains is not a fault.
func (d *differential) cleanUp() {
	ctx, cancel := context.WithTimeout(context.Background(), probe.Patience)
	defer cancel()
	for _, api := range d.apis {
		for _, content := range d.definitions {
			u := &unstructured.Unstructured{Object: content}
			_ = api.Delete(ctx, probe.Definitions, clusterapi.KeyOf(u), clusterapi.DeleteOptions{})
		}
	}
}

// found is a difference between the answers to one step.
type found struct {
	step  int // index into the sequence; its length for the final state
	verb  string
	kind  string
	field string
	a, b  string
}

// meant reports whether somebody wants the difference.
func (d *differential) meant(f found) bool {
	for i, m := range d.patterns {
		if m[0].MatchString(f.verb) && m[1].MatchString(f.kind) && m[2].MatchString(f.field) &&
			matchesValue(m[3], f.field, f.a) && matchesValue(m[4], f.field, f.b) {
			d.used[i] = true
			return true
		}
	}
	return false
}

// matchesValue matches a value. Of an error its class alone will do.
func matchesValue(pattern *regexp.Regexp, field, value string) bool {
	class, _, ok := strings.Cut(value, ": ")
	return pattern.MatchString(value) || field == "error" && ok && pattern.MatchString(class)
}

// pattern compiles a text in which "*" stands for any text. An empty one
// matches everything.
func pattern(text string) *regexp.Regexp {
	text = strings.ReplaceAll(regexp.QuoteMeta(cmp.Or(text, "*")), `\*`, ".*")
	return regexp.MustCompile("(?s)^" + text + "$")
}

// report prints a sequence and what differed at its end.
func report(steps []step, differences []found) string {
	var sb strings.Builder
	for i, s := range steps {
		fmt.Fprintf(&sb, "%3d. %s\n", i+1, s)
	}
	const most = 30
	for i, f := range differences {
		if i == most {
			fmt.Fprintf(&sb, "and %d more\n", len(differences)-most)
			break
		}
		where := "in the end"
		if f.step < len(steps) {
			where = fmt.Sprintf("at step %d", f.step+1)
		}
		fmt.Fprintf(&sb, "%s, %s %s: %s\n\ta: %s\n\tb: %s\n", where, f.verb, f.kind, f.field, f.a, f.b)
	}
	return sb.String()
}
