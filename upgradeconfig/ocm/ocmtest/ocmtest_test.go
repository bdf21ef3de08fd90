package ocmtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm/ocmtest"
)

const (
	uuid     = "7f3c1a52-4a57-4a0e-9d0b-0f1b6f6f2c11"
	clusters = "/api/clusters_mgmt/v1/clusters"
)

func newServer() *ocmtest.Server {
	s := &ocmtest.Server{}
	off := false
	s.SetCluster(ocmtest.Cluster{
		ID: "1a2b", ExternalID: uuid, Version: "4.17.3", ChannelGroup: "fast", DrainMinutes: 45,
		Policies: []ocmtest.Policy{
			{ID: "p-7", Version: "4.17.4", NextRun: "2031-02-04T03:00:00Z", Schedule: "0 3 * * 2", CapacityReservation: &off},
			{ID: "p-8", State: "pending", Description: "not yet", UpgradeType: "ADDON", Extra: map[string]any{"next_run": nil}},
		},
	})
	s.SetCluster(ocmtest.Cluster{ID: "hcp", ExternalID: "0" + uuid[1:], Hosted: true, Policies: []ocmtest.Policy{{ID: "p-9", Version: "4.17.4"}}})
	return s
}

// ask sends a request and returns the status and the body, as JSON if it is.
func ask(t *testing.T, s http.Handler, method, path, body string, header ...string) (int, any) {
	t.Helper()
	r := checktest.Get(http.NewRequestWithContext(t.Context(), method, "https://ocm.example"+path,
		strings.NewReader(body)))(t)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp := checktest.Must(ocmtest.Transport(s).RoundTrip(r))
	defer resp.Body.Close()
	data := checktest.Must(io.ReadAll(resp.Body))
	var d any
	if err := json.Unmarshal(data, &d); err != nil {
		return resp.StatusCode, string(data)
	}
	return resp.StatusCode, d
}

func TestDocuments(t *testing.T) {
	type doc = map[string]any
	cluster := doc{
		"kind": "Cluster", "id": "1a2b", "external_id": uuid, "hypershift": doc{"enabled": false},
		"version":                 doc{"id": "openshift-v4.17.3", "channel_group": "fast"},
		"node_drain_grace_period": doc{"value": 45.0, "unit": "minutes"},
	}
	p7 := doc{
		"kind": "UpgradePolicy", "id": "p-7", "cluster_id": "1a2b", "schedule_type": "automatic", "schedule": "0 3 * * 2", "upgrade_type": "OSD",
		"version": "4.17.4", "next_run": "2031-02-04T03:00:00Z", "enable_minor_version_upgrades": false, "capacity_reservation": false,
	}
	p8 := doc{
		"kind": "UpgradePolicy", "id": "p-8", "cluster_id": "1a2b", "schedule_type": "manual", "upgrade_type": "ADDON",
		"next_run": nil, "enable_minor_version_upgrades": false,
	}
	scheduled := doc{"kind": "UpgradePolicyState", "value": "scheduled", "description": ""}
	p9 := doc{
		"kind": "ControlPlaneUpgradePolicy", "id": "p-9", "cluster_id": "hcp", "schedule_type": "manual", "upgrade_type": "ControlPlane",
		"version": "4.17.4", "enable_minor_version_upgrades": false, "state": scheduled,
	}
	list := func(kind string, page, total float64, items ...any) doc {
		return doc{"kind": kind, "page": page, "size": float64(len(items)), "total": total, "items": append([]any{}, items...)}
	}
	for path, want := range map[string]doc{
		"/":                cluster,
		clusters + "/1a2b": cluster,
		clusters + "?search=external_id+%3D+%27" + uuid + "%27&size=1": list("ClusterList", 1, 1, cluster),
		clusters + "?search=external_id='x'":                           list("ClusterList", 1, 0),
		clusters + "/1a2b/upgrade_policies":                            list("UpgradePolicyList", 1, 2, p7, p8),
		clusters + "/1a2b/upgrade_policies?page=2&size=1":              list("UpgradePolicyList", 2, 2, p8),
		clusters + "/1a2b/upgrade_policies?page=3&size=1":              list("UpgradePolicyList", 3, 2),
		clusters + "/1a2b/upgrade_policies/p-8":                        p8,
		clusters + "/1a2b/upgrade_policies/p-7/state":                  scheduled,
		clusters + "/1a2b/upgrade_policies/p-8/state":                  {"kind": "UpgradePolicyState", "value": "pending", "description": "not yet"},
		clusters + "/hcp/control_plane/upgrade_policies":               list("ControlPlaneUpgradePolicyList", 1, 1, p9),
		clusters + "/hcp/control_plane/upgrade_policies/p-9":           p9,
	} {
		status, got := ask(t, newServer(), "GET", path, "")
		if diff := cmp.Diff(any(want), got); diff != "" || status != 200 {
			t.Errorf("%s: %d: %s", path, status, diff)
		}
	}
}

