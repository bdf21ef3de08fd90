package differential

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// step is one call that a sequence makes on both backends.
type step struct {
	verb string
	kind *kind
	// name and namespace are symbols; see [run.key].
	name, namespace string
	manager         string
	// body is the object of Create and Apply.
	body map[string]any
	// edits change the object as read, for Update, or as made from base. For
	// UpdateStatus they change the status and, to see that it has no effect,
	// more.
	edits []edit
	// version is the resourceVersion that is sent: "current", "stale" or
	// "none". uid is "right", "wrong" or "none".
	version, uid string
	propagation  metav1.DeletionPropagation
	grace        *int64
	// select, node and limit restrict lists and watches.
	selector, node string
	limit          int
	// ended reports that the call's context has ended.
	ended bool
}

// edit sets a value at a path, or removes it.
type edit struct {
	path   []string
	value  any
	remove bool
}

func (e edit) String() string {
	if e.remove {
		return "remove " + strings.Join(e.path, ".")
	}
	return strings.Join(e.path, ".") + " = " + compact(e.value)
}

// String is a line of a report.
func (s step) String() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s %s", s.verb, s.kind.Name)
	if s.verb != "List" && s.verb != "Watch" {
		fmt.Fprintf(&sb, " %s", strings.TrimPrefix(s.namespace+"/"+s.name, "/"))
	} else if s.namespace != "" {
		fmt.Fprintf(&sb, " in %s", s.namespace)
	}
	note := func(name, value, usual string) {
		if value != usual {
			fmt.Fprintf(&sb, ", %s %s", name, value)
		}
	}
	switch s.verb {
	case "Create", "Apply", "Update", "UpdateStatus":
		fmt.Fprintf(&sb, " by %q", s.manager)
	}
	switch s.verb {
	case "Update", "UpdateStatus":
		note("resourceVersion", s.version, "current")
	case "Delete", "Evict":
		note("resourceVersion", s.version, "none")
		note("UID", s.uid, "none")
		note("propagation", string(s.propagation), "")
		if s.grace != nil {
			note("grace", fmt.Sprint(*s.grace), "")
		}
	case "List", "Watch":
		note("labels", s.selector, "")
		note("node", s.node, "")
		if s.limit > 0 {
			note("limit", fmt.Sprint(s.limit), "")
		}
	}
	if s.ended {
		sb.WriteString(", after its context has ended")
	}
	if s.body != nil {
		fmt.Fprintf(&sb, ": %s", compact(s.body))
	}
	for i, e := range s.edits {
		if i == 0 && s.body == nil {
			sb.WriteString(":")
		} else {
			sb.WriteString(";")
		}
		fmt.Fprintf(&sb, " %s", e)
	}
	return sb.String()
}

