package risk

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// RiskSource finds risks in the cluster itself, such as overrides or an alert
// that fires. Evaluation merges them with those of the graph. It must be as safe
// for concurrent use as its user needs it; [Aggregate] asks one source after the
// other.
type RiskSource interface {
	// Name identifies the source in errors.
	Name() string
	// Risks returns the risks that bear on updates to some of the versions. A
	// risk that it cannot judge is returned as one whose condition Applies is
	// Unknown; an error together with risks means that there may be more.
	Risks(ctx context.Context, versions []string) ([]configv1.ConditionalUpdateRisk, error)
}

// AlertSource returns the alerts that are active. It must be safe for concurrent
// use.
type AlertSource interface {
	// Firing returns the alerts that are pending or firing. The error explains why
	// they cannot be read.
	Firing(ctx context.Context) ([]clusterapi.Alert, error)
}
