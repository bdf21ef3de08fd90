package preconditions

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteText writes the checklist for people: what blocks, what to know, what
// could not be found out, each finding on a line with its remedy below, then
// the names of the checks that passed, were set aside, or do not concern the
// step, and the kinds that are assumed to be recorded completely. It returns the error of w.
func (d Decision) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, s := range d.sections() {
		fmt.Fprintf(&b, "%s:\n", s.title)
		for _, i := range s.items {
			fmt.Fprintf(&b, "  %s %s: %s\n", i.check, i.finding.Reason, indent(i.message(), "    "))
			if i.finding.Remedy != "" {
				fmt.Fprintf(&b, "    Remedy: %s\n", indent(i.finding.Remedy, "      "))
			}
			for _, same := range i.same {
				fmt.Fprintf(&b, "    %s %s: %s\n", same.check, same.finding.Reason, indent(same.finding.Message, "      "))
			}
		}
	}
	for _, l := range d.names() {
		fmt.Fprintf(&b, "%s: %s\n", l.title, strings.Join(l.names, ", "))
	}
	if len(d.Assumed) > 0 {
		fmt.Fprintf(&b, "Assumed to be recorded completely: %s\n", strings.Join(d.Assumed, ", "))
	}
	fmt.Fprintln(&b, d.verdict())
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteMarkdown writes the checklist as a Markdown document with a task list. It
// returns the error of w.
func (d Decision) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n", d.verdict())
	for _, s := range d.sections() {
		fmt.Fprintf(&b, "\n## %s\n\n", s.title)
		for _, i := range s.items {
			fmt.Fprintf(&b, "- [ ] **%s** `%s`: %s\n", i.check, i.finding.Reason, indent(escapeMarkdown(i.message()), "  "))
			if i.finding.Remedy != "" {
				fmt.Fprintf(&b, "  - %s\n", indent(escapeMarkdown(i.finding.Remedy), "    "))
			}
			for _, same := range i.same {
				fmt.Fprintf(&b, "  - **%s** `%s`: %s\n", same.check, same.finding.Reason, indent(escapeMarkdown(same.finding.Message), "    "))
			}
			if i.finding.Source != "" {
				fmt.Fprintf(&b, "  - Source: %s\n", escapeMarkdown(i.finding.Source))
			}
		}
	}
	for _, l := range d.names() {
		fmt.Fprintf(&b, "\n## %s\n\n", l.title)
		for _, name := range l.names {
			fmt.Fprintf(&b, "- [x] %s\n", name)
		}
	}
	if len(d.Assumed) > 0 {
		b.WriteString("\n## Assumed to be recorded completely\n\n")
		for _, kind := range d.Assumed {
			fmt.Fprintf(&b, "- `%s`\n", kind)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// section is the findings of one weight.
type section struct {
	title string
	items []item
}

type item struct {
	check   string
	finding Finding
	same    []item // findings of other checks that have the same cause
}

// message is what was found without the remedy, which stands below it.
func (i item) message() string {
	return strings.TrimSpace(strings.TrimSuffix(i.finding.Message, i.finding.Remedy))
}

func (d Decision) sections() []section {
	all := []section{{title: "Blocking"}, {title: "Warnings"}, {title: "Not known"}, {title: "Information"}}
	for _, r := range d.Results {
		if r.State == NotApplicable || r.State == Bypassed {
			continue
		}
		for i, f := range r.Findings {
			at := 3
			switch {
			case f.Severity >= Blocking:
				at = 0
			case r.saysUnknown(i):
				at = 2
			case f.Severity == Warning:
				at = 1
			}
			if f.ToldBy == "" || !d.tells(f.ToldBy) {
				all[at].items = append(all[at].items, item{r.Check, f, d.sameCause(r.Check, f)})
			}
		}
	}
	return slices.DeleteFunc(all, func(s section) bool { return len(s.items) == 0 })
}

// count is the number of items in the section of a title.
func (d Decision) count(title string) int {
	n := 0
	for _, s := range d.sections() {
		if s.title == title {
			n += len(s.items)
		}
	}
	return n
}

// sameCause are the findings of other checks whose cause a finding tells.
func (d Decision) sameCause(check string, f Finding) []item {
	if !isTeller(check, f) {
		return nil
	}
	var same []item
	for _, r := range d.Results {
		for i, other := range r.Findings {
			if other.ToldBy == check && r.State != Bypassed && !r.saysUnknown(i) {
				same = append(same, item{check: r.Check, finding: other})
			}
		}
	}
	return same
}

// nameList is the checks of one state.
type nameList struct {
	title string
	names []string
}

func (d Decision) names() []nameList {
	var out []nameList
	for _, l := range []struct {
		title string
		state State
	}{{string(Passed), Passed}, {string(Bypassed), Bypassed}, {"Not applicable", NotApplicable}} {
		var names []string
		for _, r := range d.Results {
			if r.State == l.state {
				names = append(names, r.Check)
			}
		}
		if len(names) > 0 {
			out = append(out, nameList{l.title, names})
		}
	}
	return out
}

// verdict is the decision in a sentence.
func (d Decision) verdict() string {
	counts := fmt.Sprintf("%d blocking, %d warnings, %d not known", d.count("Blocking"), d.count("Warnings"), d.count("Not known"))
	switch {
	case d.Err != nil:
		return "The policy is wrong: " + d.Err.Error()
	case d.Blocked:
		return "The update is blocked: " + counts + "."
	case d.Forced:
		return "The update is forced: " + counts + "."
	default:
		return "Nothing blocks the update: " + counts + "."
	}
}

// Incomplete reports whether something could not be found out that is not set
// aside.
func (d Decision) Incomplete() bool {
	return slices.ContainsFunc(d.Results, func(r Result) bool { return r.Err != nil && r.State != Bypassed })
}

// Warned reports whether a finding is a warning that is not set aside. What could
// not be found out is not a warning here.
func (d Decision) Warned() bool { return d.count("Warnings") > 0 }

// indent indents all lines but the first.
func indent(text, by string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+by)
}

// escapeMarkdown keeps text from being read as markup: what it says comes from
// the cluster.
func escapeMarkdown(text string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`,
		"<", "&lt;", ">", "&gt;", "#", `\#`, "|", `\|`).Replace(text)
}
