package view_test

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// updateViews writes all views of a ClusterVersion's updates, with their JSON and
// their errors.
func updateViews(t checktest.T, cv *configv1.ClusterVersion, in view.RecommendInput) string {
	var all strings.Builder
	show := func(what string, data any, err error, write func(out, errOut io.Writer) error) {
		all.WriteString("== " + what + "\n")
		if err != nil {
			all.WriteString(err.Error() + "\n")
			return
		}
		out, errOut := texts(write)
		text := checktest.Get(json.Marshal(data))(t)
		all.WriteString(out + "-- err\n" + errOut + "-- json\n" + string(text) + "\n")
	}
	for _, o := range []view.SummaryText{{}, {IncludeNotRecommended: true, Docs418: true}} {
		s, err := view.Summarize(cv)
		show("summary", s, err, func(out, errOut io.Writer) error { return s.WriteText(out, errOut, o) })
	}
	in.ClusterVersion = cv
	for _, version := range []string{"", in.Version} {
		in.Version = version
		for _, o := range []view.RecommendText{{}, {ShowOutdated: true, Docs418: true}, {Quiet: true}} {
			r, err := view.AssessRecommend(in)
			show("recommend", r, err, func(out, errOut io.Writer) error { return r.WriteText(out, errOut, o) })
		}
	}
	for _, o := range []view.HistoryText{{}, {WithoutImages: true}} {
		h, err := view.AssessHistory(cv, started)
		show("history", h, err, func(out, _ io.Writer) error { return h.WriteText(out, o) })
	}
	show("columns", nil, nil, func(out, errOut io.Writer) error {
		return view.WriteColumns(out, errOut, &view.Objects{ClusterVersion: cv}, "ClusterVersion", started)
	})
	return all.String()
}

// oddText is any text, mostly of those that mean something.
var oddText = rapid.OneOf(
	rapid.SampledFrom([]string{"", "True", "False", "Unknown", "a", "b\n\nc", "\t", "\f", "\xff", "4.14", "UpgradeableFalse"}),
	rapid.String(),
)

var oddVersion = rapid.OneOf(rapid.StringMatching(`(4\.1[3-5]|5\.0)\.[0-9]{1,3}(-rc\.[0-9]|\+[ab])?`), oddText)

func drawRelease(t *rapid.T) configv1.Release {
	return configv1.Release{
		Version:  oddVersion.Draw(t, "version"),
		Image:    rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e"}).Draw(t, "image"),
		URL:      configv1.URL(oddText.Draw(t, "url")),
		Channels: rapid.SliceOfN(oddText, 0, 2).Draw(t, "channels"),
	}
}

func drawTime(t *rapid.T) metav1.Time {
	return metav1.NewTime(rapid.SampledFrom([]time.Time{{}, started, started.Add(time.Hour), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC)}).Draw(t, "time"))
}

