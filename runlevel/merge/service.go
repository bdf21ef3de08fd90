package merge

import (
	corev1 "k8s.io/api/core/v1"
)

// service replaces ports, by name, type and selector. A node port that the cluster
// has chosen stays.
func service(existing, required *corev1.Service) error {
	existing.Spec.Type = required.Spec.Type
	existing.Spec.Selector = required.Spec.Selector
	exposed := required.Spec.Type == corev1.ServiceTypeNodePort || required.Spec.Type == corev1.ServiceTypeLoadBalancer
	existing.Spec.Ports = mergeKeyed(existing.Spec.Ports, required.Spec.Ports, false,
		func(p *corev1.ServicePort) string { return p.Name },
		func(into, from *corev1.ServicePort) {
			chosen := into.NodePort
			*into = *from
			if into.NodePort == 0 && exposed {
				into.NodePort = chosen
			}
		})
	return nil
}

// setDefault gives a value that is not set its default.
func setDefault[T comparable](value *T, to T) {
	var zero T
	if *value == zero {
		*value = to
	}
}

// setPointer gives a value that is absent its default.
func setPointer[T any](value **T, to T) {
	if *value == nil {
		*value = &to
	}
}
