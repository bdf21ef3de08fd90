package memory_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// While a definition changes, in its schema and its status, its objects can be
// read and written in each of its versions. (What this finds, it finds under
// the race detector.)
func TestDefinitionChangesUnderUse(t *testing.T) {
	ctx := context.Background()
	c := memory.New(memory.Options{})
	definition := func(i int) *unstructured.Unstructured {
		var versions strings.Builder
		for v := range 4 {
			fmt.Fprintf(&versions, "{name: v%d, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {a%d: {type: string}}}}},", v, v == 0, i)
		}
		return object(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com},
			spec: {group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [`+versions.String()+`]}}`)
	}
	checktest.Must(c.Apply(ctx, definition(0), manager))
	done := make(chan struct{})
	var readers sync.WaitGroup
	for v := range 4 {
		readers.Go(func() {
			gvk := schema.GroupVersionKind{Group: "example.com", Version: fmt.Sprintf("v%d", v), Kind: "Widget"}
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := c.List(ctx, gvk, clusterapi.ListOptions{}); err != nil && !meta.IsNoMatchError(err) {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 200 {
		crd, err := c.Apply(ctx, definition(i%2), manager)
		checktest.OK(t, err)
		for n := range 5 {
			checktest.OK(t, unstructured.SetNestedField(crd.Object, fmt.Sprint(i, n), "status", "note"))
			if crd, err = c.UpdateStatus(ctx, crd, clusterapi.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(done)
	readers.Wait()
}
