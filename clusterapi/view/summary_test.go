package view_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// cvCondition makes a condition of a ClusterVersion.
func cvCondition(t, status, reason, message string) configv1.ClusterOperatorStatusCondition {
	return configv1.ClusterOperatorStatusCondition{Type: configv1.ClusterStatusConditionType(t), Status: configv1.ConditionStatus(status), Reason: reason, Message: message}
}

// healthy is a ClusterVersion that runs 4.14.1 and of which there is nothing to
// say but a line and an empty one.
func healthy(edits ...func(*configv1.ClusterVersion)) *configv1.ClusterVersion {
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	cv.Status.Desired = configv1.Release{Version: "4.14.1", Image: "image-4.14.1"}
	cv.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
		cvCondition("Failing", "False", "", ""),
		cvCondition("Progressing", "False", "", "Cluster version is 4.14.1"),
	}
	for _, edit := range edits {
		edit(cv)
	}
	return cv
}

// with replaces a condition, or adds one.
func with(t, status, reason, message string) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) {
		without(t)(cv)
		cv.Status.Conditions = append(cv.Status.Conditions, cvCondition(t, status, reason, message))
	}
}

func without(t string) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) {
		var kept []configv1.ClusterOperatorStatusCondition
		for _, c := range cv.Status.Conditions {
			if string(c.Type) != t {
				kept = append(kept, c)
			}
		}
		cv.Status.Conditions = kept
	}
}

// available adds updates without risks.
func available(versions ...string) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) {
		for _, v := range versions {
			cv.Status.AvailableUpdates = append(cv.Status.AvailableUpdates, configv1.Release{Version: v, Image: "image-" + v})
		}
	}
}

// conditional adds an update with a risk, and a Recommended condition unless its
// status is "-".
func conditional(version, status, reason, message string) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) {
		u := configv1.ConditionalUpdate{
			Release: configv1.Release{Version: version, Image: "image-" + version, URL: configv1.URL("https://errata.example/" + version)},
			Risks:   []configv1.ConditionalUpdateRisk{{Name: "Risk", URL: "https://risk.example", Message: "It may break."}},
		}
		if status != "-" {
			u.Conditions = []metav1.Condition{{Type: "Other", Status: "False"}, {Type: "Recommended", Status: metav1.ConditionStatus(status), Reason: reason, Message: message}}
		}
		cv.Status.ConditionalUpdates = append(cv.Status.ConditionalUpdates, u)
	}
}

func channel(name, upstream string, channels ...string) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) {
		cv.Spec.Channel, cv.Spec.Upstream, cv.Status.Desired.Channels = name, configv1.URL(upstream), channels
	}
}

// edited makes one edit of several.
func edited(edits ...func(*configv1.ClusterVersion)) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) {
		for _, edit := range edits {
			edit(cv)
		}
	}
}

func summaryWriter(t *testing.T, cv *configv1.ClusterVersion, o view.SummaryText) func(io.Writer, io.Writer) error {
	t.Helper()
	s := checktest.Get(view.Summarize(cv))(t)
	return func(out, errOut io.Writer) error { return s.WriteText(out, errOut, o) }
}

// TestSummarySamples compares with outputs of the product's documentation.
func TestSummarySamples(t *testing.T) {
	for _, tt := range []struct {
		cv, want string
		o        view.SummaryText
	}{
		{"summary-known-issues.yaml", "summary-known-issues.txt", view.SummaryText{IncludeNotRecommended: true}},
		{"summary.yaml", "summary.txt", view.SummaryText{}},
		{"summary-none.yaml", "summary-none.txt", view.SummaryText{}},
		{"summary-none.yaml", "summary-none-docs418.txt", view.SummaryText{Docs418: true}},
	} {
		t.Run(tt.want, func(t *testing.T) {
			out, errOut := texts(summaryWriter(t, readVersion(t, "testdata/"+tt.cv), tt.o))
			checkSample(t, tt.want, out)
			checktest.FailIf(t, errOut != "", "warned %q", errOut)
		})
	}
}

