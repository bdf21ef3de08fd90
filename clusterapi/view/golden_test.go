package view_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

var update = flag.Bool("update", false, "write the wanted texts of testdata")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		checktest.OK(t, os.WriteFile(file, []byte(got), 0o644))
	}
	if diff := cmp.Diff(readFile(t, file), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

var trailing = regexp.MustCompile(`(?m) +$`)

// sample compares a text with an output of the product's documentation, which has
// lost the spaces at the ends of its lines.
func checkSample(t *testing.T, name, got string) {
	t.Helper()
	want := readFile(t, filepath.Join("testdata", name))
	if diff := cmp.Diff(trailing.ReplaceAllString(want, ""), trailing.ReplaceAllString(got, "")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func readFile(tb testing.TB, name string) string {
	tb.Helper()
	text := checktest.Get(os.ReadFile(name))(tb)
	return string(text)
}

// readVersion reads the first ClusterVersion of a YAML file with one or a list of
// them.
func readVersion(tb testing.TB, name string) *configv1.ClusterVersion {
	tb.Helper()
	text := []byte(readFile(tb, name))
	var list configv1.ClusterVersionList
	checktest.OK(tb, yaml.Unmarshal(text, &list))
	if len(list.Items) > 0 {
		return &list.Items[0]
	}
	cv := &configv1.ClusterVersion{}
	checktest.OK(tb, yaml.Unmarshal(text, cv))
	return cv
}

// texts returns what a view writes, with the error behind what it shows, as the
// command line tool's tests have it.
func texts(write func(out, errOut io.Writer) error) (shown, warned string) {
	var out, errOut bytes.Buffer
	if err := write(&out, &errOut); err != nil {
		out.WriteString("\nerror: " + strings.TrimSuffix(err.Error(), "\n") + "\n")
	}
	return out.String(), errOut.String()
}

// wantTexts compares both streams of a view. Texts are those of the terminal: lines
// are wanted as they are.
func wantTexts(t *testing.T, wantOut, wantErr string, write func(out, errOut io.Writer) error) {
	t.Helper()
	out, errOut := texts(write)
	checktest.SameIn(t, "out", wantOut, out)
	checktest.SameIn(t, "err", wantErr, errOut)
}

// indented returns the JSON of a value, which stays.
func indented(t *testing.T, v any) string {
	t.Helper()
	text := checktest.Get(json.MarshalIndent(v, "", "  "))(t)
	return string(text) + "\n"
}

// latestTransition returns the newest transition time of the ClusterVersion and the
// ClusterOperators, with which recorded outputs were made.
func latestTransition(o *view.Objects) time.Time {
	var conditions []configv1.ClusterOperatorStatusCondition
	if o.ClusterVersion != nil {
		conditions = append(conditions, o.ClusterVersion.Status.Conditions...)
	}
	for _, co := range o.ClusterOperators {
		conditions = append(conditions, co.Status.Conditions...)
	}
	var latest time.Time
	for _, c := range conditions {
		if c.LastTransitionTime.After(latest) {
			latest = c.LastTransitionTime.Time
		}
	}
	return latest
}

// documented is the cluster of the documentation's example: an update to 4.17.1
// with the control plane's last operator and the first nodes under way.
func documented() *view.Objects {
	o := updating()
	st := &o.ClusterVersion.Status
	st.Desired.Version = "4.17.1"
	st.History = []configv1.UpdateHistory{partial("4.17.1", after(0)), complete("4.17.0", after(-48*time.Hour), time.Hour)}
	o.ClusterOperators = nil
	for i := range 32 {
		o.ClusterOperators = append(o.ClusterOperators, platformOperator(fmt.Sprintf("operator-%02d", i), "4.17.1"))
	}
	o.ClusterOperators = append(o.ClusterOperators, platformOperator("machine-config", "4.17.0",
		says("Progressing=True", after(40*time.Minute)), says("Available=Unknown", after(40*time.Minute))))
	draining := func(name, pool string) *corev1.Node {
		return changingNode(name+".us-east-2.compute.internal", pool, "Working", "desiredDrain=drain-new", "lastAppliedDrain=uncordon-old")
	}
	o = withNodes(o,
		oldNode("ip-10-0-92-180.us-east-2.compute.internal", "master"), draining("ip-10-0-53-40", "master"), oldNode("ip-10-0-30-217.us-east-2.compute.internal", "master"),
		oldNode("ip-10-0-99-40.us-east-2.compute.internal", "worker"), draining("ip-10-0-4-159", "worker"),
		newNode("ip-10-0-20-162.us-east-2.compute.internal", "infra"), draining("ip-10-0-4-159-infra", "infra"),
	)
	o.MachineConfigs = []*mcfgv1.MachineConfig{configOf("old", "4.17.0"), configOf("new", "4.17.1")}
	o.MachineConfigPools = append(o.MachineConfigPools, configPool("infra"))
	return o
}

// The example of the documentation of 4.18 comes out, in its wording; its tables
// have lost their columns there, the name of the pool was written in capitals by
// hand, and the title of the health section lost a character.
func TestDocumentedStatus(t *testing.T) {
	want := `= Control Plane =
Assessment:      Progressing
Target Version:  4.17.1 (from 4.17.0)
Updating:        machine-config
Completion:      97% (32 operators updated, 1 updating, 0 waiting)
Duration:        54m (Est. Time Remaining: <10m)
Operator Status: 32 Healthy, 1 Unavailable

Control Plane Nodes
NAME                                        ASSESSMENT    PHASE      VERSION   EST    MESSAGE
ip-10-0-53-40.us-east-2.compute.internal    Progressing   Draining   4.17.0    +10m   ` + `
ip-10-0-30-217.us-east-2.compute.internal   Outdated      Pending    4.17.0    ?      ` + `
ip-10-0-92-180.us-east-2.compute.internal   Outdated      Pending    4.17.0    ?      ` + `

= Worker Upgrade =

WORKER POOL   ASSESSMENT    COMPLETION   STATUS
worker        Progressing   0% (0/2)     1 Available, 1 Progressing, 1 Draining
infra         Progressing   50% (1/2)    1 Available, 1 Progressing, 1 Draining

Worker Pool Nodes: worker
NAME                                       ASSESSMENT    PHASE      VERSION   EST    MESSAGE
ip-10-0-4-159.us-east-2.compute.internal   Progressing   Draining   4.17.0    +10m   ` + `
ip-10-0-99-40.us-east-2.compute.internal   Outdated      Pending    4.17.0    ?      ` + `

Worker Pool Nodes: infra
NAME                                             ASSESSMENT    PHASE      VERSION   EST    MESSAGE
ip-10-0-4-159-infra.us-east-2.compute.internal   Progressing   Draining   4.17.0    +10m   ` + `
ip-10-0-20-162.us-east-2.compute.internal        Completed     Updated    4.17.1    -      ` + `

= Update Health =
SINCE   LEVEL   IMPACT   MESSAGE
54m4s   Info    None     Update is proceeding well
`
	const now = 54*time.Minute + 4*time.Second
	same(t, "documented wording", want, statusText(t, documented(), now, view.StatusText{Docs418: true}))
	same(t, "today's", strings.Replace(want, "Operator Status:", "Operator Health:", 1), statusText(t, documented(), now, view.StatusText{}))
}

func since(c configv1.ClusterOperatorStatusCondition, t time.Time) configv1.ClusterOperatorStatusCondition {
	c.LastTransitionTime = metav1.NewTime(t)
	return c
}

// mcPool makes a pool of which all machines are ready or none are updated.
func mcPool(name, config string, created time.Time, updated, updating string, counts ...int32) *mcfgv1.MachineConfigPool {
	p := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(created)}}
	p.Status.Configuration.Name = config
	p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{
		{Type: mcfgv1.MachineConfigPoolDegraded, Status: "False"},
		{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionStatus(updated)},
		{Type: mcfgv1.MachineConfigPoolUpdating, Status: corev1.ConditionStatus(updating)},
	}
	p.Status.MachineCount, p.Status.ReadyMachineCount, p.Status.UpdatedMachineCount, p.Status.DegradedMachineCount = counts[0], counts[1], counts[2], counts[3]
	return p
}

func columns(o *view.Objects, kind string, now time.Time) func(out, errOut io.Writer) error {
	return func(out, errOut io.Writer) error { return view.WriteColumns(out, errOut, o, kind, now) }
}

// TestPoolSample compares with an output of the product's documentation, whose
// columns are as wide as those of a third pool that it does not show.
func TestPoolSample(t *testing.T) {
	created := started.Add(-22*time.Hour - 20*time.Minute)
	out, _ := texts(columns(&view.Objects{MachineConfigPools: []*mcfgv1.MachineConfigPool{
		mcPool("worker-cnf", "rendered-worker-cnf-1d871ac76e1951d32b2fe92369879826", created, "True", "False", 0, 0, 0, 0),
		nil,
		mcPool("worker", "rendered-worker-1d871ac76e1951d32b2fe92369879826", created, "False", "True", 2, 1, 1, 0),
		mcPool("master", "rendered-master-acd1358917e9f98cbdb599aea622d78b", created, "True", "False", 3, 3, 3, 0),
	}}, "MachineConfigPool", started))
	var lines []string
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "worker-cnf ") {
			lines = append(lines, line)
		}
	}
	checkSample(t, "pools.txt", strings.Join(lines, ""))
}

