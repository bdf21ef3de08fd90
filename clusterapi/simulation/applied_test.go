package simulation_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestApplied(t *testing.T) {
	deployment := func(change func(u *unstructured.Unstructured)) *unstructured.Unstructured {
		u := operatorDeployment("dns", "4.20.3")
		if change != nil {
			change(u)
		}
		return u
	}
	container := func(u *unstructured.Unstructured) map[string]any {
		list, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		return list[0].(map[string]any)
	}
	setContainers := func(u *unstructured.Unstructured, containers ...any) {
		checktest.OK(t, unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers"))
	}
	tests := []struct {
		name         string
		stored, want func(u *unstructured.Unstructured)
		ok           bool
	}{
		{"equal", nil, nil, true},
		{"another image", func(u *unstructured.Unstructured) { m := container(u); m["image"] = "x"; setContainers(u, m) }, nil, false},
		{"another variable's value", func(u *unstructured.Unstructured) {
			m := container(u)
			m["env"] = []any{map[string]any{"name": "RELEASE_VERSION", "value": "4.21.1"}}
			setContainers(u, m)
		}, nil, false},
		{"a variable more, in front", func(u *unstructured.Unstructured) {
			m := container(u)
			m["env"] = append([]any{map[string]any{"name": "HTTP_PROXY", "value": ""}}, m["env"].([]any)...)
			setContainers(u, m)
		}, nil, true},
		{"a container more", func(u *unstructured.Unstructured) {
			setContainers(u, map[string]any{"name": "sidecar", "image": "y"}, container(u))
		}, nil, true},
		{"a container less", nil, func(u *unstructured.Unstructured) {
			setContainers(u, container(u), map[string]any{"name": "sidecar", "image": "y"})
		}, false},
		{"other arguments", func(u *unstructured.Unstructured) {
			m := container(u)
			m["args"] = []any{"start", "--v=2"}
			setContainers(u, m)
		}, func(u *unstructured.Unstructured) {
			m := container(u)
			m["args"] = []any{"start"}
			setContainers(u, m)
		}, false},
		{"a quantity written otherwise", func(u *unstructured.Unstructured) {
			m := container(u)
			m["resources"] = map[string]any{"requests": map[string]any{"cpu": "1", "memory": "1Gi"}}
			setContainers(u, m)
		}, func(u *unstructured.Unstructured) {
			m := container(u)
			m["resources"] = map[string]any{"requests": map[string]any{"cpu": "1000m", "memory": "1024Mi"}}
			setContainers(u, m)
		}, true},
		{"a field that the type lacks", nil, func(u *unstructured.Unstructured) {
			m := container(u)
			m["livenessProbe"] = map[string]any{"exec": map[string]any{"command": []any{"x"}, "periodSeconds": int64(3)}}
			setContainers(u, m)
		}, false},
		{"a field that the type lacks, dropped", func(u *unstructured.Unstructured) {
			m := container(u)
			m["livenessProbe"] = map[string]any{"exec": map[string]any{"command": []any{"x"}}}
			setContainers(u, m)
		}, func(u *unstructured.Unstructured) {
			m := container(u)
			m["livenessProbe"] = map[string]any{"exec": map[string]any{"command": []any{"x"}, "periodSeconds": int64(3)}}
			setContainers(u, m)
		}, true},
		{"metadata and status do not matter", func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{"a": "b"})
			u.Object["status"] = map[string]any{"replicas": int64(1)}
		}, nil, true},
		{"scaled", func(u *unstructured.Unstructured) {
			checktest.OK(t, unstructured.SetNestedField(u.Object, int64(0), "spec", "replicas"))
		}, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checktest.Equal(t, tt.ok, simulation.Applied(deployment(tt.stored), deployment(tt.want)), "Applied =")
		})
	}
}
