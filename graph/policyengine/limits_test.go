package policyengine_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/policyengine"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
)

// large is a Grapher of five channels, all together larger than the bound.
type large struct {
	broken
	g *graph.Graph
}

func (l large) Graph(string, string) *graph.Graph { return l.g }
func (l large) Channels(string) []string          { return []string{"a", "b", "c", "d", "e"} }

// discard is who reads nothing of an answer.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// keptAnswers returns a run that asks for more than is kept.
func keptAnswers(t *testing.T) func(*testing.T) int64 {
	v := checktest.Must(graph.ParseVersion("1.0.0"))
	g, err := graph.New(graph.Data{Nodes: []graph.Node{{Version: v, Image: strings.Repeat("x", 30<<20)}}}, graph.DecodeOptions{MaxText: 31 << 20})
	checktest.OK(t, err)
	h := checktest.Must(policyengine.New(policyengine.Options{}))
	h.Set(large{g: g})
	return func(t *testing.T) int64 {
		for _, channel := range []string{"a", "b", "c", "d", "e"} {
			h.ServeHTTP(discard{http.Header{}}, httptest.NewRequest("GET", "/graph?channel="+channel, nil))
		}
		if size := sampleValue(t, h.Samples(), "graph_cached_bytes"); size > 128<<20 || size < 100<<20 {
			t.Errorf("%v bytes are kept", size)
		}
		return 0
	}
}

func TestLimits(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(start)
	digest := strings.Repeat("a", 64)
	h, err := policyengine.New(policyengine.Options{Clock: clock, Signatures: fstest.MapFS{"sha256/" + digest + "/signature-1": {Data: make([]byte, 1<<20)}}})
	checktest.OK(t, err)
	h.Set(sample(t))
	asking := func(path string, code int) func(*testing.T) int64 {
		r := httptest.NewRequest("GET", path, nil)
		return func(t *testing.T) int64 {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			checktest.Equal(t, code, w.Code, "w.Code")
			return 0
		}
	}
	head := httptest.NewRequest("GET", "/graph?channel=a", nil)
	for i := range 17 {
		head.Header["X-"+string(rune('A'+i))] = []string{strings.Repeat("x", 1<<10)}
	}
	const kib, mib = 1 << 10, 1 << 20
	limittest.Walk(t, []limittest.Case{
		{Limit: "bytes of a query", Default: 4 * kib, Bytes: 8 * kib, Run: asking("/graph?channel=a&b="+strings.Repeat("x", 4*kib), 414)},
		{Limit: "bytes of a request's head", Default: 16 * kib, Bytes: 8 * kib, Run: func(t *testing.T) int64 {
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, head); w.Code != http.StatusRequestURITooLong {
				t.Errorf("%d", w.Code)
			}
			return 0
		}},
		{Limit: "bytes of a channel's name", Default: 128, Bytes: 8 * kib, Run: asking("/graph?channel="+strings.Repeat("x", 129), 400)},
		{Limit: "bytes of an architecture", Default: 32, Bytes: 8 * kib, Run: asking("/graph?channel=a&arch="+strings.Repeat("x", 33), 400)},
		{Limit: "bytes of a signature", Default: 50 * kib, Bytes: 256 * kib, Run: asking("/signatures/sha256="+digest+"/signature-1", 500)},
		{Limit: "age of a graph", Default: int64(24 * time.Hour), Bytes: 8 * kib, Run: func(t *testing.T) int64 {
			clock.SetTime(start.Add(24*time.Hour + 1))
			defer clock.SetTime(start)
			return asking("/graph?channel=a", 503)(t)
		}},
		{Limit: "bytes of kept answers", Default: 128 * mib, Bytes: 200 * mib, Run: keptAnswers(t)},
		{Limit: "time of a load", Default: int64(5 * time.Minute), Bytes: 64 * mib, Run: func(t *testing.T) int64 {
			return slowLoad(t, h)
		}},
	})
}

// slowLoad is a load that takes longer than it may.
func slowLoad(t *testing.T, h *policyengine.Handler) int64 {
	var events []clusterapi.Event
	r := checktest.Must(policyengine.NewRefresher(h, policyengine.RefresherOptions{
		Load: func(ctx context.Context) (*graphdata.Snapshot, error) {
			return sample(t), reconcile.Sleep(ctx, 5*time.Minute)
		},
		Observe: func(e clusterapi.Event) { events = append(events, e) },
	}))
	clock := reconcile.NewClock(start)
	v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: memory.New(memory.Options{Clock: clock}), Clock: clock}, r.Process())
	defer v.Close()
	checktest.OK(t, v.RunUntil(start.Add(5*time.Minute+time.Second)))
	if len(events) != 1 || events[0].Type != policyengine.EventFailed || !strings.Contains(events[0].Err.Error(), "deadline") {
		t.Errorf("%v", events)
	}
	return 0
}
