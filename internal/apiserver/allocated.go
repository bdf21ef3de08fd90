package apiserver

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Allocated reports a field that an API server sets by itself, to a value that
// nobody can know before: addresses and ports of a Service, the UID of a Job that
// its pods are selected by, the number of a DaemonSet's template. path is one that
// clusterapi.Compare writes.
func Allocated(kind schema.GroupKind, path string) bool {
	switch kind {
	case schema.GroupKind{Kind: "Service"}:
		for _, field := range []string{"spec.clusterIP", "spec.clusterIPs", "spec.ipFamilies", "spec.ipFamilyPolicy", "spec.healthCheckNodePort"} {
			if path == field || strings.HasPrefix(path, field+"[") {
				return true
			}
		}
		return strings.HasSuffix(path, "].nodePort")
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		for _, field := range []string{"spec.selector", "metadata.labels", "spec.template.metadata.labels"} {
			if path == field || strings.HasPrefix(path, field+".") || strings.HasPrefix(path, field+"[") {
				return true
			}
		}
	case schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		return path == `metadata.annotations["deprecated.daemonset.template.generation"]`
	}
	return false
}
