package ocm_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm/ocmtest"
)

// TestOrderProperty: whatever OCM has, in pages of any size and in either kind
// of API, comes out as Select has it, and the same each time.
func TestOrderProperty(t *testing.T) {
	state := rapid.SampledFrom([]string{"scheduled", "started", "delayed", "failed", "pending", "completed", "cancelled", "Pending", "other"})
	minute := rapid.IntRange(0, 3)
	version := rapid.SampledFrom([]string{"4.17.4", "4.18.0-rc.1", ""})
	cluster := newCluster(t)
	rapid.Check(t, func(t *rapid.T) {
		var list []ocmtest.Policy
		var all []upgradeconfig.Policy
		for i := range rapid.IntRange(0, 40).Draw(t, "policies") {
			at := time.Date(2031, 1, 1, 0, minute.Draw(t, "minute"), 0, 0, time.UTC)
			p := pol(fmt.Sprintf("p-%d", i), version.Draw(t, "version"), at.Format(time.RFC3339), state.Draw(t, "state"))
			list = append(list, p)
			u := upgradeconfig.Policy{ID: p.ID, State: p.State, NextRun: at}
			u.Spec.Desired.Version = p.Version
			all = append(all, u)
		}
		s := newServer(list...)
		s.PageSize = rapid.IntRange(1, 50).Draw(t, "page")
		c, _ := s.Cluster(clusterID)
		c.Hosted = rapid.Bool().Draw(t, "hosted")
		s.SetCluster(c)
		p, err := ocm.New(cluster, ocm.Options{Kind: ocm.Auto, Base: ocmtest.Transport(s)})
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Policies(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ids(upgradeconfig.Select(all)), ids(got)); diff != "" {
			t.Error(diff)
		}
		for _, r := range s.Requests() {
			if r.Method != http.MethodGet {
				t.Errorf("a read made %s", r)
			}
		}
		again, err := p.Policies(t.Context())
		if err != nil || cmp.Diff(got, again) != "" {
			t.Error("another time, another answer")
		}
	})
}
