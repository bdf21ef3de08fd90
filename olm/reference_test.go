package olm_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// world is a small random snapshot, from which both the snapshot for the
// resolver and the reference are made.
type world struct {
	catalogs  []worldCatalog
	installed []string
	subs      []olmapi.Subscription
}

type worldCatalog struct {
	key      types.NamespacedName
	priority int
	lines    []string
}

type worldOptions struct {
	disorder   bool // channels with several heads may occur
	deprecated bool
	starting   bool
	labels     bool
	mild       bool // few operators get in each other's way
	channels   bool // there is a second channel, and operators are renamed
}

var worldAPIs = []string{"K", "L", "M", "N"}

func drawWorld(t *rapid.T, o worldOptions) world {
	var w world
	flip := func(label string, of int) bool { return rapid.IntRange(0, of-1).Draw(t, label) == 0 }
	features := func() string {
		var words []string
		for _, api := range worldAPIs {
			of, provides := 7, 1
			if o.mild {
				of, provides = 11, 0
			}
			switch n := rapid.IntRange(0, of).Draw(t, "api"); {
			case n <= provides:
				words = append(words, api)
			case n == 2:
				words = append(words, "-"+api)
			}
		}
		if o.labels {
			switch rapid.IntRange(0, 9).Draw(t, "label") {
			case 0, 1:
				words = append(words, "label=l")
			case 2:
				words = append(words, "-label=l")
			case 3:
				words = append(words, fmt.Sprintf("-pkg=%s:>=%d.0.0", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "pkg"), rapid.IntRange(1, 2).Draw(t, "range")))
			}
		}
		return strings.Join(words, " ")
	}
	remaining := 9
	if o.channels {
		remaining = 6
	}
	for c := range rapid.IntRange(1, 2).Draw(t, "catalogs") {
		wc := worldCatalog{key: types.NamespacedName{Namespace: "olm", Name: []string{"c", "d"}[c]}}
		wc.priority = rapid.IntRange(0, 1).Draw(t, "priority") * c
		for _, pkg := range []string{"a", "b", "c"} {
			versions := min(remaining, rapid.IntRange(0, 3).Draw(t, "versions"))
			for v := 1; v <= versions; v++ {
				remaining--
				line := fmt.Sprintf("%s.v%d %s", pkg, v, features())
				if v > 1 && !(o.disorder && flip("loose", 8)) {
					line += fmt.Sprintf(" >%s.v%d", pkg, v-1)
				}
				if v > 2 && flip("skipRange", 2) {
					line += fmt.Sprintf(" range=<%d.0.0", v)
				}
				if v > 2 && flip("skips", 5) {
					line += fmt.Sprintf(" ~%s.v%d", pkg, v-1)
				}
				if o.deprecated && flip("deprecated", 8) {
					line += " deprecated"
				}
				if o.channels {
					if v == 1 && flip("rename", 3) {
						line += " >d.v1"
					}
					line += rapid.SampledFrom([]string{" @stable", " @stable @beta", " @beta"}[:3-1/v]).Draw(t, "channels")
				}
				wc.lines = append(wc.lines, line)
			}
		}
		w.catalogs = append(w.catalogs, wc)
	}
	for _, pkg := range []string{"a", "b", "c", "d"} {
		here := ""
		if flip("installed", 2) {
			v := rapid.IntRange(1, 2).Draw(t, "installed version")
			here = fmt.Sprintf("%s.v%d", pkg, v)
			line := here + " " + features()
			if o.deprecated && flip("installed deprecated", 8) {
				line += " deprecated"
			}
			for _, l := range w.catalogs[0].lines {
				if strings.Fields(l)[0] == here && flip("as in the catalog", 2) {
					line = l
				}
			}
			w.installed = append(w.installed, line)
		}
		if !flip("unsubscribed", 3) {
			s := sub(pkg, here)
			if o.starting && here == "" && flip("starting", 2) {
				s.Spec.StartingCSV = fmt.Sprintf("%s.v%d", pkg, rapid.IntRange(1, 3).Draw(t, "startingCSV"))
			}
			second := sub(pkg, here, named(pkg+"2"), channel(""))
			if o.channels {
				s.Spec.Channel = rapid.SampledFrom([]string{"stable", "beta", ""}).Draw(t, "channel")
				if pkg == "d" {
					s.Spec.Package = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "new package")
				}
			}
			w.subs = append(w.subs, s)
			if flip("second", 6) {
				w.subs = append(w.subs, second)
			}
		}
	}
	return w
}

