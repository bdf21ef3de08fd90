package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// operators lists the installed operators that keep a recorded cluster from the
// next minor release.
func operators(ctx context.Context, out io.Writer, args []string) error {
	cluster, err := dump.OpenFile(ctx, args[0], dump.Options{})
	if err != nil {
		return err
	}
	cv, err := clusterapi.Get[configv1.ClusterVersion](ctx, cluster, clusterapi.Key("", "version"))
	if err != nil {
		return err
	}
	release, err := olm.ParseOpenShiftVersion(cv.Status.Desired.Version)
	if err != nil {
		return err
	}
	csvs, err := clusterapi.List[olmapi.ClusterServiceVersion](ctx, cluster, clusterapi.ListOptions{})
	if errors.Is(err, clusterapi.ErrNotCollected) {
		fmt.Fprintln(out, "There may be more:", err)
	} else if err != nil {
		return err
	}
	for _, b := range olm.CheckNext(release, csvs).Blocking {
		fmt.Fprintln(out, b)
	}
	return nil
}
