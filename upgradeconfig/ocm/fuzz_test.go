package ocm_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm/ocmtest"
)

var integer = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

// FuzzPolicies: a list that is anything either fails, or says in so many words
// what comes out of it; and what comes out of it makes an UpgradeConfig.
func FuzzPolicies(f *testing.F) {
	f.Add([]byte(`{"kind":"UpgradePolicyList","page":1,"size":1,"total":1,"items":[{"kind":"UpgradePolicy","id":"p-7","schedule_type":"automatic","upgrade_type":"OSD","version":"4.17.4","next_run":"2031-02-04T03:00:00Z","capacity_reservation":true}]}`))
	f.Add([]byte(`{"kind":"UpgradePolicyList","total":0,"items":[]}`))
	f.Add([]byte(`{"total":0,"items":[]}`))
	f.Add([]byte("{\"total\":0,\"x\":\"\xff\"}"))
	f.Add([]byte(`{"total":2,"items":[{"id":"a","version":"4.17.4","next_run":null},{"id":"b","upgrade_type":"ADDON"}]}`))
	f.Add([]byte(`{"total":1,"items":[{"id":"a","state":{"value":"scheduled"},"version":"4.17.4-rc.1","next_run":"2031-02-04T03:00:00+05:30"}]}`))
	var body []byte
	answer := func(r *http.Request) string {
		switch {
		case strings.HasSuffix(r.URL.Path, "/upgrade_policies"):
			return string(body)
		case strings.HasSuffix(r.URL.Path, "/state"):
			return `{"value":"scheduled"}`
		}
		return `{"total":1,"items":[{"id":"1a2b","version":{"channel_group":"fast"}}]}`
	}
	provider := newProvider(f, nil, ocm.Options{NoRetry: true, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, ContentLength: -1, Body: io.NopCloser(strings.NewReader(answer(r)))}, nil
	})})
	f.Fuzz(func(t *testing.T, data []byte) {
		body = data
		got, err := provider.Policies(t.Context())
		if err != nil {
			if got != nil || !errors.Is(err, ocm.ErrRetrievingPolicies) && !errors.Is(err, ocm.ErrProcessingPolicies) && !strings.HasPrefix(err.Error(), "can't pull upgrade policy state: ") {
				t.Fatalf("%v, %v", got, err)
			}
			return
		}
		list := map[string]json.RawMessage{} // case-sensitive, as a struct is not
		if err := json.Unmarshal(data, &list); err != nil {
			t.Fatalf("%v from what is not a list: %v", got, err)
		}
		var items []map[string]json.RawMessage
		if raw := list["items"]; raw != nil {
			if err := json.Unmarshal(raw, &items); err != nil {
				t.Fatalf("%v from what are not items: %v", got, err)
			}
		}
		if !utf8.Valid(data) {
			t.Fatalf("%v from what is not UTF-8", got)
		}
		if kind := text(list["kind"]); kind != "UpgradePolicyList" && (kind != "" || len(items) == 0) {
			t.Fatalf("%v from a list of kind %q", got, kind)
		}
		total := string(list["total"])
		if !integer.MatchString(total) || (total == "0") != (len(items) == 0) {
			t.Fatalf("%v from %d items with total %s", got, len(items), total)
		}
		if len(got) == 0 {
			for _, item := range items {
				if typ := text(item["upgrade_type"]); typ != "ADDON" && typ != "NodePool" {
					t.Fatalf("policy %v was lost", item)
				}
			}
		}
		for i, p := range got {
			if _, err := semver.StrictNewVersion(p.Spec.Desired.Version); err != nil {
				t.Errorf("%+v: %v", p, err)
			}
			at, err := time.Parse(time.RFC3339, p.Spec.UpgradeAt)
			if err != nil || !at.Equal(p.NextRun.Truncate(time.Second)) || p.Spec.Desired.Channel == "" || p.ID == "" {
				t.Errorf("%+v: %v", p, err)
			}
			if i > 0 && p.NextRun.Before(got[i-1].NextRun) {
				t.Errorf("policy %d is before the one before", i)
			}
		}
	})
}

