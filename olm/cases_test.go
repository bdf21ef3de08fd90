package olm_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// TestCases resolves the cases of testdata/cases.txt. The lines of a case:
//
//	# NAME
//	installed OPERATOR                    (see package olmtest)
//	bare OPERATOR                         installed, and says nothing about itself
//	subscription SUBSCRIPTION             (see parseSub)
//	catalog OPERATOR                      of catalog olm/c
//	catalog:NAMESPACE/NAME=PRIORITY OPERATOR
//	explain NAME                          in the lines "| TEXT" that follow; or
//	                                      "the first that is held back"
//	want MEMBERS                          of the generation; without it only what
//	                                      the case has is compared
//	new SUBSCRIPTIONS                     that the generation adds
//	report TEXT                           part of the generation's text
//	then MEMBERS                          of each generation of the sequence
//	greedy MEMBERS                        by the original algorithm, if it differs;
//	                                      "nothing" if empty
//	strict MEMBERS                        with AllOrNothing, if it differs; or an error:
//	                                      "unsatisfiable", "prevented", or "error: TEXT"
func TestCases(t *testing.T) {
	text := checktest.Get(os.ReadFile("testdata/cases.txt"))(t)
	_, cases, _ := strings.Cut(string(text), "\n\n")
	for _, lines := range strings.Split(strings.TrimRight(cases, "\n"), "\n\n") {
		name, lines, _ := strings.Cut(lines, "\n")
		t.Run(strings.TrimPrefix(name, "# "), func(t *testing.T) { resolveCase(t, strings.Split(lines, "\n")) })
	}
}

func resolveCase(t *testing.T, lines []string) {
	s := snapshot(nil, nil)
	want := map[string]string{}
	operators := map[string][]string{}
	var catalogs []string // further ones
	var w world
	var sequence []string
	explanation := ""
	for _, line := range lines {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "subscription":
			s.Subscriptions = append(s.Subscriptions, parseSub(value))
			w.subs = append(w.subs, parseSub(value))
		case "installed":
			s.Installed = append(s.Installed, installed(value)...)
			w.installed = append(w.installed, value)
		case "bare":
			s.Installed = append(s.Installed, withoutAnnotation(installed(value))...)
		case "then":
			sequence = append(sequence, value)
		case "|":
			explanation += value + "\n"
		case "explain", "want", "new", "report", "greedy", "strict":
			want[key] = value
		default:
			if operators[key] == nil && key != "catalog" {
				catalogs = append(catalogs, key)
			}
			operators[key] = append(operators[key], value)
		}
	}
	s.Catalogs[0].Contents = contents(operators["catalog"]...)
	for _, key := range catalogs {
		place, priority, _ := strings.Cut(strings.TrimPrefix(key, "catalog:"), "=")
		namespace, name, _ := strings.Cut(place, "/")
		c := olm.SnapshotCatalog{Key: types.NamespacedName{Namespace: namespace, Name: name}, Contents: contents(operators[key]...)}
		if c.Priority, _ = strconv.Atoi(priority); name == "" {
			t.Fatalf("unknown line %q", key)
		}
		s.Catalogs = append(s.Catalogs, c)
	}
	if sequence != nil {
		checkSequence(t, s, sequence)
	}
	g := resolve(t, s, olm.Options{})
	if name, ok := want["explain"]; ok {
		var e *olm.Explanation
		if name == "the first that is held back" {
			e = checktest.Get(g.Why(t.Context(), &g.HeldBack[0]))(t)[0]
		} else {
			e = checktest.Get(g.Explain(t.Context(), name))(t)
		}
		checktest.SameIn(t, "explanation", explanation, e.String())
	}
	if !strings.Contains(g.String(), want["report"]) {
		t.Errorf("%q is not in:\n%s", want["report"], g)
	}
	inAll, ok := want["want"]
	if ok {
		if got := members(g); got != inAll {
			t.Errorf("generation %q, want %q\n%s", got, inAll, g)
		}
		var subs []string
		for _, s := range g.NewSubscriptions {
			subs = append(subs, s.Name)
		}
		checktest.SameIn(t, "new Subscriptions", want["new"], strings.Join(subs, " "))
		w.catalogs = []worldCatalog{{lines: operators["catalog"]}}
		text, differs := want["greedy"]
		if !differs {
			text = inAll
		}
		switch understood := len(w.installed) == len(s.Installed) && catalogs == nil && w.understood(); {
		case understood:
			if g := newGreedy(&w); g.r.names(g.members()) != strings.TrimPrefix(text, "nothing") {
				t.Errorf("greedy, want %q:\n%s", text, g)
			}
		case differs:
			t.Error("the original algorithm in tests does not know what the case has")
		}
	}
	strict, differs := want["strict"]
	if !differs {
		strict = inAll
	}
	if !differs && !ok {
		return
	}
	got := outcome(s, olm.Options{AllOrNothing: true})
	switch unsatisfiable := strings.HasPrefix(got, "error: constraints not satisfiable: "); {
	case strict == "unsatisfiable" && unsatisfiable, strict == "prevented" && strings.HasPrefix(got, "error: ") && !unsatisfiable:
	default:
		checktest.SameIn(t, "all or nothing", strict, got)
	}
}

// understood reports whether the reference knows all that the world has.
func (w *world) understood() bool {
	for _, line := range slices.Concat(w.installed, w.catalogs[0].lines) {
		o := parseOperator(line)
		plain := o.SkipRange == "" || strings.HasPrefix(o.SkipRange, "<") && !strings.Contains(o.SkipRange, " ")
		for _, p := range o.Properties {
			plain = plain && p.Type != olm.PropertyConstraint && string(p.Value) != "7" &&
				(p.Type != olm.PropertyPackageRequired || strings.Contains(string(p.Value), `"versionRange":"\u003e=`))
		}
		if !plain {
			return false
		}
	}
	slices.Sort(w.installed)
	return !slices.ContainsFunc(w.subs, func(s olmapi.Subscription) bool { return s.Spec.Source != "c" })
}

func checkSequence(t *testing.T, s olm.Snapshot, want []string) {
	subs, csvs := len(s.Subscriptions), len(s.Installed)
	generations := checktest.Get(olm.Sequence(t.Context(), s, olm.Options{}))(t)
	var got []string
	for _, g := range generations {
		got = append(got, members(g))
	}
	checktest.SameIn(t, "generations", want, got)
	if len(s.Subscriptions) != subs || len(s.Installed) != csvs {
		t.Error("the snapshot was changed")
	}
}

// parseSub reads a Subscription:
// PACKAGE [INSTALLED] [name=NAME] [@CHANNEL] [start=CSV] [source=NAMESPACE/NAME].
func parseSub(line string) olmapi.Subscription {
	words := strings.Fields(line)
	s := sub(words[0], "")
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		switch {
		case key == "name":
			s.Name = value
		case key == "start":
			s.Spec.StartingCSV = value
		case key == "source":
			s.Spec.SourceNamespace, s.Spec.Source, _ = strings.Cut(value, "/")
		case strings.HasPrefix(w, "@"):
			s.Spec.Channel = w[1:]
		default:
			s.Status.InstalledCSV, s.Status.CurrentCSV = w, w
		}
	}
	return s
}
