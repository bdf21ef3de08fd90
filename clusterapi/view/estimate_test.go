package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

func TestTimeShare(t *testing.T) {
	for c, want := range map[float64]string{
		0.01: "-0.004882", 0.02: "0.020260", 0.1: "0.193859", 0.2499999: "0.387430", 0.25: "0.382183", 0.5: "0.389515",
		0.75: "0.419356", 0.8999999: "0.461760", 0.9: "0.478541", 0.95: "0.688881", 0.97: "0.698154", 0.99: "0.832055",
	} {
		if got := fmt.Sprintf("%.6f", view.TimeShare(c)); got != want {
			t.Errorf("w(%v) = %s, want %s", c, got, want)
		}
	}
	if view.TimeShare(0.011917) > 0 || view.TimeShare(0.011919) <= 0 {
		t.Error("the curve crosses zero elsewhere")
	}
}

// shared is an update of which done of total operators are updated, that made its
// last progress at a time.
func shared(done, total int, progress time.Duration) *view.Objects {
	o := updating()
	o.ClusterOperators = nil
	for i := range total {
		version := "4.14.0"
		if i < done {
			version = "4.14.1"
		}
		o.ClusterOperators = append(o.ClusterOperators, platformOperator(fmt.Sprint("o", i), version))
	}
	conditionOf(o.ClusterOperators[0], "Progressing").LastTransitionTime = after(progress)
	return o
}

func TestEstimate(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		name              string
		p, u              time.Duration
		done, total       int
		result, estimated time.Duration
		text              string
		assessment        string
	}{
		{"nothing done", 0, 600 * s, 0, 10, 3600 * s, 70 * time.Minute, "1h", "Progressing"},
		{"too early", 240 * s, 240 * s, 3, 10, 67 * time.Minute, 71 * time.Minute, "1h7m", "Progressing"},
		{"exactly five minutes", 300 * s, 300 * s, 3, 10, 66 * time.Minute, 71 * time.Minute, "1h6m", "Progressing"},
		{"extrapolated", 301 * s, 301 * s, 3, 10, 566 * s, 14 * time.Minute, "<10m", "Progressing"},
		{"half", 1500 * s, 1800 * s, 5, 10, 41 * time.Minute, 71 * time.Minute, "41m", "Progressing"},
		{"slow", 1200 * s, 2400 * s, 97, 100, -567 * s, 30 * time.Minute, "<10m", "Progressing - Slow"},
		{"stalled", 3000 * s, 6000 * s, 97, 100, -1419 * s, 76 * time.Minute, "N/A; estimate duration was 1h16m", "Stalled"},
		// The share at which the curve is not above zero: the baseline stays.
		{"below the curve", 1000 * s, 1000 * s, 1, 100, 52 * time.Minute, 68 * time.Minute, "52m", "Progressing"},
	} {
		o := shared(tt.done, tt.total, tt.p)
		if tt.p == tt.u {
			conditionOf(o.ClusterOperators[0], "Progressing").LastTransitionTime = after(tt.u)
		}
		c := assess(t, o, tt.u).ControlPlane
		if c.Remaining.Duration != tt.result || c.EstimatedDuration.Duration != tt.estimated || c.Assessment != tt.assessment {
			t.Errorf("%s: %v of %v, %s; want %v of %v, %s", tt.name, c.Remaining, c.EstimatedDuration, c.Assessment, tt.result, tt.estimated, tt.assessment)
		}
		text := section(t, statusText(t, o, tt.u, view.StatusText{}), "Duration", "Operator")
		if !strings.HasSuffix(text, "(Est. Time Remaining: "+tt.text+")\n") {
			t.Errorf("%s: %q, want %q", tt.name, text, tt.text)
		}
	}
}

// history makes updates that took so many minutes, newest first; the newest still
// runs.
func lasting(minutes ...int) []configv1.UpdateHistory {
	history := []configv1.UpdateHistory{partial("4.14.1", after(0))}
	for i, m := range minutes {
		history = append(history, complete(fmt.Sprintf("4.13.%d", 50-i), after(-time.Duration(i+1)*24*time.Hour), time.Duration(m)*time.Minute))
	}
	return history
}

