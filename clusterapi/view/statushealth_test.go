package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

const (
	runbooks     = "https://github.com/openshift/runbooks/blob/master/alerts/cluster-monitoring-operator/"
	downBook     = runbooks + "ClusterOperatorDown.md"
	degradedBook = runbooks + "ClusterOperatorDegraded.md"
	proceeding   = "Update is proceeding well"
)

// insightLines tells the insights of a status in a line each.
func insightLines(s *view.Status) string {
	var all []string
	for _, i := range s.Health {
		since := "-"
		if i.Since != nil {
			since = text.Short(s.Now.Sub(*i.Since))
		}
		all = append(all, fmt.Sprintf("%s %s %s %s: %s: %s", since, i.Level, i.Impact, i.Scope, i.Summary, i.Description))
	}
	return strings.Join(all, "\n")
}

func TestFailingInsight(t *testing.T) {
	const stalled = " Warning Update Stalled ControlPlane: Cluster Version version "
	for _, tt := range []struct {
		name    string
		failing *configv1.ClusterOperatorStatusCondition
		want    string
	}{
		{"none", nil, "now" + stalled + "has no Failing condition: Current status of Cluster Version reconciliation is unclear.  See 'oc -n openshift-cluster-version logs -l k8s-app=cluster-version-operator --tail -1' to debug."},
		{"false", new(says("Failing=False", after(0), "Old", "text")), ""},
		{"true", new(says("Failing=True", after(time.Minute), "Bad", "text")), "4m" + stalled + "is failing to proceed with the update (Bad): text"},
		{"unknown", new(says("Failing=Unknown", after(time.Minute), "Slow", "text")), "4m" + stalled + "may be failing to proceed with the update (Slow): text"},
		{"odd", new(says("Failing=Maybe", metav1.Time{}, "", "text")), "-" + stalled + "is failing to proceed with the update (): text"},
		{"without message", new(says("Failing=True", after(time.Minute), "Bad")), ""},
	} {
		o := updating()
		o.ClusterVersion.Status.Conditions = o.ClusterVersion.Status.Conditions[:1]
		if tt.failing != nil {
			o.ClusterVersion.Status.Conditions = append(o.ClusterVersion.Status.Conditions, *tt.failing)
		}
		s := assess(t, o, 5*time.Minute)
		same(t, tt.name, tt.want, insightLines(s))
		for _, i := range s.Health {
			if i.Reference != degradedBook || len(i.Resources) != 1 || i.Resources[0] != (view.Resource{Group: "config.openshift.io", Kind: "ClusterVersion", Name: "version"}) {
				t.Errorf("%s: %+v", tt.name, i)
			}
		}
	}
}

func TestOperatorInsights(t *testing.T) {
	const now = 2 * time.Hour
	for _, tt := range []struct {
		condition string
		age       time.Duration
		want      string
	}{
		{"Available=False", 5 * time.Minute, ""},
		{"Available=False", 5*time.Minute + 1, "5m Warning unavailable"},
		{"Available=False", 20 * time.Minute, "20m Warning unavailable"},
		{"Available=False", 20*time.Minute + 1, "20m Error unavailable"},
		{"Available=Unknown", time.Hour, ""},
		{"Degraded=True", 5 * time.Minute, ""},
		{"Degraded=True", 5*time.Minute + 1, "5m Warning degraded"},
		{"Degraded=True", 40 * time.Minute, "40m Warning degraded"},
		{"Degraded=True", 40*time.Minute + 1, "40m Error degraded"},
		{"Degraded=Unknown", time.Hour, ""},
		{"Progressing=True", time.Hour, ""},
	} {
		for _, message := range []string{"so it is", ""} {
			o := updating()
			o.ClusterOperators[1] = platformOperator("dns", "4.14.1", says(tt.condition, after(now-tt.age), "Why", message))
			s := assess(t, o, now)
			want := ""
			if w := strings.Fields(tt.want); len(w) > 0 {
				want = fmt.Sprintf("%s %s API Availability ControlPlane: Cluster Operator dns is %s (Why): %s", w[0], w[1], w[2], map[bool]string{true: message, false: "<no message>"}[message != ""])
				book := downBook
				if w[2] == "degraded" {
					book = degradedBook
				}
				if i := s.Health[0]; i.Reference != book || len(i.Resources) != 1 || i.Resources[0] != (view.Resource{Group: "config.openshift.io", Kind: "ClusterOperator", Name: "dns"}) {
					t.Errorf("%+v", i)
				}
			}
			same(t, fmt.Sprint(tt.condition, " for ", tt.age), want, insightLines(s))
		}
	}
	// An operator of no release is not looked at.
	o := updating()
	foreign := platformOperator("foreign", "1", says("Available=False", after(0)))
	foreign.Annotations = nil
	o.ClusterOperators = append(o.ClusterOperators, foreign)
	same(t, "foreign", "", insightLines(assess(t, o, now)))
}