func compact(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func split(path string) []string { return strings.Split(path, ".") }

// sequence draws the i-th sequence of the seed.
func (d *differential) sequence(i int) []step {
	g := &generator{rand.New(rand.NewPCG(d.o.Seed, uint64(i)))}
	// A few kinds at a time, so that steps meet on the same objects.
	var focus []*kind
	for range 1 + g.IntN(3) {
		focus = append(focus, d.kinds[g.IntN(len(d.kinds))])
	}
	for i := range d.kinds { // evictions need both
		if slices.ContainsFunc(focus, func(k *kind) bool { return k.Name == "Pod" }) && d.kinds[i].Name == "PodDisruptionBudget" {
			focus = append(focus, d.kinds[i])
		}
	}
	var out []step
	for len(out) < length {
		if n := len(out); n > 0 && g.oneIn(10) { // what changes nothing must change nothing
			out = append(out, out[n-1])
			continue
		}
		out = append(out, g.step(focus[g.IntN(len(focus))]))
	}
	return out
}

type generator struct{ *rand.Rand }

// oneIn returns true once in n times.
func (g *generator) oneIn(n int) bool { return g.IntN(n) == 0 }

// oneOf draws one of some values.
func oneOf[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

// verbs as often as they are drawn.
var verbs = slices.Concat(
	slices.Repeat([]string{"Create"}, 20), slices.Repeat([]string{"Apply"}, 20),
	slices.Repeat([]string{"Update"}, 18), slices.Repeat([]string{"UpdateStatus"}, 12),
	slices.Repeat([]string{"Delete"}, 9), slices.Repeat([]string{"Get"}, 4),
	slices.Repeat([]string{"List"}, 8), slices.Repeat([]string{"Watch"}, 4),
)

func (g *generator) step(k *kind) step {
	s := step{verb: oneOf(g, verbs...), kind: k, name: oneOf(g, "a", "a", "b"), version: "none", uid: "none"}
	if k.Namespaced {
		s.namespace = oneOf(g, "one", "one", "one", "two")
	}
	switch { // evictions need pods that run, and budgets that somebody keeps
	case k.Name == "Pod" && g.oneIn(4):
		s.verb = "Evict"
	case (k.Name == "Pod" || k.Name == "PodDisruptionBudget") && g.oneIn(3):
		s.verb, s.namespace = "UpdateStatus", "one"
	}
	s.ended = g.oneIn(40)
	switch s.verb {
	case "Create", "Apply", "Update", "UpdateStatus":
		s.manager = oneOf(g, "first", "first", "second", "third")
		if g.oneIn(12) {
			s.manager = ""
		}
		switch {
		case g.oneIn(50):
			s.name = oneOf(g, "", "Not_A_Name")
		case g.oneIn(50) && k.Namespaced:
			s.namespace = oneOf(g, "missing", "")
		}
	}
	switch s.verb {
	case "Create":
		s.body = g.object(k, true)
		if g.oneIn(40) {
			s.version = "stale"
		}
	case "Apply":
		s.body = g.object(k, g.oneIn(2))
		if g.oneIn(20) {
			s.version = oneOf(g, "current", "stale")
		}
		if g.oneIn(40) {
			s.uid = "wrong"
		}
	case "Update":
		s.version = g.condition("current", 8, "stale", "stale", "none")
		for range g.IntN(4) {
			s.edits = append(s.edits, g.edit(g.field(k)))
		}
		if v, ok := g.value(k.Status); ok && g.oneIn(6) { // which must not matter to most kinds
			s.edits = append(s.edits, edit{path: k.Status.path(), value: v})
		}
	case "UpdateStatus":
		s.version = g.condition("current", 10, "stale", "none")
		if v, ok := g.value(k.Status); ok {
			s.edits = append(s.edits, edit{path: k.Status.path(), value: v})
		}
		for range g.IntN(3) { // these have no effect, or a small one
			s.edits = append(s.edits, g.edit(g.field(k)))
		}
	case "Delete":
		s.version = g.condition("none", 4, "current", "stale")
		s.uid = g.condition("none", 4, "right", "wrong")
		s.propagation = oneOf(g, "", "", metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan)
		if g.oneIn(40) {
			s.propagation = "Sideways"
		}
	case "Evict":
		s.uid = g.condition("none", 4, "right", "wrong")
		if g.oneIn(3) {
			s.grace = new(oneOf[int64](g, 0, 1, 5, 100))
		}
	case "List", "Watch":
		if g.oneIn(3) {
			s.namespace = ""
		}
		s.selector = oneOf(g, "", "", "", "color=red", "color!=red", "color in (red,blue),app=x", "!color")
		if k.Name == "Pod" {
			s.node = oneOf(g, "", "node-1")
		}
		if s.verb == "List" && g.oneIn(3) {
			s.limit = 1 + g.IntN(3)
		}
	}
	return s
}

// field draws a field of a kind: as often one of its own as one of metadata.
func (g *generator) field(k *kind) choices {
	if len(k.Fields) > 0 && g.oneIn(2) {
		return oneOf(g, k.all[:len(k.Fields)]...)
	}
	return oneOf(g, k.all...)
}

// condition is mostly the usual one.
func (g *generator) condition(usual string, n int, others ...string) string {
	if g.oneIn(n) {
		return oneOf(g, others...)
	}
	return usual
}

// object makes the content of an object: base, if whole, and more.
func (g *generator) object(k *kind, whole bool) map[string]any {
	content := map[string]any{}
	if whole {
		content = runtime.DeepCopyJSON(k.Base)
	}
	for _, c := range k.all {
		if !g.oneIn(max(4, len(k.all)/3)) {
			continue
		}
		if v, ok := g.value(c); ok {
			put(content, c.path(), v)
		}
	}
	return content
}

// value draws one of a field's values, mostly a good one.
func (g *generator) value(c choices) (any, bool) {
	from := c.Good
	if len(c.Bad) > 0 && g.oneIn(12) || len(from) == 0 && g.oneIn(8) {
		from = c.Bad
	}
	if len(from) == 0 {
		return nil, false
	}
	return runtime.DeepCopyJSONValue(oneOf(g, from...)), true
}

func (g *generator) edit(c choices) edit {
	if g.oneIn(5) {
		return edit{path: c.path(), remove: true}
	}
	v, ok := g.value(c)
	return edit{path: c.path(), value: v, remove: !ok}
}

// do makes the change. Whatever is in the way is replaced.
func (e edit) do(object map[string]any) {
	if !e.remove {
		put(object, e.path, runtime.DeepCopyJSONValue(e.value))
		return
	}
	for _, name := range e.path[:len(e.path)-1] {
		next, ok := object[name].(map[string]any)
		if !ok {
			return
		}
		object = next
	}
	delete(object, e.path[len(e.path)-1])
}

func put(object map[string]any, path []string, v any) {
	for _, name := range path[:len(path)-1] {
		next, ok := object[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			object[name] = next
		}
		object = next
	}
	object[path[len(path)-1]] = v
}
