package remedy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/remedy"
)

const multi = configv1.ClusterVersionArchitectureMulti

func versionOf(t testing.TB, r clusterapi.Reader) *configv1.ClusterVersion {
	t.Helper()
	return checktest.Get(clusterapi.Get[configv1.ClusterVersion](t.Context(), r, clusterapi.Key("", "version")))(t)
}

// migrated makes the cluster run the release for several architectures.
func migrated(t testing.TB, api clusterapi.ClusterAPI, complete bool) {
	t.Helper()
	checktest.OK(t, checktest.Err(
		clusterapi.Modify(t.Context(), api, clusterapi.Key("", "version"), clusterapi.ModifyOptions{Status: true},
			func(cv *configv1.ClusterVersion) error {
				state := configv1.PartialUpdate
				if complete {
					state = configv1.CompletedUpdate
				}
				cv.Status.Desired = configv1.Release{Version: cv.Status.Desired.Version, Image: "M", Architecture: multi}
				cv.Status.History = append([]configv1.UpdateHistory{{Version: cv.Status.Desired.Version, Image: "M", State: state}}, cv.Status.History...)
				return nil
			})))
}

func TestMultiArch(t *testing.T) {
	want := &configv1.Update{Architecture: multi, Version: "4.18.5"}
	eachFault(t, func(t *testing.T, f *faults) {
		api := forkOf(t, f, clusterVersion("4.18.5"), infrastructure("AWS"))
		var m remedy.MultiArch
		var advice *remedy.MultiArchAdvice
		again(t, func() (err error) { advice, err = m.Start(t.Context(), api); return err })
		checktest.FailIf(t, advice.Migrated || advice.Decision.Blocked || len(advice.Next) < 4, "%+v", advice)
		checktest.Same(t, want, versionOf(t, api).Spec.DesiredUpdate)
		before := versionOf(t, api).ResourceVersion
		if _, err := m.Start(t.Context(), api); err != nil || versionOf(t, api).ResourceVersion != before {
			t.Errorf("asked again: %v", err)
		}
		f.at = 0
		migrated(t, api, false)
		if advice, err := m.Start(t.Context(), api); err != nil || !advice.Migrated {
			t.Errorf("%+v, %v", advice, err)
		}
		// The check lets releases for several architectures pass from now on.
		if got := check(t, api, "MultiArch", configv1.Release{Version: "4.18.6", Architecture: multi}, nil); got.State != preconditions.NotApplicable {
			t.Errorf("%+v", got)
		}
	})
}

func TestMultiArchBlocked(t *testing.T) {
	cv := clusterVersion("4.12.9")
	api := forkOf(t, nil, cv, infrastructure("AWS"))
	blocked := new(remedy.BlockedError)
	advice, err := remedy.MultiArch{}.Start(t.Context(), api)
	if !errors.As(err, &blocked) || !strings.Contains(err.Error(), "MultiNotSupported") || advice == nil || versionOf(t, api).Spec.DesiredUpdate != nil {
		t.Errorf("%v", err)
	}
	allow := remedy.MultiArch{Policy: preconditions.Policy{Bypasses: []preconditions.Bypass{{Check: "MultiArch", By: "ann", Why: "a trial"}}}}
	if _, err := allow.Start(t.Context(), api); err != nil || versionOf(t, api).Spec.DesiredUpdate == nil {
		t.Errorf("bypassed: %v", err)
	}
	checktest.Fails(t, checktest.Err(
		(remedy.MultiArch{}).Start(t.Context(), memory.NewOpenShift(memory.Options{}))), "no ClusterVersion, no error")
}