func TestHistoryInsight(t *testing.T) {
	p, c := partial, complete
	untimed := c("4.13.5", after(-3), 1)
	untimed.CompletionTime = nil
	at := after(0)
	for _, tt := range []struct {
		name    string
		history []configv1.UpdateHistory
		last    string
	}{
		{"one", []configv1.UpdateHistory{p("4.14.1", at)}, ""},
		{"complete", []configv1.UpdateHistory{p("4.14.1", at), c("4.14.0", after(-2), 1), p("4.13.9", after(-3))}, ""},
		{"nothing before", []configv1.UpdateHistory{p("4.14.1", at), p("4.14.0", after(-2))}, "unknown"},
		{"nothing completed", []configv1.UpdateHistory{p("4.14.1", at), p("4.14.0", after(-2)), p("4.13.9", after(-3))}, "unknown"},
		{"one before", []configv1.UpdateHistory{p("4.14.1", at), p("4.14.0", after(-2)), p("4.13.9", after(-3)), c("4.13.8", after(-4), 1), c("4.13.7", after(-5), 1)}, "4.13.8"},
		{"one without its time", []configv1.UpdateHistory{p("4.14.1", at), p("4.14.0", after(-2)), untimed, c("4.13.4", after(-4), 1)}, "4.13.4"},
	} {
		o := updating()
		o.ClusterVersion.Status.History = tt.history
		want := ""
		if tt.last != "" {
			want = "3m Warning None ControlPlane: Previous update to 4.14.0 never completed, last complete update was " + tt.last +
				": Current update to 4.14.1 was initiated while the previous update to version 4.14.0 was still in progress"
		}
		s := assess(t, o, 3*time.Minute)
		same(t, tt.name, want, insightLines(s))
		if want != "" && (s.Health[0].Reference != "https://docs.openshift.com/container-platform/latest/updating/troubleshooting_updates/gathering-data-cluster-update.html#gathering-clusterversion-history-cli_troubleshooting_updates" ||
			s.Health[0].Resources[0].Kind != "ClusterVersion") {
			t.Errorf("%+v", s.Health[0])
		}
		o.ClusterOperators = o.ClusterOperators[:2] // the control plane is done
		same(t, tt.name+", done", "", insightLines(assess(t, o, 3*time.Minute)))
	}
}

