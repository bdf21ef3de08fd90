package kubernetes_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
)

// clusterConfig is the configuration of a cluster that knows one object.
func clusterConfig() (config *rest.Config, stop func()) {
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
	return &rest.Config{Host: server.URL}, server.Close
}

func ExampleNew() {
	config, stop := clusterConfig() // or clientcmd.BuildConfigFromFlags("", kubeconfig)
	defer stop()
	cluster, err := kubernetes.New(config, kubernetes.Options{UserAgent: "my-fleet-manager/1.0"})
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	cv, err := clusterapi.Get[configv1.ClusterVersion](context.Background(), cluster, clusterapi.Key("", "version"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(cv.Status.Desired.Version)
	// Output: 4.18.15
}
