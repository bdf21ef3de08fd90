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

// UpgradeableInput is what condition Upgradeable follows from.
type UpgradeableInput struct {
	// Updating is true while OLM itself is being updated.
	Updating bool
	// Err is why the compatibility could not be determined.
	Err error
	// Compatibility is the result of [olm.CheckNext]; nil with Err.
	Compatibility *olm.Compatibility
}

// UpgradeableCondition returns condition Upgradeable of the ClusterOperator
// operator-lifecycle-manager, without a time of transition.
func UpgradeableCondition(in UpgradeableInput) configv1.ClusterOperatorStatusCondition {
	c := configv1.ClusterOperatorStatusCondition{Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse}
	switch {
	case in.Updating:
		c.Message = textUpdating
	case in.Err != nil:
		c.Reason = reasonErrorChecking
		c.Message = textChecking + in.Err.Error()
	case in.Compatibility != nil && len(in.Compatibility.Blocking) > 0:
		c.Reason = reasonIncompatibleOperators
		c.Message = in.Compatibility.Message()
	default:
		c.Status = configv1.ConditionTrue
	}
	c.Message = bounded.Text(c.Message, maxMessage)
	return c
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