func TestAlertInsights(t *testing.T) {
	const now = time.Hour
	firing := func(name, severity, state string, at time.Duration, annotations ...string) clusterapi.Alert {
		a := clusterapi.Alert{Labels: map[string]string{"alertname": name, "severity": severity, "namespace": "ns"}, Annotations: map[string]string{}, State: state, ActiveAt: updateStart.Add(at)}
		for _, text := range annotations {
			key, value, _ := strings.Cut(text, "=")
			a.Annotations[key] = value
		}
		return a
	}
	timeless := firing("PodDisruptionBudgetLimit", "critical", "firing", 0)
	timeless.ActiveAt = time.Time{}
	old := firing("Other", "critical", "firing", 0)
	old.ActiveAt = time.Time{}
	global := firing("Global", "warning", "firing", time.Minute)
	delete(global.Labels, "namespace")
	const none = " The alert has no description."
	for _, tt := range []struct {
		name  string
		alert clusterapi.Alert
		want  string
	}{
		{"during", firing("A", "warning", "firing", time.Minute), "59m Warning Alert is firing: A: Alert started firing during the update." + none},
		{"critical", firing("A", "critical", "firing", time.Minute), "59m Critical Alert is firing: A: Alert started firing during the update." + none},
		{"other state", firing("A", "critical", "odd", time.Minute), "59m Critical Alert is firing: A: Alert started firing during the update." + none},
		{"pending", firing("A", "critical", "pending", time.Minute), ""},
		{"no name", firing("", "critical", "firing", time.Minute), ""},
		{"info", firing("A", "info", "firing", time.Minute), ""},
		{"no severity", firing("A", "", "firing", time.Minute), ""},
		{"at the start", firing("A", "critical", "firing", 0), ""},
		{"just after it", firing("A", "critical", "firing", 1), "59m59s Critical Alert is firing: A: Alert started firing during the update." + none},
		{"before", firing("A", "critical", "firing", -time.Minute), ""},
		{"unknown time", old, ""},
		{"budget at its limit", firing("PodDisruptionBudgetAtLimit", "warning", "firing", -time.Minute), "1h1m Warning Alert is firing: PodDisruptionBudgetAtLimit: Alert known to affect updates has been firing since before the update started." + none},
		{"budget at the start", firing("PodDisruptionBudgetLimit", "critical", "firing", 0), "1h Critical Alert is firing: PodDisruptionBudgetLimit: Alert known to affect updates has been firing since before the update started." + none},
		{"budget during", firing("PodDisruptionBudgetLimit", "critical", "firing", time.Minute), "59m Critical Alert is firing: PodDisruptionBudgetLimit: Alert known to affect updates started firing during the update." + none},
		{"budget at no known time", timeless, "- Critical Alert is firing: PodDisruptionBudgetLimit: Alert known to affect updates has been firing since before the update started." + none},
		{"budget pending", firing("PodDisruptionBudgetLimit", "critical", "pending", time.Minute), ""},
		{"budget info", firing("PodDisruptionBudgetAtLimit", "info", "firing", time.Minute), ""},
		{"summary", firing("A", "warning", "firing", time.Minute, "summary=It is bad", "description=Very", "message=Look"), "59m Warning Alert is firing: It is bad: Alert started firing during the update. The alert description is: Very | Look"},
		{"description", firing("A", "warning", "firing", time.Minute, "description=Very"), "59m Warning Alert is firing: A: Alert started firing during the update. The alert description is: Very"},
		{"message", firing("A", "warning", "firing", time.Minute, "message=Look"), "59m Warning Alert is firing: A: Alert started firing during the update. The alert description is: Look"},
	} {
		o := updating()
		o.Alerts = []clusterapi.Alert{tt.alert}
		s := assess(t, o, now)
		want := strings.ReplaceAll(strings.ReplaceAll(tt.want, "Warning Alert", "Warning Unknown Cluster: Alert"), "Critical Alert", "Critical Unknown Cluster: Alert")
		same(t, tt.name, want, insightLines(s))
		for _, i := range s.Health {
			if i.Reference != "<alert does not have a runbook_url annotation>" || i.Resources[0] != (view.Resource{Group: "config.openshift.io", Kind: "Alert", Namespace: "ns", Name: tt.alert.Labels["alertname"]}) {
				t.Errorf("%s: %+v", tt.name, i)
			}
		}
	}
	o := updating()
	global.Annotations["runbook_url"] = "https://example.com/run"
	global.ActiveAt = updateStart.Add(time.Minute + 250*time.Millisecond)
	o.Alerts = []clusterapi.Alert{global}
	same(t, "detailed", "Message: Alert is firing: Global\n  Since:       58m59s\n  Level:       Warning\n  Impact:      Unknown\n  Reference:   https://example.com/run\n"+
		"  Resources:\n    alerts.config.openshift.io: Global\n  Description: Alert started firing during the update. The alert has no description.\n",
		section(t, statusText(t, o, now, view.StatusText{Details: "health"}), "Message", ""))
	if i := assess(t, o, now).Health[0]; !i.Since.Equal(global.ActiveAt) {
		t.Errorf("%v has lost its fraction", i.Since)
	}
}

