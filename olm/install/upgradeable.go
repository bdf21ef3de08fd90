package install

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// Reasons of condition Upgradeable=False of the ClusterOperator
// operator-lifecycle-manager.
const (
	reasonIncompatibleOperators = "IncompatibleOperatorsInstalled"
	reasonErrorChecking         = "ErrorCheckingOperatorCompatibility"
	textUpdating                = "Waiting for updates to take effect"
	textChecking                = "Encountered errors while checking compatibility with the next minor version of OpenShift: "
)

// UpgradeableCondition returns condition Upgradeable of the ClusterOperator
// operator-lifecycle-manager, without a time of transition. c is the result of
// [olm.CheckNext], err why it could not be determined; updating is true while OLM itself
// is being updated.
func UpgradeableCondition(c *olm.Compatibility, err error, updating bool) configv1.ClusterOperatorStatusCondition {
	out := configv1.ClusterOperatorStatusCondition{Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse}
	switch {
	case updating:
		out.Message = textUpdating
	case err != nil:
		out.Reason = reasonErrorChecking
		out.Message = textChecking + err.Error()
	case c != nil && len(c.Blocking) > 0:
		out.Reason = reasonIncompatibleOperators
		out.Message = c.Message()
	default:
		out.Status = configv1.ConditionTrue
	}
	out.Message = bounded.Text(out.Message, maxMessage)
	return out
}

// ReadCompatibility reads the installed operators of all namespaces and reports
// which of them keep a cluster of this release from its next minor one. The release
// is the one of the running OLM, not the target of an update. The error is about a
// release that is not a version, or the reader's.
func ReadCompatibility(ctx context.Context, r clusterapi.Reader, release string) (*olm.Compatibility, error) {
	v, err := olm.ParseOpenShiftVersion(release)
	if err != nil {
		return nil, err
	}
	csvs, err := clusterapi.List[olmapi.ClusterServiceVersion](ctx, r, clusterapi.ListOptions{Labels: originals()})
	if err != nil {
		return nil, fmt.Errorf("clusterserviceversions: %w", err)
	}
	return olm.CheckNext(v, csvs), nil
}
