package kubernetes_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// An answer to Get, Create, Apply, Update and UpdateStatus is the object that
// was asked for, or an error.
func TestOtherObject(t *testing.T) {
	right := configMap("default", "a")
	for name, tc := range map[string]struct {
		answer string
		ok     bool
	}{
		"the object":          {right, true},
		"another name":        {configMap("default", "b"), false},
		"another namespace":   {configMap("other", "a"), false},
		"no namespace":        {strings.Replace(right, `"namespace": "default", `, "", 1), false},
		"another kind":        {strings.Replace(right, "ConfigMap", "Secret", 1), false},
		"another case":        {strings.Replace(right, `"kind"`, `"Kind"`, 1), false},
		"another version":     {strings.Replace(right, `"v1"`, `"v2"`, 1), false},
		"a list":              {list(right), false},
		"an object and items": {strings.Replace(right, "{", `{"items": [],`, 1), false},
		"a success":           {`{"apiVersion": "v1", "kind": "Status", "status": "Success"}`, false},
		"null":                {`null`, false},
		"an array":            {`[` + right + `]`, false},
		"no JSON":             {`<html>`, false},
		"half of it":          {right[:40], false},
	} {
		t.Run(name, func(t *testing.T) {
			api := client(t, fake(t, answers(tc.answer)), kubernetes.Options{})
			u := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default, resourceVersion: "7"}}`)
			fresh := u.DeepCopy()
			fresh.SetResourceVersion("")
			for verb, do := range map[string]func() (any, error){
				"Get":          func() (any, error) { return api.Get(t.Context(), configMaps, clusterapi.Key("default", "a")) },
				"Create":       func() (any, error) { return api.Create(t.Context(), fresh, clusterapi.CreateOptions{}) },
				"Apply":        func() (any, error) { return api.Apply(t.Context(), u, clusterapi.ApplyOptions{FieldManager: "test"}) },
				"Update":       func() (any, error) { return api.Update(t.Context(), u, clusterapi.UpdateOptions{}) },
				"UpdateStatus": func() (any, error) { return api.UpdateStatus(t.Context(), u, clusterapi.UpdateOptions{}) },
			} {
				out, err := do()
				checktest.FailIf(t, tc.ok && err != nil || !tc.ok && !errors.Is(err, kubernetes.ErrAnswer),
					"%s: got %v, error %v", verb, out, err)
				checktest.FailIf(t, apierrors.IsNotFound(err), "%s: %v denies that there is such an object", verb, err)
			}
		})
	}
}

// An answer to List is a list of objects that were asked for, or an error.
func TestOtherItems(t *testing.T) {
	a := configMap("default", "a")
	for name, tc := range map[string]struct {
		answer string
		ok     bool
	}{
		"a list":              {list(a, configMap("default", "b")), true},
		"items without kinds": {list(strings.Replace(a, `"apiVersion": "v1", "kind": "ConfigMap",`, "", 1)), true},
		"an empty list":       {list(), true},
		"a list of null":      {strings.Replace(list(), "[]", "null", 1), true},
		"no items":            {`{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {}}`, false},
		"an object":           {a, false},
		"a success":           {`{"apiVersion": "v1", "kind": "Status", "status": "Success", "items": []}`, false},
		"nothing":             {`{}`, false},
		"items in an object":  {strings.Replace(list(), "[]", "{}", 1), false},
		"another kind":        {list(a, strings.Replace(configMap("default", "b"), "ConfigMap", "Secret", 1)), false},
		"another namespace":   {list(a, configMap("other", "b")), false},
		"other labels":        {list(strings.Replace(a, `"test"`, `"others"`, 1)), false},
		"without a name":      {list(configMap("default", "")), false},
		"twice the same":      {list(a, a), false},
		"a text":              {list(`"a"`), false},
		"null among them":     {list(a, "null"), false},
		"its own next page":   {strings.Replace(list(a), `"9"`, `"9", "continue": "x"`, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			api := client(t, fake(t, answers(tc.answer)), kubernetes.Options{})
			got, err := api.List(t.Context(), configMaps, clusterapi.ListOptions{Namespace: "default", Labels: labels.SelectorFromSet(labels.Set{"of": "test"})})
			checktest.FailIf(t, tc.ok && err != nil || !tc.ok && !errors.Is(err, kubernetes.ErrAnswer),
				"got %v, error %v", got, err)
			if err != nil {
				return
			}
			for i := range got.Items {
				checktest.Equal(t, configMaps, got.Items[i].GroupVersionKind(), "an item is of")
			}
		})
	}
}

// A watch ends with an error at an event that it did not ask for.
func TestOtherEvents(t *testing.T) {
	event := func(kind, object string) string { return fmt.Sprintf(`{"type": %q, "object": %s}`, kind, object) }
	for name, tc := range map[string]struct {
		event string
		ok    bool
	}{
		"added":             {event("ADDED", configMap("default", "b")), true},
		"deleted":           {event("DELETED", strings.Replace(configMap("default", "a"), `"test"`, `"others"`, 1)), true},
		"another kind":      {event("ADDED", strings.Replace(configMap("default", "b"), "ConfigMap", "Secret", 1)), false},
		"another namespace": {event("ADDED", configMap("other", "b")), false},
		"other labels":      {event("MODIFIED", strings.Replace(configMap("default", "a"), `"test"`, `"others"`, 1)), false},
		"another type":      {event("CHANGED", configMap("default", "a")), false},
		"a list":            {event("ADDED", list()), false},
		"a bookmark":        {event("BOOKMARK", list()), false},
		"no object":         {`{"type": "ADDED"}`, false},
		"null":              {`{"type": "ADDED", "object": null}`, false},
		"a number":          {`{"type": 7, "object": {}}`, false},
		"another case":      {`{"Type": "ADDED", "object": ` + configMap("default", "b") + `}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			hold := make(chan struct{})
			api := client(t, fake(t, func(w http.ResponseWriter, r *http.Request) {
				if !isWatch(r) {
					fmt.Fprint(w, list(configMap("default", "a")))
					return
				}
				fmt.Fprintln(w, tc.event)
				w.(http.Flusher).Flush()
				<-hold
			}), kubernetes.Options{})
			defer close(hold)
			synced, ended := false, false
			for e, err := range api.Watch(t.Context(), configMaps, clusterapi.ListOptions{Namespace: "default", Labels: labels.SelectorFromSet(labels.Set{"of": "test"})}) {
				checktest.FailIf(t, tc.ok && err != nil || err != nil && !errors.Is(err, kubernetes.ErrAnswer),
					"the watch ended with %v", err)
				ended = ended || err != nil
				if synced && err == nil {
					checktest.FailIf(t, !tc.ok, "it yields %s %v", e.Type, e.Object)
					break
				}
				synced = synced || e.Type == clusterapi.Synced
			}
			checktest.FailIf(t, ended == tc.ok, "ended: %t", ended)
		})
	}
}

