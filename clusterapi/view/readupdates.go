package view

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// ReadSummary reads the ClusterVersion and returns what oc adm upgrade shows of it.
// The error is from reading it. It can be called concurrently.
func ReadSummary(ctx context.Context, r clusterapi.Reader) (*Summary, error) {
	cv, err := readVersion(ctx, r)
	if err != nil {
		return nil, err
	}
	return Summarize(cv)
}

// RecommendOptions are the options of [ReadRecommend]. The zero value works.
type RecommendOptions struct {
	// Alerts returns those that fire; nil means those of the reader (see
	// [clusterapi.AlertsOf]). An error, also that they were not collected, is an issue.
	Alerts func(context.Context) ([]clusterapi.Alert, error)
	// Prechecks follow the one about alerts. One that panics has failed. Nil adds
	// none.
	Prechecks []PrecheckFunc
	// Version and Accept are as those of [RecommendInput].
	Version string
	Accept  []string
}

// ReadRecommend reads the ClusterVersion, checks the alerts, and returns what oc adm
// upgrade recommend shows. Its errors are those of ctx, of
// reading the ClusterVersion and of [AssessRecommend]. It can be called concurrently,
// if the options can.
func ReadRecommend(ctx context.Context, r clusterapi.Reader, o RecommendOptions) (*Recommend, error) {
	cv, err := readVersion(ctx, r)
	if err != nil {
		return nil, err
	}
	alerts := o.Alerts
	if alerts == nil {
		alerts = func(ctx context.Context) ([]clusterapi.Alert, error) { return clusterapi.AlertsOf(ctx, r) }
	}
	checks := append([]PrecheckFunc{alertPrecheck(alerts)}, slices.Clone(o.Prechecks)...)
	found := runPrechecks(ctx, checks...)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return AssessRecommend(RecommendInput{ClusterVersion: cv, Prechecks: found, Version: o.Version, Accept: o.Accept})
}

func readVersion(ctx context.Context, r clusterapi.Reader) (*configv1.ClusterVersion, error) {
	cv, err := clusterapi.Read[configv1.ClusterVersion](ctx, r, clusterapi.Key("", "version"))
	if err != nil {
		return nil, fmt.Errorf("reading the ClusterVersion: %w", err)
	}
	return cv, nil
}
