package view_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// TestPoolRowsSample compares with an output of the product's documentation, whose
// columns are as wide as those of a third pool that it does not show.
func TestPoolRowsSample(t *testing.T) {
	created := started.Add(-22*time.Hour - 20*time.Minute)
	rows := view.PoolRows([]*mcfgv1.MachineConfigPool{
		mcPool("worker-cnf", "rendered-worker-cnf-1d871ac76e1951d32b2fe92369879826", created, "True", "False", 0, 0, 0, 0),
		nil,
		mcPool("worker", "rendered-worker-1d871ac76e1951d32b2fe92369879826", created, "False", "True", 2, 1, 1, 0),
		mcPool("master", "rendered-master-acd1358917e9f98cbdb599aea622d78b", created, "True", "False", 3, 3, 3, 0),
	})
	out, _ := texts(func(out, errOut io.Writer) error { return view.WritePoolRows(out, errOut, rows, started) })
	var lines []string
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "worker-cnf ") {
			lines = append(lines, line)
		}
	}
	sample(t, "pools.txt", strings.Join(lines, ""))
}

func TestPoolRows(t *testing.T) {
	bare := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}
	rows := view.PoolRows([]*mcfgv1.MachineConfigPool{mcPool("worker", "rendered-1", started, "True", "False", 4, 3, 2, 1), bare})
	wantTexts(t, strings.Join([]string{
		"NAME     CONFIG       UPDATED   UPDATING   DEGRADED   MACHINECOUNT   READYMACHINECOUNT   UPDATEDMACHINECOUNT   DEGRADEDMACHINECOUNT   AGE",
		"bare                                                  0              0                   0                     0                      ",
		"worker   rendered-1   True      False      False      4              3                   2                     1                      3m20s",
		"",
	}, "\n"), "", func(out, errOut io.Writer) error {
		return view.WritePoolRows(out, errOut, rows, started.Add(200*time.Second))
	})
	golden(t, "pools.json", indented(t, rows))
}

func TestClusterVersionRows(t *testing.T) {
	cv := withHistory(entry("4.14.2", "Partial", 7200, -1), entry("4.14.1", "Completed", 3600, 3661), entry("4.14.0", "Completed", 0, 60))
	cv.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
		since(cvCondition("Available", "True", "", ""), started),
		since(cvCondition("Progressing", "True", "", "Working\ttowards\x1b 4.14.2\nand on"), started.Add(2*time.Hour)),
		since(cvCondition("Progressing", "False", "", "a second one"), started),
	}
	other := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	rows := view.ClusterVersionRows([]*configv1.ClusterVersion{cv, nil, other})
	wantTexts(t, ""+
		"NAME      VERSION   AVAILABLE   PROGRESSING   SINCE   STATUS\n"+
		"other                                                 \n"+
		"version   4.14.1    True        True          15m     Working towards^[ 4.14.2...\n", "",
		func(out, errOut io.Writer) error {
			return view.WriteClusterVersionRows(out, errOut, rows, started.Add(2*time.Hour+15*time.Minute))
		})
	golden(t, "clusterversions.json", indented(t, rows))
}

func TestClusterOperatorRows(t *testing.T) {
	co := func(name, version string, conditions ...configv1.ClusterOperatorStatusCondition) *configv1.ClusterOperator {
		o := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
		o.Status.Conditions = conditions
		if version != "" {
			o.Status.Versions = []configv1.OperandVersion{{Name: "operand", Version: "1"}, {Name: "operator", Version: version}, {Name: "operator", Version: "2"}}
		}
		return o
	}
	rows := view.ClusterOperatorRows([]*configv1.ClusterOperator{
		co("network", ""),
		nil,
		co("etcd", "4.14.1", since(cvCondition("Degraded", "Unknown", "", ""), started.Add(time.Hour)), since(cvCondition("Available", "True", "", ""), started), since(cvCondition("Progressing", "False", "", ""), started.Add(time.Hour))),
	})
	wantTexts(t, ""+
		"NAME      VERSION   AVAILABLE   PROGRESSING   DEGRADED   SINCE\n"+
		"etcd      4.14.1    True        False         Unknown    2d1h\n"+
		"network                                                  \n", "",
		func(out, errOut io.Writer) error {
			return view.WriteClusterOperatorRows(out, errOut, rows, started.Add(49*time.Hour+59*time.Minute))
		})
	golden(t, "clusteroperators.json", indented(t, rows))
}

// TestRowsWithout says that there is nothing, as kubectl does.
func TestRowsWithout(t *testing.T) {
	for name, write := range map[string]func(out, errOut io.Writer) error{
		"versions": func(out, errOut io.Writer) error {
			return view.WriteClusterVersionRows(out, errOut, view.ClusterVersionRows(nil), started)
		},
		"operators": func(out, errOut io.Writer) error {
			return view.WriteClusterOperatorRows(out, errOut, view.ClusterOperatorRows(nil), started)
		},
		"pools": func(out, errOut io.Writer) error { return view.WritePoolRows(out, errOut, view.PoolRows(nil), started) },
	} {
		t.Run(name, func(t *testing.T) {
			wantTexts(t, "", "No resources found\n", write)
			w := failingWriter(3)
			if err := write(io.Discard, &w); err != errFull {
				t.Errorf("error is %v", err)
			}
		})
	}
	if rows := view.PoolRows([]*mcfgv1.MachineConfigPool{nil}); rows == nil || len(rows) > 0 {
		t.Errorf("rows are %#v", rows)
	}
}

// TestRowsKeepTheirInput sorts copies.
func TestRowsKeepTheirInput(t *testing.T) {
	pools := []*mcfgv1.MachineConfigPool{mcPool("worker", "", started, "", "", 0, 0, 0, 0), mcPool("master", "", started, "", "", 0, 0, 0, 0)}
	rows := view.PoolRows(pools)
	if diff := cmp.Diff([]string{"worker", "master", "master", "worker"}, []string{pools[0].Name, pools[1].Name, rows[0].Name, rows[1].Name}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
