package clusterapitest

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/internal/probe"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// Capabilities are what a backend may have or lack.
type Capabilities struct {
	// Watch reports that the backend implements [clusterapi.Watcher].
	Watch bool
	// ReadOnly reports that the backend cannot be written to: it contains
	// [Objects], and refuses whatever would change them. What only reads is an
	// [clusterapi.Reader]: [clusterapi.ReadOnly] makes the rest.
	ReadOnly bool
}

// Conformance runs all sub-tests against the backend that newAPI returns. It
// calls newAPI once. The backend must serve ConfigMaps, Secrets, Pods,
// Deployments, PodDisruptionBudgets and CustomResourceDefinitions, and refuse
// kinds that nobody defined. One that is [clusterapi.Shared] or a
// [clusterapi.Follower] is tested as such.
//
// A run takes some seconds of real time, since one rule is about what happens
// a second later.
func Conformance(t *testing.T, newAPI func(t *testing.T) (clusterapi.ClusterAPI, Capabilities)) {
	api, caps := newAPI(t)
	var s *suite
	groups := []group{{"Get", testGet}, {"List", testList}, {"Ownership", testOwnership}, {"Context", testContext}}
	if caps.ReadOnly {
		s = recordedSuite(api)
		groups = append(groups, group{"Recorded", testRecorded}, group{"Writes", testWrites}, group{"Concurrency", testParallelReads})
	} else {
		s = newSuite(t, api)
		groups = append(groups, []group{
			{"Create", testCreate},
			{"Update", testUpdate},
			{"UpdateStatus", testUpdateStatus},
			{"Generation", testGeneration},
			{"Apply", testApply},
			{"Custom", testCustom},
			{"FieldManager", testFieldManager},
			{"Delete", testDelete},
			{"Evict", testEvict},
			{"Concurrency", testConcurrency},
		}...)
	}
	if caps.Watch {
		groups = append(groups, group{"Watch", testWatch})
	}
	if _, ok := api.(clusterapi.Shared); ok {
		groups = append(groups, group{"Shared", testShared})
	}
	if _, ok := api.(clusterapi.Follower); ok && !caps.ReadOnly {
		groups = append(groups, group{"Follower", testFollower})
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) { g.run(t, s) })
	}
}

type group struct {
	name string
	run  func(*testing.T, *suite)
}

// The kinds of the suite.
var (
	configMaps  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	pods        = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	budgets     = schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}
)

// suite is what the sub-tests share. Each uses its own object names.
type suite struct {
	ctx context.Context
	api clusterapi.ClusterAPI
	// id occurs in every cluster-wide name.
	id string
	// ns and other are namespaces, in the order of their names.
	ns, other string
	// widgets is the custom kind.
	widgets schema.GroupVersionKind
	// recorded reports that the backend only reads, and has the objects already.
	recorded bool
	names    int // that were made up
}

// newNames makes the names that have id in them.
func newNames(id string) *suite {
	return &suite{
		ctx: context.Background(), id: id,
		ns: "conformance-" + id + "-a", other: "conformance-" + id + "-b",
		widgets: schema.GroupVersionKind{Group: "conformance-" + id + ".clusterupdate.github.io", Version: "v1", Kind: "Widget"},
	}
}

func newSuite(t *testing.T, api clusterapi.ClusterAPI) *suite {
	t.Helper()
	var random [4]byte
	checktest.OK(t, checktest.Err(rand.Read(random[:])))
	id := hex.EncodeToString(random[:])
	s := newNames(id)
	s.api = api
	for _, name := range []string{s.ns, s.other} {
		s.create(t, object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: %s}}`, name))
		t.Cleanup(func() { s.discard(t, probe.Namespaces, "", name) })
		// Without controllers nobody else makes the account that pods need.
		account := object(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: %s}}`, name)
		_, err := api.Create(s.ctx, account, clusterapi.CreateOptions{})
		checktest.FatalIf(t, err != nil && !apierrors.IsAlreadyExists(err), "creating a service account: %v", err)
	}
	name := "widgets." + s.widgets.Group
	t.Cleanup(func() { s.discard(t, probe.Definitions, "", name) })
	checktest.OK(t, probe.Define(s.ctx, api, object(t, definition, name, s.widgets.Group)))
	return s
}

// object parses YAML, into which the arguments are put as by Sprintf.
func object(t *testing.T, text string, args ...any) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	checktest.OK(t, probe.Parse(fmt.Sprintf(text, args...), &u.Object))
	return u
}

