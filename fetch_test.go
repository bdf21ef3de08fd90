package clusterupdate_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// countingSource counts what is asked, and fails when it is told to.
type countingSource struct {
	graph.Source
	err     error
	queries []graph.Query
	servers []string
}

func (s *countingSource) Fetch(ctx context.Context, q graph.Query) (*graph.Graph, error) {
	s.queries = append(s.queries, q)
	if s.err != nil {
		return nil, s.err
	}
	return s.Source.Fetch(ctx, q)
}

func (s *countingSource) WithUpstream(upstream string) graph.Source {
	s.servers = append(s.servers, upstream)
	return s
}

func versions(rs []configv1.Release) (out []string) {
	for _, r := range rs {
		out = append(out, r.Version)
	}
	return out
}

func (s *sampleTest) setSpec(f func(*configv1.ClusterVersionSpec)) {
	s.Helper()
	modify(s, s.Cluster, false, func(cv *configv1.ClusterVersion) { f(&cv.Spec) })
}

func TestRetrieval(t *testing.T) {
	var source *countingSource
	prepare := func(o *clusterupdate.Options) {
		source = &countingSource{Source: o.Graph}
		o.Graph, o.Interval = source, 3*time.Minute
	}
	withSample(t, prepare, func(s *sampleTest) {
		t := s.T
		both := []string{"4.21.1", "4.20.4"}
		wantLists := func(fetches int, retrieved string, available []string) {
			t.Helper()
			cv := s.version(t)
			if len(source.queries) != fetches {
				t.Errorf("fetched %d times, want %d", len(source.queries), fetches)
			}
			s.wantCondition(configv1.RetrievedUpdates, retrieved)
			checktest.SameIn(t, "available updates", available, versions(cv.Status.AvailableUpdates))
		}
		s.sync()
		wantLists(1, "True :", both)
		want := graph.Query{Channel: sample.Channel, Arch: "amd64", Version: sample.FromVersion, ClusterID: "8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01"}
		checktest.SameIn(t, "query", want, source.queries[0])
		cv := s.version(t)
		if got := cv.Status.Desired.Channels; len(got) == 0 {
			t.Error("the graph's channels of the running release are not taken over")
		}
		if len(cv.Status.ConditionalUpdates) != 1 || cv.Status.ConditionalUpdates[0].Release.Version != "4.21.0" {
			t.Errorf("conditional updates: %+v", cv.Status.ConditionalUpdates)
		}

		// Within the interval nothing is asked again.
		time.Sleep(2 * time.Minute)
		s.sync()
		wantLists(1, "True :", both)
		time.Sleep(2 * time.Minute)
		s.sync()
		wantLists(2, "True :", both)

		// A service that cannot be reached leaves what is known, for a day.
		source.err = &graph.Error{Reason: string(graph.ErrRemoteFailed), Message: "no route"}
		time.Sleep(4 * time.Minute)
		s.sync()
		wantLists(3, "False RemoteFailed: Unable to retrieve available updates: no route", both)
		s.sync()
		wantLists(3, "False RemoteFailed: Unable to retrieve available updates: no route", both)
		time.Sleep(25 * time.Hour)
		s.sync()
		wantLists(4, "False RemoteFailed: Unable to retrieve available updates: no route", nil)

		// A failure that says something about the cluster clears at once.
		source.err = nil
		time.Sleep(4 * time.Minute)
		s.sync()
		wantLists(5, "True :", both)
		source.err = &graph.Error{Reason: string(graph.ErrVersionNotFound), Message: "not there"}
		time.Sleep(4 * time.Minute)
		s.sync()
		wantLists(6, "False VersionNotFound: Unable to retrieve available updates: not there", nil)

		// So does a failure to answer another question.
		source.err = nil
		time.Sleep(4 * time.Minute)
		s.sync()
		wantLists(7, "True :", both)
		source.err = &graph.Error{Reason: string(graph.ErrRemoteFailed), Message: "no route"}
		s.setSpec(func(spec *configv1.ClusterVersionSpec) { spec.Channel = "fast-4.21" })
		s.sync()
		wantLists(8, "False RemoteFailed: Unable to retrieve available updates: no route", nil)

		// Another service is asked at once.
		source.err = nil
		s.setSpec(func(spec *configv1.ClusterVersionSpec) { spec.Upstream = "https://updates.example/graph" })
		s.sync()
		wantLists(9, "True :", both)
		checktest.SameIn(t, "services", []string{"https://updates.example/graph"}, source.servers)
	})
}

