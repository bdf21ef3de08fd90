package clusterupdate

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// riskSources is what decides which risks of the cluster count.
type riskSources struct {
	merged bool   // the gate lets them count
	risks  string // what they are
}

// merge returns what puts the risks of the cluster onto updates; nil where the
// API does not have them.
func (u *Updater) merge(ctx context.Context, j *listJob) func([]configv1.Release, []configv1.ConditionalUpdate) ([]configv1.Release, []configv1.ConditionalUpdate) {
	if !j.lists.risks.merged {
		return nil
	}
	return func(available []configv1.Release, conditional []configv1.ConditionalUpdate) ([]configv1.Release, []configv1.ConditionalUpdate) {
		sources := u.riskSources(j.own)
		if u.alerts != nil {
			sources = append([]graph.RiskSource{u.alerts}, sources...)
		}
		risks, err := graph.AggregateRisks(ctx, sources, j.query.version, graph.TargetVersions(available, conditional))
		u.log("some risks of the cluster are not known", err)
		if u.alerts != nil {
			u.log("the alerts could not be read: those read last count", u.alerts.Stale())
		}
		available, conditional, err = graph.MergeRisks(available, conditional, risks)
		u.log("some risks of the cluster could not be merged", err)
		return available, conditional
	}
}

// riskSources are the sources of risks in the cluster that also stand behind
// the condition Upgradeable.
func (u *Updater) riskSources(own string) []graph.RiskSource {
	return preconditions.Sources(preconditions.RiskOptions{Reader: u.o.API, OwnVersion: own, Deletions: u.s.tracker.PendingDeletions})
}

// acceptedRisks are the risks that a request accepts by name.
func acceptedRisks(cv *configv1.ClusterVersion, g gates) (names []string) {
	if u := cv.Spec.DesiredUpdate; g.acceptRisks && u != nil {
		for _, risk := range u.AcceptRisks {
			names = append(names, risk.Name)
		}
	}
	return names
}

// acceptedOf names the risks of an update to an image, where those that apply
// were all accepted; else none.
func (s *lists) acceptedOf(image string) []string {
	if s.Evaluation == nil || image == "" {
		return nil
	}
	for i := range s.Evaluation.Conditional {
		c := &s.Evaluation.Conditional[i]
		recommended := meta.FindStatusCondition(c.Conditions, graph.ConditionRecommended)
		if graph.SameDigest(c.Release.Image, image) && recommended != nil &&
			recommended.Status == metav1.ConditionTrue && recommended.Reason == "AllExposedRisksAccepted" {
			return c.RiskNames
		}
	}
	return nil
}
