package risk_test

import (
	"context"
	"errors"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

var wanted = risk.Wanted{Channel: "stable-4.2", Architecture: "amd64", Accepted: []string{"B", "A"}}

const interval = 3 * time.Minute

func conditionalTo(version, query string) configv1.ConditionalUpdate {
	return configv1.ConditionalUpdate{Release: configv1.Release{Version: version, Image: "image-" + version}, Risks: []configv1.ConditionalUpdateRisk{graphtest.Risk(query, query)}}
}

// known is the state after a good fetch at t0.
func known(queries ...string) *risk.Retrieval {
	var r risk.Retrieval
	u := &graph.Updates{Available: []configv1.Release{{Version: "4.2.1", Image: "a", Architecture: "Multi"}}}
	for i, q := range queries {
		u.Conditional = append(u.Conditional, conditionalTo("4.2."+string(rune('2'+i)), q))
	}
	r.Fetched(wanted, r.Plan(wanted, interval, graphtest.Start), u, nil, graphtest.Start)
	r.Evaluate(context.Background(), risk.Evaluator{Matcher: graphtest.Facts, Accepted: wanted.Accepted}, nil, graphtest.Start)
	return &r
}

func TestRetrievalPlan(t *testing.T) {
	with := func(f func(w *risk.Wanted)) risk.Wanted {
		w := wanted
		f(&w)
		return w
	}
	soon, due, old := graphtest.Start.Add(interval-1), graphtest.Start.Add(interval), graphtest.Start.Add(24*time.Hour)
	fetch, keep := risk.FetchPlan{Fetch: true}, risk.FetchPlan{Fetch: true, KeepOnFailure: true}
	idle, again := risk.FetchPlan{}, risk.FetchPlan{Reevaluate: true}
	for name, test := range map[string]struct {
		r    *risk.Retrieval
		w    risk.Wanted
		now  time.Time
		want risk.FetchPlan
	}{
		"never attempted":        {&risk.Retrieval{}, wanted, graphtest.Start, fetch},
		"within the interval":    {known("T"), wanted, soon, idle},
		"interval over":          {known("T"), wanted, due, keep},
		"last change too old":    {known("T"), wanted, old, fetch},
		"just young enough":      {known("T"), wanted, old.Add(-1), keep},
		"channel":                {known("T"), with(func(w *risk.Wanted) { w.Channel = "fast-4.2" }), soon, fetch},
		"architecture":           {known("T"), with(func(w *risk.Wanted) { w.Architecture = "Multi" }), soon, fetch},
		"version":                {known("T"), with(func(w *risk.Wanted) { w.Version = "4.2.9" }), soon, fetch},
		"upstream":               {known("T"), with(func(w *risk.Wanted) { w.Upstream = "https://example.com" }), soon, fetch},
		"upstream, interval too": {known("T"), with(func(w *risk.Wanted) { w.Upstream = "https://example.com" }), due, fetch},
		"the default by name":    {known("T"), with(func(w *risk.Wanted) { w.Upstream = graph.DefaultUpstream }), soon, idle},
		"unknown verdict":        {known("T", "U"), wanted, soon, again},
		"not accepted any more":  {known("T"), with(func(w *risk.Wanted) { w.Accepted = []string{"A"} }), soon, again},
		"accepted in order":      {known("T"), with(func(w *risk.Wanted) { w.Accepted = []string{"A", "B", "A"} }), soon, idle},
		"news of a source":       {known("T"), with(func(w *risk.Wanted) { w.RisksChanged = true }), soon, again},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.r.Plan(test.w, interval, test.now)
			got.Next = time.Time{}
			checktest.Same(t, test.want, got)
		})
	}
	// Once the change is a day ago, each failure clears but only at intervals.
	r := known()
	r.Fetched(wanted, keep, nil, &graph.Error{Reason: "RemoteFailed"}, old)
	if p := r.Plan(wanted, interval, old.Add(interval-1)); p.Fetch || !p.Next.Equal(old.Add(interval)) {
		t.Errorf("%+v", p)
	}
	if p := r.Plan(wanted, interval, old.Add(interval)); !p.Fetch || p.KeepOnFailure {
		t.Errorf("%+v", p)
	}
	if a, b := risk.CheckInterval(0), risk.CheckInterval(0.5); a != 2*time.Minute || b != 3*time.Minute {
		t.Error(a, b)
	}
}

