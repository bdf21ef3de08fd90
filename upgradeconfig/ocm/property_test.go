package ocm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
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
			if rapid.Bool().Draw(t, "automatic") {
				list[i].Schedule, u.Automatic = "0 3 * * 2", true
			}
			all = append(all, u)
		}
		s := newServer(list...)
		s.PageSize = rapid.IntRange(1, 50).Draw(t, "page")
		c, _ := s.Cluster(clusterID)
		c.Hosted = rapid.Bool().Draw(t, "hosted")
		s.SetCluster(c)
		p := must(ocm.New(cluster, ocm.Options{Kind: ocm.Auto, Base: ocmtest.Transport(s)}))
		got, err := p.Policies(t.Context())
		want, wantErr := upgradeconfig.Select(all)
		if errors.Is(err, upgradeconfig.ErrNoVersion) != (wantErr != nil && want == nil) {
			t.Fatalf("error %v, and %v was expected", err, wantErr)
		}
		checktest.Same(t, ids(want), ids(got))
		for _, r := range s.Requests() {
			checktest.Equal(t, http.MethodGet, r.Method, "a read made %s", r)
		}
		again, againErr := p.Policies(t.Context())
		if (err == nil) != (againErr == nil) || cmp.Diff(got, again) != "" {
			t.Error("another time, another answer")
		}
	})
}

// TestDamagedAnswers: an answer that lost a value, or has another one of another
// type in its place, is an error, or makes the policy that it made before but for
// what may be left out. It never reads as "no policy" or as another release.
func TestDamagedAnswers(t *testing.T) {
	answers := []string{
		`{"kind":"ClusterList","page":1,"size":1,"total":1,"items":[{"kind":"Cluster","id":"1a2b","external_id":"` + uuid + `","version":{"id":"openshift-v4.17.3","channel_group":"fast"},"node_drain_grace_period":{"value":45,"unit":"minutes"}}]}`,
		`{"kind":"UpgradePolicyList","page":1,"size":1,"total":1,"items":[{"kind":"UpgradePolicy","id":"p-7","cluster_id":"1a2b","schedule_type":"manual","upgrade_type":"OSD","version":"4.17.4","next_run":"2031-02-04T03:00:00Z","enable_minor_version_upgrades":false,"capacity_reservation":true}]}`,
		`{"kind":"UpgradePolicyState","value":"started","description":"x"}`,
	}
	var bodies [3]string
	provider := newProvider(t, nil, ocm.Options{NoRetry: true, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
		i := 0
		switch {
		case strings.HasSuffix(r.URL.Path, "/upgrade_policies"):
			i = 1
		case strings.HasSuffix(r.URL.Path, "/state"):
			i = 2
		}
		return &http.Response{StatusCode: 200, Header: http.Header{}, ContentLength: -1, Body: io.NopCloser(strings.NewReader(bodies[i]))}, nil
	})})
	read, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		copy(bodies[:], answers[:])
		i := rapid.IntRange(0, 2).Draw(t, "answer")
		bodies[i] = damaged(t, answers[i])
		got, err := provider.Policies(t.Context())
		if err != nil {
			refused++
			return
		}
		read++
		if len(got) != 1 {
			t.Fatalf("no policy from %s", bodies[i])
		}
		want := p7Spec
		want.PDBForceDrainTimeout = got[0].Spec.PDBForceDrainTimeout // may be left out
		if diff := cmp.Diff(want, got[0].Spec); diff != "" || want.PDBForceDrainTimeout != 0 && want.PDBForceDrainTimeout != 45 {
			t.Errorf("from %s: %s", bodies[i], diff)
		}
	})
	if read == 0 || refused == 0 {
		t.Errorf("%d answers read, %d refused", read, refused)
	}
}

// damaged returns a JSON document of which one value is gone, null, or of another
// type.
func damaged(t *rapid.T, text string) string {
	var document any
	checktest.OK(t, json.Unmarshal([]byte(text), &document))
	at := document
	for {
		var put func(v any)
		var value any
		switch container := at.(type) {
		case map[string]any:
			name := rapid.SampledFrom(slices.Sorted(maps.Keys(container))).Draw(t, "key")
			value = container[name]
			put = func(v any) {
				if container[name] = v; v == "gone" {
					delete(container, name)
				}
			}
		case []any:
			value, put = container[0], func(v any) { container[0] = v }
		}
		_, scalar := value.(string)
		switch value.(type) {
		case map[string]any, []any:
		default:
			scalar = true
		}
		if !scalar && rapid.Bool().Draw(t, "deeper") {
			at = value
			continue
		}
		others := []any{"gone", nil, map[string]any{}, []any{}, true}
		if _, ok := value.(bool); ok {
			others = others[:4]
		}
		put(rapid.SampledFrom(others).Draw(t, "instead"))
		break
	}
	data := must(json.Marshal(document))
	return string(data)
}