// Insights go by level, then from the newest to the oldest and to those whose age is
// unknown; equal ones keep their order, however many there are.
func TestInsightOrder(t *testing.T) {
	o := withNodes(updating(),
		nodeSays(oldNode("w2", "worker"), "DiskPressure=True", after(time.Hour), ""),
		nodeSays(oldNode("w1", "worker"), "DiskPressure=True", after(time.Hour), ""),
		changingNode("bad", "worker", "Degraded", "reason=r"),
		nodeSays(oldNode("m1", "master"), "DiskPressure=True", after(time.Hour), ""),
	)
	o.MachineConfigPools[0].Spec.Paused = true
	o.MachineConfigPools[0], o.MachineConfigPools[1] = o.MachineConfigPools[1], o.MachineConfigPools[0]
	o.ClusterVersion.Status.Conditions[1] = says("Failing=True", after(time.Hour), "F", "f")
	o.ClusterOperators = []*configv1.ClusterOperator{
		platformOperator("z", "4.14.0", says("Degraded=True", after(time.Hour), "D", "d"), says("Available=False", after(time.Hour), "A", "a")),
		platformOperator("y", "4.14.0", says("Degraded=True", after(time.Hour+time.Minute), "D", "d")),
		platformOperator("x", "4.14.0", says("Available=False", after(30*time.Minute), "A", "a")),
	}
	for i := range 20 {
		o.Alerts = append(o.Alerts, clusterapi.Alert{Labels: map[string]string{"alertname": fmt.Sprint("A", i), "severity": "warning"}, State: "firing", ActiveAt: updateStart.Add(time.Hour)})
	}
	o.Alerts = append(o.Alerts, clusterapi.Alert{Labels: map[string]string{"alertname": "Worst", "severity": "critical"}, State: "firing", ActiveAt: updateStart.Add(time.Minute)})
	var got []string
	for _, i := range assess(t, o, time.Hour+10*time.Minute).Health {
		got = append(got, fmt.Sprintf("%s %s", i.Level, i.Resources[0].Name+strings.TrimSuffix(strings.TrimPrefix(i.Summary, "Cluster Operator "+i.Resources[0].Name+" is"), "()")))
	}
	var want []string
	want = append(want, "Critical WorstAlert is firing: Worst", "Error x unavailable (A)", "Error badNode bad is degraded", "Warning y degraded (D)",
		"Warning w2Node w2 has disk pressure", "Warning w1Node w1 has disk pressure", "Warning m1Node m1 has disk pressure")
	for i := range 20 {
		want = append(want, fmt.Sprintf("Warning A%dAlert is firing: A%d", i, i))
	}
	want = append(want, "Warning versionCluster Version version is failing to proceed with the update (F)", "Warning z unavailable (A)", "Warning z degraded (D)",
		"Warning masterOutdated nodes in a paused pool 'master' will not be updated")
	same(t, "order", strings.Join(want, "\n"), strings.Join(got, "\n"))
}

