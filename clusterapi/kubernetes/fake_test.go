package kubernetes_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// fake is an API server that serves ConfigMaps, Pods and Nodes as a function
// says.
func fake(t testing.TB, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/api/v1" {
			fmt.Fprint(w, coreResources)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

const coreResources = `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [
	{"name": "configmaps", "kind": "ConfigMap", "namespaced": true},
	{"name": "pods", "kind": "Pod", "namespaced": true},
	{"name": "nodes", "kind": "Node"}]}`

// answers serves one text to everything.
func answers(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

func client(t testing.TB, s *httptest.Server, o kubernetes.Options) *kubernetes.Cluster {
	t.Helper()
	api := checktest.Get(kubernetes.New(&rest.Config{Host: s.URL}, o))(t)
	t.Cleanup(func() {
		checktest.Good(t, api.Close())
	})
	return api
}

// configMap is one as JSON. List makes a list of some.
func configMap(namespace, name string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": %q, "name": %q, "resourceVersion": "7", "uid": "u-%[2]s", "labels": {"of": "test"}}}`, namespace, name)
}

func list(items ...string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "9"}, "items": [%s]}`, strings.Join(items, ","))
}