// TestSummaryBlocks holds the text of each block against the rest of a summary
// that says nothing else.
func TestSummaryBlocks(t *testing.T) {
	const (
		first = "Cluster version is 4.14.1\n\n"
		none  = "No updates available. You may still upgrade to a specific release image with --to-image or wait for new updates to be available.\n"
	)
	for _, tt := range []struct {
		name    string
		edit    func(*configv1.ClusterVersion)
		all     bool
		out     string
		warning string
	}{
		{name: "nothing", edit: edited(), out: first + none},
		{name: "failing", edit: with("Failing", "True", "Slow", "one\ntwo\n\nthree"), out: "Failing=True:\n\n  Reason: Slow\n  Message: one\n  two\n  \n  three\n\n" + first + none},
		{name: "failing unknown", edit: with("Failing", "Unknown", "", ""), out: "Failing=Unknown:\n\n  Reason: \n  Message: \n\n" + first + none},
		{name: "the first of a type counts", edit: func(cv *configv1.ClusterVersion) {
			cv.Status.Conditions = append(cv.Status.Conditions, cvCondition("Failing", "True", "R", "M"), cvCondition("Progressing", "True", "R", "M"))
			conditional("4.14.2", "True", "R", "M")(cv)
			cv.Status.ConditionalUpdates[0].Conditions = append(cv.Status.ConditionalUpdates[0].Conditions, metav1.Condition{Type: "Recommended", Status: "False"})
		}, out: first + none},
		{name: "no failing", edit: without("Failing"), out: first + none, warning: "warning: No current Failing info, see `oc describe clusterversion` for more details.\n"},
		{name: "in progress", edit: with("Progressing", "True", "Working", "Working towards 4.14.2: 106 of 841 done (12% complete), waiting on machine-config"), out: "info: An upgrade is in progress. Working towards 4.14.2: 106 of 841 done (12% complete), waiting on machine-config\n\n" + none},
		{name: "progress unknown", edit: with("Progressing", "Unknown", "", "Who knows"), out: "Who knows\n\n" + none},
		{name: "progress without message", edit: with("Progressing", "True", "Working", ""), out: "\n" + none, warning: "warning: No current Progressing info, see `oc describe clusterversion` for more details.\n"},
		{name: "no progressing", edit: without("Progressing"), out: "\n" + none, warning: "warning: No current Progressing info, see `oc describe clusterversion` for more details.\n"},
		{name: "not upgradeable", edit: with("Upgradeable", "False", "Old", "a\nb"), out: first + "Upgradeable=False\n\n  Reason: Old\n  Message: a\n  b\n\n" + none},
		{name: "upgradeable unknown", edit: with("Upgradeable", "Unknown", "Old", "a"), out: first + none},
		{name: "not accepted", edit: with("ReleaseAccepted", "False", "Unsigned", "a\nb"), out: first + "ReleaseAccepted=False\n\n  Reason: Unsigned\n  Message: a\n  b\n\n" + none},
		{name: "accepted unknown", edit: with("ReleaseAccepted", "Unknown", "R", "M"), out: first + "ReleaseAccepted=Unknown\n\n  Reason: R\n  Message: M\n\n" + none},
		{name: "accepted", edit: with("ReleaseAccepted", "True", "R", "M"), out: first + none},
		{name: "channel", edit: channel("b", "https://up.example", "b", "a"), out: first + "Upstream: https://up.example\nChannel: b (available channels: b, a)\n" + none},
		{name: "channel alone", edit: channel("b", ""), out: first + "Upstream is unset, so the cluster will use an appropriate default.\nChannel: b\n" + none},
		{name: "upstream without channel", edit: channel("", "https://up.example", "a"), out: first + none},
		{name: "stale with updates", edit: edited(available("4.14.2"), with("RetrievedUpdates", "False", "R", "a\nb")),
			out: first + "\nRecommended updates:\n\n  VERSION     IMAGE\n  4.14.2      image-4.14.2\n", warning: "warning: Cannot refresh available updates:\n  Reason: R\n  Message: a\n  b\n\n"},
		{name: "stale without updates", edit: with("RetrievedUpdates", "False", "R", "M"), out: first, warning: "warning: Cannot display available updates:\n  Reason: R\n  Message: M\n\n"},
		{name: "retrieval unknown", edit: with("RetrievedUpdates", "Unknown", "R", "M"), out: first + none},
		{name: "hidden updates", edit: conditional("4.14.2", "False", "R", "M"), out: first + none + "\nAdditional updates which are not recommended for your cluster configuration are available, to view those re-run the command with --include-not-recommended.\n"},
		{name: "hidden unknown updates", edit: edited(conditional("4.14.2", "False", "R", "M"), conditional("4.14.3", "Unknown", "R", "M"), conditional("4.14.4", "Odd", "R", "M")),
			out: first + none + "\nAdditional updates which are not recommended, or where the recommended status is \"Unknown\", for your cluster configuration are available, to view those re-run the command with --include-not-recommended.\n"},
		{name: "first status in the object's order", edit: edited(conditional("4.14.2", "Odd", "R", "M"), conditional("4.14.3", "Unknown", "R", "M")),
			out: first + none + "\nAdditional updates which are not recommended, or where the recommended status is \"Odd\", for your cluster configuration are available, to view those re-run the command with --include-not-recommended.\n"},
		{name: "empty status", edit: conditional("4.14.2", "", "R", "M"),
			out: first + none + "\nAdditional updates which are not recommended, or where the recommended status is \"\", for your cluster configuration are available, to view those re-run the command with --include-not-recommended.\n"},
		{name: "recommended and unjudged ones do not count", edit: edited(conditional("4.14.2", "True", "R", "M"), conditional("4.14.3", "-", "", "")), out: first + none},
		{name: "none to include", edit: edited(conditional("4.14.2", "True", "R", "M"), conditional("4.14.3", "-", "", "")), all: true, out: first + none + "\nNo updates which are not recommended based on your cluster configuration are available.\n"},
		{name: "included, newer first", edit: edited(conditional("4.14.9", "False", "R", "\n a\n\nb \n"), conditional("4.14.10", "Unknown", "S", "M")), all: true,
			out: first + none + "\nUpdates with known issues:\n\n  Version: 4.14.10\n  Image: image-4.14.10\n  Reason: S\n  Message: M\n\n  Version: 4.14.9\n  Image: image-4.14.9\n  Reason: R\n  Message: a\n  \n  b\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantTexts(t, tt.out, tt.warning, summaryWriter(t, healthy(tt.edit), view.SummaryText{IncludeNotRecommended: tt.all}))
		})
	}
}

