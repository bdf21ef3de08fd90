package runlevel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

func cond(kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string) configv1.ClusterOperatorStatusCondition {
	return configv1.ClusterOperatorStatusCondition{Type: kind, Status: status, Reason: reason, Message: message}
}

func TestCheckOperator(t *testing.T) {
	up := cond("Available", "True", "AsExpected", "")
	fine := cond("Degraded", "False", "AsExpected", "all well")
	v := func(pairs ...string) (out []configv1.OperandVersion) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, configv1.OperandVersion{Name: pairs[i], Version: pairs[i+1]})
		}
		return out
	}
	type finding struct {
		Effect                                                     Effect
		Reason, PluralReason, Message, PluralFormat, Nested, Waits string
	}
	none := finding{"Fail", "ClusterOperatorNoVersions", "ClusterOperatorsNoVersions", "Cluster operator co does not declare expected versions",
		"Cluster operators %s do not declare expected versions", "cluster operator co does not declare expected versions", ""}
	unavailable := func(nested, reason string) finding {
		return finding{"Fail", "ClusterOperatorNotAvailable", "ClusterOperatorsNotAvailable", "Cluster operator co is not available", "Cluster operators %s are not available", nested, reason}
	}
	degraded := func(effect Effect, nested, reason string) finding {
		return finding{effect, "ClusterOperatorDegraded", "ClusterOperatorsDegraded", "Cluster operator co is degraded", "Cluster operators %s are degraded", nested, reason}
	}
	updating := finding{"None", "ClusterOperatorUpdating", "ClusterOperatorsUpdating", "Cluster operator co is updating versions", "Cluster operators %s are updating versions",
		"cluster operator co is available and not degraded but has not finished updating to target version", ""}
	for _, c := range []struct {
		name       string
		state      State
		conditions []configv1.ClusterOperatorStatusCondition
		has, wants []configv1.OperandVersion
		want       *finding
		undone     []string
	}{
		{"good", "Updating", []configv1.ClusterOperatorStatusCondition{up, fine}, v("operator", "1", "other", "9"), v("operator", "1"), nil, nil},
		{"progressing is not looked at", "Updating", []configv1.ClusterOperatorStatusCondition{up, fine, cond("Progressing", "True", "", "")}, v("operator", "1"), v("operator", "1"), nil, nil},
		{"no versions come first", "Updating", nil, nil, nil, &none, nil},
		{"nothing reported", "Updating", nil, v("a", "1"), v("b", "2", "a", "2"), new(unavailable("cluster operator co: available=false, progressing=true, degraded=true, undone=a from 1 to 2, b to 2", "")), []string{"a from 1 to 2", "b to 2"}},
		{"unavailable with a message", "Reconciling", []configv1.ClusterOperatorStatusCondition{cond("Available", "False", "Down", "it is down"), fine}, v("operator", "1"), v("operator", "1"), new(unavailable("cluster operator co is Available=False: Down: it is down", "Down")), nil},
		{"unavailable without", "Updating", []configv1.ClusterOperatorStatusCondition{cond("Available", "Unknown", "Down", ""), fine, cond("Progressing", "False", "", "")}, v("operator", "1"), v("operator", "1"), new(unavailable("cluster operator co: available=false, progressing=false, degraded=false, undone=", "Down")), nil},
		{"unavailable while initializing", "Initializing", []configv1.ClusterOperatorStatusCondition{cond("Available", "False", "Down", "m"), fine}, nil, v("operator", "1"), new(unavailable("cluster operator co is Available=False: Down: m", "Down")), []string{"operator to 1"}},
		{"degraded absent", "Updating", []configv1.ClusterOperatorStatusCondition{up}, v("operator", "1"), v("operator", "1"), new(degraded("FailAfterInterval", "cluster operator co: available=true, progressing=true, degraded=true, undone=", "")), nil},
		{"degraded unknown", "Reconciling", []configv1.ClusterOperatorStatusCondition{up, cond("Degraded", "Unknown", "R", "m")}, v("operator", "1"), v("operator", "1"), new(degraded("FailAfterInterval", "cluster operator co is Degraded=Unknown: R, m", "R")), nil},
		{"degraded while initializing", "Initializing", []configv1.ClusterOperatorStatusCondition{up, cond("Degraded", "True", "R", "m")}, v("operator", "1"), v("operator", "1"), new(degraded("Report", "cluster operator co is Degraded=True: R, m", "R")), nil},
		{"version as text", "Updating", []configv1.ClusterOperatorStatusCondition{up, fine}, v("operator", "1.0"), v("operator", "1"), &updating, []string{"operator from 1.0 to 1"}},
		{"version missing", "Reconciling", []configv1.ClusterOperatorStatusCondition{up, fine}, nil, v("operator", "1"), &updating, []string{"operator to 1"}},
		{"a version that is the empty text is the one of what is not reported", "Updating", []configv1.ClusterOperatorStatusCondition{up, fine}, nil, v("operator", ""), nil, nil},
		{"nor is it awaited beside others", "Updating", []configv1.ClusterOperatorStatusCondition{up, fine}, v("b", "1"), v("a", "", "b", "2"), &updating, []string{"b from 1 to 2"}},
		{"an empty version is none", "Updating", []configv1.ClusterOperatorStatusCondition{up, fine}, v("a", ""), v("a", "v1"), &updating, []string{"a to v1"}},
		{"from a version to none", "Updating", []configv1.ClusterOperatorStatusCondition{up, fine}, v("a", "v1"), v("a", ""), &updating, []string{"a from v1 to "}},
		{"versions do not matter while initializing", "Initializing", []configv1.ClusterOperatorStatusCondition{up, fine}, nil, v("operator", "1"), nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			co := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "co"}, Status: configv1.ClusterOperatorStatus{Conditions: c.conditions, Versions: c.has}}
			err := checkOperator(co, c.wants, c.state)
			if c.want == nil {
				checktest.OK(t, err)
				return
			}
			te, ok := errors.AsType[*TaskError](err)
			if !ok {
				t.Fatalf("error %v", err)
			}
			got := finding{te.Effect, te.Reason, te.PluralReason, te.Error(), te.PluralFormat, te.Err.Error(), te.Wait.Reason}
			checktest.Same(t, *c.want, got)
			checktest.Same(t, c.undone, te.Wait.Undone)
			if te.Name != "co" || te.Wait.Operator != "co" {
				t.Errorf("name %q, waits on %q", te.Name, te.Wait.Operator)
			}
		})
	}
}

