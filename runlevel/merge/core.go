package merge

import (
	corev1 "k8s.io/api/core/v1"
)

// configMap adds and overwrites keys; those of others stay.
func configMap(existing, required *corev1.ConfigMap) error {
	existing.Data = mergeMap(existing.Data, required.Data)
	existing.BinaryData = mergeMap(existing.BinaryData, required.BinaryData)
	return nil
}

// serviceAccount leaves secrets alone, which controllers add.
func serviceAccount(existing, required *corev1.ServiceAccount) error {
	existing.AutomountServiceAccountToken = required.AutomountServiceAccountToken
	return nil
}