// TestSummaryOrder has a version in each place of the order: valid before invalid,
// valid ones by precedence, invalid ones by their text, equal ones as they are.
func TestSummaryOrder(t *testing.T) {
	cv := healthy(available("4.9.0", "v4.99.0", "4.10.0-rc.2", "4.10.0", "4.10.0-rc.10", "4.10", "4.14.0+b", "4.14.0+a", "04.1.0", ""))
	s := checktest.Get(view.Summarize(cv))(t)
	var got []string
	for _, r := range s.Updates {
		got = append(got, r.Version)
	}
	want := "4.14.0+b 4.14.0+a 4.10.0 4.10.0-rc.10 4.10.0-rc.2 4.9.0 v4.99.0 4.10 04.1.0 "
	checktest.FailIf(t, strings.Join(got, " ") != want, "order is %q, want %q", got, want)
}

// TestVersionTable aligns versions: a column has 14 places at least, and one more
// than its widest text. Tabs in texts do not add columns, line feeds begin lines.
func TestVersionTable(t *testing.T) {
	const before = "Cluster version is 4.14.1\n\n\nRecommended updates:\n\n"
	for _, tt := range []struct{ name, version, want string }{
		{"eleven", "4.14.123456", "  VERSION     IMAGE\n  4.14.123456 image-4.14.123456\n"},
		{"twelve", "4.14.1234567", "  VERSION      IMAGE\n  4.14.1234567 image-4.14.1234567\n"},
		{"twenty", "4.14.0-ec.2024010203", "  VERSION              IMAGE\n  4.14.0-ec.2024010203 image-4.14.0-ec.2024010203\n"},
		{"runes", "äöüäöüäöüäöü", "  VERSION      IMAGE\n  äöüäöüäöüäöü image-äöüäöüäöüäöü\n"},
		{"tab", "4.\t1", "  VERSION     IMAGE\n  4. 1        image-4. 1\n"},
		{"line feed", "4\n1", "  VERSION     IMAGE\n  4\n1             image-4\n1\n"},
		{"control characters", "4.14.2\x1b[2J\r", "  VERSION     IMAGE\n  4.14.2\uFFFD[2J\uFFFD image-4.14.2\uFFFD[2J\uFFFD\n"},
		{"not UTF-8", "4.14.2\xff", "  VERSION     IMAGE\n  4.14.2\uFFFD     image-4.14.2\uFFFD\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantTexts(t, before+tt.want, "", summaryWriter(t, healthy(available(tt.version)), view.SummaryText{}))
		})
	}
}

