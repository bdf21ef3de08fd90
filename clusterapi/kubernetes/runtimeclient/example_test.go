package runtimeclient_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/runtimeclient"
)

func ExampleNew() {
	// A server that knows one object stands in for a cluster. An operator has
	// a client and its mapper from its manager.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/apis/config.openshift.io/v1/clusterversions/version" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `{"kind": "ClusterVersion", "apiVersion": "config.openshift.io/v1", "metadata": {"name": "version"}, "status": {"desired": {"version": "4.18.15"}}}`)
	}))
	defer server.Close()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(configv1.GroupVersion.WithKind("ClusterVersion"), meta.RESTScopeRoot)
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{Mapper: mapper})
	if err != nil {
		fmt.Println(err)
		return
	}

	api, err := runtimeclient.New(c, runtimeclient.Options{})
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