func TestBaseline(t *testing.T) {
	incomplete := lasting(90, 80, 70)
	incomplete[1].State = configv1.PartialUpdate
	untimed := lasting(90, 80, 70)
	untimed[1].CompletionTime = nil
	all := lasting(90, 80)
	all[1].State = configv1.PartialUpdate
	for _, tt := range []struct {
		name    string
		history []configv1.UpdateHistory
		want    time.Duration
	}{
		{"the first", lasting(), 60}, {"two", lasting(90), 60}, {"three", lasting(90, 80), 90}, {"four", lasting(90, 80, 70), 90},
		{"incomplete", incomplete, 80}, {"without a time", untimed, 80}, {"none but the oldest", all, 60},
	} {
		o := shared(0, 4, 0)
		o.ClusterVersion.Status.History = tt.history
		// Nothing is done and no time has passed: the baseline, and a fifth.
		if got, want := assess(t, o, 0).ControlPlane.Remaining.Duration, tt.want*time.Minute*6/5; got != want {
			t.Errorf("%s: %v, want %v", tt.name, got, want)
		}
	}
}

// remains is what is left where an update ends after a total.
func remains(total, elapsed float64) time.Duration {
	rest := total - elapsed
	if rest >= 0 {
		rest *= 1.2
	} else {
		rest /= 1.2
	}
	d := time.Duration(int64(rest)) * time.Second
	if d > 10*time.Minute {
		d = d.Round(time.Minute)
	}
	return d
}

func TestLastProgress(t *testing.T) {
	const u = 40 * time.Minute
	extrapolated := func(p time.Duration, c float64) time.Duration {
		if p > 5*time.Minute {
			return remains(p.Seconds()/view.TimeShare(c), u.Seconds())
		}
		return remains(3600, u.Seconds())
	}
	touched := func(age time.Duration, names ...string) func(*view.Objects) {
		return func(o *view.Objects) {
			for _, co := range o.ClusterOperators {
				for _, name := range names {
					if co.Name == name {
						conditionOf(co, "Progressing").LastTransitionTime = after(age)
					}
				}
			}
		}
	}
	base := func() *view.Objects { // three of four are done
		o := updating()
		o.ClusterOperators = []*configv1.ClusterOperator{
			platformOperator("a", "4.14.1"), platformOperator("b", "4.14.1"), platformOperator("c", "4.14.1"),
			platformOperator("machine-config", "4.14.0", says("Progressing=True", after(20*time.Minute))),
		}
		return o
	}
	for _, tt := range []struct {
		name string
		edit func(*view.Objects)
		p    time.Duration
		c    float64
	}{
		{"machine-config alone counts", touched(30*time.Minute, "a"), 20 * time.Minute, 0.75},
		{"it began before the update", func(o *view.Objects) { touched(30*time.Minute, "a")(o); touched(0, "machine-config")(o) }, u, 0.75},
		{"it does not progress", func(o *view.Objects) {
			touched(30*time.Minute, "a")(o)
			conditionOf(o.ClusterOperators[3], "Progressing").Status = configv1.ConditionFalse
		}, 30 * time.Minute, 0.75},
		{"another is left as well", func(o *view.Objects) {
			touched(30*time.Minute, "a")(o)
			o.ClusterOperators[1] = platformOperator("b", "4.14.0")
		}, 30 * time.Minute, 0.5},
		{"another alone is left", func(o *view.Objects) {
			o.ClusterOperators[3].Name = "network"
			touched(30*time.Minute, "a")(o)
		}, 30 * time.Minute, 0.75},
		{"unknown progress counts", func(o *view.Objects) {
			o.ClusterOperators[1] = platformOperator("b", "4.14.0", says("Progressing=Unknown", after(25*time.Minute)))
		}, 25 * time.Minute, 0.5},
		{"no progress since the start", func(o *view.Objects) {
			o.ClusterOperators = []*configv1.ClusterOperator{platformOperator("a", "4.14.1"), platformOperator("b", "4.14.0", says("Progressing=True", after(0)))}
		}, u, 0.5},
		{"operators of no release", func(o *view.Objects) {
			o.ClusterOperators[3].Name = "network"
			foreign := platformOperator("olm-thing", "1", says("Progressing=True", after(35*time.Minute)))
			foreign.Annotations = nil
			o.ClusterOperators = append(o.ClusterOperators, foreign)
		}, 20 * time.Minute, 0.75},
		{"other conditions", func(o *view.Objects) {
			o.ClusterOperators[3].Name = "network"
			conditionOf(o.ClusterOperators[0], "Available").LastTransitionTime = after(35 * time.Minute)
		}, 20 * time.Minute, 0.75},
	} {
		o := base()
		tt.edit(o)
		if got, want := assess(t, o, u).ControlPlane.Remaining.Duration, extrapolated(tt.p, tt.c); got != want {
			t.Errorf("%s: %v, want %v", tt.name, got, want)
		}
	}
}