const noVersion = "No cluster version information available - you must be connected to an OpenShift version 4 server to fetch the current version"

func TestSummarizeWithoutVersion(t *testing.T) {
	if _, err := view.Summarize(nil); err == nil || err.Error() != noVersion {
		t.Errorf("error is %v", err)
	}
}

func TestSummaryJSON(t *testing.T) {
	s, err := view.Summarize(healthy(channel("b", "https://up.example", "b"), available("4.14.2"), conditional("4.14.3", "Unknown", "R", "M")))
	checktest.OK(t, err)
	golden(t, "summary.json", indented(t, s))
}

// failingWriter fails after a number of bytes.
type failingWriter int

var errFull = errors.New("full")

func (w *failingWriter) Write(p []byte) (int, error) {
	if len(p) > int(*w) {
		n := int(*w)
		*w = 0
		return n, errFull
	}
	*w -= failingWriter(len(p))
	return len(p), nil
}

// TestWriteErrors has either stream fail wherever it can.
func TestWriteErrors(t *testing.T) {
	cv := healthy(without("Failing"), available("4.14.2", "4.15.0"), conditional("4.14.3", "False", "R", "M"), channel("b", ""))
	cv.Status.History = []configv1.UpdateHistory{entry("4.14.2", "Partial", 0, -1)}
	o := withNodes(updating(), oldNode("w", "worker"))
	o.Missing = []view.Missing{{Kind: "Node", Reason: "lost"}}
	status := assess(t, o, time.Minute)
	h, err := view.AssessHistory(cv, started)
	checktest.OK(t, err)
	s := checktest.Get(view.Summarize(cv))(t)
	r := checktest.Get(view.AssessRecommend(view.RecommendInput{ClusterVersion: cv}))(t)
	for name, write := range map[string]func(io.Writer, io.Writer) error{
		"summary":   func(out, errOut io.Writer) error { return s.WriteText(out, errOut, view.SummaryText{}) },
		"recommend": func(out, errOut io.Writer) error { return r.WriteText(out, errOut, view.RecommendText{}) },
		"history":   func(out, _ io.Writer) error { return h.WriteText(out, view.HistoryText{}) },
		"status": func(out, errOut io.Writer) error {
			return status.WriteText(out, errOut, view.StatusText{Details: "all"})
		},
	} {
		out, errOut := texts(write)
		for n := range len(out) {
			w := failingWriter(n)
			if err := write(&w, io.Discard); !errors.Is(err, errFull) {
				t.Fatalf("%s: out fails after %d bytes, error is %v", name, n, err)
			}
		}
		for n := range len(errOut) {
			w := failingWriter(n)
			if err := write(io.Discard, &w); !errors.Is(err, errFull) {
				t.Fatalf("%s: err fails after %d bytes, error is %v", name, n, err)
			}
		}
	}
}

