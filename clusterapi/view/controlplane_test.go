package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
)

func TestControlPlaneText(t *testing.T) {
	o := updating()
	o.ClusterOperators = append(o.ClusterOperators,
		platformOperator("dns-2", "4.14.0", says("Progressing=True", after(3*time.Minute)), says("Available=False", after(3*time.Minute))),
		platformOperator("lost", "4.14.1", says("Available=Unknown", after(3*time.Minute)), says("Degraded=True", after(3*time.Minute))),
		platformOperator("ill", "4.14.1", says("Degraded=True", after(3*time.Minute))),
	)
	same(t, "all", `= Control Plane =
Assessment:      Progressing
Target Version:  4.14.1 (from 4.14.0)
Updating:        network, dns-2
Completion:      57% (4 operators updated, 2 updating, 1 waiting)
Duration:        5m (Est. Time Remaining: 1h6m)
Operator Health: 4 Healthy, 2 Unavailable, 1 Available but degraded

= Update Health =
SINCE   LEVEL   IMPACT   MESSAGE
5m      Info    None     Update is proceeding well
`, statusText(t, o, 5*time.Minute, view.StatusText{}))

	old := section(t, statusText(t, o, 5*time.Minute, view.StatusText{Docs418: true}), "Operator", "")
	if !strings.HasPrefix(old, "Operator Status: 4 Healthy, 2 Unavailable, 1 Available but degraded\n") {
		t.Error(old)
	}
	o.ClusterOperators = o.ClusterOperators[:2]
	o.ClusterOperators = append(o.ClusterOperators, platformOperator("waits", "4.14.0"))
	same(t, "none is being updated", `= Control Plane =
Assessment:      Progressing
Target Version:  4.14.1 (from 4.14.0)
Completion:      67% (2 operators updated, 0 updating, 1 waiting)
Duration:        5m (Est. Time Remaining: 1h6m)
Operator Health: 3 Healthy
`, section(t, statusText(t, o, 5*time.Minute, view.StatusText{Details: "operators"}), "= Control", "\n"))
}