func TestColumns(t *testing.T) {
	cv := withHistory(entry("4.14.2", "Partial", 7200, -1), entry("4.14.1", "Completed", 3600, 3661), entry("4.14.0", "Completed", 0, 60))
	cv.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
		since(cvCondition("Available", "True", "", ""), started),
		since(cvCondition("Progressing", "True", "", "Working\ttowards\x1b 4.14.2\nand on"), started.Add(48*time.Hour)),
		since(cvCondition("Progressing", "False", "", "a second one"), started),
	}
	co := func(name, version string, conditions ...configv1.ClusterOperatorStatusCondition) *configv1.ClusterOperator {
		o := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
		o.Status.Conditions = conditions
		if version != "" {
			o.Status.Versions = []configv1.OperandVersion{{Name: "operand", Version: "1"}, {Name: "operator", Version: version}, {Name: "operator", Version: "2"}}
		}
		return o
	}
	now := started.Add(49*time.Hour + 59*time.Minute)
	full := &view.Objects{
		ClusterVersion: cv,
		ClusterOperators: []*configv1.ClusterOperator{
			co("network", ""),
			nil,
			co("etcd", "4.14.1", since(cvCondition("Degraded", "Unknown", "", ""), started.Add(time.Hour)),
				since(cvCondition("Available", "True", "", ""), started), since(cvCondition("Progressing", "False", "", ""), started.Add(time.Hour))),
		},
		MachineConfigPools: []*mcfgv1.MachineConfigPool{
			mcPool("worker", "rendered-1", now.Add(-200*time.Second), "True", "False", 4, 3, 2, 1), {ObjectMeta: metav1.ObjectMeta{Name: "bare"}},
		},
	}
	for kind, want := range map[string]string{
		"ClusterVersion": "" +
			"NAME      VERSION   AVAILABLE   PROGRESSING   SINCE   STATUS\n" +
			"version   4.14.1    True        True          119m    Working towards^[ 4.14.2...\n",
		"ClusterOperator": "" +
			"NAME      VERSION   AVAILABLE   PROGRESSING   DEGRADED   SINCE\n" +
			"etcd      4.14.1    True        False         Unknown    2d1h\n" +
			"network                                                  \n",
		"MachineConfigPool": "" +
			"NAME     CONFIG       UPDATED   UPDATING   DEGRADED   MACHINECOUNT   READYMACHINECOUNT   UPDATEDMACHINECOUNT   DEGRADEDMACHINECOUNT   AGE\n" +
			"bare                                                  0              0                   0                     0                      \n" +
			"worker   rendered-1   True      False      False      4              3                   2                     1                      3m20s\n",
	} {
		t.Run(kind, func(t *testing.T) {
			wantTexts(t, want, "", columns(full, kind, now))
			wantTexts(t, "", "No resources found\n", columns(&view.Objects{ClusterOperators: []*configv1.ClusterOperator{nil}}, kind, now))
			for _, o := range []*view.Objects{full, {}} {
				w := failingWriter(3)
				checktest.ErrorIs(t, errFull, view.WriteColumns(&w, &w, o, kind, now))
			}
		})
	}
	lost := &view.Objects{Missing: []view.Missing{{Kind: "ClusterOperator", Reason: "lost"}}}
	wantTexts(t, "", "warning: ClusterOperator: lost\n", columns(lost, "ClusterOperator", now))
	if err := view.WriteColumns(io.Discard, io.Discard, full, "Node", now); err == nil || err.Error() != `no columns for kind "Node"` {
		t.Errorf("error is %v", err)
	}
	if full.MachineConfigPools[0].Name != "worker" {
		t.Error("the input is sorted")
	}
}