const coManifest = `
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: co, annotations: {note: new}}
spec: {}
status:
  versions: [{name: operator, version: "2"}]
  relatedObjects: [{group: "", resource: namespaces, name: ns}]`

func coObject(t testing.TB, version, available string) *unstructured.Unstructured {
	return object(t, fmt.Sprintf(`
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: co, resourceVersion: "1"}
status:
  conditions: [{type: Available, status: %q}, {type: Degraded, status: "False"}]
  versions: [{name: operator, version: %q}]`, available, version))
}

func TestClusterOperatorCalls(t *testing.T) {
	missing := `Could not update clusteroperator "co" (1 of 1): resource may have been deleted`
	for _, c := range []struct {
		name    string
		state   State
		objs    []*unstructured.Unstructured
		refuse  string // a verb that fails
		want    []string
		failure string
	}{
		{"updating, good", "Updating", []*unstructured.Unstructured{coObject(t, "2", "True")}, "", nil, ""},
		{"initializing, behind", "Initializing", []*unstructured.Unstructured{coObject(t, "1", "True")}, "", nil, ""},
		{"updating, behind", "Updating", []*unstructured.Unstructured{coObject(t, "1", "True")}, "", nil, "Cluster operator co is updating versions"},
		{"reconciling merges metadata", "Reconciling", []*unstructured.Unstructured{coObject(t, "2", "True")}, "", []string{"Apply ClusterOperator co"}, ""},
		{"missing is created with related objects", "Updating", nil, "", []string{"Create ClusterOperator co", "UpdateStatus ClusterOperator co"}, "Cluster operator co is not available"},
		{"never created but by precreation", "Updating", nil, "Create", []string{"Create ClusterOperator co"}, missing},
		{"reconciling does not create either", "Reconciling", nil, "Create", []string{"Create ClusterOperator co"}, missing},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := newFake(c.objs...)
			api.before = func(_ context.Context, verb, _, _ string) error {
				if verb == c.refuse {
					return errors.New("refused")
				}
				return nil
			}
			tasks := tasksOf(t, coManifest)
			_, err := Run(t.Context(), tasks, Options{API: api, State: c.state, Backoff: &Backoff{Steps: 1}})
			checktest.Same(t, c.want, api.writes())
			if got := fmt.Sprint(err); c.failure == "" && err != nil || c.failure != "" && got != c.failure {
				t.Errorf("error %v, want %q", err, c.failure)
			}
			if te, ok := errors.AsType[*TaskError](err); ok && te.Task != tasks[0] {
				t.Error("error without its task")
			}
		})
	}
}