// How an operator counts.
func TestOperatorCounts(t *testing.T) {
	image := func(co *configv1.ClusterOperator, images ...string) *configv1.ClusterOperator {
		for _, i := range images {
			co.Status.Versions = append(co.Status.Versions, configv1.OperandVersion{Name: "operator-image", Version: i})
		}
		return co
	}
	two := platformOperator("two", "4.14.0")
	two.Status.Versions = append(two.Status.Versions, configv1.OperandVersion{Name: "operator", Version: "4.14.1"})
	operand := platformOperator("operand", "")
	operand.Status.Versions = []configv1.OperandVersion{{Name: "kube-apiserver", Version: "4.14.1"}}
	for _, tt := range []struct {
		name       string
		co         *configv1.ClusterOperator
		deployment string
		want       string // of updated, updating, waiting, healthy, unavailable, degraded
	}{
		{"updated", platformOperator("a", "4.14.1"), "", "updated healthy"},
		{"updated and progressing", platformOperator("a", "4.14.1", says("Progressing=True", after(0))), "", "updated healthy"},
		{"progressing", platformOperator("a", "4.14.0", says("Progressing=True", after(0))), "", "updating healthy"},
		{"waiting", platformOperator("a", "4.14.0"), "", "waiting healthy"},
		{"unknown progress", platformOperator("a", "4.14.0", says("Progressing=Unknown", after(0))), "", "healthy"},
		{"no progress", dropCondition(platformOperator("a", "4.14.0"), "Progressing"), "", "healthy"},
		{"no version", platformOperator("a", ""), "", "waiting healthy"},
		{"one of two versions", two, "", "updated healthy"},
		{"an operand's version", operand, "", "waiting healthy"},
		{"unavailable", platformOperator("a", "4.14.1", says("Available=False", after(0))), "", "updated unavailable"},
		{"unknown", platformOperator("a", "4.14.1", says("Available=Unknown", after(0))), "", "updated unavailable"},
		{"no Available", dropCondition(platformOperator("a", "4.14.1", says("Degraded=True", after(0))), "Available"), "", "updated unavailable"},
		{"degraded", platformOperator("a", "4.14.1", says("Degraded=True", after(0))), "", "updated degraded"},
		{"unknown Degraded", platformOperator("a", "4.14.1", says("Degraded=Unknown", after(0))), "", "updated healthy"},
		{"unavailable and degraded", platformOperator("a", "4.14.1", says("Available=False", after(0)), says("Degraded=True", after(0))), "", "updated unavailable"},
		{"first condition of a type", platformOperator("a", "4.14.0", says("Progressing=True", after(0)), says("Progressing=False", after(0))), "", "updating healthy"},
		{"machine-config", platformOperator("machine-config", "4.14.1"), "", "updated healthy"},
		{"its image", image(platformOperator("machine-config", "4.14.1"), "i"), "i", "updated healthy"},
		{"another image", image(platformOperator("machine-config", "4.14.1"), "i"), "j", "waiting healthy"},
		{"its image without deployment", image(platformOperator("machine-config", "4.14.1"), "i"), "", "waiting healthy"},
		{"an empty image without deployment", image(platformOperator("machine-config", "4.14.1"), ""), "", "updated healthy"},
		{"one of two images", image(platformOperator("machine-config", "4.14.1"), "i", "j"), "i", "waiting healthy"},
		{"its image and an old version", image(platformOperator("machine-config", "4.14.0"), "i"), "i", "waiting healthy"},
		{"another operator's image", image(platformOperator("a", "4.14.1"), "i"), "j", "updated healthy"},
	} {
		o := updating()
		o.ClusterOperators = []*configv1.ClusterOperator{tt.co}
		if tt.deployment != "" {
			o.Deployments = operatorImage(tt.deployment)
		}
		c := assess(t, o, time.Minute).ControlPlane
		var is []string
		for _, n := range []struct {
			count int
			text  string
		}{{c.Updated, "updated"}, {len(c.Updating), "updating"}, {c.Waiting, "waiting"}, {c.Healthy, "healthy"}, {c.Unavailable, "unavailable"}, {c.Degraded, "degraded"}} {
			if n.count == 1 {
				is = append(is, n.text)
			}
		}
		if got := strings.Join(is, " "); got != tt.want || c.Total != 1 {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Percentages that are halves go to the even one.
func TestCompletionTies(t *testing.T) {
	for _, tt := range []struct {
		updated, total int
		want           string
	}{{1, 8, "12%"}, {3, 8, "38%"}, {1, 200, "0%"}, {3, 200, "2%"}, {32, 33, "97%"}, {199, 200, "100%"}, {2, 3, "67%"}} {
		o := updating()
		o.ClusterOperators = nil
		for i := range tt.total {
			version := "4.14.0"
			if i < tt.updated {
				version = "4.14.1"
			}
			o.ClusterOperators = append(o.ClusterOperators, platformOperator(fmt.Sprint("o", i), version))
		}
		got := section(t, statusText(t, o, time.Minute, view.StatusText{}), "Completion:", "Duration")
		if want := fmt.Sprintf("Completion:      %s (%d operators updated, 0 updating, %d waiting)\n", tt.want, tt.updated, tt.total-tt.updated); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTargetText(t *testing.T) {
	multi := partial("4.14.1", after(0))
	multi.Image = "quay.io/release:multi"
	for _, tt := range []struct {
		name    string
		history []configv1.UpdateHistory
		target  string
		rest    string // of Duration, after one minute
	}{
		{"none", nil, "unknown (from unknown)", "now (Est. Time Remaining: 1h12m)"},
		{"installation", []configv1.UpdateHistory{partial("4.14.1", after(0))}, "4.14.1 (a new install)", "1m (Est. Time Remaining: 1h11m)"},
		{"update", []configv1.UpdateHistory{partial("4.14.1", after(0)), complete("4.14.0", after(-1), 1)}, "4.14.1 (from 4.14.0)", "1m (Est. Time Remaining: 1h11m)"},
		{"of an incomplete one", []configv1.UpdateHistory{partial("4.14.1", after(0)), partial("4.14.0", after(-1))}, "4.14.1 (from incomplete 4.14.0)", "1m (Est. Time Remaining: 1h11m)"},
		{"multi-arch", []configv1.UpdateHistory{multi, complete("4.14.1", after(-1), 1)}, "4.14.1 to Multi-Architecture", "1m (Est. Time Remaining: N/A for Multi-Architecture Migration)"},
		{"multi-arch of an incomplete one", []configv1.UpdateHistory{multi, partial("4.14.1", after(-1))}, "4.14.1 (from incomplete 4.14.1)", "1m (Est. Time Remaining: N/A for Multi-Architecture Migration)"},
		{"the same image again", []configv1.UpdateHistory{partial("4.14.1", after(0)), complete("4.14.1", after(-1), 1)}, "4.14.1 (from 4.14.1)", "1m (Est. Time Remaining: 1h11m)"},
	} {
		o := updating()
		o.ClusterVersion.Status.History = tt.history
		o.ClusterOperators = []*configv1.ClusterOperator{platformOperator("a", "4.13.0")}
		text := statusText(t, o, time.Minute, view.StatusText{})
		same(t, tt.name, "Target Version:  "+tt.target+"\n", section(t, text, "Target", "Completion"))
		same(t, tt.name, "Duration:        "+tt.rest+"\n", section(t, text, "Duration", "Operator"))
	}
}

// Nodes are compared with the newest entry of the history, operators with what
// the version operator wants.
func TestTargets(t *testing.T) {
	o := withNodes(updating(), newNode("w", "worker"))
	o.ClusterVersion.Status.Desired.Version = "4.14.0"
	s := assess(t, o, time.Minute)
	if s.ControlPlane.Updated != 2 || s.ControlPlane.Target != "4.14.1" || s.Pools[1].Updated != 1 {
		t.Errorf("%+v %+v", s.ControlPlane, s.Pools[1])
	}
}

func TestControlPlaneDone(t *testing.T) {
	noTime := complete("4.14.1", after(0), time.Hour)
	noTime.CompletionTime = nil
	zone := time.FixedZone("", 2*60*60)
	for _, tt := range []struct {
		name    string
		history []configv1.UpdateHistory
		want    string // at one hour after the start
	}{
		{"completed", []configv1.UpdateHistory{complete("4.14.1", after(0), 9*time.Minute+1500*time.Millisecond), complete("4.14.0", after(-1), 1)}, "4.14.1 successfully completed at 2024-05-01T12:09:01Z (duration: 9m2s)"},
		{"elsewhere", []configv1.UpdateHistory{complete("4.14.1", metav1.NewTime(updateStart.In(zone)), 10*time.Minute+30*time.Second)}, "4.14.1 successfully completed at 2024-05-01T12:10:30Z (duration: 11m)"},
		{"not yet said", []configv1.UpdateHistory{partial("4.14.1", after(0))}, "4.14.1 successfully completed at 2024-05-01T13:00:00Z (duration: 1h)"},
		{"without its time", []configv1.UpdateHistory{noTime}, "4.14.1 successfully completed at 2024-05-01T13:00:00Z (duration: 1h)"},
		{"no history", nil, "unknown successfully completed at 2024-05-01T13:00:00Z (duration: now)"},
	} {
		o := updating()
		o.ClusterVersion.Status.History = tt.history
		o.ClusterOperators = o.ClusterOperators[:2]
		text := statusText(t, o, time.Hour, view.StatusText{Details: "all"})
		same(t, tt.name, "= Control Plane =\nUpdate to "+tt.want+"\n", section(t, text, "= Control", "\n"))
		if a := assess(t, o, time.Hour).ControlPlane.Assessment; a != "Completed" {
			t.Errorf("%s: %s", tt.name, a)
		}
	}
}

func TestUpdatingOperators(t *testing.T) {
	o := updating()
	progressing := func(name string, age time.Duration, reason, message string) {
		o.ClusterOperators = append(o.ClusterOperators, platformOperator(name, "4.14.0", says("Progressing=True", after(time.Hour-age), reason, message)))
	}
	o.ClusterOperators = o.ClusterOperators[:1]
	progressing("a", 2*time.Minute, "TwentyCharactersLong", "one")
	progressing("b-longer", 300*time.Millisecond, "TwentyOneCharacters!!", "first\nsecond\tcell\n")
	progressing("c", time.Hour, "", "")
	progressing("d", time.Hour, "éééééééééééééééééééé", "\nlate")
	progressing("e", 61*time.Second, "ééééééééééééééééééééé", "x")
	want := "Updating Cluster Operators\n" +
		"NAME       SINCE   REASON                 MESSAGE\n" +
		"a          2m      TwentyCharactersLong   one\n" +
		"b-longer   now     TwentyOneCharacte...   first\n" +
		"                                          second cell\n" +
		"                                          \n" +
		"c          1h      -                      \n" +
		"d          1h      éééééééééééééééééééé   \n" +
		"                                          late\n" +
		"e          1m1s    ééééééééééééééééé...   x\n"
	for _, d := range []view.Details{"operators", "all"} {
		same(t, string(d), want, section(t, statusText(t, o, time.Hour, view.StatusText{Details: d}), "Updating Cluster", "\n"))
	}
	for _, d := range []view.Details{"", "none", "health", "nodes"} {
		if text := statusText(t, o, time.Hour, view.StatusText{Details: d}); strings.Contains(text, "Updating Cluster Operators") {
			t.Errorf("details %q show operators", d)
		}
	}
}
