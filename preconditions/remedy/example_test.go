package remedy_test

import (
	"context"
	"fmt"
	"log"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/preconditions/remedy"
)

// Checks that would replace a node while it reboots are paused for an update, and
// resumed after it.
func ExampleHealthChecks() {
	ctx := context.Background()
	cluster := memory.New(memory.Options{Lenient: true})
	check := &machinev1beta1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: "workers"}}
	check.Spec.UnhealthyConditions = []machinev1beta1.UnhealthyCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	if _, err := clusterapi.Create(ctx, cluster, check, clusterapi.CreateOptions{}); err != nil {
		log.Fatal(err)
	}

	const release = "registry.example/ocp/release@sha256:2222"
	var h remedy.HealthChecks
	paused, err := h.Pause(ctx, cluster, release)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("paused:", paused)
	still, _, err := h.Resume(ctx, cluster, release)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("still paused:", still)
	// Output:
	// paused: [workers]
	// still paused: []
}
