package clusterupdate

import (
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
)

// availableUpdates is what is known of the available updates.
type availableUpdates struct {
	risk.Retrieval
	clusterRisks string    // that the last evaluation took into account, see [riskText]
	recheck      time.Time // when to judge again what could not be judged
	evaluations  int       // counts evaluations
}

// answer returns the updates, if they are about what a specification asks for.
func (s *availableUpdates) answer(spec configv1.ClusterVersionSpec, architectures bool) ([]configv1.Release, []configv1.ConditionalUpdate, bool) {
	return s.Published(risk.Wanted{Upstream: string(spec.Upstream), Channel: spec.Channel}, architectures)
}

// unjudged reports whether the updates are about to be retrieved for the first
// time, or to be judged with other risks accepted.
func (s *availableUpdates) unjudged(accepted []string) bool {
	return s.Attempted.IsZero() || s.Updates != nil && !sets.New(accepted...).Equal(sets.New(s.Asked.Accepted...))
}

// available are the recommended updates.
func (s *availableUpdates) available() []configv1.Release {
	if s.Evaluation == nil {
		return nil
	}
	return s.Evaluation.Available
}

// retrieved are the updates that the graph has without conditions, whatever
// the cluster's own risks.
func (s *availableUpdates) retrieved() []configv1.Release {
	if s.Updates == nil {
		return nil
	}
	return s.Updates.Available
}

// publishUpdates writes what was retrieved, as far as it answers what the object
// asks now.
func publishUpdates(s *configv1.ClusterVersionStatus, in statusInput, set func(configv1.ClusterStatusConditionType, configv1.ConditionStatus, string, string)) {
	l := in.updates
	switch {
	case in.noGraph && in.spec.Channel == "":
		c := graph.RetrievedUpdates(&graph.Error{Reason: string(graph.ErrNoChannel), Message: "The update channel has not been configured."})
		s.AvailableUpdates, s.ConditionalUpdates, s.ConditionalUpdateRisks = nil, nil, nil
		set(configv1.RetrievedUpdates, c.Status, c.Reason, c.Message)
		return
	case in.noGraph:
		set(configv1.RetrievedUpdates, configv1.ConditionUnknown, "", "Updates are not retrieved: no update service is configured.")
		return
	}
	available, conditional, ok := l.answer(in.spec, in.d.gates.architecture)
	if !ok {
		return
	}
	s.AvailableUpdates, s.ConditionalUpdates, s.ConditionalUpdateRisks = available, conditional, nil
	if l.clusterRisks != "" {
		s.ConditionalUpdateRisks = risk.ConditionalUpdateRisks(conditional)
	}
	set(configv1.RetrievedUpdates, l.Condition.Status, l.Condition.Reason, l.Condition.Message)
}
