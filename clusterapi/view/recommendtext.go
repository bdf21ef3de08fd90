package view

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// RecommendText are the options of [Recommend.WriteText]. The zero value works.
// They are plain data.
type RecommendText struct {
	ShowOutdated bool    // list all releases, not the newest two of each minor version
	Quiet        bool    // write nothing: the error alone tells of the target
	Wording      Wording // empty means [Current]
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
	w, warn := writers(out, errOut)
	r.writeState(w, warn)
	r.writePrechecks(w)
	if r.RetrievedUpdates.isNot(statusTrue) {
		writeRefresh(warn, "refresh", r.RetrievedUpdates)
	}
	upstream := "Upstream update service"
	if o.Wording == Docs418 {
		upstream = "Upstream"
	}
	r.Channel.write(w, upstream)
	r.writeWarnings(warn)
	if r.Target != "" {
		r.writeTarget(w)
	} else {
		r.writeGroups(w, o)
	}
	if err := written(w, warn); err != nil {
		return err
	}
	return r.Err()
}

// writeState says what the cluster does that speaks against an update.
func (r *Recommend) writeState(w, warn *writer) {
	prefix := func(issue string) string {
		if r.accepted(issue) {
			return "accepted "
		}
		return ""
	}
	if r.Failing == nil {
		warn.print(prefix(IssueFailing), missingInfo(failing))
	} else if r.Failing.Status != statusFalse {
		w.print(prefix(IssueFailing), "Failing=", r.Failing.Status, ":\n\n", r.Failing.why(), "\n")
	}
	if r.isProgressing() {
		w.print(prefix(IssueProgressing), "info: An update is in progress.  You may wish to let this update complete before requesting a new update.\n  ",
			indent(r.Progressing.Message), "\n\n")
	}
}

// writePrechecks says what the checks found. Details are for causes for concern
// that nobody accepted, but then for all.
func (r *Recommend) writePrechecks(w *writer) {
	if len(r.PrecheckErrors) > 0 {
		w.print("Failed to check for at least some preconditions: ", strings.Join(r.PrecheckErrors, "\n"), "\n")
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
			w.print("The following conditions found ", what, ": ", strings.Join(types, ", "), "\n\n")
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
			w.print(c.Type, "=", c.Status, ":\n\n", c.why(), "\n")
		}
	}
}

// writeWarnings says which updates are missing from the groups.
func (r *Recommend) writeWarnings(warn *writer) {
	for _, v := range r.Invalid {
		fmt.Fprintf(warn, "warning: Cannot parse SemVer available update %q: %s\n", v.Version, v.Error)
	}
	if r.UpgradeableError != "" && r.Upgradeable != nil {
		warn.print("warning: Cannot inject Upgradeable=False as a conditional update risk: ", r.UpgradeableError,
			"\n\nReason: ", r.Upgradeable.Reason, "\n  Message: ", indent(r.Upgradeable.Message), "\n\n")
	}
}

// writeTarget describes the one release that was asked for, if there is one.
func (r *Recommend) writeTarget(w *writer) {
	c, err := r.target()
	if err != nil {
		return
	}
	if c.Issue == nil {
		w.print("\nUpdate to ", c.Version, " has no known issues relevant to this cluster.\nImage: ", c.Image, "\nRelease URL: ", c.URL, "\n")
	} else {
		reason := c.Issue.Reason
		if c.Accepted {
			reason = "accepted " + reason + " via " + IssueConditionalRisk
		}
		w.print("\nUpdate to ", c.Version, " Recommended=", c.Issue.Status, ":\nImage: ", c.Image, "\nRelease URL: ", c.URL,
			"\nReason: ", reason, "\nMessage: ", indent(c.Issue.Message), "\n")
	}
	if len(r.Issues) == 0 || r.Err() != nil {
		return
	}
	names := make([]string, len(r.Issues))
	for i, issue := range r.Issues {
		names[i] = issue.Name
	}
	w.print("Update to ", c.Version, " has no known issues relevant to this cluster other than the accepted ", strings.Join(names, ","), ".\n")
}

// writeGroups lists the releases.
func (r *Recommend) writeGroups(w *writer, o RecommendText) {
	if len(r.Groups) == 0 {
		w.print(o.Wording.noUpdates())
		return
	}
	clean := "no known issues relevant to this cluster"
	if o.Wording == Docs418 {
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
func (g *ReleaseGroup) writeAll(w *writer, clean string) {
	t := versionTable(w)
	t.row("  VERSION", "ISSUES")
	for _, c := range g.Releases {
		issue := clean
		if c.Issue != nil {
			issue = c.Issue.Reason
		}
		t.row("  "+c.Version, issue)
	}
	t.flush()
}

// shownReleases is how many releases of a group are shown without
// RecommendText.ShowOutdated.
const shownReleases = 2

// writeNewest shows the newest releases: a row for one without issues, a paragraph
// for one with issues. The first row has a header; a second one is a table of its
// own, without.
func (g *ReleaseGroup) writeNewest(w *writer, clean string) {
	needsHeader, afterParagraph := true, false
	for i := range g.Releases {
		c := &g.Releases[i]
		if afterParagraph || c.Issue != nil {
			w.print("\n")
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
			t := versionTable(w)
			if needsHeader {
				t.row("  VERSION", "ISSUES")
			}
			t.row("  "+c.Version, clean)
			t.flush()
			needsHeader = false
		}
	}
}
