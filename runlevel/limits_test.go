package runlevel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

func TestLimits(t *testing.T) {
	const MiB = 1 << 20
	long := strings.Repeat("x", MiB)
	atMost := func(t *testing.T, what, text string, limit int, contains string) {
		t.Helper()
		if len(text) > limit || len(text) < limit/2 || !strings.Contains(text, contains) {
			t.Errorf("%s has %d bytes, limit %d, and ends with %q", what, len(text), limit, text[max(0, len(text)-60):])
		}
	}
	var several []error
	for i := range 1000 {
		several = append(several, &TaskError{Reason: "R", Message: fmt.Sprintf("error %04d %s", i, long[:100])})
	}

	quoted := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "co"}, Status: configv1.ClusterOperatorStatus{Conditions: []configv1.ClusterOperatorStatusCondition{
		cond("Available", "False", long, long),
	}}}
	wanted := []configv1.OperandVersion{{Name: "operator", Version: "2"}}
	odd := quoted.DeepCopy()
	odd.Status.Conditions = []configv1.ClusterOperatorStatusCondition{cond("Available", "True", "", ""), cond("Degraded", "False", "", "")}
	odd.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: long}}
	deployment := object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, status: {conditions: [{type: ReplicaFailure, status: 'True', reason: R, message: M}]}}")
	deployment.Object["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)["message"] = long

	var operators []error
	for i, task := range operatorTasks(t, 300) {
		operators = append(operators, &TaskError{Task: task, Effect: EffectNone, Reason: "R", PluralReason: "Rs", PluralFormat: "Cluster operators %s", Name: fmt.Sprintf("operator-%03d-%s", i, long[:40])})
	}

	unknown := func(n int) []*manifest.Task {
		tasks := tasksOf(t, "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns}, spec: {}}")
		spec := tasks[0].Manifest.Object().Object["spec"].(map[string]any)
		for i := range n {
			spec[fmt.Sprintf("unknown%05d", i)] = "x"
		}
		return tasks
	}
	atLimit, pastLimit := unknown(1000), unknown(1001)

	var many []*manifest.Manifest
	for i := range 4096 {
		many = append(many, newManifest(t, "0000_10_a_x.yaml", fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: s%d, namespace: ns}, spec: {unknown: x}}", i)))
	}
	more := append(many[:len(many):len(many)], newManifest(t, "0000_10_a_y.yaml", "{apiVersion: v1, kind: Service, metadata: {name: more, namespace: ns}, spec: {unknown: x}}"))
	remembered, forgotten := manifest.NewTasks(many), manifest.NewTasks(more)

	var files []string
	for i := range 17 {
		files = append(files, fmt.Sprintf("0000_10_c%02d_x", i))
	}
	parallel := configMaps(t, files...)

	gone, changed := manyObjects(t), manyFields(t)
	gone.pass(Reconciling)
	changed.pass(Reconciling)

	limittest.Walk(t, []limittest.Case{
		{Limit: "message of several errors", Default: 32 << 10, Bytes: 2 * MiB, Run: func(t *testing.T) int64 {
			err := summarize(several)
			atMost(t, "MultipleErrors", err.Error(), 32<<10, " more")
			if !strings.HasPrefix(err.Error(), "Multiple errors are preventing progress:\n* error 0000 x") || strings.Count(err.Error(), "\n") < 200 {
				t.Errorf("begins with %s", err.Error()[:100])
			}
			if te, _ := errors.AsType[*TaskError](err); len(te.Members) != 1000 {
				t.Errorf("%d members", len(te.Members))
			}
			return 0
		}},
		{Limit: "text of an object", Default: 4 << 10, Bytes: 16 * MiB, Run: func(t *testing.T) int64 {
			te, ok := errors.AsType[*TaskError](checkOperator(quoted, wanted, Updating))
			if !ok {
				t.Fatal("no error")
			}
			atMost(t, "reason", te.Wait.Reason, 4<<10, "more bytes")
			atMost(t, "message", te.Wait.Message, 4<<10, "more bytes")
			atMost(t, "cause", te.Err.Error(), 9<<10, "more bytes")
			api := newFake(deployment)
			_, err := Run(t.Context(), tasksOf(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}}"), Options{API: api})
			if err == nil {
				t.Fatal("no error")
			}
			atMost(t, "error", err.Error(), 5<<10, "more bytes")
			_, err = Run(t.Context(), parallel[:1], Options{Wrap: by(func(context.Context, *manifest.Task, State) error { panic(long) })})
			atMost(t, "panic", err.Error(), 5<<10, "more bytes")
			return 0
		}},
		{Limit: "names or fields in a message", Default: 4 << 10, Bytes: 2 * MiB, Run: func(t *testing.T) int64 {
			te, ok := errors.AsType[*TaskError](summarize(operators))
			if !ok || len(te.Names) != 300 {
				t.Fatalf("%v", te)
			}
			atMost(t, "names", te.Name, 4<<10, " more")
			atMost(t, "message", te.Message, 5<<10, " more")
			return 0
		}},
		{Limit: "version that an operator reports", Default: 256, Bytes: 1 * MiB, Run: func(t *testing.T) int64 {
			te, ok := errors.AsType[*TaskError](checkOperator(odd, wanted, Updating))
			if !ok {
				t.Fatal("no error")
			}
			atMost(t, "undone", te.Wait.Undone[0], 256+len("operator from  to 2"), "more bytes) to 2")
			return 0
		}},
		{Limit: "fields that a schema lacks", Default: 1000, Bytes: 64 * MiB, Run: func(t *testing.T) int64 {
			o := Options{API: newFake(), Backoff: &Backoff{Steps: 1}}
			if _, err := Run(t.Context(), atLimit, o); err != nil {
				t.Error(causeOf(err))
			}
			_, err := Run(t.Context(), pastLimit, o)
			if err == nil || !strings.Contains(fmt.Sprint(causeOf(err)), `Name: "s": more than 1000 fields that the schema lacks, beginning with spec.unknown`) {
				t.Errorf("%v", causeOf(err))
			}
			return 0
		}},
		{Limit: "warnings remembered by a Tracker", Default: 4096, Bytes: 400 * MiB, Run: func(t *testing.T) int64 {
			tr := NewTracker(nil)
			warnings := func(tasks []*manifest.Task) (n int) {
				checktest.Get(Run(t.Context(), tasks, Options{API: discarding{newFake()}, Tracker: tr, Workers: 1, Observe: func(e clusterapi.Event) {
					if e.Type == EventWarning {
						n++
					}
				}}))(t)
				return n
			}
			if got := []int{warnings(remembered), warnings(remembered), warnings(forgotten), warnings(remembered[:10])}; fmt.Sprint(got) != "[4096 0 1 10]" {
				t.Errorf("warnings %v", got)
			}
			return 0
		}},
		{Limit: "drifts remembered by a Tracker", Default: 100, Bytes: 16 * MiB, Run: func(t *testing.T) int64 {
			if told, kept := len(gone.told()), len(gone.tracker.Drifts()); told != 120 || kept != 100 {
				t.Errorf("%d told, %d kept", told, kept)
			}
			return 0
		}},
		{Limit: "fields of one drift", Default: 100, Bytes: 16 * MiB, Run: func(t *testing.T) int64 {
			d := changed.told()[0]
			if len(d.Fields) != 100 || d.Omitted != 50 {
				t.Errorf("%d fields, %d omitted", len(d.Fields), d.Omitted)
			}
			atMost(t, "text", d.Text(), 5<<10, " more")
			return 0
		}},
		{Limit: "value in a drift", Default: 4 << 10, Bytes: 1 * MiB, Run: func(t *testing.T) int64 {
			atMost(t, "value", fmt.Sprint(changed.tracker.Drifts()[0].Fields[0].Wanted), 33, ")")
			return 0
		}},
		{Limit: "nodes at once while Updating", Default: 16, Bytes: 1 * MiB, Steps: 16, Run: func(t *testing.T) int64 {
			var now, most atomic.Int64
			first := sync.WaitGroup{}
			first.Add(16)
			apply := func(_ context.Context, task *manifest.Task, _ State) error {
				n := now.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				if task.Index <= 16 { // all 16 are there at once
					first.Done()
					first.Wait()
				}
				now.Add(-1)
				return nil
			}
			checktest.Get(Run(t.Context(), parallel, Options{Wrap: by(apply)}))(t)
			return most.Load()
		}},
	})
}

// operatorTasks makes the tasks of ClusterOperators.
func operatorTasks(t *testing.T, n int) []*manifest.Task {
	var ms []*manifest.Manifest
	for i := range n {
		ms = append(ms, newManifest(t, "0000_10_a_x.yaml", fmt.Sprintf("{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: co%d}}", i)))
	}
	return manifest.NewTasks(ms)
}

// discarding is an API that keeps nothing of what is applied.
type discarding struct{ *fakeAPI }

func (discarding) Apply(_ context.Context, obj *unstructured.Unstructured, _ clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	return obj, nil
}