// drawVersion makes a ClusterVersion of odd values, of which any may be missing.
func drawVersion(t *rapid.T) *configv1.ClusterVersion {
	cv := &configv1.ClusterVersion{}
	cv.Spec.Channel, cv.Spec.Upstream = oddText.Draw(t, "channel"), configv1.URL(oddText.Draw(t, "upstream"))
	cv.Status.Desired = drawRelease(t)
	for range rapid.IntRange(0, 6).Draw(t, "conditions") {
		c := cvCondition(rapid.SampledFrom([]string{"Failing", "Progressing", "Upgradeable", "ReleaseAccepted", "RetrievedUpdates", "Available", ""}).Draw(t, "type"),
			rapid.SampledFrom([]string{"True", "False", "Unknown", "", "odd"}).Draw(t, "status"), oddText.Draw(t, "reason"), oddText.Draw(t, "message"))
		c.LastTransitionTime = drawTime(t)
		cv.Status.Conditions = append(cv.Status.Conditions, c)
	}
	for range rapid.IntRange(0, 6).Draw(t, "available") {
		cv.Status.AvailableUpdates = append(cv.Status.AvailableUpdates, drawRelease(t))
	}
	for range rapid.IntRange(0, 6).Draw(t, "conditional") {
		u := configv1.ConditionalUpdate{Release: drawRelease(t)}
		for range rapid.IntRange(0, 2).Draw(t, "risks") {
			u.Risks = append(u.Risks, configv1.ConditionalUpdateRisk{Name: oddText.Draw(t, "name"), Message: oddText.Draw(t, "message")})
		}
		for range rapid.IntRange(0, 2).Draw(t, "judged") {
			u.Conditions = append(u.Conditions, metav1.Condition{Type: "Recommended", Status: metav1.ConditionStatus(rapid.SampledFrom([]string{"True", "False", "Unknown", ""}).Draw(t, "status")), Message: oddText.Draw(t, "message")})
		}
		cv.Status.ConditionalUpdates = append(cv.Status.ConditionalUpdates, u)
	}
	for range rapid.IntRange(0, 4).Draw(t, "history") {
		h := configv1.UpdateHistory{State: configv1.UpdateState(oddText.Draw(t, "state")), StartedTime: drawTime(t), Version: oddText.Draw(t, "version")}
		if rapid.Bool().Draw(t, "completed") {
			end := drawTime(t)
			h.CompletionTime = &end
		}
		cv.Status.History = append(cv.Status.History, h)
	}
	return cv
}

func drawInput(t *rapid.T) view.RecommendInput {
	in := view.RecommendInput{
		Version: oddVersion.Draw(t, "target"),
		Accept:  rapid.SliceOf(rapid.SampledFrom([]string{"", "Failing", "ConditionalUpdateRisk", "CannotRetrieveUpdates", "Progressing", "a"})).Draw(t, "accept"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "prechecks") {
		in.Prechecks = append(in.Prechecks, precheck(oddText.Draw(t, "type"), oddText.Draw(t, "status"), oddText.Draw(t, "reason"), oddText.Draw(t, "message"), oddText.Draw(t, "name")))
	}
	return in
}

// TestUpdateViewsReadOnly never panics on odd values, says the same again, and
// leaves its input as it is.
func TestUpdateViewsReadOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cv, in := drawVersion(t), drawInput(t)
		before, checks, accept := cv.DeepCopy(), slices.Clone(in.Prechecks), slices.Clone(in.Accept)
		for i := range checks {
			checks[i].Conditions = slices.Clone(checks[i].Conditions)
		}
		first := updateViews(t, cv, in)
		if diff := cmp.Diff(before, cv); diff != "" {
			t.Fatalf("the ClusterVersion was changed:\n%s", diff)
		}
		if diff := cmp.Diff([]any{checks, accept}, []any{in.Prechecks, in.Accept}); diff != "" {
			t.Fatalf("the input was changed:\n%s", diff)
		}
		if diff := cmp.Diff(first, updateViews(t, cv, in)); diff != "" {
			t.Fatalf("other texts for the same input:\n%s", diff)
		}
	})
}

// TestUpdateViewsOwnTheirData share nothing with their input: changing one leaves
// the other alone.
func TestUpdateViewsOwnTheirData(t *testing.T) {
	cv := healthy(channel("b", "", "a", "b"), with("Upgradeable", "False", "R", "M"), available("4.15.2"), conditional("4.15.3", "False", "R", "M"))
	cv.Status.AvailableUpdates[0].Channels = []string{"a"}
	s := checktest.Get(view.Summarize(cv))(t)
	r := checktest.Get(view.AssessRecommend(view.RecommendInput{ClusterVersion: cv}))(t)
	data := func() string { return indented(t, s) + indented(t, r) }
	before := data()
	cv.Status.Desired.Channels[0] = "x"
	cv.Status.AvailableUpdates[0].Channels[0] = "x"
	cv.Status.AvailableUpdates[0].Version = "x"
	cv.Status.ConditionalUpdates[0].Risks[0].Name = "x"
	cv.Status.ConditionalUpdates[0].Conditions[1].Reason = "x"
	cv.Status.Conditions[0].Reason = "x"
	if diff := cmp.Diff(before, data()); diff != "" {
		t.Errorf("changed with the input:\n%s", diff)
	}
}

