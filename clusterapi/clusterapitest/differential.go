package clusterapitest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// DifferentialOptions are the options of [Differential]. The zero value works.
type DifferentialOptions struct {
	// Seed is what all sequences are drawn from: the same seed gives the same
	// sequences, on any machine. Zero is a seed like any other.
	Seed uint64
	// Sequences is how many sequences to run; 0 means 50.
	Sequences int
	// Length is how many steps a sequence has; 0 means 25.
	Length int
	// Kinds restricts the sequences to some of [DifferentialKinds]; empty means
	// all of them. An unknown name fails the test.
	Kinds []string
	// Meant lists the differences between the two backends that are not faults.
	// One that nothing needed fails the test, so that the list stays true,
	// unless Kinds is set or -run selects some sequences only.
	Meant []Difference
	// Tries is how many shorter sequences to try, at most, for one that fails; 0
	// means 150.
	Tries int
	// Whole reports a sequence that fails as it is, without trying shorter ones.
	Whole bool
	// Failures is after how many failed sequences to stop; 0 means 3.
	Failures int
}

// Difference is a difference between two backends that is meant. Each pattern
// must match; an empty one matches everything, and "*" in one stands for any
// text.
type Difference struct {
	// Reason says why the difference is right. It must not be empty.
	Reason string
	// Verb is the name of the method, such as "Create"; "Final" is the state
	// after the last step, "Event" an event of a watch.
	Verb string
	// Kind is the name of a kind of [DifferentialKinds].
	Kind string
	// Field is the path of what differs, such as "spec.replicas", "spec.ports[0].name" or
	// `metadata.labels["a.b/c"]`. "error" is the class of the error and
	// "error.causes" the fields that an Invalid error names.
	//
	// "metadata.resourceVersion" is "new", "moved" or "same", compared with
	// what the backend said of the object before. A field that somebody owns
	// is a path of its own: metadata.managedFields, manager, operation and
	// subresource in brackets, then the parts of the field:
	// `metadata.managedFields[first/Update/status].f:status.f:phase`.
	Field string
	// A and B are the values at the two backends as JSON, "absent" where there
	// is none. Of an error it is the class, or the class, a colon, a space and
	// the text, such as "Invalid: *spec.replicas*". Classes are "none",
	// "NotFound", "NoMatch", "AlreadyExists", "Conflict", "Invalid",
	// "BadRequest", "TooManyRequests", "Limit", "NotCollected", "Canceled",
	// "DeadlineExceeded", other reasons of apierrors, or "other". Where one of
	// them is "none", the object is left alone from then on.
	A, B string
}

// Differential runs random sequences of verbs on two backends and fails where
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
// Both backends may have other objects. Each sequence makes namespaces and
// cluster-wide objects of its own, with a random part in their names that
// stands as RUN in all that is compared and printed.
//
// Each sequence is a sub-test. One that fails is shortened for as long as it
// fails, and printed.
func Differential(t *testing.T, a, b clusterapi.ClusterAPI, o DifferentialOptions) {
	t.Helper()
	d, err := newDifferential(a, b, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.cleanUp)
	ran, failed := 0, 0
	for i := range d.o.Sequences {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			ran++
			if failed >= d.o.Failures {
				t.Skipf("%d sequences failed before", failed)
			}
			steps := d.sequence(i)
			found, err := d.run(t.Context(), steps)
			if err != nil {
				t.Fatal(err)
			}
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
		if !d.used[i] {
			t.Errorf("no sequence needed the difference that is meant because %q (%+v)", m.Reason, m)
		}
	}
}

// DifferentialKinds returns the names of the kinds that [Differential] uses,
// in a fixed order. Widget and Gadget are custom kinds, namespaced and
// cluster-wide, that it defines itself.
func DifferentialKinds() []string {
	var out []string
	for _, k := range sequenceKinds() {
		out = append(out, k.name)
	}
	return out
}

// found is a difference between the answers to one step.
type found struct {
	step  int // index into the sequence; its length for the final state
	verb  string
	kind  string
	field string
	a, b  string
}

// meant tells whether somebody wants the difference.
func (d *differential) meant(f found) bool {
	for i, m := range d.o.Meant {
		if matches(m.Verb, f.verb) && matches(m.Kind, f.kind) && matches(m.Field, f.field) &&
			matchesValue(m.A, f.field, f.a) && matchesValue(m.B, f.field, f.b) {
			d.used[i] = true
			return true
		}
	}
	return false
}

// matchesValue is as matches. Of an error its class alone will do.
func matchesValue(pattern, field, value string) bool {
	if field == "error" {
		if class, _, ok := strings.Cut(value, ": "); ok && matches(pattern, class) {
			return true
		}
	}
	return matches(pattern, value)
}

// matches compares a text with a pattern in which "*" stands for any text.
func matches(pattern, text string) bool {
	if pattern == "" {
		return true
	}
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(text, first) || !strings.HasSuffix(text[len(first):], last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return true
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
