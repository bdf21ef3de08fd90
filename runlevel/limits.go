package runlevel

import (
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// What comes from a cluster or a payload may be of any length; what is made of it
// may not. The table is in docs/limits.md.
const (
	maxCondition = 32 << 10 // message of a condition, and of several errors
	maxQuote     = 4 << 10  // one text of an object, or one error among several
	maxList      = 4 << 10  // names or paths in a text
	maxVersion   = 256      // a version that an operator reports
	maxUnknown   = 1000     // fields of one manifest that its schema lacks
	maxWarned    = 4096     // warnings that a Tracker remembers
	maxDrifts    = 100      // objects whose drift a Tracker remembers

	maxDriftedFields = 100 // of one object
)

// quote returns a text of an object, cut to what a message can carry.
func quote(s string) string { return bounded.Text(s, maxQuote) }

// list joins names or paths for a text.
func list(items []string) string { return bounded.Join(items, ", ", maxList) }

// lines joins the errors that a message lists, one a line below heading.
func lines(heading string, items []string) string {
	for i, item := range items {
		items[i] = quote(item)
	}
	return heading + "\n" + bounded.Join(items, "\n", maxCondition-len(heading)-1)
}