// TestUpdateViewsShuffled are the same for updates, conditions and prechecks in any
// order, as long as no two are equal.
func TestUpdateViewsShuffled(t *testing.T) {
	var versions []string
	for minor := range 3 {
		for patch := range 15 {
			versions = append(versions, "4."+string(rune('4'+minor))+"."+strings.Repeat("1", patch%3+1)+string(rune('0'+patch/3)))
		}
	}
	build := func(shuffle func(n int, swap func(i, j int))) string {
		cv := healthy(with("Upgradeable", "False", "R", "M"), channel("c", "", "a"))
		cv.Status.Desired.Version = "4.5.1"
		order := slices.Clone(versions)
		shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, v := range order {
			if strings.HasSuffix(v, "2") {
				conditional(v, "False", "R"+v, "M")(cv)
			} else {
				available(v)(cv)
			}
		}
		shuffle(len(cv.Status.Conditions), reflect.Swapper(cv.Status.Conditions))
		in := view.RecommendInput{Accept: []string{"A", "B"}}
		shuffle(2, reflect.Swapper(in.Accept))
		return updateViews(t, cv, in)
	}
	want := build(func(int, func(int, int)) {})
	for seed := range uint64(50) {
		if diff := cmp.Diff(want, build(rand.New(rand.NewPCG(seed, 0)).Shuffle)); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

// TestRecommendHasAll drops nothing: each update with a valid version is in one
// group, the others among the invalid ones.
func TestRecommendHasAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cv := drawVersion(t)
		r := checktest.Get(view.AssessRecommend(view.RecommendInput{ClusterVersion: cv}))(t)
		var want, got []string
		hidden := map[string]bool{}
		for _, u := range cv.Status.ConditionalUpdates {
			want = append(want, u.Release.Version)
			hidden[u.Release.Image] = true
		}
		for _, u := range cv.Status.AvailableUpdates {
			if !hidden[u.Image] {
				want = append(want, u.Version)
			}
		}
		for _, group := range r.Groups {
			for _, c := range group.Releases {
				got = append(got, c.Version)
			}
		}
		for _, v := range r.Invalid {
			got = append(got, v.Version)
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("versions (-want +got):\n%s", diff)
		}
	})
}

// TestUpdateViewsFromJSON write the same text when their data has been JSON in
// between.
func TestUpdateViewsFromJSON(t *testing.T) {
	cv := healthy(without("Failing"), with("Upgradeable", "False", "R", "M"), with("Progressing", "True", "R", "M"), channel("c", "https://up.example", "a"),
		available("4.14.2", "4"), conditional("4.15.0", "Unknown", "R", "M"), conditional("4.14.9", "-", "", ""))
	cv.Status.History = []configv1.UpdateHistory{entry("4.14.2", "Partial", 0, -1), entry("4.14.1", "Completed", 0, 60)}
	s, _ := view.Summarize(cv)
	throughJSON(t, s, func(s *view.Summary, out, errOut io.Writer) error {
		return s.WriteText(out, errOut, view.SummaryText{})
	})
	r, _ := view.AssessRecommend(view.RecommendInput{ClusterVersion: cv, Version: "4.14.9", Prechecks: []view.Precheck{precheck("a", "False", "R", "M", "")}})
	throughJSON(t, r, func(r *view.Recommend, out, errOut io.Writer) error {
		return r.WriteText(out, errOut, view.RecommendText{})
	})
	h, _ := view.AssessHistory(cv, started.Add(time.Hour))
	throughJSON(t, h, func(h *view.History, out, _ io.Writer) error { return h.WriteText(out, view.HistoryText{}) })
}

func throughJSON[T any](t *testing.T, data *T, write func(*T, io.Writer, io.Writer) error) {
	t.Helper()
	text := checktest.Get(json.Marshal(data))(t)
	var again T
	checktest.OK(t, json.Unmarshal(text, &again))
	out, errOut := texts(func(out, errOut io.Writer) error { return write(data, out, errOut) })
	wantTexts(t, out, errOut, func(out, errOut io.Writer) error { return write(&again, out, errOut) })
}
