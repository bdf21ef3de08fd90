package runtimeclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/runtimeclient"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

var (
	configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	key        = clusterapi.Key("default", "a")
)

// request is what the client sent.
type request struct {
	Method, Path, Type string
	Query              map[string]string
	Body               any
}

// fake is a server that answers as a function says, and a client of it.
func fake(t testing.TB, answer func(w http.ResponseWriter, r *http.Request)) client.WithWatch {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(configMaps, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
	return checktest.Get(client.NewWithWatch(&rest.Config{Host: s.URL}, client.Options{Mapper: mapper}))(t)
}

func configMap(namespace, name string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": %q, "name": %q, "resourceVersion": "7", "uid": "u"}}`, namespace, name)
}

// Each verb is one request, with all that its options say.
func TestRequests(t *testing.T) {
	var got []request
	c := fake(t, func(w http.ResponseWriter, r *http.Request) {
		out := request{Method: r.Method, Path: r.URL.Path, Type: r.Header.Get("Content-Type"), Query: map[string]string{}}
		for name, values := range r.URL.Query() {
			out.Query[name] = strings.Join(values, ",")
		}
		data, _ := io.ReadAll(r.Body)
		if len(data) > 0 {
			if err := json.Unmarshal(data, &out.Body); err != nil {
				t.Errorf("%s: %v", data, err)
			}
		}
		got = append(got, out)
		fmt.Fprint(w, configMap("default", "a"))
	})
	api := newAPI(t, c, runtimeclient.Options{})
	metadata := map[string]any{"name": "a", "namespace": "default", "resourceVersion": "7", "uid": "u", "labels": map[string]any{"l": "x"}}
	content := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "status": map[string]any{"gone": nil}}
	u := &unstructured.Unstructured{Object: content}
	before := u.DeepCopy()
	const object = "/api/v1/namespaces/default/configmaps/a"
	for _, tc := range []struct {
		name string
		do   func() error
		want request
	}{
		{"Create", func() error { return second(api.Create(t.Context(), without(u), clusterapi.CreateOptions{})) },
			request{"POST", "/api/v1/namespaces/default/configmaps", "application/json", map[string]string{"fieldManager": "clusterupdate"}, without(u).Object}},
		{"Apply", func() error { return second(api.Apply(t.Context(), u, clusterapi.ApplyOptions{FieldManager: "m"})) },
			request{"PATCH", object, string(types.ApplyYAMLPatchType), map[string]string{"fieldManager": "m", "force": "true"}, content}},
		{"Update", func() error { return second(api.Update(t.Context(), u, clusterapi.UpdateOptions{FieldManager: "m"})) },
			request{"PUT", object, "application/json", map[string]string{"fieldManager": "m"}, content}},
		{"UpdateStatus", func() error { return second(api.UpdateStatus(t.Context(), u, clusterapi.UpdateOptions{})) },
			request{"PATCH", object + "/status", string(types.JSONPatchType), map[string]string{"fieldManager": "clusterupdate"}, []any{
				map[string]any{"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
				map[string]any{"op": "add", "path": "/status", "value": map[string]any{"gone": nil}},
			}}},
		{"Delete", func() error {
			return api.Delete(t.Context(), configMaps, key, clusterapi.DeleteOptions{UID: "u", ResourceVersion: "7", Propagation: metav1.DeletePropagationOrphan})
		}, request{"DELETE", object, "application/json", map[string]string{}, map[string]any{
			"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan", "preconditions": map[string]any{"uid": "u", "resourceVersion": "7"},
		}}},
		{"Delete by default", func() error { return api.Delete(t.Context(), configMaps, key, clusterapi.DeleteOptions{}) },
			request{"DELETE", object, "application/json", map[string]string{}, map[string]any{
				"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
			}}},
		{"Evict", func() error {
			return api.Evict(t.Context(), key, clusterapi.EvictOptions{UID: "u", GracePeriodSeconds: ptr.To[int64](0)})
		}, request{"POST", "/api/v1/namespaces/default/pods/a/eviction", "application/json", map[string]string{}, map[string]any{
			"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]any{"name": "a", "namespace": "default"},
			"deleteOptions": map[string]any{"gracePeriodSeconds": 0.0, "preconditions": map[string]any{"uid": "u"}},
		}}},
	} {
		got = nil
		if err := tc.do(); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		checktest.SameIn(t, tc.name, []request{tc.want}, got)
		checktest.SameIn(t, fmt.Sprintf("%s changed the caller's object", tc.name), before, u)
	}
	got = nil
	for name, err := range map[string]error{
		"Update without a resourceVersion": second(api.Update(t.Context(), without(u), clusterapi.UpdateOptions{})),
		"status without a resourceVersion": second(api.UpdateStatus(t.Context(), without(u), clusterapi.UpdateOptions{})),
	} {
		checktest.FailIf(t, !apierrors.IsInvalid(err), "%s: %v", name, err)
	}
	for name, err := range map[string]error{
		"Apply without a manager": second(api.Apply(t.Context(), u, clusterapi.ApplyOptions{})),
		"a resourceVersion":       second(api.Create(t.Context(), u, clusterapi.CreateOptions{})),
		"no object":               second(api.Create(t.Context(), nil, clusterapi.CreateOptions{})),
		"no namespace":            second(api.Get(t.Context(), configMaps, clusterapi.Key("", "a"))),
		"no name":                 second(api.Get(t.Context(), configMaps, clusterapi.Key("default", ""))),
		"a path":                  second(api.Get(t.Context(), configMaps, clusterapi.Key("default", "../a"))),
		"another path":            api.Delete(t.Context(), configMaps, clusterapi.Key("../a", "b"), clusterapi.DeleteOptions{}),
		"a pod's path":            api.Evict(t.Context(), clusterapi.Key("default", "a/b"), clusterapi.EvictOptions{}),
	} {
		checktest.FailIf(t, !apierrors.IsBadRequest(err), "%s: %v", name, err)
	}
	checktest.FailIf(t, len(got) > 0, "refusals have sent %v", got)
}

func second[T any](_ T, err error) error { return err }

func without(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	u.SetResourceVersion("")
	return u
}

// Answers that are not what was asked for are errors.
func TestAnswers(t *testing.T) {
	a := configMap("default", "a")
	answer := a
	api := newAPI(t, fake(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }), runtimeclient.Options{})
	for _, answer = range []string{configMap("default", "b"), configMap("other", "a"), `{"kind": "ConfigMapList", "apiVersion": "v1", "items": []}`} {
		if u, err := api.Get(t.Context(), configMaps, key); !errors.Is(err, kubernetes.ErrAnswer) || u != nil {
			t.Errorf("Get, answered by %s: %v, %v", answer, u, err)
		}
	}
	list := `{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [%s]}`
	for _, answer = range []string{a, fmt.Sprintf(list, configMap("other", "a")), fmt.Sprintf(list, strings.Replace(a, "ConfigMap", "Secret", 1)), fmt.Sprintf(list, a+","+a)} {
		if l, err := api.List(t.Context(), configMaps, clusterapi.ListOptions{Namespace: "default"}); !errors.Is(err, kubernetes.ErrAnswer) || l != nil {
			t.Errorf("List, answered by %s: %v, %v", answer, l, err)
		}
	}
	answer = fmt.Sprintf(list, a)
	l := checktest.Get(api.List(t.Context(), configMaps, clusterapi.ListOptions{Namespace: "default"}))(t)
	checktest.Equal(t, 1, len(l.Items), "len(l.Items) of %v", l)
}