func TestProblems(t *testing.T) {
	for _, tt := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/api", "", 404},
		{"POST", "/", "", 405},
		{"GET", clusters + "?search=id+like+x", "", 400},
		{"GET", clusters + "?page=0", "", 400},
		{"GET", clusters + "?size=many", "", 400},
		{"DELETE", clusters, "", 405},
		{"DELETE", clusters + "/1a2b", "", 405},
		{"GET", clusters + "/other", "", 404},
		{"GET", clusters + "/1a2b/addons", "", 404},
		{"GET", clusters + "/1a2b/control_plane", "", 404},
		{"GET", clusters + "/1a2b/control_plane/upgrade_policies", "", 404},
		{"GET", clusters + "/hcp/upgrade_policies", "", 404},
		{"POST", clusters + "/1a2b/upgrade_policies", "{}", 405},
		{"GET", clusters + "/1a2b/upgrade_policies/p-1", "", 404},
		{"GET", clusters + "/1a2b/upgrade_policies/p-7/x", "", 404},
		{"GET", clusters + "/hcp/control_plane/upgrade_policies/p-9/state", "", 404},
		{"DELETE", clusters + "/1a2b/upgrade_policies/p-7", "", 405},
		{"PATCH", clusters + "/1a2b/upgrade_policies/p-7/state", "x", 400},
		{"PATCH", clusters + "/1a2b/upgrade_policies/p-7/state", `{"value":"done"}`, 400},
		{"PATCH", clusters + "/hcp/control_plane/upgrade_policies/p-9", "x", 400},
		{"GET", "/api/service_logs/v1/cluster_logs", "", 405},
		{"POST", "/api/service_logs/v1/cluster_logs", "x", 400},
		{"POST", "/api/service_logs/v1/cluster_logs", `{"cluster_id":"other"}`, 404},
	} {
		status, got := ask(t, newServer(), tt.method, tt.path, tt.body)
		d, _ := got.(map[string]any)
		if status != tt.status || d["kind"] != "Error" || d["id"] != fmt.Sprint(tt.status) || d["code"] != fmt.Sprintf("CLUSTERS-MGMT-%d", tt.status) || d["reason"] == "" {
			t.Errorf("%s %s: %d, %v", tt.method, tt.path, status, got)
		}
	}
}

func TestChanges(t *testing.T) {
	s := newServer()
	for path, id := range map[string]string{clusters + "/1a2b/upgrade_policies/p-7/state": "1a2b p-7", clusters + "/hcp/control_plane/upgrade_policies/p-9": "hcp p-9"} {
		body := `{"kind":"UpgradePolicyState","value":"started","description":"on its way"}`
		if strings.HasSuffix(path, "p-9") {
			body = `{"state":` + body + `}`
		}
		status, got := ask(t, s, "PATCH", path, body)
		cluster, policy, _ := strings.Cut(id, " ")
		p, ok := s.Policy(cluster, policy)
		if status != 200 || !ok || p.State != "started" || p.Description != "on its way" {
			t.Errorf("%s: %d %v, %+v", path, status, got, p)
		}
	}
	status, got := ask(t, s, "POST", "/api/service_logs/v1/cluster_logs", `{"cluster_id":"1a2b","summary":"hello","doc_references":["x"]}`)
	want := []ocmtest.ServiceLog{{ClusterID: "1a2b", Summary: "hello", DocReferences: []string{"x"}}}
	if diff := cmp.Diff(want, s.ServiceLogs()); status != 201 || diff != "" {
		t.Errorf("%d %v: %s", status, got, diff)
	}

	// Copies are copies.
	c, _ := s.Cluster("1a2b")
	*c.Policies[0].CapacityReservation, c.Policies[1].Extra["next_run"], c.Policies[1].ID = true, "x", "other"
	if p, _ := s.Policy("1a2b", "p-7"); *p.CapacityReservation {
		t.Error("a copy is shared")
	}
	if p, ok := s.Policy("1a2b", "p-8"); !ok || p.Extra["next_run"] != nil {
		t.Error("a copy is shared")
	}

	if s.SetPolicy("other", ocmtest.Policy{ID: "x"}) || s.RemovePolicy("other", "x") {
		t.Error("a cluster that does not exist")
	}
	if !s.SetPolicy("1a2b", ocmtest.Policy{ID: "p-10"}) || !s.SetPolicy("1a2b", ocmtest.Policy{ID: "p-7", Version: "4.17.9"}) || !s.RemovePolicy("1a2b", "p-8") {
		t.Error("a cluster that exists")
	}
	c, _ = s.Cluster("1a2b")
	if len(c.Policies) != 2 || c.Policies[0].Version != "4.17.9" || c.Policies[1].ID != "p-10" {
		t.Errorf("%+v", c.Policies)
	}
	s.Forget()
	if len(s.Requests()) != 0 || len(s.ServiceLogs()) != 0 {
		t.Error("not forgotten")
	}
	if status, _ := ask(t, &ocmtest.Server{}, "GET", "/", ""); status != 404 {
		t.Errorf("%d from an agent without a cluster", status)
	}
}

