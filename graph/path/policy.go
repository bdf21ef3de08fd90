package path

import (
	"fmt"
	"slices"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/openshift"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Edges determines which edges a path may use. An edge is unconditional,
// conditional, or withheld: a conditional one that a cluster is not offered, since
// one of its risks has no rule that the cluster knows (UnrecognizedRules), several
// entries name it (DuplicateTarget), the API server refuses its risks
// (InvalidRisks), or the target's metadata are invalid (InvalidMetadata). Whether a
// withheld edge is recommended is unknown, as it is of a conditional edge that
// names no risk.
type Edges string

// What a path may use.
const (
	// Recommended: unconditional edges, and conditional ones that are
	// recommended. The zero value is the same.
	Recommended Edges = "Recommended"
	// AcceptRisks: in addition those of whose risks all that apply, or may
	// apply, are listed. An edge without risks is not among them.
	AcceptRisks Edges = "AcceptRisks"
	// AvoidRisks: all edges but the withheld ones and those that carry a
	// listed risk, whether it applies or not.
	AvoidRisks Edges = "AvoidRisks"
	// AnyEdge: all edges, the withheld ones too.
	AnyEdge Edges = "Any"
)

// Policy determines which way a path may go. The zero value allows what is
// recommended. The filters of versions bind each version of a path but the first.
type Policy struct {
	Edges Edges `json:"edges,omitempty"`
	// Risks are the names for AcceptRisks and AvoidRisks.
	Risks []string `json:"risks,omitempty"`
	// Exclude are versions to stay away from; builds do not matter.
	Exclude []string `json:"exclude,omitempty"`
	// MaxVersion is the highest version allowed, empty for none.
	MaxVersion string `json:"maxVersion,omitempty"`
	// NoPreReleases leaves out pre-releases.
	NoPreReleases bool `json:"noPreReleases,omitempty"`
	// Minors are the minor versions allowed, e.g. 4.16; empty allows all.
	Minors []string `json:"minors,omitempty"`
}

// rules is a policy made ready for a network.
type rules struct {
	n      *Network
	pass   []bool   // by guard
	barred []string // by node: why it may not be entered, "" if it may; nil: all may
}

// compile makes a policy ready. Errors are about its own fields.
func (n *Network) compile(p Policy) (*rules, error) {
	r := &rules{n: n, pass: make([]bool, len(n.guards))}
	switch p.Edges {
	case "", Recommended, AcceptRisks, AvoidRisks, AnyEdge:
	default:
		return nil, fmt.Errorf("policy: edges %q are none of Recommended, AcceptRisks, AvoidRisks, Any", string(p.Edges))
	}
	for i := range n.guards {
		r.pass[i] = n.passes(p, &n.guards[i])
	}
	barred, err := n.barred(p)
	r.barred = barred
	return r, err
}

func (n *Network) passes(p Policy, g *guard) bool {
	switch {
	case p.Edges == AnyEdge:
		return true
	case g.withheld != "":
		return false
	case p.Edges == AvoidRisks:
		return !slices.ContainsFunc(g.verdicts, func(v int32) bool { return slices.Contains(p.Risks, n.verdicts[v].Risk.Name) })
	case g.judgement == recommended:
		return true
	case p.Edges == AcceptRisks:
		return len(g.verdicts) > 0 && !slices.ContainsFunc(g.verdicts, func(v int32) bool {
			risk := &n.verdicts[v]
			return risk.Applies.Status != metav1.ConditionFalse && !slices.Contains(p.Risks, risk.Risk.Name)
		})
	}
	return false
}

// barred says of each version why a path may not enter it.
func (n *Network) barred(p Policy) ([]string, error) {
	if len(p.Exclude) == 0 && p.MaxVersion == "" && !p.NoPreReleases && len(p.Minors) == 0 {
		return nil, nil
	}
	var excluded []*semver.Version
	for _, text := range p.Exclude {
		v, err := graph.ParseVersion(text)
		if err != nil {
			return nil, fmt.Errorf("policy: excluded version %q: %w", text, err)
		}
		excluded = append(excluded, v)
	}
	var highest *semver.Version
	if p.MaxVersion != "" {
		var err error
		highest, err = graph.ParseVersion(p.MaxVersion)
		if err != nil {
			return nil, fmt.Errorf("policy: maximum version %q: %w", p.MaxVersion, err)
		}
	}
	var minors []openshift.Minor
	for _, text := range p.Minors {
		m, err := openshift.ParseMinor(text)
		if err != nil {
			return nil, fmt.Errorf("policy: %w", err)
		}
		minors = append(minors, m)
	}
	barred := make([]string, len(n.versions))
	for i, v := range n.versions {
		switch {
		case slices.ContainsFunc(excluded, v.Equal):
			barred[i] = "it is excluded"
		case highest != nil && v.GreaterThan(highest):
			barred[i] = "it is above the maximum version " + p.MaxVersion
		case p.NoPreReleases && v.Prerelease() != "":
			barred[i] = "it is a pre-release"
		case len(minors) > 0 && !slices.Contains(minors, openshift.MinorOf(v)):
			barred[i] = fmt.Sprintf("its minor version %s is not allowed", openshift.MinorOf(v))
		}
	}
	return barred, nil
}

// allows reports whether a path may use an edge.
func (r *rules) allows(e *edge) bool {
	return r.pass[e.guard] && (r.barred == nil || r.barred[e.to] == "")
}
