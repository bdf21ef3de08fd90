package merge_test

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/runlevel/merge"
)

// A port and a label that somebody has added: the Service's ports are those of the
// manifest, labels of others stay.
func ExampleMerge() {
	existing := parse(`
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, resourceVersion: "7", labels: {theirs: kept}}
spec:
  clusterIP: 172.30.0.9
  type: ClusterIP
  ports:
  - {name: http, port: 80, protocol: TCP, targetPort: 80}
  - {name: debug, port: 6060, protocol: TCP, targetPort: 6060}
`)
	required := parse(`
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  ports:
  - {name: http, port: 80}
`)
	merged, changed, err := merge.Merge(existing, required)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("changed:", changed, merged.GetLabels(), merged.GetResourceVersion())
	ports, _, _ := unstructured.NestedSlice(merged.Object, "spec", "ports")
	fmt.Println(len(ports), "port")
	_, changed, _ = merge.Merge(merged, required)
	fmt.Println("changed again:", changed)
	// Output:
	// changed: true map[app:web theirs:kept] 7
	// 1 port
	// changed again: false
}

func parse(text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		panic(err)
	}
	return u
}