// A kind that the mapper knew and the server does not serve any more is not an
// object that is not found.
func TestUnserved(t *testing.T) {
	api := newAPI(t, fake(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		http.Error(w, "404 page not found", http.StatusNotFound)
	}), runtimeclient.Options{})
	for name, err := range map[string]error{
		"Get":          second(api.Get(t.Context(), configMaps, key)),
		"List":         second(api.List(t.Context(), configMaps, clusterapi.ListOptions{})),
		"Delete":       api.Delete(t.Context(), configMaps, key, clusterapi.DeleteOptions{}),
		"unknown kind": second(api.Get(t.Context(), schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}, key)),
	} {
		checktest.FailIf(t, !meta.IsNoMatchError(err) || apierrors.IsNotFound(err), "%s: %v", name, err)
	}
}

// mapping has a mapper of its own in place of the client's.
type mapping struct {
	client.Client
	f func() (bool, error)
}

func (m mapping) IsObjectNamespaced(k8sruntime.Object) (bool, error) { return m.f() }

// The mapper knows no contexts: a call ends with its own all the same. A panic
// in it is an error.
func TestMapper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		api := newAPI(t, mapping{f: func() (bool, error) { <-release; return true, nil }}, runtimeclient.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		if _, err := api.Get(ctx, configMaps, key); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
	var p *panics.Error
	api := newAPI(t, mapping{f: func() (bool, error) { panic("in the mapper") }}, runtimeclient.Options{})
	if _, err := api.List(t.Context(), configMaps, clusterapi.ListOptions{}); !errors.As(err, &p) {
		t.Errorf("got %v", err)
	}
}

