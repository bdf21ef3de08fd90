package graphdata

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Facts are what [Promotions] cannot read in a tree. With the zero value only
// risks that are to be extended are known, and everything else waits.
type Facts struct {
	// Entered tells when versions came into channels, by the channel's name and
	// the version as it is written there: when the commit was made that added the
	// line. How old a version is that is not there is not known: a delay does not
	// let it pass.
	Entered map[string]map[string]Entered
	// Public holds the URIs of public advisories. An advisory is public under any
	// of its three types: RHBA, RHSA and RHEA. Which ones count is what a call
	// without them says: Promotion.Advisory.
	Public map[string]bool
	// Graph knows the advisories of releases, and which updates there are, both for
	// amd64 or, if it has none of that, for its first architecture; nil: no release
	// has an advisory, and nothing is held back since it leads nowhere.
	Graph *Snapshot
}

// Entered is how a version came into a channel.
type Entered struct {
	Time    time.Time // zero: not known
	Commit  string    // its hash
	Summary string    // its first line
}

// Decision is what a [Promotion] comes to.
type Decision string

const (
	// Promote: the version is ripe for the channel.
	Promote Decision = "Promote"
	// Wait: it is not old enough, its advisory is not public, or it leads nowhere.
	Wait Decision = "Wait"
	// Blocked: a risk of its predecessor is to be extended or closed first.
	Blocked Decision = "Blocked"
	// Undecidable: the feeder of the channel is unknown or invalid. There is no
	// version.
	Undecidable Decision = "Undecidable"
)

// Promotion is what there is to say about a version that its feeder would give to
// a channel.
type Promotion struct {
	Decision Decision
	// File is that of the channel.
	File, Channel, Feeder, Version string
	// Entered is how the version came into the feeder, Age how long ago.
	Entered Entered
	Age     time.Duration
	// Advisory is the URI of the release's advisory, if the channel waits for it;
	// Public says whether it is public.
	Advisory string
	Public   bool
	// Concern is why the version is blocked, leads nowhere, or why nothing can be
	// decided; empty: nothing speaks against it.
	Concern string
}

// Promotions returns what could be promoted into channels with feeders, and what is
// to be done with it, sorted by channel and then by version, both as text. It is
// one run of the maintainers' script: channels are as they are in the tree, so that
// what is promoted into a feeder goes on in the next run. A tree without its
// internal channels lacks most feeders: see LoadOptions.InternalChannels.
//
// A version is promoted if no risk is to be extended to it (see [Extend]), if it
// leads to the minor of its channel, and if it has been in the feeder for longer
// than the delay or has a public advisory where the feeder asks for one; of the
// last two either suffices. What [Lint] says of channels is not repeated here.
func Promotions(tree *Tree, facts Facts, now time.Time) []Promotion {
	channels := slices.Concat(tree.Channels, tree.Internal)
	slices.SortStableFunc(channels, func(a, b Channel) int { return cmp.Compare(a.Name, b.Name) })
	byName := map[string]*Channel{}
	for i := range channels {
		byName[channels[i].Name] = cmp.Or(byName[channels[i].Name], &channels[i])
	}
	p := &promoter{tree: tree, facts: facts, now: now}
	if facts.Graph != nil {
		p.ways = newConnectivity(facts.Graph)
	}
	var all []Promotion
	for _, c := range channels {
		if c.Feeder != nil {
			all = append(all, p.channel(c, byName[c.Feeder.Name])...)
		}
	}
	return all
}

// Title is that of a change that promotes the version, e.g. "channels/fast-4.30:
// Promote 4.30.1".
func (p Promotion) Title() string {
	return strings.TrimSuffix(p.File, path.Ext(p.File)) + ": Promote " + p.Version
}

// String says why the version is promoted or not, in the words of the maintainers'
// script.
func (p Promotion) String() string {
	advisory := ""
	switch {
	case p.Advisory != "" && p.Public:
		advisory = " " + p.Advisory + " is public."
	case p.Advisory != "":
		advisory = " " + p.Advisory + " is not public."
	}
	commit, since := p.entered()
	switch p.Decision {
	case Promote:
		return fmt.Sprintf("It was promoted to the feeder %s by %s) %s ago.%s", p.Feeder, commit, since, advisory)
	case Blocked:
		return "FAILED " + p.Concern
	case Undecidable:
		return fmt.Sprintf("Nothing can be promoted to %s: %s", p.Channel, p.Concern)
	}
	text := fmt.Sprintf("Recommend waiting to promote %s to %s; it was promoted the feeder %s by %s, %s)%s", p.Version, p.Channel, p.Feeder, commit, since, advisory)
	if p.Concern != "" {
		text += "  " + p.Concern
	}
	return text
}

// entered describes a commit, up to its closing parenthesis, and its age.
func (p Promotion) entered() (commit, age string) {
	hash := p.Entered.Commit
	if len(hash) > 10 {
		hash = hash[:10]
	}
	date, age := "at an unknown time", "an unknown time"
	if !p.Entered.Time.IsZero() {
		date = p.Entered.Time.UTC().Format("2006-01-02T15:04:05Z")
		days, rest := p.Age/(24*time.Hour), (p.Age % (24 * time.Hour)).Truncate(time.Second)
		age = fmt.Sprintf("%d days, %s", days, rest)
	}
	return fmt.Sprintf("%s (%s, %s", cmp.Or(hash, "an unknown commit"), cmp.Or(p.Entered.Summary, "without a summary"), date), age
}
