// Package placement answers which nodes a pod may run on, as Kubernetes' scheduler does.
package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Selects reports whether a pod's nodeSelector and its required node affinity select a node.
func Selects(pod *corev1.PodSpec, n *corev1.Node) bool {
	for k, v := range pod.NodeSelector {
		if have, ok := n.Labels[k]; !ok || have != v {
			return false
		}
	}
	terms, affine := Affinity(pod)
	return !affine || Meets(n, terms)
}

// Affinity returns the terms of a pod's required node affinity, one of which must hold, and whether it
// has one.
func Affinity(pod *corev1.PodSpec) (terms []corev1.NodeSelectorTerm, affine bool) {
	if pod.Affinity == nil || pod.Affinity.NodeAffinity == nil {
		return nil, false
	}
	required := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return nil, false
	}
	return required.NodeSelectorTerms, true
}

// Meets reports whether a node meets one of the terms. An empty term, and one that is not valid,
// matches nothing.
func Meets(n *corev1.Node, terms []corev1.NodeSelectorTerm) bool {
	return slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool {
		if len(t.MatchExpressions) == 0 && len(t.MatchFields) == 0 {
			return false
		}
		return meetAll(t.MatchExpressions, labels.Set(n.Labels)) && meetAll(t.MatchFields, labels.Set{"metadata.name": n.Name})
	})
}

func meetAll(requirements []corev1.NodeSelectorRequirement, have labels.Set) bool {
	for _, r := range requirements {
		requirement, err := labels.NewRequirement(r.Key, operator(r.Operator), r.Values)
		if err != nil || !requirement.Matches(have) {
			return false
		}
	}
	return true
}

// operator is what labels call an operator; one that they do not know stays invalid.
func operator(op corev1.NodeSelectorOperator) selection.Operator {
	switch op {
	case corev1.NodeSelectorOpIn:
		return selection.In
	case corev1.NodeSelectorOpNotIn:
		return selection.NotIn
	case corev1.NodeSelectorOpExists:
		return selection.Exists
	case corev1.NodeSelectorOpDoesNotExist:
		return selection.DoesNotExist
	case corev1.NodeSelectorOpGt:
		return selection.GreaterThan
	case corev1.NodeSelectorOpLt:
		return selection.LessThan
	}
	return "?"
}

// Tolerates reports whether a pod tolerates a taint.
func Tolerates(pod *corev1.PodSpec, taint *corev1.Taint) bool {
	return slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool {
		if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
			return false
		}
		switch t.Operator {
		case "", corev1.TolerationOpEqual:
			return t.Key != "" && t.Value == taint.Value
		case corev1.TolerationOpExists:
			return true
		}
		return false
	})
}
