package kubernetes_test

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

var (
	gadgets  = schema.GroupVersionKind{Group: "test.clusterupdate.github.io", Version: "v1", Kind: "Gadget"}
	crds     = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	services = schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}
)

// TestKinds changes what the server serves under a client that knew it before.
func TestKinds(t *testing.T) {
	s := testserver.Start(t)
	api := newAPI(t, s, kubernetes.Options{})
	options := clusterapi.ApplyOptions{FieldManager: "test"}
	define := func(plural, scope string) {
		t.Helper()
		create(t, api, object(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.test.clusterupdate.github.io}
spec:
  group: test.clusterupdate.github.io
  names: {kind: Gadget, plural: %[1]s}
  scope: %s
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`, plural, scope))
	}
	gadget := func(namespace string) *unstructured.Unstructured {
		u := object(t, `{apiVersion: test.clusterupdate.github.io/v1, kind: Gadget, metadata: {name: one}}`)
		u.SetNamespace(namespace)
		return u
	}
	eventually := func(what string, f func(context.Context) (bool, error)) {
		t.Helper()
		if err := poll(t.Context(), 30*time.Second, f); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	applied := func(namespace string) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			_, err := api.Apply(ctx, gadget(namespace), options)
			return err == nil, err
		}
	}

	if _, err := api.Apply(t.Context(), gadget("default"), options); !meta.IsNoMatchError(err) {
		t.Fatalf("before there is a definition: %v, want an error that IsNoMatchError recognises", err)
	}
	define("gadgets", "Namespaced")
	eventually("after its definition", applied("default"))

	// An object without a namespace, a status that the kind does not have.
	checktest.ErrorBy(t, apierrors.IsBadRequest, checktest.Err(api.Apply(t.Context(), gadget(""), options)))
	stored := checktest.Get(api.Get(t.Context(), gadgets, clusterapi.Key("default", "one")))(t)
	checktest.ErrorHas(t, "no status subresource", checktest.Err(
		api.UpdateStatus(t.Context(), stored, clusterapi.UpdateOptions{})))

	// The definition goes: its kind is not served, which is another answer
	// than that its object is not found.
	checktest.OK(t,
		api.Delete(t.Context(), crds, clusterapi.Key("", "gadgets.test.clusterupdate.github.io"),
			clusterapi.DeleteOptions{}))
	eventually("after the definition has gone", func(ctx context.Context) (bool, error) {
		_, err := api.Get(ctx, gadgets, clusterapi.Key("default", "one"))
		return meta.IsNoMatchError(err), err
	})

	// Another one comes, by another name and for the whole cluster.
	define("gizmos", "Cluster")
	eventually("after another definition", applied("ignored"))
	checktest.Good(t, checktest.Err(api.Get(t.Context(), gadgets, clusterapi.Key("ignored", "one"))))

	// An API service that does not answer is neither there nor not there, and
	// in nobody else's way.
	create(t, api, object(t, `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.down.clusterupdate.github.io}
spec:
  group: down.clusterupdate.github.io
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 10
  service: {name: nobody, namespace: default}
`))
	eventually("an API service that is down", func(ctx context.Context) (bool, error) {
		_, err := api.Get(ctx, schema.GroupVersionKind{Group: "down.clusterupdate.github.io", Version: "v1", Kind: "Thing"}, clusterapi.Key("", "x"))
		return apierrors.IsServiceUnavailable(err), err
	})
	fresh := newAPI(t, s, kubernetes.Options{})
	checktest.Good(t, checktest.Err(fresh.Get(t.Context(), gadgets, clusterapi.Key("", "one"))))
	checktest.Good(t,
		api.Delete(t.Context(), services, clusterapi.Key("", "v1.down.clusterupdate.github.io"),
			clusterapi.DeleteOptions{}))
}

func TestOptions(t *testing.T) {
	checktest.Fails(t, checktest.Err(kubernetes.New(nil, kubernetes.Options{})), "no configuration, and no error")
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	checktest.Fails(t, checktest.Err(
		kubernetes.New(config, kubernetes.Options{PageSize: -1})), "a negative page size, and no error")
	config.QPS, config.UserAgent = 7, "before"
	if _, err := kubernetes.New(config, kubernetes.Options{UserAgent: "after"}); err != nil || config.QPS != 7 || config.UserAgent != "before" {
		t.Errorf("error %v, and the configuration became %v", err, config)
	}
}