func TestHealthText(t *testing.T) {
	const hint = "\nRun with --details=health for additional description and links to related online documentation\n"
	o := updating()
	head := func(at time.Duration, d view.Details) string {
		return section(t, statusText(t, o, at, view.StatusText{Details: d}), "= Update Health", "")
	}
	for _, d := range []view.Details{"", "health", "all"} {
		same(t, "well", "= Update Health =\nSINCE   LEVEL   IMPACT   MESSAGE\n54m4s   Info    None     "+proceeding+"\n", head(54*time.Minute+4*time.Second+400*time.Millisecond, d))
	}
	o.ClusterVersion.Status.Conditions[1] = says("Failing=True", after(0), "F", "first\n\n  last")
	same(t, "one", "= Update Health =\nSINCE   LEVEL     IMPACT           MESSAGE\n1m      Warning   Update Stalled   Cluster Version version is failing to proceed with the update (F)\n"+hint, head(time.Minute+999*time.Millisecond, ""))
	o.ClusterOperators[0] = platformOperator("etcd", "4.14.1", says("Degraded=True", after(time.Minute), "", ""))
	same(t, "two", "= Update Health =\n"+
		"SINCE   LEVEL     IMPACT             MESSAGE\n"+
		"9m      Warning   API Availability   Cluster Operator etcd is degraded ()\n"+
		"10m     Warning   Update Stalled     Cluster Version version is failing to proceed with the update (F)\n"+hint, head(10*time.Minute, "nodes"))
	same(t, "detailed", `= Update Health =
Message: Cluster Operator etcd is degraded ()
  Since:       9m
  Level:       Warning
  Impact:      API Availability
  Reference:   https://github.com/openshift/runbooks/blob/master/alerts/cluster-monitoring-operator/ClusterOperatorDegraded.md
  Resources:
    clusteroperators.config.openshift.io: etcd
  Description: <no message>

Message: Cluster Version version is failing to proceed with the update (F)
  Since:       10m
  Level:       Warning
  Impact:      Update Stalled
  Reference:   https://github.com/openshift/runbooks/blob/master/alerts/cluster-monitoring-operator/ClusterOperatorDegraded.md
  Resources:
    clusterversions.config.openshift.io: version
  Description: first
               , 
               ,   last
`, head(10*time.Minute, "health"))
}

// Insights that have several resources, which none of a status has, are printed
// with kinds and names sorted.
func TestHealthResources(t *testing.T) {
	s := assess(t, updating(), time.Minute)
	s.Health = []view.Insight{{Level: "Info", Impact: "None", Summary: "S", Description: "D", Reference: "R", Resources: []view.Resource{
		{Kind: "Node", Name: "b"}, {Group: "config.openshift.io", Kind: "ClusterOperator", Name: "etcd"}, {Kind: "Node", Name: "a"}, {Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "d"},
	}}}
	var out strings.Builder
	checktest.OK(t, s.WriteText(&out, &out, view.StatusText{Details: "health"}))
	same(t, "resources", "  Resources:\n    clusteroperators.config.openshift.io: etcd\n    deployments.apps:                     ns/d\n    nodes:                                a, b\n",
		section(t, out.String(), "  Resources", "  Description"))
	out.Reset()
	checktest.OK(t, s.WriteText(&out, &out, view.StatusText{}))
	if strings.Contains(out.String(), "Run with") {
		t.Error("one insight that only informs needs no hint")
	}
	out.Reset()
	s.Health = append(s.Health, s.Health[0])
	checktest.OK(t, s.WriteText(&out, &out, view.StatusText{}))
	if !strings.Contains(out.String(), "Run with") {
		t.Error("two insights need a hint")
	}
}

// A line feed or a tab in a summary leaves the table whole.
func TestHealthTableBreaks(t *testing.T) {
	o := updating()
	for i, summary := range []string{"one\ttab", "two\nlines", "three"} {
		o.Alerts = append(o.Alerts, clusterapi.Alert{Labels: map[string]string{"alertname": "A", "severity": []string{"critical", "critical", "warning"}[i]}, State: "firing",
			ActiveAt: updateStart.Add(time.Duration(10-i) * time.Second), Annotations: map[string]string{"summary": summary}})
	}
	same(t, "table", "= Update Health =\n"+
		"SINCE   LEVEL      IMPACT    MESSAGE\n"+
		"50s     Critical   Unknown   Alert is firing: one tab\n"+
		"51s     Critical   Unknown   Alert is firing: two\n"+
		"lines\n"+
		"52s   Warning   Unknown   Alert is firing: three\n", section(t, statusText(t, o, time.Minute, view.StatusText{}), "= Update Health", "\n"))
}