// text is the text that raw is, or none.
func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // null and nothing are none, too
	return s
}

// FuzzClusterAndState: likewise for the two other answers.
func FuzzClusterAndState(f *testing.F) {
	f.Add([]byte(`{"total":1,"items":[{"id":"1a2b","version":{"channel_group":"fast"},"node_drain_grace_period":{"value":45.5,"unit":"minutes"}}]}`), []byte(`{"kind":"UpgradePolicyState","value":"scheduled","description":"x"}`))
	f.Add([]byte(`{"total":1,"items":[{"id":"a/../b","node_drain_grace_period":{"value":1e400}}]}`), []byte(`{"value":"pending"}`))
	f.Add([]byte(`{"total":2}`), []byte(`{}`))
	var cluster, state []byte
	answer := func(r *http.Request) []byte {
		switch {
		case strings.HasSuffix(r.URL.Path, "/upgrade_policies"):
			return []byte(`{"total":1,"items":[{"id":"p-7","version":"4.17.4","next_run":"2031-02-04T03:00:00Z"}]}`)
		case strings.HasSuffix(r.URL.Path, "/state"):
			return state
		}
		return cluster
	}
	provider := newProvider(f, nil, ocm.Options{NoRetry: true, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
		if !strings.HasPrefix(r.URL.EscapedPath(), listPath) {
			panic("a request left the API: " + r.URL.String())
		}
		return &http.Response{StatusCode: 200, Header: http.Header{}, ContentLength: -1, Body: io.NopCloser(bytes.NewReader(answer(r)))}, nil
	})})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		cluster, state = a, b
		got, err := provider.Policies(t.Context())
		if (err != nil) != (got == nil) && err != nil {
			t.Fatalf("%v, %v", got, err)
		}
		if err != nil {
			return
		}
		var list, said map[string]json.RawMessage
		var items []map[string]json.RawMessage
		var value *string
		if json.Unmarshal(a, &list) != nil || json.Unmarshal(list["items"], &items) != nil || len(items) != 1 || text(items[0]["id"]) == "" {
			t.Fatalf("%v from no cluster", got)
		}
		if json.Unmarshal(b, &said) != nil || json.Unmarshal(said["value"], &value) != nil || value == nil {
			t.Fatalf("%v from no state", got)
		}
		for _, p := range got {
			if p.Spec.PDBForceDrainTimeout < 0 || p.State != *value && !strings.Contains(p.State, "(redacted)") {
				t.Errorf("%+v", p)
			}
		}
		if counts, _, _ := (upgradeconfig.Policy{State: *value, Spec: p7Spec}).Counts(); counts != (len(got) == 1) {
			t.Errorf("%v in state %q", got, *value)
		}
	})
}

// FuzzPullSecret: no content of the secret panics, is told, or goes out
// unless it is a token.
func FuzzPullSecret(f *testing.F) {
	f.Add([]byte(`{"auths":{"cloud.openshift.com":{"auth":"` + token + `"}}}`))
	f.Add([]byte(`{"auths":{"cloud.openshift.com":{"auth":"a:b"}}}`))
	f.Add([]byte(`{"auths":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		cluster := store(t, ocmtest.PullSecret(data), ocmtest.Objects(uuid, token)[1])
		var sent string
		p, err := ocm.New(cluster, ocm.Options{Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			sent = r.Header.Get("Authorization")
			return nil, errors.New("out of order")
		})})
		checktest.OK(t, err)
		if _, err = p.Policies(t.Context()); err == nil || errors.Is(err, ocm.ErrAccessToken) == (sent != "") {
			t.Fatalf("%v after %q", err, sent)
		}
		if sent != "" && !regexp.MustCompile(`^AccessToken `+uuid+`:[A-Za-z0-9+/]+={0,2}$`).MatchString(sent) {
			t.Errorf("%q was sent", sent)
		}
	})
}
