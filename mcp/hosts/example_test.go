package hosts_test

import (
	"fmt"
	"log"
	"os"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/mcp/hosts"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// exampleCluster is a cluster with one compute node, as plan.ReadCluster returns it.
func exampleCluster(version, osImage string) plan.Cluster {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-0", Labels: map[string]string{"node-role.kubernetes.io/worker": ""}}}
	n.Annotations = map[string]string{
		"machineconfiguration.openshift.io/currentConfig": "rendered-worker-1",
		"machineconfiguration.openshift.io/desiredConfig": "rendered-worker-1",
		"machineconfiguration.openshift.io/state":         "Done",
	}
	n.Status.NodeInfo.OSImage = osImage
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	cv := &configv1.ClusterVersion{}
	cv.Status.History = []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: version}}
	return plan.Cluster{Version: cv, Nodes: []corev1.Node{n}}
}

func ExamplePlanRHEL() {
	c := exampleCluster("4.18.7", "Red Hat Enterprise Linux 8.8 (Ootpa)")
	p, _, err := hosts.PlanRHEL(c, hosts.RHELOptions{ID: "hosts", Update: "playbook", PreUpgrade: "backup", Prepared: true})
	if err != nil {
		log.Fatal(err)
	}
	if err := plan.WriteText(os.Stdout, p); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Plan hosts (RHEL), 7 steps
	//   1  cordon-worker-0       cordon node worker-0
	//   2  drain-worker-0        drain node worker-0
	//   3  pre-upgrade-worker-0  call backup for node worker-0
	//   4  update-worker-0       call playbook for node worker-0
	//   5  ready-worker-0        check the cluster
	//                              checks: NodesReady node worker-0
	//                              at most 1h0m0s, then the plan stops
	//   6  uncordon-worker-0     uncordon node worker-0, if this plan cordoned it
	//   7  kubelets              check the cluster
	//                              checks: KubeletsAtLeast node worker-0 v1.31.0
	//                              at most 10m0s, then the plan stops
	// Nodes:
	//   node worker-0
	//     cordoned in step 1
	//     drained in step 2
	//     backup in step 3
	//     playbook in step 4
	//     uncordoned in step 6
}

func ExamplePlanVSphereHardware() {
	p, _, err := hosts.PlanVSphereHardware(exampleCluster("4.20.3", ""), hosts.VSphereHardwareOptions{ID: "hardware", ShutDown: "shut-down", Upgrade: "upgrade", PowerOn: "power-on"})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range p.Steps {
		fmt.Println(s.Kind, s.ID)
	}
	// Output:
	// Cordon cordon-worker-0
	// Drain drain-worker-0
	// Hook shut-down-worker-0
	// Hook upgrade-worker-0
	// Hook power-on-worker-0
	// CheckAll ready-worker-0
	// Uncordon uncordon-worker-0
}