// The resources of a group version are those of that one.
func TestOtherResources(t *testing.T) {
	for name, text := range map[string]string{
		"another group version": strings.Replace(coreResources, `"v1"`, `"v2"`, 1),
		"another kind":          strings.Replace(coreResources, "APIResourceList", "APIGroupList", 1),
		"nothing":               `{}`,
		"no JSON":               `<html>`,
	} {
		s := httptest.NewServer(answers(text))
		t.Cleanup(s.Close)
		api := client(t, s, kubernetes.Options{})
		if _, err := api.Get(t.Context(), configMaps, clusterapi.Key("default", "a")); !errors.Is(err, kubernetes.ErrAnswer) && name != "no JSON" || err == nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A name cannot lead to the path of another object.
func TestNames(t *testing.T) {
	api := client(t, fake(t, func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("a request of %s", r.URL.Path)
		http.NotFound(w, r)
	}), kubernetes.Options{})
	for _, key := range []struct{ namespace, name string }{
		{"default", "../secrets/a"}, {"default", ".."}, {"../other", "a"}, {"default", "a/status"}, {"default", "a%2fb"}, {"default", ""}, {"", "a"},
	} {
		key := clusterapi.Key(key.namespace, key.name)
		checktest.ErrorBy(t, apierrors.IsBadRequest, checktest.Err(api.Get(t.Context(), configMaps, key)))
		if err := api.Delete(t.Context(), configMaps, key, clusterapi.DeleteOptions{}); !apierrors.IsBadRequest(err) {
			t.Errorf("Delete of %s: %v", key, err)
		}
		checktest.ErrorBy(t, apierrors.IsBadRequest, api.Evict(t.Context(), key, clusterapi.EvictOptions{}))
	}
	if _, err := api.List(t.Context(), configMaps, clusterapi.ListOptions{Namespace: "default/secrets"}); !apierrors.IsBadRequest(err) {
		t.Errorf("List: %v", err)
	}
}

// A redirect to another host does not get the credentials.
func TestRedirect(t *testing.T) {
	var asked atomic.Int64
	other := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, configMap("default", "a"))
	})
	s := fake(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/namespaces/default/configmaps/a":
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		case "/api/v1/namespaces/default/configmaps/b":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		default:
			fmt.Fprint(w, configMap("default", "b"))
		}
	})
	api := checktest.Get(kubernetes.New(&rest.Config{Host: s.URL, BearerToken: "secret"}, kubernetes.Options{}))(t)
	defer api.Close()
	if _, err := api.Get(t.Context(), configMaps, clusterapi.Key("default", "a")); !errors.Is(err, kubernetes.ErrAnswer) || asked.Load() > 0 {
		t.Errorf("got %v, and the other host was asked %d times", err, asked.Load())
	}
	checktest.Good(t, checktest.Err(api.Get(t.Context(), configMaps, clusterapi.Key("default", "b"))))
}
