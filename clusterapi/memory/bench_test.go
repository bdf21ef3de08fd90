package memory_test

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func object(tb testing.TB, text string) *unstructured.Unstructured {
	tb.Helper()
	data := checktest.Must(yaml.YAMLToJSON([]byte(text)))
	u := &unstructured.Unstructured{}
	checktest.OK(tb, u.UnmarshalJSON(data))
	return u
}

const benchDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: operator
  namespace: example
  labels: {app: operator}
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
spec:
  replicas: 1
  selector: {matchLabels: {app: operator}}
  template:
    metadata:
      labels: {app: operator}
      annotations: {target.workload.openshift.io/management: '{"effect": "PreferredDuringScheduling"}'}
    spec:
      serviceAccountName: operator
      priorityClassName: system-cluster-critical
      nodeSelector: {node-role.kubernetes.io/master: ""}
      tolerations:
      - {key: node-role.kubernetes.io/master, operator: Exists, effect: NoSchedule}
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 120}
      containers:
      - name: operator
        image: registry.example/operator@sha256:0123
        command: [operator, start, -v=2]
        env:
        - {name: RELEASE_VERSION, value: 4.20.1}
        - {name: IMAGE, value: registry.example/operand@sha256:4567}
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        ports:
        - {name: metrics, containerPort: 8443, protocol: TCP}
        resources: {requests: {cpu: 10m, memory: 50Mi}}
        volumeMounts:
        - {name: config, mountPath: /etc/config}
        - {name: tls, mountPath: /etc/tls}
      volumes:
      - {name: config, configMap: {name: config}}
      - {name: tls, secret: {secretName: tls, optional: true}}
`

const benchConfigMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: config, namespace: example, annotations: {a: b}}
data: {one: "1", two: "2", three: "3"}
`

const benchDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              mode: {type: string}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, count: {type: integer}}
              tags: {type: array, items: {type: string}}
          status:
            type: object
            properties: {phase: {type: string}}
`

const benchWidget = `
apiVersion: example.com/v1
kind: Widget
metadata: {name: widget, namespace: example, labels: {a: b}}
spec:
  size: 3
  mode: fast
  parts: [{name: a, count: 1}, {name: b, count: 2}]
  tags: [red, blue]
`

func BenchmarkApply(b *testing.B) {
	ctx := context.Background()
	opts := clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload}
	for _, bc := range []struct{ name, text string }{
		{"Deployment", benchDeployment}, {"ConfigMap", benchConfigMap}, {"Custom", benchWidget},
	} {
		start := func(b *testing.B) *memory.Cluster {
			c := memory.New(memory.Options{})
			checktest.Must(c.Apply(ctx, object(b, benchDefinition), opts))
			checktest.Must(c.Apply(ctx, object(b, bc.text), opts))
			b.ReportAllocs()
			return c
		}
		b.Run(bc.name+"/fresh", func(b *testing.B) {
			c, obj := start(b), object(b, bc.text)
			for i := 0; b.Loop(); i++ {
				obj.SetName(fmt.Sprintf("o%d", i))
				checktest.Must(c.Apply(ctx, obj, opts))
			}
		})
		b.Run(bc.name+"/noop", func(b *testing.B) {
			c, obj := start(b), object(b, bc.text)
			for b.Loop() {
				checktest.Must(c.Apply(ctx, obj, opts))
			}
		})
	}
}

func BenchmarkGet(b *testing.B) {
	ctx := context.Background()
	for _, n := range []int{10, 100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := memory.New(memory.Options{})
			obj := object(b, benchConfigMap)
			for i := range n {
				obj.SetName(fmt.Sprintf("o%d", i))
				checktest.OK(b, c.Load(obj))
			}
			b.ReportAllocs()
			gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
			for b.Loop() {
				checktest.Must(c.Get(ctx, gvk, clusterapi.Key("example", "o0")))
			}
		})
	}
}

// BenchmarkList lists ten objects of one namespace among more and more others.
func BenchmarkList(b *testing.B) {
	ctx := context.Background()
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := memory.New(memory.Options{})
			obj := object(b, benchConfigMap)
			for i := range n {
				obj.SetName(fmt.Sprintf("o%d", i))
				obj.SetNamespace(fmt.Sprintf("ns%d", i/10))
				checktest.OK(b, c.Load(obj))
			}
			b.ReportAllocs()
			gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
			for b.Loop() {
				list := checktest.Get(c.List(ctx, gvk, clusterapi.ListOptions{Namespace: "ns1"}))(b)
				checktest.Equal(b, 10, len(list.Items), "len(list.Items)")
			}
		})
	}
}