func (w *world) snapshot() olm.Snapshot {
	s := snapshot(nil, installed(w.installed...), w.subs...)
	s.Catalogs = nil
	for _, c := range w.catalogs {
		s.Catalogs = append(s.Catalogs, olm.SnapshotCatalog{Key: c.key, Priority: c.priority, Contents: contents(c.lines...)})
	}
	return s
}

func (w *world) String() string {
	var b strings.Builder
	for _, c := range w.catalogs {
		fmt.Fprintf(&b, "catalog %s, priority %d:\n  %s\n", c.key, c.priority, strings.Join(c.lines, "\n  "))
	}
	fmt.Fprintf(&b, "installed:\n  %s\nsubscriptions:\n", strings.Join(w.installed, "\n  "))
	for _, s := range w.subs {
		fmt.Fprintf(&b, "  %s: package %s, channel %q, installed %q, startingCSV %q\n", s.Name, s.Spec.Package, s.Spec.Channel, s.Status.InstalledCSV, s.Spec.StartingCSV)
	}
	return b.String()
}

// reference finds generations by looking at every set of operators.
type reference struct {
	strict    bool
	elements  []element
	installed []int
	subs      []refSub
	sets      []uint // all legal ones
}

type element struct {
	OperatorLine
	catalog   int // -1: installed
	channel   string
	position  int // in its channel's order, -1: cannot be chosen but by startingCSV
	forbidden bool
}

type refSub struct {
	olmapi.Subscription
	installed  int  // element, -1
	nowhere    bool // its package or startingCSV is not in the catalog
	candidates []int
}

func newReference(w *world, strict bool) *reference {
	r := &reference{strict: strict}
	for _, line := range w.installed {
		r.installed = append(r.installed, len(r.elements))
		e := element{OperatorLine: parseOperator(line), catalog: -1}
		e.forbidden = strict && e.deprecated()
		r.elements = append(r.elements, e)
	}
	// Catalogs in the order of preference: priority, then name.
	order := []int{0}
	if len(w.catalogs) == 2 {
		order = []int{0, 1}
		if w.catalogs[1].priority > w.catalogs[0].priority {
			order = []int{1, 0}
		}
	}
	for _, c := range order {
		for _, in := range channelsOf(w.catalogs[c].lines) {
			lines := inChannel(w.catalogs[c].lines, in[1])
			ordered := orderedLines(lines, in[0])
			for i, o := range ordered {
				e := element{OperatorLine: o, catalog: c, channel: in[1], position: i}
				e.forbidden = e.deprecated()
				r.elements = append(r.elements, e)
			}
			for _, line := range lines {
				o := parseOperator(line)
				if o.Package == in[0] && !slices.ContainsFunc(ordered, func(x OperatorLine) bool { return x.Name == o.Name }) {
					e := element{OperatorLine: o, catalog: c, channel: in[1], position: -1}
					e.forbidden = e.deprecated()
					r.elements = append(r.elements, e)
				}
			}
		}
	}
	subs := slices.Clone(w.subs)
	slices.SortFunc(subs, func(a, b olmapi.Subscription) int { return strings.Compare(a.Name, b.Name) })
	for _, s := range subs {
		r.subs = append(r.subs, r.newSub(w, s))
	}
	// What only a startingCSV names is there for everybody.
	usable := make([]bool, len(r.elements))
	for i, e := range r.elements {
		usable[i] = e.catalog < 0 || e.position >= 0
	}
	for _, s := range r.subs {
		for _, c := range s.candidates {
			usable[c] = true
		}
	}
	for i := range r.elements {
		if !usable[i] {
			r.elements[i].forbidden = true
		}
	}
	return r
}

