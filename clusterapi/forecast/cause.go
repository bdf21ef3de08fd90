package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// Cause is why an update does not proceed.
type Cause struct {
	// Chain leads to it from the whole to the part, in the words of the status views:
	// runlevel, component, object and condition, or pool, node, pod and budget.
	Chain view.Chain `json:"chain"`
	// Assumed reports whether the cause rests on something that was made up.
	Assumed bool `json:"assumed,omitempty"`
}

// String returns the chain and the message of its last link in one line.
func (c Cause) String() string {
	if m := c.last().Message; m != "" {
		return c.Chain.String() + ": " + m
	}
	return c.Chain.String()
}

// versionChain is a chain about the ClusterVersion, in words of the rehearsal, with the
// state of a condition; nil leaves that out.
func versionChain(c *configv1.ClusterOperatorStatusCondition, message string) view.Chain {
	link := view.Link{
		Object:  &view.Resource{Group: configv1.GroupName, Kind: "ClusterVersion", Name: "version"},
		Message: message,
	}
	if c != nil {
		link.State = fmt.Sprintf("%s=%s", c.Type, c.Status)
		if since := c.LastTransitionTime.Time; !since.IsZero() {
			link.Since = &since
		}
	}
	return view.Chain{link}
}

// refusedChain is a chain about an object of the release that the API refuses; nil if it
// refuses none.
func refusedChain(conditions []configv1.ClusterOperatorStatusCondition) view.Chain {
	c := openshift.FindCondition(conditions, "Failing")
	if c == nil || c.Status != configv1.ConditionTrue || !strings.HasPrefix(c.Reason, refusals) {
		return nil
	}
	chain := versionChain(c, c.Message)
	chain[0].Reason = c.Reason
	return chain
}

// refusals begin the reasons of the version operator for an object that it cannot apply.
const refusals = "UpdatePayload"

// last is the last link of the chain.
func (c Cause) last() view.Link {
	if len(c.Chain) == 0 {
		return view.Link{}
	}
	return c.Chain[len(c.Chain)-1]
}

// since is when the cause began; zero if that is unknown.
func (c Cause) since() time.Time {
	if s := c.last().Since; s != nil {
		return *s
	}
	return time.Time{}
}

// sortCauses puts the earliest cause first, those of unknown age last, and drops the
// second of two that read alike.
func sortCauses(causes []Cause) []Cause {
	seen := make(map[string]bool)
	causes = slices.DeleteFunc(causes, func(c Cause) bool {
		text := c.String()
		defer func() { seen[text] = true }()
		return seen[text]
	})
	slices.SortStableFunc(causes, func(a, b Cause) int {
		known := cmp.Compare(ageRank(a), ageRank(b))
		return cmp.Or(known, a.since().Compare(b.since()))
	})
	return causes
}

// ageRank orders causes of a known age first.
func ageRank(c Cause) int {
	if c.since().IsZero() {
		return 1
	}
	return 0
}
