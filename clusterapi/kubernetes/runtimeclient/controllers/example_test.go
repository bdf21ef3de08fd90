package controllers_test

import (
	"log"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/runtimeclient/controllers"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// A program rolls nodes out, in one of its replicas.
func Example() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		LeaderElection: true, LeaderElectionID: "rollout", LeaderElectionNamespace: "my-operator",
	})
	if err != nil {
		log.Fatal(err)
	}
	api, err := controllers.API(mgr)
	if err != nil {
		log.Fatal(err)
	}
	nodes, err := rollout.New(rollout.Options{API: api})
	if err != nil {
		log.Fatal(err)
	}
	if err := controllers.Add(mgr, controllers.Options{}, nodes.Process()); err != nil {
		log.Fatal(err)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Fatal(err)
	}
}
