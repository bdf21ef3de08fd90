package view

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/text"
)

// RecommendText are the options of [Recommend.WriteText]. The zero value works.
// They are plain data.
type RecommendText struct {
	ShowOutdated bool // list all releases, not the newest two of each minor version
	Quiet        bool // write nothing: the error alone describes the target
	Docs418      bool // as the documentation of 4.18 has it
}

// WriteText writes recommendations as oc adm upgrade recommend prints them: what
// it shows to out, and what it warns of to errOut. It refuses ShowOutdated with a
// target and Quiet without one, and fails when writing does. Else it returns
// [Recommend.Err], which the command line tool prints behind an empty line and
// "error: ". It can be called concurrently on one Recommend.
func (r *Recommend) WriteText(out, errOut io.Writer, o RecommendText) error {
	switch {
	case o.ShowOutdated && r.Target != "":
		return errors.New("when --version is set, --show-outdated-releases is unnecessary")
	case o.Quiet && r.Target == "":
		return errors.New("--quiet can only be set when --version is set")
	case o.Quiet:
		return r.Err()
	}
	w, warn := text.NewWriter(out), text.NewWriter(errOut)
	r.writeState(w, warn)
	r.writePrechecks(w)
	if r.RetrievedUpdates.isNot(statusTrue) {
		writeRefresh(warn, "refresh", r.RetrievedUpdates)
	}
	upstream := "Upstream update service"
	if o.Docs418 {
		upstream = "Upstream"
	}
	r.Channel.write(w, upstream)
	r.writeWarnings(warn)
	if r.Target != "" {
		r.writeTarget(w)
	} else {
		r.writeGroups(w, o)
	}
	if err := text.Written(w, warn); err != nil {
		return err
	}
	return r.Err()
}

// writeState describes what the cluster does that speaks against an update.
func (r *Recommend) writeState(w, warn *text.Writer) {
	prefix := func(issue string) string {
		if r.accepted(issue) {
			return "accepted "
		}
		return ""
	}
	if r.Failing == nil {
		warn.Print(prefix(issueFailing), missingInfo(failing))
	} else if r.Failing.Status != statusFalse {
		w.Print(prefix(issueFailing), "Failing=", r.Failing.Status, ":\n\n", r.Failing.why(), "\n")
	}
	if r.isProgressing() {
		w.Print(prefix(issueProgressing), "info: An update is in progress.  You may wish to let this update complete before requesting a new update.\n  ",
			text.Indent(r.Progressing.Message), "\n\n")
	}
}

// writePrechecks describes what the checks found. Details are for causes for
// concern that nobody accepted, but then for all.
func (r *Recommend) writePrechecks(w *text.Writer) {
	if len(r.PrecheckErrors) > 0 {
		w.Print("Failed to check for at least some preconditions: ", strings.Join(r.PrecheckErrors, "\n"), "\n")
	}
	var happy, accepted, unhappy []string
	for _, c := range r.Prechecks {
		switch {
		case c.Status == statusTrue:
			happy = append(happy, c.Type+" ("+c.Reason+")")
		case c.Accepted:
			accepted = append(accepted, c.Type)
		default:
			unhappy = append(unhappy, c.Type)
		}
	}
	list := func(what string, types []string) {
		if len(types) > 0 {
			slices.Sort(types)
			w.Print("The following conditions found ", what, ": ", strings.Join(types, ", "), "\n\n")
		}
	}
	list("no cause for concern in updating this cluster to later releases", happy)
	list("cause for concern in updating this cluster to later releases, but were explicitly accepted via --accept", accepted)
	list("cause for concern in updating this cluster to later releases", unhappy)
	if len(unhappy) == 0 {
		return
	}
	for _, c := range r.Prechecks {
		if c.Status != statusTrue {
			w.Print(c.Type, "=", c.Status, ":\n\n", c.why(), "\n")
		}
	}
}

