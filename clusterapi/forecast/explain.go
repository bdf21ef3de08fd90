package forecast

import (
	"cmp"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// The names, among those of checks, for the update graph and for the rehearsal.
const (
	checkGraph     = "Graph"
	checkRehearsal = "Rehearsal"
)

// Reasons of findings that forecasts make themselves, but for those of package path and
// the outcomes of rehearsals.
const (
	reasonSameVersion    = "SameVersion" // as package path has it
	reasonNotRecommended = "NotRecommended"
	reasonRiskUnknown    = "RiskUnknown"
	reasonNotLoaded      = "NotLoaded"
	reasonNotCollected   = "NotCollected"
	reasonNotPreviewed   = "NotPreviewed"
	reasonNotRehearsed   = "NotRehearsed"
	reasonRefused        = "ObjectsRefused"
	reasonOverwrites     = "FieldsOverwritten"
	reasonImplicit       = "CapabilitiesEnabled"
)

// findPath looks for the way to the version wanted: one that the policy allows, else any
// one, which is a finding.
func (f *Forecast) findPath(cv *configv1.ClusterVersion, o Options) error {
	if f.From == f.To && underway(cv) {
		return nil // the rest of an update needs no path
	}
	network, others := networkOf(cv, o.Networks)
	if network == nil {
		if f.From == f.To {
			same := preconditions.Finding{Severity: preconditions.Blocking, Reason: reasonSameVersion}
			same.Message = "the cluster is at " + f.To + " already"
			f.add(partPath, checkGraph, same)
		}
		return nil
	}
	query := path.ExplainQuery{From: f.From, To: f.To, Policy: o.Way, Others: others}
	if cv.Status.Desired.Architecture != "" {
		query.Architecture = string(cv.Status.Desired.Architecture)
	}
	x, err := network.Explain(query)
	if err != nil {
		return fmt.Errorf("forecast: %w", err)
	}
	switch {
	case f.From == f.To:
		f.noPath(x)
		return nil
	case x.Missing == f.From:
		f.unlisted(cv, x)
		return nil
	}
	way, err := network.ShortestPath(f.From, f.To, o.Way)
	if err == nil {
		f.follow(way, o.Way)
		return nil
	}
	anyWay := o.Way
	anyWay.Edges, anyWay.Risks = path.AnyEdge, nil
	way, err = network.ShortestPath(f.From, f.To, anyWay)
	if err != nil {
		f.noPath(x)
		return nil
	}
	f.follow(way, anyWay)
	f.judgeHops(cv, x)
	return nil
}

// underway reports whether the newest update is not complete.
func underway(cv *configv1.ClusterVersion) bool {
	h := cv.Status.History
	return len(h) > 0 && h[0].State != configv1.CompletedUpdate
}

// networkOf returns the network of the cluster's architecture, and the rest: there a release
// is looked up that the first one does not have.
func networkOf(cv *configv1.ClusterVersion, all []*path.Network) (*path.Network, []*path.Network) {
	if len(all) == 0 {
		return nil, nil
	}
	multi := cv.Status.Desired.Architecture == configv1.ClusterVersionArchitectureMulti
	i := slices.IndexFunc(all, func(n *path.Network) bool { return multi == (n.Arch() == "multi") })
	i = max(i, 0)
	others := slices.Concat(all[:i], all[i+1:])
	return all[i], others
}

// follow takes a path that a policy allows.
func (f *Forecast) follow(way *path.Path, policy path.Policy) {
	f.Path, f.policy = way, policy
	f.Next = way.Releases[1].Version
}

// noPath explains why the graph has no path, with the words of the explanation.
func (f *Forecast) noPath(x *path.Explanation) {
	found := preconditions.Finding{Severity: preconditions.Blocking, Reason: x.Block, Message: x.Detail}
	if x.NoPath != nil {
		found.Message += "; " + x.NoPath.Error()
	}
	f.add(partPath, checkGraph, found)
}

// unlisted is about a cluster whose own version is not in the graph: only its own list
// of updates has an answer.
func (f *Forecast) unlisted(cv *configv1.ClusterVersion, x *path.Explanation) {
	found := preconditions.Finding{Severity: preconditions.Blocking, Reason: x.Block, Message: x.Detail}
	if offered(cv, f.To) != nil {
		found.Severity = preconditions.Warning
	}
	f.addUnknown(partPath, checkGraph, found)
}

// judgeHops reports the updates of a path that are not recommended. The cluster's own
// judgement of its next update, which a check reports, goes before the graph's.
func (f *Forecast) judgeHops(cv *configv1.ClusterVersion, x *path.Explanation) {
	for i, hop := range f.Path.Hops {
		detail := fmt.Sprintf("the update from %s to %s is not known to be recommended", hop.From, hop.To)
		if len(f.Path.Hops) == 1 {
			detail = x.Detail
		}
		switch {
		case i > 0:
			f.judgeHop(hop, detail, preconditions.Warning)
		case offered(cv, hop.To) == nil:
			f.judgeHop(hop, detail, preconditions.Blocking)
		}
	}
}

// judgeHop reports one update of a path unless it is recommended.
func (f *Forecast) judgeHop(hop path.Hop, detail string, severity preconditions.Severity) {
	found := preconditions.Finding{Severity: severity, Reason: reasonNotRecommended, Message: detail}
	for _, r := range hop.Risks {
		found.Risk = cmp.Or(found.Risk, r.Risk.Name)
	}
	found.Remedy = "wait for a release without the risk, or accept it"
	switch hop.Recommendation {
	case "Recommended":
	case "NotRecommended":
		f.add(partPath, checkGraph, found)
	default:
		found.Reason = reasonRiskUnknown
		f.addUnknown(partPath, checkGraph, found)
	}
}

// adviseChannel says in the finding of a check that the cluster does not list the next
// update which channel has it, if the graph recommends it there.
func (f *Forecast) adviseChannel(found *preconditions.Finding) {
	if f.Path == nil || found.Reason != "UnknownUpdate" {
		return
	}
	hop := f.Path.Hops[0]
	if hop.Recommendation == "Recommended" && hop.Channel != f.Channel {
		found.Remedy = "Change to channel " + hop.Channel + ", in which the update is recommended"
	}
}

// findNearest looks for the lowest version above the one wanted that can be reached, if
// the graph does not recommend the way there, or its release cannot be used.
func (f *Forecast) findNearest(cv *configv1.ClusterVersion, o Options) error {
	network, _ := networkOf(cv, o.Networks)
	if network == nil || f.From == f.To || f.allowed(o.Way) {
		return nil
	}
	if _, err := network.Release(f.From); err != nil {
		return nil
	}
	want, err := graph.ParseVersion(f.To)
	if err != nil {
		return fmt.Errorf("forecast: %w", err)
	}
	reached, err := network.Reachable(f.From, o.Way)
	if err != nil {
		return fmt.Errorf("forecast: %w", err)
	}
	for _, r := range slices.Backward(reached) { // the lowest first
		v, err := graph.ParseVersion(r.Release.Version)
		if err == nil && v.GreaterThan(want) {
			f.Nearest, err = network.ShortestPath(f.From, r.Release.Version, o.Way)
			return err
		}
	}
	return nil
}

// allowed reports whether a policy allows the path, and nothing blocks its target.
func (f *Forecast) allowed(policy path.Policy) bool {
	blocked := slices.ContainsFunc(f.WhyNot(), Finding.aboutTarget)
	return f.Path != nil && f.policy.Edges == policy.Edges && !blocked
}

// aboutTarget reports whether another target may not have the finding.
func (f Finding) aboutTarget() bool { return f.Part == partPath || f.Part == partRelease }
