package kubernetes_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
)

func ExampleNew() {
	// A server that knows one object stands in for a cluster. The
	// configuration usually comes from clientcmd.BuildConfigFromFlags.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/apis/config.openshift.io/v1":
			fmt.Fprint(w, `{"kind": "APIResourceList", "apiVersion": "v1", "resources": [{"name": "clusterversions", "kind": "ClusterVersion"}]}`)
		case "/apis/config.openshift.io/v1/clusterversions/version":
			fmt.Fprint(w, `{"kind": "ClusterVersion", "apiVersion": "config.openshift.io/v1", "metadata": {"name": "version"}, "status": {"desired": {"version": "4.18.15"}}}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()

	api, err := kubernetes.New(&rest.Config{Host: server.URL}, kubernetes.Options{UserAgent: "my-fleet-manager/1.0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	cv, err := clusterapi.Get[configv1.ClusterVersion](context.Background(), api, clusterapi.Key("", "version"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cv.Status.Desired.Version)
	// Output: 4.18.15
}