// writeWarnings determines which updates are missing from the groups.
func (r *Recommend) writeWarnings(warn *text.Writer) {
	for _, v := range r.Invalid {
		fmt.Fprintf(warn, "warning: Cannot parse SemVer available update %q: %s\n", v.Version, v.Error)
	}
	if r.UpgradeableError != "" && r.Upgradeable != nil {
		warn.Print("warning: Cannot inject Upgradeable=False as a conditional update risk: ", r.UpgradeableError,
			"\n\nReason: ", r.Upgradeable.Reason, "\n  Message: ", text.Indent(r.Upgradeable.Message), "\n\n")
	}
}

// writeTarget describes the one release that was asked for, if there is one.
func (r *Recommend) writeTarget(w *text.Writer) {
	c, err := r.target()
	if err != nil {
		return
	}
	if c.Issue == nil {
		w.Print("\nUpdate to ", c.Version, " has no known issues relevant to this cluster.\nImage: ", c.Image, "\nRelease URL: ", c.URL, "\n")
	} else {
		reason := c.Issue.Reason
		if c.Accepted {
			reason = "accepted " + reason + " via " + issueConditionalRisk
		}
		w.Print("\nUpdate to ", c.Version, " Recommended=", c.Issue.Status, ":\nImage: ", c.Image, "\nRelease URL: ", c.URL,
			"\nReason: ", reason, "\nMessage: ", text.Indent(c.Issue.Message), "\n")
	}
	if len(r.Issues) == 0 || r.Err() != nil {
		return
	}
	names := make([]string, len(r.Issues))
	for i, issue := range r.Issues {
		names[i] = issue.Name
	}
	w.Print("Update to ", c.Version, " has no known issues relevant to this cluster other than the accepted ", strings.Join(names, ","), ".\n")
}

// writeGroups lists the releases.
func (r *Recommend) writeGroups(w *text.Writer, o RecommendText) {
	if len(r.Groups) == 0 {
		w.Print(noUpdates(o.Docs418))
		return
	}
	clean := "no known issues relevant to this cluster"
	if o.Docs418 {
		clean = "no known issues"
	}
	for i := range r.Groups {
		group := &r.Groups[i]
		fmt.Fprintf(w, "\nUpdates to %d.%d:\n", group.Major, group.Minor)
		if o.ShowOutdated {
			group.writeAll(w, clean)
		} else {
			group.writeNewest(w, clean)
		}
	}
}

// writeAll lists all releases in one table.
func (g *ReleaseGroup) writeAll(w *text.Writer, clean string) {
	t := text.NewTable(w, 14, 1)
	t.Row("  VERSION", "ISSUES")
	for _, c := range g.Releases {
		issue := clean
		if c.Issue != nil {
			issue = c.Issue.Reason
		}
		t.Row("  "+c.Version, issue)
	}
	t.Flush()
}

// shownReleases is how many releases of a group are shown without
// RecommendText.ShowOutdated.
const shownReleases = 2

// writeNewest shows the newest releases: a row for one without issues, a paragraph
// for one with issues. The first row has a header; a second one is a separate
// table, without one.
func (g *ReleaseGroup) writeNewest(w *text.Writer, clean string) {
	needsHeader, afterParagraph := true, false
	for i := range g.Releases {
		c := &g.Releases[i]
		if afterParagraph || c.Issue != nil {
			w.Print("\n")
			afterParagraph = false
		}
		switch {
		case i == shownReleases:
			fmt.Fprintf(w, "And %d older %d.%d updates you can see with '--show-outdated-releases' or '--version VERSION'.\n", len(g.Releases)-i, g.Major, g.Minor)
			return
		case c.Issue != nil:
			writeNotRecommended(w, &c.Release, c.Issue)
			afterParagraph = true
		default:
			t := text.NewTable(w, 14, 1)
			if needsHeader {
				t.Row("  VERSION", "ISSUES")
			}
			t.Row("  "+c.Version, clean)
			t.Flush()
			needsHeader = false
		}
	}
}