// must makes a call, which must return an object, but for Delete and Evict.
func (s *suite) must(t *testing.T, c probe.Call) *unstructured.Unstructured {
	t.Helper()
	stored, err := c.Do(s.ctx, s.api)
	checktest.FatalIf(t, err != nil, "%s of %s %s: %v", c.Verb, c.Kind.Kind, c.Key.Name, err)
	checktest.FatalIf(t, c.Verb != "Delete" && c.Verb != "Evict" && (stored == nil || stored.Object == nil),
		"%s of %s %s returned no object, and no error", c.Verb, c.Kind.Kind, c.Key.Name)
	return stored
}

// refused makes a call, which must fail with an error of a class.
func (s *suite) refused(t *testing.T, class string, c probe.Call) {
	t.Helper()
	if _, err := c.Do(s.ctx, s.api); probe.Class(err) != class {
		t.Errorf("%s of %s %s: got %v, want an error of the class %s", c.Verb, c.Kind.Kind, c.Key.Name, err, class)
	}
}

func (s *suite) create(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	return s.must(t, probe.By("conformance", "Create", u))
}

// make is as create; of a backend that only reads, the object is there.
func (s *suite) make(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if s.recorded {
		return s.get(t, u)
	}
	return s.create(t, u)
}

func (s *suite) get(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	return s.must(t, probe.Of("Get", u))
}

func (s *suite) apply(t *testing.T, manager string, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	return s.must(t, probe.By(manager, "Apply", u))
}

func (s *suite) update(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	return s.must(t, probe.By("conformance", "Update", u))
}

func (s *suite) updateStatus(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	return s.must(t, probe.By("conformance", "UpdateStatus", u))
}

// discard deletes for a clean-up: what is gone is fine.
func (s *suite) discard(t *testing.T, gvk schema.GroupVersionKind, namespace, name string) {
	err := s.api.Delete(s.ctx, gvk, clusterapi.Key(namespace, name), clusterapi.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		t.Logf("clean-up: deleting %s %s: %v", gvk.Kind, name, err)
	}
}

// gone reports whether Get answers that the object does not exist.
func (s *suite) gone(t *testing.T, u *unstructured.Unstructured) bool {
	t.Helper()
	_, err := s.api.Get(s.ctx, u.GroupVersionKind(), clusterapi.KeyOf(u))
	checktest.FatalIf(t, err != nil && !apierrors.IsNotFound(err), "Get of %s %s: %v", u.GetKind(), u.GetName(), err)
	return err != nil
}

// set puts a value at a path of fields.
func set(t *testing.T, u *unstructured.Unstructured, v any, path ...string) {
	t.Helper()
	checktest.OK(t, unstructured.SetNestedField(u.Object, v, path...))
}

// wantAt compares what is at a path of fields, in its JSON form.
func wantAt(t *testing.T, u *unstructured.Unstructured, want any, path ...string) {
	t.Helper()
	if got := probe.At(u, path...); text(got) != text(want) {
		t.Errorf("%s %s: %v is %s, want %s", u.GetKind(), u.GetName(), path, text(got), text(want))
	}
}

// wantSame compares two states of an object.
func wantSame(t *testing.T, what string, want, got *unstructured.Unstructured) {
	t.Helper()
	if text(got.Object) != text(want.Object) {
		t.Errorf("%s %s: %s:\n%s\nis not the same as\n%s", want.GetKind(), want.GetName(), what, text(want.Object), text(got.Object))
	}
}

func text(v any) string {
	data, err := yaml.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func (s *suite) configMap(t *testing.T, name string) *unstructured.Unstructured {
	return object(t, configMapText, name, s.ns)
}

func (s *suite) deployment(t *testing.T, name string) *unstructured.Unstructured {
	return object(t, deploymentText, name, s.ns)
}

func (s *suite) widget(t *testing.T, name string) *unstructured.Unstructured {
	return object(t, widgetText, s.widgets.GroupVersion(), name, s.ns)
}

//go:embed definition.yaml
var definition string

// The objects of the suite.
const (
	configMapText  = `{apiVersion: v1, kind: ConfigMap, metadata: {name: "%s", namespace: %s}, data: {a: "1"}}`
	widgetText     = `{apiVersion: %s, kind: Widget, metadata: {name: "%s", namespace: %s}, spec: {size: 1}}`
	listedText     = `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s, labels: {list: "%s", color: %s}}, data: {a: "1"}}`
	deploymentText = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: "%s", namespace: %s}
spec:
  replicas: 1
  selector: {matchLabels: {app: "%[1]s"}}
  template:
    metadata: {labels: {app: "%[1]s"}}
    spec:
      containers:
      - {name: one, image: registry.example/one}
`
	podText = `
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s, labels: {color: %s}}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 0
  containers: [{name: one, image: registry.example/one}]
`
)