func TestRetrievalFailures(t *testing.T) {
	later := graphtest.Start.Add(interval)
	other := wanted
	other.Upstream = "https://example.com"
	for name, test := range map[string]struct {
		w       risk.Wanted
		err     error
		kept    bool
		changed time.Time
	}{
		"out of reach":     {wanted, &graph.Error{Reason: "RemoteFailed", Message: "x"}, true, graphtest.Start},
		"status":           {wanted, &graph.Error{Reason: "ResponseFailed", Message: "x"}, true, graphtest.Start},
		"nonsense":         {wanted, &graph.Error{Reason: "ResponseInvalid", Message: "x"}, true, graphtest.Start},
		"not found":        {wanted, &graph.Error{Reason: "VersionNotFound", Message: "x"}, false, graphtest.Start},
		"no channel":       {wanted, &graph.Error{Reason: "NoChannel", Message: "x"}, false, graphtest.Start},
		"another error":    {wanted, errors.New("x"), false, graphtest.Start},
		"another upstream": {other, &graph.Error{Reason: "RemoteFailed", Message: "x"}, false, later},
	} {
		t.Run(name, func(t *testing.T) {
			r := known("T")
			r.Fetched(test.w, r.Plan(test.w, interval, later), nil, test.err, later)
			available, conditional, ok := r.Published(test.w, false)
			if !ok || (len(available) == 1 && len(conditional) == 1) != test.kept || (r.Updates != nil) != test.kept {
				t.Errorf("%v %v %v", available, conditional, ok)
			}
			if r.Condition.Status != configv1.ConditionFalse || !r.Changed.Equal(test.changed) || !r.Attempted.Equal(later) {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestRetrievalPublished(t *testing.T) {
	r := known("T")
	for _, gate := range []bool{false, true} {
		available, _, _ := r.Published(wanted, gate)
		checktest.Equal(t, gate, available[0].Architecture == "Multi", "%v: %+v", gate, available)
	}
	w := wanted
	w.Channel = "fast-4.2"
	if _, _, ok := r.Published(w, true); ok {
		t.Error("published for another channel")
	}
	w = wanted
	w.Upstream = graph.DefaultUpstream
	if _, _, ok := r.Published(w, true); !ok {
		t.Error("the default upstream by name is another one")
	}
	if _, _, ok := new(risk.Retrieval).Published(wanted, true); ok {
		t.Error("published before the first fetch")
	}
}

func TestRetrievalKnowsNothing(t *testing.T) {
	var r risk.Retrieval
	r.Evaluate(context.Background(), risk.Evaluator{}, nil, graphtest.Start)
	if r.Undecided() || r.Evaluation != nil || r.Current().Version != "" || r.Alerts(graphtest.Start) != nil {
		t.Errorf("%+v", r)
	}
	// Retrieved, and not judged yet.
	u := &graph.Updates{Current: graphtest.Release("4.2.0"), Conditional: []configv1.ConditionalUpdate{graphtest.Update("4.2.1", graphtest.Risk("T", "T"))}}
	r.Fetched(wanted, r.Plan(wanted, interval, graphtest.Start), u, nil, graphtest.Start)
	if available, conditional, ok := r.Published(wanted, true); !ok || available != nil || conditional != nil {
		t.Error(available, conditional, ok)
	}
	checktest.FailIf(t, !r.Undecided() || r.Current().Version != "4.2.0", "%+v", r)
	if p := r.Plan(wanted, interval, graphtest.Start); !p.Reevaluate || p.Fetch {
		t.Errorf("%+v", p)
	}
}

func TestRetrievalTransitionTimes(t *testing.T) {
	published := conditionalTo("4.2.2", "T")
	hourAgo := metav1.NewTime(graphtest.Start.Add(-time.Hour))
	published.Conditions = []metav1.Condition{{Type: graph.ConditionRecommended, Status: metav1.ConditionFalse, LastTransitionTime: hourAgo}}
	r := &risk.Retrieval{Remembered: []configv1.ConditionalUpdate{published}}
	answer := graph.Facts{"T": 1}
	at := func() metav1.Time { return r.Evaluation.Conditional[0].Conditions[0].LastTransitionTime }
	e := risk.Evaluator{Matcher: answer}
	for i, minutes := range []int{0, 5} { // across fetches
		now := graphtest.Start.Add(time.Duration(minutes) * time.Minute)
		r.Fetched(wanted, r.Plan(wanted, interval, now), &graph.Updates{Conditional: []configv1.ConditionalUpdate{conditionalTo("4.2.2", "T")}}, nil, now)
		r.Evaluate(context.Background(), e, nil, now)
		if got := at(); !got.Equal(&hourAgo) {
			t.Errorf("fetch %d: %v", i, got)
		}
	}
	// A change moves it, another judgement without a fetch does not.
	delete(answer, "T")
	changed := metav1.NewTime(graphtest.Start.Add(6 * time.Minute))
	for range 2 {
		r.Evaluate(context.Background(), e, nil, changed.Time)
		if got := at(); !got.Equal(&changed) || !r.Undecided() {
			t.Error(got)
		}
	}
	r.Evaluate(context.Background(), e, nil, changed.Add(5*time.Hour))
	if got := at(); !got.Equal(&changed) {
		t.Error(got)
	}
	// Each judgement starts from the lists as retrieved.
	alert := risk.Set{Risks: []configv1.ConditionalUpdateRisk{graphtest.Risk("Alert", "T")}, Versions: map[string][]string{"Alert": {"4.2.1"}}}
	r = known()
	r.Evaluate(context.Background(), risk.Evaluator{Matcher: graphtest.Facts}, func(a []configv1.Release, c []configv1.ConditionalUpdate) ([]configv1.Release, []configv1.ConditionalUpdate) {
		a, c, err := risk.Merge(a, c, alert)
		checktest.Good(t, err)
		return a, c
	}, graphtest.Start)
	checktest.FailIf(t, len(r.Evaluation.Available) != 0 || len(r.Evaluation.Conditional) != 1, "%+v", r.Evaluation)
	r.Evaluate(context.Background(), risk.Evaluator{Matcher: graphtest.Facts}, nil, graphtest.Start)
	checktest.FailIf(t, len(r.Evaluation.Available) != 1 || len(r.Evaluation.Conditional) != 0, "%+v", r.Evaluation)
}

// A verdict of the first fetch keeps its time after the second.
func TestRetrievalRemembersVerdicts(t *testing.T) {
	var r risk.Retrieval
	for i := range 2 {
		now := graphtest.Start.Add(time.Duration(i) * interval)
		r.Fetched(wanted, r.Plan(wanted, interval, now), &graph.Updates{Conditional: []configv1.ConditionalUpdate{graphtest.Update("4.2.2", graphtest.Risk("T", "T"))}}, nil, now)
		r.Evaluate(context.Background(), risk.Evaluator{Matcher: graphtest.Facts}, nil, now)
		if got := r.Evaluation.Conditional[0].Conditions[0].LastTransitionTime; !got.Time.Equal(graphtest.Start) {
			t.Errorf("fetch %d: %v", i, got)
		}
	}
}

func TestRetrievalAlerts(t *testing.T) {
	r := known("T", "U", "F")
	hour := graphtest.Start.Add(time.Hour)
	checktest.Same(t, []string{"CannotRetrieveUpdates", "CannotEvaluateConditionalUpdates"}, r.Alerts(hour))
	if got := r.Alerts(hour.Add(-time.Second)); got != nil {
		t.Error(got)
	}
	r.Condition = graph.RetrievedUpdates(&graph.Error{Reason: "NoChannel"})
	r.Evaluation = &risk.Evaluation{Conditional: []configv1.ConditionalUpdate{}}
	if got := r.Alerts(hour); got != nil {
		t.Error(got)
	}
}
