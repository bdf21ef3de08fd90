package view

import (
	"fmt"
	"io"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

// Summary is what oc adm upgrade shows of a cluster: its state and the releases
// that it can update to. It is plain data.
type Summary struct {
	Version string `json:"version"` // the release that the cluster runs or updates to
	Image   string `json:"image"`
	// The conditions that matter to updates, nil where the ClusterVersion has
	// none of the type.
	Failing          *Condition `json:"failing,omitempty"`
	Progressing      *Condition `json:"progressing,omitempty"`
	Upgradeable      *Condition `json:"upgradeable,omitempty"`
	ReleaseAccepted  *Condition `json:"releaseAccepted,omitempty"`
	RetrievedUpdates *Condition `json:"retrievedUpdates,omitempty"`
	Channel          Channel    `json:"channel"`
	// Updates are those that are recommended, and NotRecommended those of which
	// Recommended is not True. Newer ones come first.
	Updates        []Release `json:"updates"`
	NotRecommended []Release `json:"notRecommended"`
	// Undecided is the first status of Recommended, in the order of the
	// ClusterVersion, that is neither True nor False. It is nil without one.
	Undecided *string `json:"undecided,omitempty"`
	// Preflights are the checks of releases that were requested, with what they found.
	Preflights []clusterversion.Preflight `json:"preflights,omitempty"`
}

// Summarize computes the summary of a cluster's updates. It fails without a
// ClusterVersion, and only reads it. It can be called concurrently.
func Summarize(cv *configv1.ClusterVersion) (*Summary, error) {
	if cv == nil {
		return nil, errNoClusterVersion
	}
	s := &Summary{
		Version:          cv.Status.Desired.Version,
		Image:            cv.Status.Desired.Image,
		Failing:          conditionOf(cv, failing),
		Progressing:      conditionOf(cv, configv1.OperatorProgressing),
		Upgradeable:      conditionOf(cv, configv1.OperatorUpgradeable),
		ReleaseAccepted:  conditionOf(cv, releaseAccepted),
		RetrievedUpdates: conditionOf(cv, configv1.RetrievedUpdates),
		Channel:          channelOf(cv),
		Updates:          []Release{},
		NotRecommended:   []Release{},
		Preflights:       clusterversion.Preflights(&cv.Status),
	}
	for i := range cv.Status.AvailableUpdates {
		s.Updates = append(s.Updates, releaseOf(&cv.Status.AvailableUpdates[i]))
	}
	for i := range cv.Status.ConditionalUpdates {
		r := conditionalOf(&cv.Status.ConditionalUpdates[i])
		if !r.Recommended.isNot(statusTrue) {
			continue
		}
		if s.Undecided == nil && r.Recommended.Status != statusFalse {
			s.Undecided = &r.Recommended.Status
		}
		s.NotRecommended = append(s.NotRecommended, r)
	}
	version := func(r Release) string { return r.Version }
	s.Updates = openshift.NewestFirst(s.Updates, version)
	s.NotRecommended = openshift.NewestFirst(s.NotRecommended, version)
	return s, nil
}

// SummaryText are the options of [Summary.WriteText]. The zero value works. They
// are plain data.
type SummaryText struct {
	IncludeNotRecommended bool // describe updates with known issues
	Docs418               bool // as the documentation of 4.18 has it
}

// WriteText writes the summary as oc adm upgrade prints it: what it shows to out,
// and what it warns of to errOut. It fails when writing does. It can be called
// concurrently on one summary.
func (s *Summary) WriteText(out, errOut io.Writer, o SummaryText) error {
	w, warn := text.NewWriter(out), text.NewWriter(errOut)
	s.writeState(w, warn)
	s.Channel.write(w, "Upstream")
	s.writeUpdates(w, warn, o.Docs418)
	s.writeNotRecommended(w, o)
	writePreflights(w, s.Preflights)
	return text.Written(w, warn)
}

// writeState describes how the cluster does.
func (s *Summary) writeState(w, warn *text.Writer) {
	if s.Failing == nil {
		warn.Print(missingInfo(failing))
	} else if s.Failing.Status != statusFalse {
		w.Print("Failing=", s.Failing.Status, ":\n\n", s.Failing.why(), "\n")
	}
	switch p := s.Progressing; {
	case p == nil || p.Message == "":
		warn.Print(missingInfo(configv1.OperatorProgressing))
	case p.Status == statusTrue:
		w.Print("info: An upgrade is in progress. ", p.Message, "\n")
	default:
		w.Print(p.Message, "\n")
	}
	w.Print("\n")
	if s.Upgradeable.is(statusFalse) {
		w.Print("Upgradeable=False\n\n", s.Upgradeable.why(), "\n")
	}
	if s.ReleaseAccepted.isNot(statusTrue) {
		w.Print("ReleaseAccepted=", s.ReleaseAccepted.Status, "\n\n", s.ReleaseAccepted.why(), "\n")
	}
}

// writeUpdates lists the recommended updates.
func (s *Summary) writeUpdates(w, warn *text.Writer, docs418 bool) {
	stale := s.RetrievedUpdates.is(statusFalse)
	switch {
	case len(s.Updates) > 0:
		w.Print("\nRecommended updates:\n\n")
		t := text.NewTable(w, 14, 1)
		t.Row("  VERSION", "IMAGE")
		for _, r := range s.Updates {
			t.Row("  "+r.Version, r.Image)
		}
		t.Flush()
		if stale {
			writeRefresh(warn, "refresh", s.RetrievedUpdates)
		}
	case stale:
		writeRefresh(warn, "display", s.RetrievedUpdates)
	default:
		w.Print(noUpdates(docs418))
	}
}

// writeNotRecommended describes the other updates, or reports that there are some.
func (s *Summary) writeNotRecommended(w *text.Writer, o SummaryText) {
	switch {
	case o.IncludeNotRecommended && len(s.NotRecommended) > 0:
		w.Print("\nUpdates with known issues:\n")
		for i := range s.NotRecommended {
			w.Print("\n")
			writeNotRecommended(w, &s.NotRecommended[i], s.NotRecommended[i].Recommended)
		}
	case o.IncludeNotRecommended:
		w.Print("\nNo updates which are not recommended based on your cluster configuration are available.\n")
	case len(s.NotRecommended) > 0:
		qualifier := ""
		if s.Undecided != nil {
			qualifier = fmt.Sprintf(", or where the recommended status is %q,", *s.Undecided)
		}
		w.Print("\nAdditional updates which are not recommended", qualifier,
			" for your cluster configuration are available, to view those re-run the command with --include-not-recommended.\n")
	}
}
