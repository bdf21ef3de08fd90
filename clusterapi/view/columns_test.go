package view_test

import (
	"io"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
)

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
				if err := view.WriteColumns(&w, &w, o, kind, now); err != errFull {
					t.Errorf("error is %v", err)
				}
			}
		})
	}
	if err := view.WriteColumns(io.Discard, io.Discard, full, "Node", now); err == nil || err.Error() != `no columns for kind "Node"` {
		t.Errorf("error is %v", err)
	}
	if full.MachineConfigPools[0].Name != "worker" {
		t.Error("the input is sorted")
	}
}