func TestPrecreatedClusterOperator(t *testing.T) {
	api := newFake()
	_, _ = Run(t.Context(), tasksOf(t, coManifest), Options{API: api, Owner: &metav1.OwnerReference{Name: "version", UID: "u"}})
	co := api.get("ClusterOperator", "co")
	status, _, _ := unstructured.NestedMap(co.Object, "status")
	want := map[string]any{"relatedObjects": []any{map[string]any{"group": "", "resource": "namespaces", "name": "ns"}}}
	checktest.Same(t, want, status)
	if refs := co.GetOwnerReferences(); len(refs) != 1 || refs[0].UID != "u" {
		t.Errorf("owners %v", refs)
	}
}

// The definition requires the name of a related object, which is empty where all of
// a resource are meant: it is written all the same.
func TestPrecreatedRelatedObjectsWithoutName(t *testing.T) {
	m := strings.Replace(coManifest, "resource: namespaces, name: ns", `resource: nodes, name: ""}, {group: "", resource: pods, namespace: ns, name: ""`, 1)
	want := []any{
		map[string]any{"group": "", "resource": "nodes", "name": ""},
		map[string]any{"group": "", "resource": "pods", "namespace": "ns", "name": ""},
	}
	for _, mode := range []Mode{ApplyServerSide, ApplyMerge} {
		c := memory.NewOpenShift(memory.Options{})
		_, _ = Run(t.Context(), tasksOf(t, m), Options{API: c, Mode: mode, Backoff: &Backoff{Steps: 1}})
		co := checktest.Get(c.Get(t.Context(), operators1, clusterapi.Key("", "co")))(t)
		related, _, _ := unstructured.NestedSlice(co.Object, "status", "relatedObjects")
		if diff := cmp.Diff(want, related); diff != "" {
			t.Errorf("%s: %s", mode, diff)
		}
	}
}

// The definition of ClusterOperators requires a spec, and many manifests have none.
func TestPrecreatedClusterOperatorHasSpec(t *testing.T) {
	api := newFake()
	m := strings.Replace(coManifest, "spec: {}\n", "", 1)
	_, _ = Run(t.Context(), tasksOf(t, m), Options{API: api})
	if spec, found, err := unstructured.NestedMap(api.get("ClusterOperator", "co").Object, "spec"); err != nil || !found || len(spec) != 0 {
		t.Errorf("spec %v, %t, %v", spec, found, err)
	}
}

// A manifest without related objects leaves the status alone.
func TestPrecreationWithoutRelatedObjects(t *testing.T) {
	api := newFake()
	_, _ = Run(t.Context(), tasksOf(t, `{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: co}, status: {versions: [{name: operator, version: "2"}]}}`), Options{API: api})
	checktest.Same(t, []string{"Create ClusterOperator co"}, api.writes())
}

func TestPrecreationToleratesConflict(t *testing.T) {
	api := newFake()
	api.before = func(_ context.Context, verb, _, _ string) error {
		if verb == "UpdateStatus" {
			return apierrors.NewConflict(schema.GroupResource{}, "co", errors.New("x"))
		}
		return nil
	}
	_, err := Run(t.Context(), tasksOf(t, coManifest), Options{API: api})
	if err == nil || err.Error() != "Cluster operator co is not available" {
		t.Fatalf("error %v", err)
	}
}

func TestReconcilingMergesMetadataOnly(t *testing.T) {
	api := newFake(coObject(t, "2", "True"))
	checktest.Get(Run(t.Context(), tasksOf(t, coManifest), Options{API: api, State: Reconciling}))(t)
	co := api.get("ClusterOperator", "co")
	if co.GetAnnotations()["note"] != "new" {
		t.Errorf("annotations %v", co.GetAnnotations())
	}
	if _, found := co.Object["spec"]; found {
		t.Error("spec was written")
	}
	if v, _, _ := unstructured.NestedSlice(co.Object, "status", "versions"); len(v) != 1 {
		t.Errorf("versions %v", v)
	}
}

func TestClusterOperatorIgnoresDeleteAnnotation(t *testing.T) {
	text := strings.Replace(coManifest, "note: new", `release.openshift.io/delete: "true"`, 1)
	api := newFake(coObject(t, "2", "True"))
	if _, err := Run(t.Context(), tasksOf(t, text), Options{API: api}); err != nil || len(api.writes()) > 0 {
		t.Fatalf("%v, %v", err, api.writes())
	}
}