// What cannot be read is said to be unknown: in the data, and on the error stream.
func TestUnknown(t *testing.T) {
	write := func(o *view.Objects) (string, string, *view.Status) {
		s := assess(t, o, time.Minute)
		var out, errOut strings.Builder
		checktest.OK(t, s.WriteText(&out, &errOut, view.StatusText{}))
		return out.String(), errOut.String(), s
	}
	idle := func() *view.Objects {
		o := updating()
		o.ClusterVersion.Status.Conditions[0].Status = "False"
		return o
	}
	for _, tt := range []struct {
		kind      string
		objects   *view.Objects
		out, warn string // must be in the text
	}{
		{"Node", idle(), "The control plane is not updating. Whether nodes are is unknown: Node: lost\n", "Node: lost"},
		{"MachineConfigPool", idle(), "The control plane is not updating. Whether nodes are is unknown: MachineConfigPool: lost\n", "MachineConfigPool: lost"},
		{"MachineConfig", withNodes(idle(), poolNode("w", "worker")), "The control plane is not updating. Whether nodes are is unknown: MachineConfig: lost\n", "MachineConfig: lost"},
		{"MachineConfig", withNodes(idle(), poolNode("w", "worker"), oldNode("x", "worker")), "Control Plane =\n", "MachineConfig: lost"},
		{"Node", updating(), "Whether all nodes are updated is unknown: Node: lost\n", "Node: lost"},
		{"MachineConfigPool", updating(), "Whether all nodes are updated is unknown: MachineConfigPool: lost\n", "MachineConfigPool: lost"},
		{"MachineConfig", updating(), "", "MachineConfig: lost"},
		{"ClusterOperator", updating(), "Whether all operators are updated is unknown: ClusterOperator: lost\n", "ClusterOperator: lost"},
		{"Alert", updating(), "", "Unable to fetch alerts, ignoring alerts in 'Update Health': lost\n"},
	} {
		tt.objects.Missing = []view.Missing{{Kind: tt.kind, Reason: "lost"}}
		out, warn, s := write(tt.objects)
		if !strings.Contains(out, tt.out) || !strings.Contains(warn, tt.warn) {
			t.Errorf("%s:\n%s\n%s", tt.kind, out, warn)
		}
		if s.ControlPlane == nil {
			checktest.Same(t, "control plane not updating, nodes unknown", s.String())
		}
		if len(s.Unknown) != 1 || s.Unknown[0].Kind != tt.kind || s.Unknown[0].Reason != "lost" || s.Unknown[0].Effect == "" {
			t.Errorf("%s: %+v", tt.kind, s.Unknown)
		}
	}
}

// The deployment of the machine-config operator matters where only its image
// keeps that operator from being updated.
func TestUnknownOperatorImage(t *testing.T) {
	for _, tt := range []struct {
		name, version, image string
		given, unknown       bool
	}{
		{"no image", "4.14.1", "", false, false},
		{"old version", "4.14.0", "i", false, false},
		{"image", "4.14.1", "i", false, true},
		{"image and deployment", "4.14.1", "i", true, false},
	} {
		o := updating()
		co := platformOperator("machine-config", tt.version)
		if tt.image != "" {
			co.Status.Versions = append(co.Status.Versions, configv1.OperandVersion{Name: "operator-image", Version: tt.image})
		}
		o.ClusterOperators = append(o.ClusterOperators[:2], co)
		o.Missing = []view.Missing{{Kind: "Deployment", Reason: "lost"}}
		if tt.given {
			o.Deployments = operatorImage("i")
		}
		s := assess(t, o, time.Minute)
		if got := len(s.Unknown) > 0; got != tt.unknown {
			t.Errorf("%s: unknown %v", tt.name, s.Unknown)
		}
		if tt.unknown && (len(s.Waits) != 1 || !strings.Contains(s.Waits[0].String(), "unknown")) {
			t.Errorf("%s: waits on %v", tt.name, s.Waits)
		}
	}
}