// How far preflights are ends both what oc adm upgrade shows and the status.
func TestPreflights(t *testing.T) {
	release := configv1.Release{Version: "4.14.2", Image: "quay.io/release:4.14.2"}
	finding := func(name, message string) clusterversion.PreflightFinding {
		return clusterversion.PreflightFinding{Name: name, Message: message}
	}
	for _, tt := range []struct {
		name  string
		found clusterversion.Preflight
		text  string
		line  string
	}{
		{"running", clusterversion.Preflight{Release: release, State: clusterversion.PreflightRunning, Message: "5 of 7 checks done, 2 remaining"},
			"Running\n  Target: 4.14.2\n  Progress: 5 of 7 checks done, 2 remaining\n", "; preflight of 4.14.2 running"},
		{"passed", clusterversion.Preflight{Release: release, State: clusterversion.PreflightCompleted},
			"Completed\n  Target: 4.14.2\n  Risks: none\n", "; preflight of 4.14.2 completed"},
		{"risks", clusterversion.Preflight{Release: release, State: clusterversion.PreflightCompleted, Findings: []clusterversion.PreflightFinding{
			finding("PoolsPausedPoolPaused", "worker is paused\nso is infra"), finding("EtcdBackupUnknown", "no source"),
		}}, "Completed\n  Target: 4.14.2\n  Risk: PoolsPausedPoolPausedFor4_14_2\n    worker is paused\n    so is infra\n  Risk: EtcdBackupUnknownFor4_14_2\n    no source\n",
			"; preflight of 4.14.2 completed with 2 risks"},
		{"failed", clusterversion.Preflight{Release: configv1.Release{Image: "quay.io/release@sha256:0123456789abcdef"}, State: clusterversion.PreflightFailed,
			Findings: []clusterversion.PreflightFinding{finding(clusterversion.PreflightIncomplete, "nobody signed it")}},
			"Failed\n  Target: quay.io/release@sha256:0123456789abcdef\n  Risk: PreflightIncompleteForsha256_0123456789ab\n    nobody signed it\n",
			"; preflight of quay.io/release@sha256:0123456789abcdef failed with 1 risk"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := updating()
			cv := o.ClusterVersion
			before := statusText(t, o, 30*time.Minute, view.StatusText{})
			clusterversion.ShowPreflights(&cv.Status, []clusterversion.Preflight{tt.found}, clusterversion.PreflightDisplay{})
			want := "\nPreflight Check: " + tt.text
			checktest.Equal(t, before+want, statusText(t, o, 30*time.Minute, view.StatusText{}), "status")
			if line := assess(t, o, 30*time.Minute).String(); !strings.HasSuffix(line, tt.line) {
				t.Errorf("line %q", line)
			}
			var out strings.Builder
			summary := checktest.Get(view.Summarize(cv))(t)
			checktest.OK(t, summary.WriteText(&out, &out, view.SummaryText{}))
			if !strings.HasSuffix(out.String(), want) {
				t.Errorf("summary:\n%s", out.String())
			}
		})
	}
}