// In every state a pass with attempt 0 starts the clocks anew, and a later one does
// not; an operator that is found good has none.
func TestOperatorClocksInEveryState(t *testing.T) {
	for _, state := range []State{Initializing, Updating, Reconciling} {
		t.Run(string(state), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := NewTracker(nil)
				pass := func(attempt int, available string) {
					time.Sleep(time.Minute)
					o := Options{API: newFake(coObject(t, "2", available)), Tracker: tr, Attempt: attempt, State: state}
					_, _ = Run(t.Context(), tasksOf(t, coManifest), o)
				}
				began := time.Now()
				since := func() any {
					if at, ok := tr.COStart("co"); ok {
						return at.Sub(began)
					}
					return nil
				}
				var got []any
				for attempt, available := range []string{"False", "False", "True", "False"} {
					pass(attempt, available)
					got = append(got, since())
				}
				pass(0, "False")
				got = append(got, since())
				want := []any{1 * time.Minute, 1 * time.Minute, nil, 4 * time.Minute, 5 * time.Minute}
				checktest.SameIn(t, "awaited since", want, got)
			})
		})
	}
}

// A task of the node before the operator's takes long: its clock runs since
// the node started.
func TestOperatorClockStartsWithItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := NewTracker(nil)
		api := newFake(coObject(t, "1", "True"))
		api.before = func(_ context.Context, verb, kind, _ string) error {
			if kind == "ConfigMap" {
				time.Sleep(time.Minute)
			}
			return nil
		}
		start := time.Now()
		tasks := tasksOf(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: ns}}", coManifest)
		_, _ = Run(t.Context(), tasks, Options{API: api, Tracker: tr})
		if at, ok := tr.COStart("co"); !ok || !at.Equal(start) {
			t.Errorf("start %v %v, want %v", at, ok, start)
		}
	})
}

// API errors of operators are retried; what a check finds is not.
func TestOperatorIsLookedAtOncePerPass(t *testing.T) {
	api := newFake(coObject(t, "2", "False"))
	_, err := Run(t.Context(), tasksOf(t, coManifest), Options{API: api})
	if err == nil || len(api.reads) != 2 { // one for precreation
		t.Fatalf("error %v after %v", err, api.reads)
	}
}

func operatorManifest(t testing.TB, file, name string) *manifest.Manifest {
	return newManifest(t, file, fmt.Sprintf("{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: %q, annotations: {}}}", name))
}

// ClusterOperators are created ahead in every pass, whatever its state and number,
// once each and only those of config.openshift.io/v1.
func TestPrecreationInEveryPass(t *testing.T) {
	other := newManifest(t, "0000_10_a_3", "{apiVersion: config.openshift.io/v1beta1, kind: ClusterOperator, metadata: {name: beta, annotations: {}}}")
	tasks := manifest.NewTasks([]*manifest.Manifest{configMaps(t, "0000_10_a_1")[0].Manifest, operatorManifest(t, "0000_10_a_2", "a"), other, operatorManifest(t, "0000_10_a_4", "b")})
	want := []string{"pre a", "pre b", "0000_10_a_1", "a", "beta", "b"}
	for _, state := range []State{Initializing, Updating, Reconciling} {
		for _, attempt := range []int{0, 1, 9} {
			t.Run(fmt.Sprint(state, attempt), func(t *testing.T) {
				r := &recorder{apply: func(_ context.Context, _ *manifest.Task, s State) error {
					if s != state && s != Precreating {
						t.Errorf("applied in state %s", s)
					}
					return nil
				}}
				checktest.Get(Run(t.Context(), tasks, Options{Wrap: r.wrap, State: state, Attempt: attempt, Workers: 1}))(t)
				checktest.Same(t, want, r.log)
			})
		}
	}
}

// The context is looked at before each ClusterOperator that is created ahead.
func TestPrecreationEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &recorder{apply: func(context.Context, *manifest.Task, State) error { cancel(); return nil }}
	tasks := manifest.NewTasks([]*manifest.Manifest{operatorManifest(t, "0000_10_a_1", "a"), operatorManifest(t, "0000_10_a_2", "b")})
	res, err := Run(ctx, tasks, Options{Wrap: r.wrap})
	checktest.Same(t, []string{"pre a"}, r.log)
	if err == nil || err.Error() != "update context canceled at 0 of 2" || res.Failure != nil {
		t.Errorf("error %v, failure %v", err, res.Failure)
	}
}
