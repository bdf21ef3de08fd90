package progress_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/examples/update/progress"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

func TestProgress(t *testing.T) {
	var lines []string
	p := progress.New("4.21.1", func(line string) { lines = append(lines, line) })
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	to := configv1.Release{Version: "4.21.1"}
	task := func(seconds int, e clusterapi.Event) {
		p.Updater(clusterapi.Event{Type: clusterupdate.EventTask, Time: at(seconds), Data: &clusterupdate.EventData{Release: to, Pass: &e}})
	}
	p.Updater(clusterapi.Event{Type: clusterupdate.EventRetrievedUpdates, Time: at(0), Data: &clusterupdate.EventData{Release: configv1.Release{Version: "4.20.3"}, Updates: []configv1.Release{to}}})
	p.Updater(clusterapi.Event{Type: clusterupdate.EventTask, Time: at(1), Data: &clusterupdate.EventData{Release: configv1.Release{Version: "4.20.3"}, Pass: &clusterapi.Event{Type: runlevel.EventPassStarted, Data: &runlevel.Progress{Total: 7}}}})
	task(2, clusterapi.Event{Type: runlevel.EventPassStarted, Data: &runlevel.Progress{Total: 20}})
	wait := &runlevel.Wait{Operator: "etcd", Available: "True", Degraded: "True", Reason: "Slow", Message: "disk"}
	task(3, clusterapi.Event{Type: runlevel.EventWaiting, Data: &runlevel.Progress{Level: "20", LevelTotal: 4, Wait: wait}})
	task(4, clusterapi.Event{Type: runlevel.EventWaiting, Data: &runlevel.Progress{Level: "20", LevelTotal: 4, Wait: wait}}) // nothing new
	task(5, clusterapi.Event{Type: runlevel.EventWaiting, Data: &runlevel.Progress{Level: "20", LevelTotal: 4, Wait: &runlevel.Wait{Operator: "dns", Undone: []string{"operator 4.21.1", "x"}}}})
	p.Node(clusterapi.Event{Type: rollout.EventNodePhase, Time: at(62), Data: &rollout.EventData{Pool: "worker", Node: "w0", Phase: "Draining"}})
	p.Node(clusterapi.Event{Type: rollout.EventPoolProgress, Time: at(61), Data: &rollout.EventData{Pool: "worker", Updated: 1, Total: 4}})
	p.Node(clusterapi.Event{Type: rollout.EventDrainBlocked, Time: at(63), Err: errors.New("budget"), Data: &rollout.EventData{Pool: "worker", Node: "w0"}})
	task(64, clusterapi.Event{Type: runlevel.EventDrifted, Message: "ConfigMap x was deleted", Data: &runlevel.Progress{}})
	want := []string{
		"00:00:00  graph          recommended updates of 4.20.3: 4.21.1",
		"00:00:03  runlevel 20    0/4 done, waiting on etcd: Available=True Degraded=True Slow: disk",
		"00:00:05  runlevel 20    0/4 done, waiting on dns: operator 4.21.1, x",
		"00:01:03  nodes worker   w0 budget",
		"00:01:04  drift          ConfigMap x was deleted",
	}
	checktest.SameIn(t, "lines", want, lines)
	none, quarter := strings.Repeat(".", 40), strings.Repeat("#", 10)+strings.Repeat(".", 30)
	want = []string{
		"manifests      [" + none + "] 0/20",
		"runlevel 20    [" + none + "] 0/4",
		"waiting on     dns, etcd",
		"nodes worker   [" + quarter + "] 1/4",
		"  w0           Draining",
	}
	checktest.SameIn(t, "bars", want, p.Bars())
	cv := &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{
		Conditions: []configv1.ClusterOperatorStatusCondition{{Type: "Failing", Status: "True", Reason: "Slow", Message: "disk"}, {Type: "Available", Status: "True"}},
		History:    []configv1.UpdateHistory{{Version: "4.21.1", State: configv1.PartialUpdate, StartedTime: metav1.NewTime(start)}},
	}}
	history := []string{"history of the cluster version:", "  4.21.1 Partial, started 2026-01-01 12:00"}
	want = append([]string{"Failing=True Slow: disk", "waiting on dns: operator 4.21.1, x", "waiting on etcd: Available=True Degraded=True Slow: disk"}, history...)
	checktest.SameIn(t, "summary", want, p.Summary(cv))
	done := metav1.NewTime(at(600))
	cv.Status.History[0].State, cv.Status.History[0].CompletionTime = configv1.CompletedUpdate, &done
	want = []string{history[0], "  4.21.1 Completed, started 2026-01-01 12:00, ended 2026-01-01 12:10"}
	checktest.SameIn(t, "summary", want, p.Summary(cv))
}