// What is exactly ten minutes is neither late, nor few.
func TestEstimateEdges(t *testing.T) {
	for _, tt := range []struct {
		elapsed    time.Duration
		result     time.Duration
		text       string
		assessment string
	}{
		{time.Hour - 500*time.Second, 10 * time.Minute, " (Est. Time Remaining: 10m)", "Progressing"},
		{time.Hour - 499*time.Second, 598 * time.Second, " (Est. Time Remaining: <10m)", "Progressing"},
		{time.Hour - 501*time.Second, 10 * time.Minute, " (Est. Time Remaining: 10m)", "Progressing"},
		{time.Hour - 525*time.Second, 11 * time.Minute, " (Est. Time Remaining: 11m)", "Progressing"},
		{time.Hour, 0, "", "Progressing"},
		{time.Hour - 800*time.Millisecond, 0, "", "Progressing"},
		{time.Hour - time.Second, time.Second, " (Est. Time Remaining: <10m)", "Progressing"},
		{time.Hour + time.Second, 0, "", "Progressing"},
		{time.Hour + 2*time.Second, -time.Second, " (Est. Time Remaining: <10m)", "Progressing - Slow"},
		{time.Hour + 720*time.Second, -10 * time.Minute, " (Est. Time Remaining: <10m)", "Progressing - Slow"},
		{time.Hour + 722*time.Second, -601 * time.Second, " (Est. Time Remaining: N/A; estimate duration was 1h2m)", "Stalled"},
	} {
		o := shared(0, 4, 0)
		c := assess(t, o, tt.elapsed).ControlPlane
		if c.Remaining.Duration != tt.result || c.Assessment != tt.assessment {
			t.Errorf("%v: %v, %s; want %v, %s", tt.elapsed, c.Remaining, c.Assessment, tt.result, tt.assessment)
		}
		line := section(t, statusText(t, o, tt.elapsed, view.StatusText{}), "Duration", "Operator")
		if want := "Duration:        " + text.Short(tt.elapsed.Round(time.Minute)) + tt.text + "\n"; line != want {
			t.Errorf("%v: %q, want %q", tt.elapsed, line, want)
		}
	}
}

// Durations are shown in minutes above ten of them.
func TestUpdateDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "now", 400 * time.Millisecond: "now", 500 * time.Millisecond: "1s", 10 * time.Minute: "10m", 9*time.Minute + 59500*time.Millisecond: "10m",
		10*time.Minute + time.Nanosecond: "10m", 10*time.Minute + 29*time.Second: "10m", 10*time.Minute + 30*time.Second: "11m", 61 * time.Minute: "1h1m", 2 * time.Hour: "2h",
	} {
		line := section(t, statusText(t, updating(), d, view.StatusText{}), "Duration", "Operator")
		if !strings.HasPrefix(line, "Duration:        "+want+" (Est") && line != "Duration:        "+want+"\n" {
			t.Errorf("%v: %q, want %q", d, line, want)
		}
	}
}

// The time of an update that has ended does not go on, even while operators
// are left.
func TestDurationOfCompleted(t *testing.T) {
	o := updating()
	o.ClusterVersion.Status.History[0] = complete("4.14.1", after(0), 7*time.Minute)
	c := assess(t, o, 5*time.Hour).ControlPlane
	if c.Duration.Duration != 7*time.Minute || !c.CompletedAt.Equal(updateStart.Add(7*time.Minute)) {
		t.Errorf("%v, %v", c.Duration, c.CompletedAt)
	}
	// Without a history there is no time at all.
	o.ClusterVersion.Status.History = nil
	if c := assess(t, o, 5*time.Hour).ControlPlane; c.Duration.Duration != 0 || c.Remaining.Duration != 72*time.Minute {
		t.Errorf("%v, %v", c.Duration, c.Remaining)
	}
}

// Where the start of an update is not known, no time is made up.
func TestUnknownStart(t *testing.T) {
	o := shared(2, 4, 10*time.Minute)
	o.ClusterVersion.Status.History[0].StartedTime = metav1.Time{}
	o.ClusterVersion.Status.Conditions[0].LastTransitionTime = metav1.Time{}
	s := assess(t, o, 20*time.Minute)
	if s.Started != nil || s.UpdatingFor.Duration != 0 || s.ControlPlane.Duration.Duration != 0 || s.ControlPlane.Remaining.Duration != 72*time.Minute {
		t.Errorf("%v, %v, %v, %v", s.Started, s.UpdatingFor, s.ControlPlane.Duration, s.ControlPlane.Remaining)
	}
}