// A refusal of an eviction that comes with a time to wait comes back at once
// where that is asked for; other requests are sent again.
func TestRefuseAtOnce(t *testing.T) {
	requests := map[string]int{}
	rt := runtimeclient.RefuseAtOnce(roundTripper(func(r *http.Request) (*http.Response, error) {
		requests[r.URL.Path]++
		code, body := 200, configMap("default", "a")
		if strings.HasSuffix(r.URL.Path, "/eviction") || requests[r.URL.Path] == 1 {
			code, body = 429, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 429, "reason": "TooManyRequests", "details": {"retryAfterSeconds": 10}}`
		}
		return &http.Response{StatusCode: code, Request: r, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{
			"Content-Type": {"application/json"}, "Retry-After": {"0"},
		}}, nil
	}))
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(configMaps, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
	c, err := client.New(&rest.Config{Host: "http://fake", Transport: rt}, client.Options{Mapper: mapper})
	checktest.OK(t, err)
	api := newAPI(t, c, runtimeclient.Options{})
	err = api.Evict(t.Context(), key, clusterapi.EvictOptions{})
	seconds, ok := apierrors.SuggestsClientDelay(err)
	checktest.FailIf(t, !apierrors.IsTooManyRequests(err) || !ok || seconds != 10, "Evict: %v", err)
	checktest.Good(t, checktest.Err(api.Get(t.Context(), configMaps, key)))
	want := map[string]int{"/api/v1/namespaces/default/pods/a/eviction": 1, "/api/v1/namespaces/default/configmaps/a": 2}
	checktest.SameIn(t, "requests", want, requests)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Only a client that watches makes a Watcher.
func TestWatcher(t *testing.T) {
	c := fake(t, func(http.ResponseWriter, *http.Request) {})
	if _, ok := newAPI(t, c, runtimeclient.Options{}).(clusterapi.Watcher); !ok {
		t.Error("no Watcher from a client that watches")
	}
	if _, ok := newAPI(t, mapping{Client: c}, runtimeclient.Options{}).(clusterapi.Watcher); ok {
		t.Error("a Watcher from a client that does not watch")
	}
}

func TestOptions(t *testing.T) {
	checktest.Fails(t, checktest.Err(runtimeclient.New(nil, runtimeclient.Options{})), "no client, and no error")
	for _, o := range []runtimeclient.Options{{PageSize: -1}, {MaxItems: -1}} {
		checktest.Fails(t, checktest.Err(runtimeclient.New(mapping{}, o)), "%+v, and no error", o)
	}
}

// endless is a client whose lists never end.
type endless struct {
	mapping
	pages *int64
	page  []unstructured.Unstructured
}

func (c endless) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	*c.pages++
	l := list.(*unstructured.UnstructuredList)
	l.SetContinue(fmt.Sprint(*c.pages))
	l.Items = c.page
	return nil
}

func TestLimits(t *testing.T) {
	const limit = 1_000_000
	namespaced := mapping{f: func() (bool, error) { return true, nil }}
	page := make([]unstructured.Unstructured, 100_000)
	one := map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"name": "a", "namespace": "default"}}
	for i := range page {
		page[i].Object = one
	}
	limittest.Walk(t, []limittest.Case{{
		Limit: "objects and pages of a list", Default: limit, Bytes: 256 << 20, Steps: 10,
		Run: func(t *testing.T) (pages int64) {
			api := newAPI(t, endless{namespaced, &pages, page}, runtimeclient.Options{})
			if _, err := api.List(t.Context(), configMaps, clusterapi.ListOptions{}); !errors.Is(err, kubernetes.ErrTooLarge) || !strings.Contains(err.Error(), "MaxItems") {
				t.Errorf("got %v", err)
			}
			return pages
		},
	}})
	var pages int64
	api := newAPI(t, endless{namespaced, &pages, nil}, runtimeclient.Options{MaxItems: 100})
	if _, err := api.List(t.Context(), configMaps, clusterapi.ListOptions{}); !errors.Is(err, kubernetes.ErrTooLarge) || pages != 101 {
		t.Errorf("after %d empty pages: %v", pages, err)
	}
}