func (o *element) deprecated() bool {
	return slices.ContainsFunc(o.Properties, func(p olm.Property) bool { return p.Type == "olm.deprecated" })
}

// channelsOf are pairs of a package and a channel in search order: default
// channels first, then by package and channel.
func channelsOf(lines []string) [][2]string {
	var defaults, others [][2]string
	for _, l := range lines {
		o := parseOperator(l)
		hasDefault := slices.ContainsFunc(defaults, func(x [2]string) bool { return x[0] == o.Package })
		for i, ch := range o.Channels {
			switch in := [2]string{o.Package, ch}; {
			case !hasDefault && i == 0:
				defaults = append(defaults, in)
			case !slices.Contains(defaults, in) && !slices.Contains(others, in):
				others = append(others, in)
			}
		}
	}
	for _, list := range [][][2]string{defaults, others} {
		slices.SortFunc(list, func(a, b [2]string) int { return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1])) })
	}
	return append(defaults, others...)
}

func inChannel(lines []string, ch string) []string {
	var out []string
	for _, l := range lines {
		if slices.Contains(parseOperator(l).Channels, ch) {
			out = append(out, l)
		}
	}
	return out
}

// orderedLines returns a package's channel from the head down, nothing if it
// has no order. Chains only go down in versions here, so nothing is cyclic.
func orderedLines(lines []string, pkg string) []OperatorLine {
	byName := map[string]OperatorLine{}
	named := map[string]bool{}
	skipped := map[string]bool{}
	for _, l := range lines {
		o := parseOperator(l)
		if o.Package != pkg {
			continue
		}
		byName[o.Name] = o
		named[o.Replaces] = true
		for _, s := range o.Skips {
			named[s], skipped[s] = true, true
		}
	}
	var heads []string
	for name := range byName {
		if !named[name] {
			heads = append(heads, name)
		}
	}
	if len(heads) != 1 {
		return nil
	}
	var out []OperatorLine
	for at := heads[0]; ; {
		o, ok := byName[at]
		if !ok {
			return out
		}
		if !skipped[at] {
			out = append(out, o)
		}
		at = o.Replaces
	}
}

func (r *reference) newSub(w *world, s olmapi.Subscription) refSub {
	out := refSub{Subscription: s, installed: -1}
	for _, i := range r.installed {
		if r.elements[i].Name == s.Status.InstalledCSV {
			out.installed = i
		}
	}
	var from []int
	for i, e := range r.elements {
		if e.catalog == 0 && e.Package == s.Spec.Package && (s.Spec.Channel == "" || s.Spec.Channel == e.channel) {
			from = append(from, i)
		}
	}
	out.nowhere = len(from) == 0 || out.installed < 0 && s.Spec.StartingCSV != "" &&
		!slices.ContainsFunc(from, func(i int) bool { return r.elements[i].Name == s.Spec.StartingCSV })
	if out.installed < 0 {
		for _, i := range from {
			if s.Spec.StartingCSV == "" && r.elements[i].position >= 0 || s.Spec.StartingCSV == r.elements[i].Name {
				out.candidates = append(out.candidates, i)
			}
		}
		return out
	}
	have := r.elements[out.installed]
	for _, in := range channelsOf(w.catalogs[0].lines) {
		ch := in[1]
		if in[0] != s.Spec.Package || s.Spec.Channel != "" && s.Spec.Channel != ch {
			continue
		}
		// Entries above the installed one on the way down, skipped ones included.
		below := false
		for _, o := range walkLines(inChannel(w.catalogs[0].lines, ch), s.Spec.Package) {
			below = below || o.Name == have.Name
			at := slices.IndexFunc(from, func(i int) bool { return r.elements[i].Name == o.Name && r.elements[i].channel == ch })
			e := r.elements[from[at]]
			if below || e.position < 0 {
				continue
			}
			edge := e.Replaces == have.Name || slices.Contains(e.Skips, have.Name)
			if bound, ok := strings.CutPrefix(e.SkipRange, "<"); ok && major(have.Version) < major(bound) {
				edge = true
			}
			if edge {
				out.candidates = append(out.candidates, from[at])
			}
		}
	}
	return out
}

