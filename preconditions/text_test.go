package preconditions_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// written is a report that has everything.
func written(t *testing.T, names ...string) *preconditions.Report {
	t.Helper()
	name := func(i int, or string) string {
		if i < len(names) {
			return names[i]
		}
		return or
	}
	f := func(s preconditions.Severity, reason, message, remedy string) preconditions.Finding {
		return preconditions.Finding{Severity: s, Reason: reason, Message: message + ". " + remedy, Remedy: remedy, Source: "Guide, *chapter*"}
	}
	return run(t, []preconditions.Check{
		stub{name: name(0, "One"), findings: []preconditions.Finding{f(preconditions.Blocking, "Broken", "it is broken:\n* a\n* b", "Mend it"), f(preconditions.Info, "Note", "note `this` <b>", "Read")}},
		stub{name: name(1, "Two"), findings: []preconditions.Finding{f(preconditions.Warning, "Odd", "odd", "Look")}, err: clusterapi.ErrNotCollected},
		stub{name: name(2, "Three"), err: errors.New("boom")},
		stub{name: name(3, "Four")},
		stub{name: name(4, "Five"), applies: func(preconditions.Transition) bool { return false }},
		stub{name: name(5, "Six"), findings: []preconditions.Finding{f(preconditions.Blocking, "Known", "known", "Wait")}},
	}, &preconditions.Input{Reader: reader(t)})
}

func TestWriteText(t *testing.T) {
	r := written(t)
	policy := preconditions.Policy{Bypasses: []preconditions.Bypass{{Check: "Six", By: "ann", Why: "w"}}}
	for _, tt := range []struct {
		name, want string
		write      func(preconditions.Decision, *strings.Builder) error
	}{
		{"text", `Blocking:
  One Broken: it is broken:
    * a
    * b.
    Remedy: Mend it
Warnings:
  Two Odd: odd.
    Remedy: Look
Not known:
  Two NotCollected: not collected in this recording
  Three UnknownError: boom
Information:
  One Note: note ` + "`this`" + ` <b>.
    Remedy: Read
Passed: Four
Bypassed: Six
Not applicable: Five
The update is blocked: 1 blocking, 1 warnings, 2 not known.
`, func(d preconditions.Decision, b *strings.Builder) error { return d.WriteText(b) }},
		{"markdown", `**The update is blocked: 1 blocking, 1 warnings, 2 not known.**

## Blocking

- [ ] **One** ` + "`Broken`" + `: it is broken:
  \* a
  \* b.
  - Mend it
  - Source: Guide, \*chapter\*

## Warnings

- [ ] **Two** ` + "`Odd`" + `: odd.
  - Look
  - Source: Guide, \*chapter\*

## Not known

- [ ] **Two** ` + "`NotCollected`" + `: not collected in this recording
- [ ] **Three** ` + "`UnknownError`" + `: boom

## Information

- [ ] **One** ` + "`Note`" + `: note ` + "\\`this\\`" + ` &lt;b&gt;.
  - Read
  - Source: Guide, \*chapter\*

## Passed

- [x] Four

## Bypassed

- [x] Six

## Not applicable

- [x] Five
`, func(d preconditions.Decision, b *strings.Builder) error { return d.WriteMarkdown(b) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			checktest.OK(t, tt.write(r.Decide(policy), &b))
			checktest.Same(t, tt.want, b.String())
		})
	}
}

func TestDecisionVerdict(t *testing.T) {
	for _, tt := range []struct {
		name               string
		policy             preconditions.Policy
		force              bool
		want               string
		incomplete, warned bool
	}{
		{name: "forced", force: true, want: "The update is forced: 2 blocking, 1 warnings, 2 not known.", incomplete: true, warned: true},
		{name: "all set aside", policy: preconditions.Policy{Bypasses: []preconditions.Bypass{
			{Check: "One", By: "a", Why: "w"}, {Check: "Two", By: "a", Why: "w"}, {Check: "Three", By: "a", Why: "w"}, {Check: "Six", By: "a", Why: "w"}}},
			want: "Nothing blocks the update: 0 blocking, 0 warnings, 0 not known."},
		{name: "not known blocks", policy: preconditions.Policy{UnknownBlocks: []string{"Two", "Three"}},
			want: "The update is blocked: 4 blocking, 1 warnings, 0 not known.", incomplete: true, warned: true},
		{name: "wrong policy", policy: preconditions.Policy{UnknownBlocks: []string{"Seven"}},
			want: `The policy is wrong: UnknownBlocks: unknown check "Seven"`, incomplete: true, warned: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := written(t)
			r.Transition.Force = tt.force
			d := r.Decide(tt.policy)
			var b strings.Builder
			if err := d.WriteText(&b); err != nil || !strings.HasSuffix(b.String(), "\n"+tt.want+"\n") {
				t.Errorf("%v: %s", err, b.String())
			}
			if d.Incomplete() != tt.incomplete || d.Warned() != tt.warned {
				t.Errorf("incomplete %v, warned %v", d.Incomplete(), d.Warned())
			}
		})
	}
}