// TestDefaultUpstream: to name the default service is to name none.
func TestDefaultUpstream(t *testing.T) {
	var source *countingSource
	prepare := func(o *clusterupdate.Options) {
		source = &countingSource{Source: o.Graph}
		o.Graph, o.Interval = source, time.Hour
	}
	withSample(t, prepare, func(s *sampleTest) {
		for _, upstream := range []configv1.URL{"", graph.DefaultUpstream, ""} {
			s.setSpec(func(spec *configv1.ClusterVersionSpec) { spec.Upstream = upstream })
			s.sync()
			if len(source.queries) != 1 {
				s.Errorf("upstream %q: retrieved %d times", upstream, len(source.queries))
			}
			if got := s.version(s).Status.AvailableUpdates; len(got) != 2 {
				s.Errorf("upstream %q: available are %v", upstream, versions(got))
			}
		}
	})
}

func TestRetrievalUnknownError(t *testing.T) {
	failing := func(o *clusterupdate.Options) {
		o.Graph = &countingSource{err: errors.New("odd")}
	}
	withSample(t, failing, func(s *sampleTest) {
		s.sync()
		s.wantCondition(configv1.RetrievedUpdates, "False Unknown: Unable to retrieve available updates: odd")
	})
}

// A source, or a matcher, that panics or ends its goroutine fails a retrieval or
// the judgement of a risk, not the program.
func TestPanicsInRetrievals(t *testing.T) {
	for want, goWrong := range map[string]func(){"panic: out of order": func() { panic("out of order") }, "panic: the goroutine was ended by runtime.Goexit": runtime.Goexit} {
		withSample(t, func(o *clusterupdate.Options) {
			o.Graph = graph.SourceFunc(func(context.Context, graph.Query) (*graph.Graph, error) { goWrong(); return nil, nil })
		}, func(s *sampleTest) {
			s.sync()
			s.wantCondition(configv1.RetrievedUpdates, "False Unknown: Unable to retrieve available updates: "+want)
		})
		withSample(t, func(o *clusterupdate.Options) {
			o.Graph = riskGraph(t, "bad")
			o.Risks = graph.RiskMatcherFunc(func(context.Context, configv1.ClusterCondition) (bool, error) { goWrong(); return false, nil })
		}, func(s *sampleTest) {
			s.sync()
			s.wantCondition(configv1.RetrievedUpdates, "True :")
			if got := verdicts(s.version(s.T)); len(got) != 1 || !strings.Contains(got[0], " Unknown EvaluationFailed") {
				s.Errorf("%v, want an unknown verdict", got)
			}
		})
	}
}

func TestNoGraph(t *testing.T) {
	withSample(t, func(o *clusterupdate.Options) { o.Graph = nil }, func(s *sampleTest) {
		t := s.T
		s.sync()
		if got := condition(s.version(t), configv1.RetrievedUpdates); !strings.HasPrefix(got, "Unknown ") {
			t.Errorf("RetrievedUpdates is %s", got)
		}
		s.setSpec(func(spec *configv1.ClusterVersionSpec) { spec.Channel = "" })
		s.sync()
		s.wantCondition(configv1.RetrievedUpdates, "False NoChannel: The update channel has not been configured.")

		s.request(t, configv1.Update{Version: sample.ToVersion, Image: sample.ToImage})
		s.complete(10)
		s.wantHistory(completedHistory)
	})
}

// refusingStatus refuses to write a status while err is set, but for the first.
type refusingStatus struct {
	clusterapi.ClusterAPI
	err    error
	writes int
}

func (a *refusingStatus) UpdateStatus(ctx context.Context, u *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	a.writes++
	if a.writes > 1 && a.err != nil {
		return nil, a.err
	}
	return a.ClusterAPI.UpdateStatus(ctx, u, o)
}

// TestRetrievalIsRepeated: where no status could be written since a retrieval, the
// next one is asked the same, and is made all the same.
func TestRetrievalIsRepeated(t *testing.T) {
	var source *countingSource
	api := &refusingStatus{err: errors.New("no status today")}
	prepare := func(o *clusterupdate.Options) {
		source = &countingSource{Source: o.Graph}
		api.ClusterAPI = o.API
		o.Graph, o.API = source, api
	}
	withSample(t, prepare, func(s *sampleTest) {
		checktest.ErrorIs(s.T, api.err, checktest.Err(s.u.Sync(s.Context())))
		time.Sleep(time.Hour)
		api.err = nil
		s.sync()
		s.sync()
		checktest.Equal(s.T, 2, len(source.queries), "retrievals")
		s.wantCondition(configv1.RetrievedUpdates, "True :")
	})
}