func walkLines(lines []string, pkg string) []OperatorLine {
	ordered := orderedLines(lines, pkg)
	if len(ordered) == 0 {
		return nil
	}
	var out []OperatorLine
	for at := ordered[0].Name; ; {
		i := slices.IndexFunc(lines, func(l string) bool { return parseOperator(l).Name == at })
		if i < 0 {
			return out
		}
		o := parseOperator(lines[i])
		out = append(out, o)
		at = o.Replaces
	}
}

func major(version string) int {
	n, _ := strconv.Atoi(strings.Split(version, ".")[0])
	return n
}

// requirement is one in the reference's own words.
func satisfies(p olm.Property, e *element) bool {
	var v struct{ Kind, Label, PackageName, VersionRange string }
	if err := json.Unmarshal(p.Value, &v); err != nil {
		panic(err)
	}
	switch p.Type {
	case "olm.gvk.required":
		return slices.Contains(e.Provides, v.Kind)
	case "olm.label.required":
		return slices.ContainsFunc(e.Properties, func(q olm.Property) bool { return q.Type == "olm.label" && string(q.Value) == string(p.Value) })
	case "olm.package.required":
		return e.Package == v.PackageName && major(e.Version) >= major(strings.TrimPrefix(v.VersionRange, ">="))
	}
	panic(p.Type)
}

func (e *element) requirements() []olm.Property {
	var out []olm.Property
	for _, p := range e.Properties {
		if strings.HasSuffix(p.Type, ".required") {
			out = append(out, p)
		}
	}
	return out
}

func (r *reference) met(p olm.Property, set uint) bool {
	for i := range r.elements {
		if set>>i&1 == 1 && satisfies(p, &r.elements[i]) {
			return true
		}
	}
	return false
}

func (r *reference) before() uint {
	var set uint
	for _, i := range r.installed {
		set |= 1 << i
	}
	return set
}

func (r *reference) clash(i, j int) bool {
	a, b := &r.elements[i], &r.elements[j]
	if !r.strict && a.catalog < 0 && b.catalog < 0 {
		return false
	}
	return a.Package == b.Package || a.Name == b.Name || slices.ContainsFunc(a.Provides, func(k string) bool { return slices.Contains(b.Provides, k) })
}

// rules are what makes a set legal, as masks.
type rules struct {
	rivals   []uint   // by element
	needs    [][]uint // by element: of each requirement those that satisfy it
	required []uint   // of each of these one must be there
	pairs    []uint   // these must not be there together
}

func (r *reference) rules() rules {
	var out rules
	for i := range r.elements {
		e := &r.elements[i]
		var rivals uint
		for j := range r.elements {
			if i != j && r.clash(i, j) {
				rivals |= 1 << j
			}
		}
		out.rivals = append(out.rivals, rivals)
		var needs []uint
		for _, p := range e.requirements() {
			if !r.strict && e.catalog < 0 && !r.met(p, r.before()) {
				continue
			}
			var m uint
			for j := range r.elements {
				if satisfies(p, &r.elements[j]) {
					m |= 1 << j
				}
			}
			needs = append(needs, m)
		}
		out.needs = append(out.needs, needs)
	}
	free := r.before()
	for _, s := range r.subs {
		options := r.mask(s.candidates)
		if s.installed >= 0 {
			free &^= 1 << s.installed
			options |= 1 << s.installed
			for _, c := range s.candidates {
				out.pairs = append(out.pairs, 1<<c|1<<s.installed)
			}
		}
		switch {
		case r.strict && s.nowhere:
			out.required = append(out.required, 0)
		case r.strict || s.installed >= 0:
			out.required = append(out.required, options)
		}
	}
	for _, i := range r.installed {
		if free>>i&1 == 1 {
			out.required = append(out.required, 1<<i)
		}
	}
	return out
}