func TestVerdict(t *testing.T) {
	of := func(levels ...string) []view.Insight {
		var insights []view.Insight
		for _, l := range levels {
			insights = append(insights, view.Insight{Level: l})
		}
		return insights
	}
	plane := func(a string) *view.ControlPlane { return &view.ControlPlane{Assessment: a} }
	nodes := []view.Unknown{{Kind: "Node"}}
	for _, tt := range []struct {
		name string
		s    view.Status
		want view.Verdict
	}{
		{"not updating", view.Status{}, view.VerdictFine},
		{"well", view.Status{ControlPlane: plane("Progressing")}, view.VerdictFine},
		{"slow", view.Status{ControlPlane: plane("Progressing - Slow")}, view.VerdictFine},
		{"stalled", view.Status{ControlPlane: plane("Stalled"), Unknown: nodes}, view.VerdictStuck},
		{"warned of", view.Status{Health: of("Warning")}, view.VerdictWarning},
		{"an error", view.Status{Health: of("Warning", "Error")}, view.VerdictStuck},
		{"critical", view.Status{Health: of("Critical")}, view.VerdictStuck},
		{"unknown nodes", view.Status{Unknown: nodes, Health: of("Warning")}, view.VerdictUnknown},
		{"unknown alerts", view.Status{Unknown: []view.Unknown{{Kind: "Alert"}}}, view.VerdictFine},
	} {
		if got := tt.s.Verdict(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// started is when the oldest update of the tests began.
var started = time.Date(2024, 2, 7, 16, 0, 0, 0, time.UTC)

// entry makes an entry of a history from seconds after started; negative ones are
// not set.
func entry(version, state string, from, to float64) configv1.UpdateHistory {
	h := configv1.UpdateHistory{Version: version, State: configv1.UpdateState(state)}
	if version != "" {
		h.Image = "image-" + version
	}
	at := func(s float64) metav1.Time {
		return metav1.NewTime(started.Add(time.Duration(s * float64(time.Second))))
	}
	if from >= 0 {
		h.StartedTime = at(from)
	}
	if to >= 0 {
		t := at(to)
		h.CompletionTime = &t
	}
	return h
}

func withHistory(entries ...configv1.UpdateHistory) *configv1.ClusterVersion {
	return healthy(func(cv *configv1.ClusterVersion) { cv.Status.History = entries })
}

func TestHistory(t *testing.T) {
	now := started.Add(3*time.Hour + 499*time.Millisecond)
	berlin := time.FixedZone("Berlin", 3600)
	local := entry("4.14.0", "Completed", 0, 3600)
	local.StartedTime = metav1.NewTime(local.StartedTime.In(berlin))
	local.Verified = true
	for _, tt := range []struct {
		name string
		cv   *configv1.ClusterVersion
		o    view.HistoryText
		want string
	}{
		{"newest first", withHistory(entry("4.14.2", "Partial", 7200, -1), entry("4.14.1", "Partial", 3600, 3661.5), local), view.HistoryText{}, `
VERSION   STATE       STARTED                COMPLETED              DURATION   VERIFIED   IMAGE
4.14.2    Partial     2024-02-07T18:00:00Z   -                      1h         false      image-4.14.2
4.14.1    Partial     2024-02-07T17:00:00Z   2024-02-07T17:01:01Z   1m2s       false      image-4.14.1
4.14.0    Completed   2024-02-07T16:00:00Z   2024-02-07T17:00:00Z   1h         true       image-4.14.0
`},
		{"without images", withHistory(local), view.HistoryText{WithoutImages: true}, `
VERSION   STATE       STARTED                COMPLETED              DURATION   VERIFIED
4.14.0    Completed   2024-02-07T16:00:00Z   2024-02-07T17:00:00Z   1h         true
`},
		{"not set", withHistory(entry("", "", -1, -1), entry("4.14.1", "Partial", 0, -1), entry("4.14.0", "Completed", -1, 0)), view.HistoryText{}, `
VERSION   STATE       STARTED                COMPLETED              DURATION   VERIFIED   IMAGE
-         -           -                      -                      -          false      -
4.14.1    Partial     2024-02-07T16:00:00Z   -                      -          false      image-4.14.1
4.14.0    Completed   -                      2024-02-07T16:00:00Z   -          false      image-4.14.0
`},
		{"completed without time", withHistory(entry("4.14.1", "Completed", 0, -1)), view.HistoryText{}, `
VERSION   STATE       STARTED                COMPLETED   DURATION   VERIFIED   IMAGE
4.14.1    Completed   2024-02-07T16:00:00Z   -           -          false      image-4.14.1
`},
		{"rounds", withHistory(entry("4.14.1", "Completed", 0, 0.4), entry("4.14.0", "Completed", 0, 0.5), entry("4.13.9", "Completed", 10, 5)), view.HistoryText{WithoutImages: true}, `
VERSION   STATE       STARTED                COMPLETED              DURATION   VERIFIED
4.14.1    Completed   2024-02-07T16:00:00Z   2024-02-07T16:00:00Z   now        false
4.14.0    Completed   2024-02-07T16:00:00Z   2024-02-07T16:00:00Z   1s         false
4.13.9    Completed   2024-02-07T16:00:10Z   2024-02-07T16:00:05Z   -5s        false
`},
		{"none", withHistory(), view.HistoryText{}, "\nVERSION   STATE   STARTED   COMPLETED   DURATION   VERIFIED   IMAGE\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := checktest.Get(view.AssessHistory(tt.cv, now))(t)
			wantTexts(t, tt.want[1:], "", func(out, _ io.Writer) error { return h.WriteText(out, tt.o) })
		})
	}
}

func TestHistoryWithoutVersion(t *testing.T) {
	if _, err := view.AssessHistory(nil, started); err == nil || err.Error() != noVersion {
		t.Errorf("error is %v", err)
	}
}

func TestHistoryJSON(t *testing.T) {
	partial := entry("4.14.2", "Partial", 0, -1)
	partial.AcceptedRisks = "Upgradeable=False"
	h, err := view.AssessHistory(withHistory(partial, entry("4.14.1", "Completed", 0, 60)), started.Add(90*time.Second))
	checktest.OK(t, err)
	golden(t, "history.json", indented(t, h))
}
