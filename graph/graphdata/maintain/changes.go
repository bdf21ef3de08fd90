package maintain

import (
	configv1 "github.com/openshift/api/config/v1"
)

// Changes are what makes one graph another, as [Diff] finds it: with them, the
// first one becomes the second. They are plain data, in the order of versions, and
// share parts with the snapshots: do not change them.
type Changes struct {
	Nodes   []NodeChange   `json:"nodes,omitempty"`
	Updates []UpdateChange `json:"updates,omitempty"`
	Risks   []RiskChange   `json:"risks,omitempty"`
}

// Empty reports whether both graphs serve the same.
func (c *Changes) Empty() bool { return len(c.Nodes)+len(c.Updates)+len(c.Risks) == 0 }

// NodeChange is a release that appears, vanishes, or is served otherwise.
type NodeChange struct {
	Version string `json:"version"` // without the architecture
	Arch    string `json:"arch"`
	// Was and Is are what the graphs have of it; nil: nothing.
	Was *NodeState `json:"was,omitempty"`
	Is  *NodeState `json:"is,omitempty"`
	// Joined and Left are the channels that it comes into and goes from.
	Joined []string `json:"joined,omitempty"`
	Left   []string `json:"left,omitempty"`
}

// NodeState is what a graph has of a release.
type NodeState struct {
	Image    string            `json:"image,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"` // with the channels, without previous.remove_regex
}

// UpdateChange is an update that is served differently, in the channels in which it is
// so. An update that changes in two ways, by channel, is there twice.
type UpdateChange struct {
	From     string   `json:"from"`
	To       string   `json:"to"`
	Arch     string   `json:"arch"`
	Channels []string `json:"channels"`
	Was      Offer    `json:"was"`
	Is       Offer    `json:"is"`
}

// Offer is how an update is served.
type Offer struct {
	// Kind is None for an update that is not served, Recommended for one that is
	// served without condition, or Conditional for one under risks.
	Kind string `json:"kind"`
	// Risks are those of a conditional update, in the order of the graph.
	Risks []configv1.ConditionalUpdateRisk `json:"risks,omitempty"`
}

// The kinds of offers.
const (
	offerNone        = "None"
	offerRecommended = "Recommended"
	offerConditional = "Conditional"
)

// RiskChange is a risk of a name that updates are under, and whose content is
// another; there is more than one content where files say different things. No
// content means that no update is under it.
type RiskChange struct {
	Name string                           `json:"name"`
	Was  []configv1.ConditionalUpdateRisk `json:"was,omitempty"`
	Is   []configv1.ConditionalUpdateRisk `json:"is,omitempty"`
}