func (x *rules) legal(set uint) bool {
	for _, m := range x.required {
		if set&m == 0 {
			return false
		}
	}
	for _, m := range x.pairs {
		if set&m == m {
			return false
		}
	}
	for left := set; left != 0; left &= left - 1 {
		i := bits.TrailingZeros(left)
		if set&x.rivals[i] != 0 {
			return false
		}
		for _, m := range x.needs[i] {
			if set&m == 0 {
				return false
			}
		}
	}
	return true
}

func (r *reference) mask(of []int) uint {
	var m uint
	for _, i := range of {
		m |= 1 << i
	}
	return m
}

func (r *reference) enumerate() {
	var open []int
	for i, e := range r.elements {
		if !e.forbidden {
			open = append(open, i)
		}
	}
	rules := r.rules()
	for n := uint(0); n < 1<<len(open); n++ {
		var set uint
		for k, i := range open {
			set |= (n >> k & 1) << i
		}
		if rules.legal(set) {
			r.sets = append(r.sets, set)
		}
	}
}

// generation follows the rules of preference literally. ok is false if there is
// none.
func (r *reference) generation() (set uint, ok bool) {
	r.enumerate()
	left := r.sets
	if len(left) == 0 {
		return 0, false
	}
	narrow := func(keep func(uint) bool) bool {
		var out []uint
		for _, s := range left {
			if keep(s) {
				out = append(out, s)
			}
		}
		if len(out) == 0 {
			return false
		}
		left = out
		return true
	}
	promised := make([]bool, len(r.subs))
	if !r.strict {
		for _, isInstalled := range []bool{false, true} {
			for i, s := range r.subs {
				if s.installed >= 0 == isInstalled {
					promised[i] = narrow(func(set uint) bool { return set&r.mask(s.candidates) != 0 })
				}
			}
		}
	}
	var chosen uint
	var order []int
	take := func(i int) bool {
		if !narrow(func(set uint) bool { return set>>i&1 == 1 }) {
			return false
		}
		if chosen>>i&1 == 0 {
			chosen |= 1 << i
			order = append(order, i)
		}
		return true
	}
	for i, s := range r.subs {
		options := slices.Clone(s.candidates)
		if s.installed >= 0 && !promised[i] {
			options = append(options, s.installed)
		}
		if chosen&r.mask(options) != 0 {
			continue
		}
		_ = slices.ContainsFunc(options, take)
	}
	for _, i := range r.installed {
		if !slices.ContainsFunc(r.subs, func(s refSub) bool { return s.installed == i }) {
			take(i)
		}
	}
	for n := 0; n < len(order); n++ {
		e := &r.elements[order[n]]
		for _, p := range e.requirements() {
			options := r.providers(e, p)
			if chosen&r.mask(options) != 0 {
				continue
			}
			_ = slices.ContainsFunc(options, take)
		}
	}
	return chosen, true
}

// providers of a requirement in order: installed ones by name, the own catalog,
// the other, last what a startingCSV makes available.
func (r *reference) providers(owner *element, p olm.Property) []int {
	var own, others, here, last []int
	for i := range r.elements {
		e := &r.elements[i]
		switch {
		case !satisfies(p, e):
		case e.catalog < 0:
			here = append(here, i)
		case e.position < 0:
			// by Subscription
		case e.catalog == owner.catalog:
			own = append(own, i)
		default:
			others = append(others, i)
		}
	}
	for _, s := range r.subs {
		for _, c := range s.candidates {
			if e := &r.elements[c]; e.position < 0 && satisfies(p, e) {
				last = append(last, c)
			}
		}
	}
	return slices.Concat(here, own, others, last)
}

func (r *reference) names(set uint) string {
	var names []string
	for i := range r.elements {
		if set>>i&1 == 1 {
			names = append(names, r.elements[i].Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
