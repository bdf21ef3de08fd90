package kubernetes_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// writes are all verbs that write, each with a call of it.
func writes(t testing.TB) map[string]func(clusterapi.ClusterAPI) (*unstructured.Unstructured, error) {
	t.Helper()
	ctx, key := t.Context(), clusterapi.Key("default", "a")
	fresh := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}`)
	stored := fresh.DeepCopy()
	stored.SetResourceVersion("7") // without a UID, so that Update reads first
	return map[string]func(clusterapi.ClusterAPI) (*unstructured.Unstructured, error){
		"Create": func(api clusterapi.ClusterAPI) (*unstructured.Unstructured, error) {
			return api.Create(ctx, fresh, clusterapi.CreateOptions{})
		},
		"Apply": func(api clusterapi.ClusterAPI) (*unstructured.Unstructured, error) {
			return api.Apply(ctx, fresh, clusterapi.ApplyOptions{FieldManager: "test"})
		},
		"Update": func(api clusterapi.ClusterAPI) (*unstructured.Unstructured, error) {
			return api.Update(ctx, stored, clusterapi.UpdateOptions{})
		},
		"UpdateStatus": func(api clusterapi.ClusterAPI) (*unstructured.Unstructured, error) {
			return api.UpdateStatus(ctx, stored, clusterapi.UpdateOptions{})
		},
		"Delete": func(api clusterapi.ClusterAPI) (*unstructured.Unstructured, error) {
			return nil, api.Delete(ctx, configMaps, key, clusterapi.DeleteOptions{UID: "u-a"})
		},
		"Evict": func(api clusterapi.ClusterAPI) (*unstructured.Unstructured, error) {
			return nil, api.Evict(ctx, key, clusterapi.EvictOptions{UID: "u-a"})
		},
	}
}

// Every write asks for a dry run, once and where a server looks for it, and none
// does without the option; reads never do. What is returned is the answer.
func TestDryRunRequests(t *testing.T) {
	verbs := writes(t)
	for _, part := range []reflect.Type{reflect.TypeFor[clusterapi.Writer](), reflect.TypeFor[clusterapi.Evictor]()} {
		for i := range part.NumMethod() {
			if name := part.Method(i).Name; verbs[name] == nil {
				t.Errorf("%s is not tried", name)
			}
		}
	}
	answer := strings.Replace(configMap("default", "a"), `"metadata"`, `"data": {"by": "the server"}, "metadata"`, 1)
	for name, do := range verbs {
		for _, dry := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", name, dry), func(t *testing.T) {
				var sent []string
				api := client(t, fake(t, func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					checktest.Good(t, err)
					found := dryRunOf(t, r, body)
					if r.Method == http.MethodGet {
						checktest.FailIf(t, len(found) > 0, "%s %s has %q", r.Method, r.URL, found)
					} else {
						sent = append(sent, strings.Join(found, ","))
					}
					fmt.Fprint(w, answer)
				}), kubernetes.Options{DryRun: dry})
				out := checktest.Get(do(api))(t)
				if out != nil {
					by, _, _ := unstructured.NestedString(out.Object, "data", "by")
					checktest.FailIf(t, by != "the server", "returned %v", out.Object)
				}
				want := ""
				if dry {
					want = "query All"
					if name == "Delete" {
						want = "body All"
					}
				}
				checktest.SameIn(t, "dry runs of its writes (-want +got)", []string{want}, sent)
			})
		}
	}
}

// dryRunOf finds dryRun in a request, wherever it may be.
func dryRunOf(t testing.TB, r *http.Request, body []byte) (found []string) {
	for _, v := range r.URL.Query()["dryRun"] {
		found = append(found, "query "+v)
	}
	if !strings.Contains(string(body), "dryRun") {
		return found
	}
	var options struct {
		DryRun        []string
		DeleteOptions struct{ DryRun []string }
	}
	checktest.Good(t, json.Unmarshal(body, &options))
	for _, v := range options.DryRun {
		found = append(found, "body "+v)
	}
	for _, v := range options.DeleteOptions.DryRun {
		found = append(found, "deleteOptions "+v)
	}
	return found
}

// On a real server a dry run changes nothing, and admission answers all the
// same: in words where it refuses, by what it fills in where it does not.
func TestDryRun(t *testing.T) {
	s := testserver.Start(t)
	api := newAPI(t, s, kubernetes.Options{})
	dry := newAPI(t, s, kubernetes.Options{DryRun: true})
	namespaces := schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	pods := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	budgets := schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}

	create(t, api, object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: app}}`))
	there, err := api.Apply(t.Context(), object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: there, namespace: app}, data: {a: one}}`), clusterapi.ApplyOptions{FieldManager: "test"})
	checktest.OK(t, err)
	create(t, api, object(t, `{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: app, labels: {app: web}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: web, image: registry.example/web}]}}`))
	budget := create(t, api, object(t, `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: app}, spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}}`))
	running := checktest.Get(api.Get(t.Context(), pods, clusterapi.Key("app", "web")))(t)
	running.Object["status"] = map[string]any{"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	if running, err = api.UpdateStatus(t.Context(), running, clusterapi.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	budget.Object["status"] = map[string]any{"observedGeneration": budget.GetGeneration(), "disruptionsAllowed": int64(1), "currentHealthy": int64(2), "desiredHealthy": int64(1), "expectedPods": int64(2)}
	checktest.OK(t, checktest.Err(api.UpdateStatus(t.Context(), budget, clusterapi.UpdateOptions{})))
	state := func() map[string]*unstructured.UnstructuredList {
		t.Helper()
		out := map[string]*unstructured.UnstructuredList{}
		for _, gvk := range []schema.GroupVersionKind{configMaps, pods, budgets, namespaces} {
			list := checktest.Get(api.List(t.Context(), gvk, clusterapi.ListOptions{Namespace: ""}))(t)
			out[gvk.Kind], list.Object = list, nil
		}
		return out
	}
	before := state()

	get := func(u *unstructured.Unstructured, path ...string) any {
		v, _, _ := unstructured.NestedFieldCopy(u.Object, path...)
		return v
	}
	check := func(name string, out *unstructured.Unstructured, err error, want any, path ...string) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := get(out, path...); !gocmp.Equal(got, want) {
			t.Errorf("%s: %s is %v, want %v, in %v", name, strings.Join(path, "."), got, want, out.Object)
		}
	}
	refused := func(name string, err error, is func(error) bool, text string) {
		t.Helper()
		checktest.FailIf(t, !is(err) || !strings.Contains(fmt.Sprint(err), text), "%s: %v", name, err)
	}
	ctx := t.Context()

	// what would be stored: defaults, the merge with what is there, the new owners
	pod, err := dry.Create(ctx, object(t, `{apiVersion: v1, kind: Pod, metadata: {name: fresh, namespace: app}, spec: {priorityClassName: system-node-critical, containers: [{name: web, image: registry.example/web}]}}`), clusterapi.CreateOptions{})
	check("created", pod, err, "Always", "spec", "restartPolicy")
	check("created", pod, err, int64(2000001000), "spec", "priority") // by an admission plugin
	check("created", pod, err, nil, "metadata", "resourceVersion")
	applied, err := dry.Apply(ctx, object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: there, namespace: app}, data: {b: two}}`), clusterapi.ApplyOptions{FieldManager: "another"})
	check("applied", applied, err, map[string]any{"a": "one", "b": "two"}, "data")
	checktest.Equal(t, 2, len(applied.GetManagedFields()), "applied")
	applied, err = dry.Apply(ctx, object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: fresh, namespace: app}, data: {b: two}}`), clusterapi.ApplyOptions{FieldManager: "test"})
	check("applied anew", applied, err, map[string]any{"b": "two"}, "data")
	changed := there.DeepCopy()
	changed.Object["data"] = map[string]any{"c": "three"}
	updated, err := dry.Update(ctx, changed, clusterapi.UpdateOptions{})
	check("updated", updated, err, map[string]any{"c": "three"}, "data")
	check("updated", updated, err, there.GetResourceVersion(), "metadata", "resourceVersion")
	running.Object["status"] = map[string]any{"phase": "Failed"}
	reported, err := dry.UpdateStatus(ctx, running, clusterapi.UpdateOptions{})
	check("reported", reported, err, "Failed", "status", "phase")

	// refusals of validation, admission plugins, preconditions and budgets
	important := object(t, `{apiVersion: v1, kind: Pod, metadata: {name: fresh, namespace: app}, spec: {priorityClassName: nowhere, containers: [{name: web, image: registry.example/web}]}}`)
	_, err = dry.Create(ctx, important, clusterapi.CreateOptions{})
	refused("no such priority", err, apierrors.IsForbidden, "no PriorityClass with name nowhere was found")
	_, err = dry.Apply(ctx, important, clusterapi.ApplyOptions{FieldManager: "test"})
	refused("no such priority", err, apierrors.IsForbidden, "no PriorityClass with name nowhere was found")
	err = dry.Delete(ctx, namespaces, clusterapi.Key("", "default"), clusterapi.DeleteOptions{})
	refused("needed namespace", err, apierrors.IsForbidden, "this namespace may not be deleted")
	_, err = dry.Create(ctx, object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: nowhere}}`), clusterapi.CreateOptions{})
	refused("no namespace", err, apierrors.IsNotFound, `namespaces "nowhere" not found`)
	_, err = dry.Create(ctx, object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: there, namespace: app}}`), clusterapi.CreateOptions{})
	refused("there already", err, apierrors.IsAlreadyExists, "there")
	_, err = dry.Apply(ctx, object(t, `{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: app}, spec: {nodeName: elsewhere}}`), clusterapi.ApplyOptions{FieldManager: "test"})
	refused("immutable", err, apierrors.IsInvalid, "")
	err = dry.Delete(ctx, configMaps, clusterapi.Key("app", "there"), clusterapi.DeleteOptions{UID: "another"})
	refused("another", err, apierrors.IsConflict, "")
	err = dry.Delete(ctx, configMaps, clusterapi.Key("app", "nowhere"), clusterapi.DeleteOptions{})
	refused("nothing", err, apierrors.IsNotFound, "")
	err = dry.Evict(ctx, clusterapi.Key("app", "web"), clusterapi.EvictOptions{UID: "another"})
	refused("another", err, apierrors.IsConflict, "")

	for name, err := range map[string]error{
		"Delete":    dry.Delete(ctx, configMaps, clusterapi.Key("app", "there"), clusterapi.DeleteOptions{UID: there.GetUID()}),
		"of a pod":  dry.Delete(ctx, pods, clusterapi.Key("app", "web"), clusterapi.DeleteOptions{}),
		"namespace": dry.Delete(ctx, namespaces, types.NamespacedName{Name: "app"}, clusterapi.DeleteOptions{}),
		"Evict":     dry.Evict(ctx, clusterapi.Key("app", "web"), clusterapi.EvictOptions{}),
	} {
		checktest.FailIf(t, err != nil, "%s: %v", name, err)
	}
	checktest.SameIn(t, "the dry runs have changed the cluster (-before +after)", before, state())

	// the same writes in earnest change it: it was not the writes that do nothing
	checktest.Good(t, checktest.Err(api.Update(ctx, changed, clusterapi.UpdateOptions{})))
	err = cmp.Or(api.Evict(ctx, clusterapi.Key("app", "web"), clusterapi.EvictOptions{}), api.Delete(ctx, configMaps, clusterapi.Key("app", "there"), clusterapi.DeleteOptions{}))
	checktest.Good(t, err)
	for gvk, name := range map[schema.GroupVersionKind]string{pods: "web", configMaps: "there"} {
		checktest.ErrorBy(t, apierrors.IsNotFound, checktest.Err(api.Get(ctx, gvk, clusterapi.Key("app", name))))
	}
}
