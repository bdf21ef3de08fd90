package policyengine_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/graph/policyengine"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func serveStatus(t *testing.T, s *service) *httptest.Server {
	server := httptest.NewServer(s.Status())
	t.Cleanup(server.Close)
	return server
}

// TestHealth: live at all times, ready while graphs are served.
func TestHealth(t *testing.T) {
	s := serve(t, policyengine.Options{MaxStale: time.Hour}, nil)
	status := &service{Server: serveStatus(t, s)}
	check := func(when string, ready int) {
		t.Helper()
		for path, want := range map[string]int{"/livez": 200, "/liveness": 200, "/readyz": ready, "/readiness": ready, "/": 404, "/livez/": 404} {
			for _, method := range []string{"GET", "HEAD"} {
				if got := status.ask(t, method, path); got.code != want || got.body != "" {
					t.Errorf("%s: %s: %d %s", when, path, got.code, got.body)
				}
			}
		}
	}
	check("without a graph", 503)
	s.Set(sample(t))
	check("with one", 200)
	s.clock.SetTime(start.Add(time.Hour))
	check("after an hour", 200)
	s.clock.SetTime(start.Add(time.Hour + 1))
	check("later", 503)
	s.Set(sample(t))
	check("again", 200)
	for _, path := range []string{"/livez", "/readyz", "/metrics"} {
		if got := status.ask(t, "POST", path); got.code != 405 || got.Get("Allow") != "GET, HEAD" || got.body != "" {
			t.Errorf("%s: %d %v", path, got.code, got.Header)
		}
	}
	if got := status.ask(t, "HEAD", "/metrics"); got.code != 200 || got.body != "" || got.Get("Content-Length") == "0" {
		t.Errorf("%d %v", got.code, got.Header)
	}
}

// told notes what Metrics are told.
type told struct {
	lines []string
}

func (m *told) Request(path string, code int, kind string, _ time.Duration) {
	m.lines = append(m.lines, strings.TrimSpace(path+" "+kind), httpStatus(code))
}

func (m *told) Snapshot(revision string, nodes int, at time.Time) {
	if len(revision) == 32 && nodes == 4 && at.Equal(start) {
		m.lines = append(m.lines, "snapshot")
	}
	panic("nobody is harmed")
}

func httpStatus(code int) string {
	return map[int]string{200: "ok", 400: "bad", 404: "none", 405: "method"}[code]
}

// TestMetrics: all names, and what is counted.
func TestMetrics(t *testing.T) {
	m := &told{}
	s := serve(t, policyengine.Options{Metrics: m, Signatures: fstest.MapFS{}}, nil)
	s.Set(sample(t))
	s.clock.SetTime(start.Add(90 * time.Second))
	s.get(t, candidate)
	s.get(t, "/api/v1/graph")
	s.get(t, "/api/v1/graph?channel=B")
	s.get(t, "/api/signatures/sha256=a/b")
	s.get(t, "/api/other?"+clusterID)
	s.ask(t, "POST", candidate)
	want := []string{"snapshot", "/api/graph", "ok", "/api/v1/graph missing_params", "bad", "/api/v1/graph invalid_params", "bad", "/api/signatures does_not_exist", "none", "", "none", "/api/graph", "method"}
	checktest.Same(t, want, m.lines)
	got := (&service{Server: serveStatus(t, s)}).get(t, "/metrics")
	if got.Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
		t.Error(got.Get("Content-Type"))
	}
	var lines []string
	names := map[string]bool{}
	for line := range strings.Lines(got.body) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			names[name] = true
		}
		if !strings.HasPrefix(line, "#") && !strings.Contains(line, "_bucket") && !strings.Contains(line, "build_info") && !strings.Contains(line, "cached_bytes") {
			lines = append(lines, strings.TrimPrefix(line, "cincinnati_pe_"))
		}
	}
	want = []string{
		`graph_incoming_requests_total{uri_path="/api/graph"} 2`,
		`graph_incoming_requests_total{uri_path="/api/v1/graph"} 2`,
		`graph_serve_duration_seconds_sum 0`,
		`graph_serve_duration_seconds_count 4`,
		`graph_response_errors_total{code="400",kind="invalid_params"} 1`,
		`graph_response_errors_total{code="400",kind="missing_params"} 1`,
		`graph_response_errors_total{code="404",kind="does_not_exist"} 1`,
		`signatures_incoming_requests_total{uri_path="/api/signatures"} 1`,
		`signatures_serve_duration_seconds_sum 0`,
		`signatures_serve_duration_seconds_count 1`,
		`graph_final_releases 4`,
		`graph_age_seconds 90`,
		`graph_last_successful_refresh_timestamp 1927960200`,
		`http_upstream_requests_total 0`,
		`http_upstream_errors_total 0`,
	}
	checktest.Same(t, want, lines)
	for _, name := range []string{"build_info gauge", "graph_serve_duration_seconds histogram", "graph_response_errors_total counter", "graph_cached_bytes gauge"} {
		if !names["cincinnati_pe_"+name] {
			t.Errorf("no type of %s", name)
		}
	}
	for _, bucket := range []string{"0.005", "0.01", "0.025", "0.05", "0.075", "0.1", "0.25", "0.5", "0.75", "1", "5", "+Inf"} {
		checktest.Has(t, got.body, `cincinnati_pe_graph_serve_duration_seconds_bucket{le="`+bucket+`"} 4`)
	}
	count := 0
	for _, sample := range s.Samples() {
		checktest.Has(t, got.body, sample.String()+"\n")
		count++
	}
	if count < 40 {
		t.Errorf("%d samples", count)
	}
}
