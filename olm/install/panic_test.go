package install_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/install"
)

// panickingCatalog has no contents.
type panickingCatalog struct{}

func (panickingCatalog) Contents(context.Context) (*olm.Contents, error) { panic("no catalog") }

// fragileWatch goes wrong when it is watched.
type fragileWatch struct {
	clusterapi.ClusterAPI
	goWrong func()
}

func (f fragileWatch) Watch(context.Context, schema.GroupVersionKind, clusterapi.ListOptions) iter.Seq2[clusterapi.WatchEvent, error] {
	return func(func(clusterapi.WatchEvent, error) bool) { f.goWrong() }
}

// TestPanicsAreFailures: a catalog, a watch and an observer that panic do not
// end the program; they are told of, and tried again.
func TestPanicsAreFailures(t *testing.T) {
	w := manage(t, contents("a.v1 X"), ptr(sub("a", "")))
	good := map[types.NamespacedName]olm.Catalog{catalogKey: w.catalogs[catalogKey]}
	for name, tc := range map[string]struct {
		api      clusterapi.ReadWriter
		catalogs map[types.NamespacedName]olm.Catalog
		want     any
	}{
		"catalog":         {w.Cluster, map[types.NamespacedName]olm.Catalog{catalogKey: panickingCatalog{}}, "no catalog"},
		"watch":           {fragileWatch{w.Cluster, func() { panic("no way") }}, good, "no way"},
		"watch that ends": {fragileWatch{w.Cluster, runtime.Goexit}, good, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var told []error
			var mu sync.Mutex
			ctx, cancel := context.WithCancel(t.Context())
			c := checktest.Get(install.New(install.Options{
				API:             tc.api,
				SnapshotOptions: install.SnapshotOptions{Catalogs: tc.catalogs, GlobalNamespace: "olm"},
				Observe: func(e clusterapi.Event) {
					mu.Lock()
					defer mu.Unlock()
					if e.Type == install.EventError {
						told = append(told, e.Err)
						cancel()
					}
					panic("out of paper")
				},
			}))(t)
			if err := c.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			caught := new(clusterapi.PanicError)
			if len(told) == 0 || !errors.As(told[0], &caught) || caught.Value != tc.want || tc.want != nil && len(caught.Stack) == 0 {
				t.Errorf("told of %v", told)
			}
		})
	}
}
