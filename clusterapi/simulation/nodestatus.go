package simulation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// osName is what a node says it runs.
func osName(r *release) string { return "CoreOS of release " + r.Version }

// nextBootID makes up the id of the boot after another.
func nextBootID(node, last string) string {
	h := digest("boot " + node + " " + last)
	return fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:32])
}

// isUp reports whether a node is Ready, or says nothing about it.
func isUp(n *corev1.Node) bool {
	c := nodeCondition(&n.Status, corev1.NodeReady)
	return c == nil || c.Status == corev1.ConditionTrue
}

func nodeCondition(s *corev1.NodeStatus, t corev1.NodeConditionType) *corev1.NodeCondition {
	return find(s.Conditions, func(c *corev1.NodeCondition) bool { return c.Type == t })
}

func setNodeReady(s *corev1.NodeStatus, status corev1.ConditionStatus, reason, message string, now metav1.Time) {
	c := nodeCondition(s, corev1.NodeReady)
	if c == nil {
		s.Conditions = append(s.Conditions, corev1.NodeCondition{Type: corev1.NodeReady})
		c = &s.Conditions[len(s.Conditions)-1]
	}
	if c.Status != status {
		c.LastTransitionTime = now
	}
	c.Status = status
	c.Reason = reason
	c.Message = message
	c.LastHeartbeatTime = now
}
