package policyengine_test

import (
	"cmp"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/policyengine"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

const (
	plain  = "application/json"
	vendor = "application/vnd.redhat.cincinnati.v1+json"

	clusterID = "3c5a1b2e-6f1d-4c7f-9a60-2b9d3c1e8f00"
	nothing   = `{"version":1,"nodes":[],"edges":[],"conditionalEdges":[]}`
)

var start = time.Date(2031, 2, 4, 8, 30, 0, 0, time.UTC)

// sample is a graph of five releases in two channels for two architectures, with a
// drop, and a risk whose message is long. More versions lead on from 1.1.0.
func sample(tb testing.TB, more ...string) *graphdata.Snapshot {
	tb.Helper()
	list := func(versions ...string) (entries []graphdata.Entry) {
		for i, v := range versions {
			entries = append(entries, graphdata.Entry{Version: v, Line: i + 1})
		}
		return entries
	}
	release := func(version, arch string, previous ...string) graphdata.Release {
		return graphdata.Release{Version: version, Arch: arch, Image: "registry.example/release:" + version + "-" + arch, Previous: previous, Source: version + arch}
	}
	tree := &graphdata.Tree{
		Channels: []graphdata.Channel{
			{File: "channels/candidate-1.1.yaml", Name: "candidate-1.1", Versions: list(append([]string{"1.0.0", "1.0.1", "1.1.0"}, more...)...)},
			{File: "channels/fast-1.1.yaml", Name: "fast-1.1", Versions: list("1.0.1", "1.1.0+amd64")},
			{File: "channels/fast-1.10.yaml", Name: "fast-1.10", Versions: list("1.0.0")},
		},
		Drops: []graphdata.BlockedEdge{{File: "blocked-edges/1.1.0.yaml", Line: 2, To: "1.1.0", From: `^1[.]0[.]0[+].*$`}},
		Risks: []graphdata.BlockedEdge{{File: "blocked-edges/1.1.0-R.yaml", Line: 2, To: "1.1.0", From: `1[.]0[.].*`,
			Risk: &configv1.ConditionalUpdateRisk{URL: "https://example.com/R", Name: "R", Message: "It is slow" + strings.Repeat(", and slow", 200) + ".", MatchingRules: []configv1.ClusterCondition{{Type: "Always"}}}}},
	}
	last := release("1.1.0", "amd64", "1.0.0", "1.0.1", "1.0.9")
	last.Next = []string{"1.2.0"}
	releases := []graphdata.Release{release("1.0.0", "amd64"), release("1.0.1", "amd64", "1.0.0"), last, release("1.1.0", "s390x", "1.0.1")}
	for _, v := range more {
		releases = append(releases, release(v, "amd64", "1.1.0"))
	}
	s := checktest.Must(graphdata.Build(tree, releases, graphdata.BuildOptions{}))
	return s
}

// service is a handler behind a server on loopback, and the clock of both.
type service struct {
	*policyengine.Handler
	*httptest.Server
	clock *clocktesting.FakePassiveClock
}

// serve starts a service with the prefix /api.
func serve(t *testing.T, o policyengine.Options, g policyengine.Grapher) *service {
	t.Helper()
	s := &service{clock: clocktesting.NewFakePassiveClock(start)}
	o.Clock = s.clock
	o.Prefix = cmp.Or(o.Prefix, "/api")
	h := checktest.Must(policyengine.New(o))
	if g != nil {
		h.Set(g)
	}
	s.Handler = h
	s.Server = httptest.NewServer(h)
	s.Client().Transport.(*http.Transport).DisableCompression = true
	t.Cleanup(s.Close)
	return s
}

// reply is an answer that has been read.
type reply struct {
	code int
	http.Header
	body string
}

// ask sends a request; headers are names and values in turn.
func (s *service) ask(t testing.TB, method, path string, headers ...string) reply {
	t.Helper()
	got := checktest.Must(s.try(method, path, headers...))
	return got
}

// try is ask for goroutines, which cannot end a test.
func (s *service) try(method, path string, headers ...string) (reply, error) {
	r, err := http.NewRequest(method, s.URL+path, nil)
	if err != nil {
		return reply{}, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(b)}, err
}

func (s *service) get(t testing.TB, path string, headers ...string) reply {
	t.Helper()
	return s.ask(t, http.MethodGet, path, headers...)
}

// failed is the body of an error.
func failed(kind, value string) string {
	return `{"kind":"` + kind + `","value":"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"}`
}