func TestToken(t *testing.T) {
	s := newServer()
	s.Token = "dG9rZW4="
	for header, want := range map[string]int{
		"AccessToken " + uuid + ":dG9rZW4=": 200, "AccessToken other:dG9rZW4=": 401, "AccessToken " + uuid + ":eA==": 401, "Bearer dG9rZW4=": 401, "": 401,
	} {
		if status, _ := ask(t, s, "GET", clusters, "", "Authorization", header); status != want {
			t.Errorf("%q: %d", header, status)
		}
	}
	for _, r := range s.Requests() {
		if strings.Contains(fmt.Sprint(r), "dG9rZW4=") {
			t.Errorf("a token is kept: %+v", r)
		}
	}
}

func TestFaults(t *testing.T) {
	state := clusters + "/1a2b/upgrade_policies/p-7/state"
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.Fail(
			ocmtest.Fault{Method: "PATCH", Status: 500, Late: true},
			ocmtest.Fault{Path: "/state", Skip: 1, Times: 2, Status: 503, Header: http.Header{"retry-after": {"7"}}},
			ocmtest.Fault{Path: "/state", Status: 404, Empty: true},
			ocmtest.Fault{Path: "/state", Body: "{}"},
			ocmtest.Fault{Path: "/state", Delay: time.Minute},
			ocmtest.Fault{Path: "/state", Stall: time.Minute},
			ocmtest.Fault{Path: "/state", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(418) })},
		)
		if status, _ := ask(t, s, "PATCH", state, `{"value":"started"}`); status != 500 {
			t.Error(status)
		}
		if p, _ := s.Policy("1a2b", "p-7"); p.State != "started" {
			t.Errorf("%+v", p)
		}
		for i, want := range []struct {
			status int
			empty  bool
			wait   time.Duration
		}{{404, true, 0}, {503, false, 0}, {503, false, 0}, {200, false, 0}, {200, false, time.Minute}, {200, false, time.Minute}, {418, true, 0}, {200, false, 0}} {
			start := time.Now()
			status, body := ask(t, s, "GET", state, "")
			if status != want.status || (body == "") != want.empty || time.Since(start) != want.wait {
				t.Errorf("%d: %d %v after %s", i, status, body, time.Since(start))
			}
		}
	})
}

// TestTransport: it fails as a network does.
func TestTransport(t *testing.T) {
	get := func(ctx context.Context, h http.HandlerFunc) (string, error) {
		r, _ := http.NewRequestWithContext(ctx, "GET", "http://ocm.example/x?y=z", nil)
		resp, err := ocmtest.Transport(h).RoundTrip(r)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return fmt.Sprintf("%s %d %s", resp.Status, resp.ContentLength, body), err
	}
	slow := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	slowBody := func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "half")
		<-r.Context().Done()
	}
	for _, tt := range []struct {
		name string
		h    http.HandlerFunc
		want string
		err  error
	}{
		{"plain", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "2")
			w.WriteHeader(201)
			io.WriteString(w, "hi")
			w.WriteHeader(500)
		}, "201 Created 2 hi", nil},
		{"nothing", func(http.ResponseWriter, *http.Request) {}, "200 OK -1 ", nil},
		{"request", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host, r.RequestURI) }, "200 OK -1 ocm.example/x?y=z", nil},
		{"no content", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204); io.WriteString(w, "hi") }, "204 No Content -1 ", nil},
		{"abort", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, "", io.EOF},
		{"panic", func(w http.ResponseWriter, r *http.Request) { panic("oh") }, "", io.EOF},
		{"abort in the body", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		}, "200 OK -1 half", io.ErrUnexpectedEOF},
		{"cancelled", slow, "", context.DeadlineExceeded},
		{"cancelled in the body", slowBody, "200 OK -1 half", context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) { // which fails if a goroutine stays
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			got, err := get(ctx, tt.h)
			if got != tt.want || !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Errorf("%s: %q, %v", tt.name, got, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	checktest.ErrorIs(t, context.Canceled, checktest.Err(
		get(ctx, func(http.ResponseWriter, *http.Request) { t.Error("called") })))
	// A client that closes early lets the handler go.
	synctest.Test(t, func(t *testing.T) {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://ocm.example/", nil)
		resp := checktest.Must(ocmtest.Transport(http.HandlerFunc(slowBody)).RoundTrip(r))
		resp.Body.Close()
	})
}

// TestServed over a real connection, too.
func TestServed(t *testing.T) {
	s := newServer()
	s.Fail(ocmtest.Fault{Cut: true}, ocmtest.Fault{Abort: true, Always: true})
	server := httptest.NewServer(s)
	defer server.Close()
	resp := checktest.Must(http.Get(server.URL + clusters))
	checktest.ErrorIs(t, io.ErrUnexpectedEOF, checktest.Err(io.ReadAll(resp.Body)))
	resp.Body.Close()
	checktest.Fails(t, checktest.Err(http.Get(server.URL+clusters)), "not broken off")
	if r := s.Requests(); len(r) < 2 || r[0].Status != 200 || r[1].Status != 0 || r[0].String() != "GET "+clusters {
		t.Errorf("%+v", r)
	}
}
