package clusterversion

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// RollbackRequest asks for the release that the cluster ran before, as oc adm
// upgrade rollback does: a lower patch version of the same minor version. Risks that
// the cluster accepted are accepted no more. It is plain data.
type RollbackRequest struct{}

func (r RollbackRequest) failed() string { return "Unable to rollback" }
func (r RollbackRequest) replaces() bool { return true }

// Edit implements [Request].
func (r RollbackRequest) Edit(cv *configv1.ClusterVersion) (Answer, error) {
	var out Answer
	if cv == nil {
		return out, noVersion("no", "OpenShift version 4")
	}
	unsupported := func(format string, args ...any) error { return refuse(RefusedRollback, "", format, args...) }
	desired := cv.Status.Desired
	current, err := openshift.ParseVersion(desired.Version)
	if err != nil {
		return out, unsupported("invalid ClusterVersion status.desired.version: %v", err)
	}
	var previous *configv1.UpdateHistory
	for i := range cv.Status.History {
		if h := &cv.Status.History[i]; h.Version != desired.Version || h.Image != desired.Image {
			previous = h
			break
		}
	}
	if previous == nil {
		return out, unsupported("no previous version found in ClusterVersion's status.history besides the current %s (%s).", desired.Version, desired.Image)
	}
	before, err := openshift.ParseVersion(previous.Version)
	progressing := openshift.FindCondition(cv.Status.Conditions, configv1.OperatorProgressing)
	switch {
	case err != nil:
		return out, unsupported("previous version %q invalid SemVer: %v", previous.Version, err)
	case !before.LessThan(current):
		return out, unsupported("previous version %s (%s) is greater than or equal to current version %s (%s).  Use 'oc adm upgrade ...' to update, and not this rollback command.", previous.Version, previous.Image, desired.Version, desired.Image)
	case before.Major() != current.Major() || before.Minor() != current.Minor():
		return out, unsupported("%s is less than the current target %s and matches the cluster's previous version, but rollbacks that change major or minor versions are not recommended.", previous.Version, desired.Version)
	case progressing == nil:
		return out, refuse(RefusedClusterState, "", "no current Progressing info, see `oc describe clusterversion` for more details.\n")
	case progressing.Status != configv1.ConditionFalse:
		return out, refuse(RefusedClusterState, "", "unable to rollback while an update is Progressing=%s: %s: %s.", progressing.Status, progressing.Reason, progressing.Message)
	}
	out.ClusterVersion = cv.DeepCopy()
	SetDesired(out.ClusterVersion, configv1.Update{Version: previous.Version, Image: previous.Image})
	out.printf("Requested rollback from %s to %s", desired.Version, previous.Version)
	return out, nil
}
