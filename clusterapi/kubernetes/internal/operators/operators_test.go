package operators_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
	"github.com/clusterupdate/clusterupdate/manifest/image"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/install/sources"
	"github.com/clusterupdate/clusterupdate/olm/install/sources/sourcestest"
)

// Operators have the same life on an API server as on a cluster in memory, where only the
// garbage collector is missing.
func TestLife(t *testing.T) {
	api := checktest.Get(kubernetes.New(testserver.Start(t).Config(), kubernetes.Options{}))(t)
	define(t, api)
	images := sourcestest.NewImages()
	source := checktest.Get(image.FromFS(images.FS, image.Options{}))(t)
	now := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	catalog := checktest.Get(sources.NewImage(sources.ImageOptions{
		Source: source, Image: sourcestest.Host + "/org/index:latest", Clock: now,
	}))(t)
	bundles := images.Entries
	sourcestest.Life(t, sourcestest.World{
		API:      api,
		Catalog:  catalog,
		Unpacker: checktest.Get(sources.NewUnpacker(sources.UnpackerOptions{Source: source}))(t),
		Publish: func(level int) {
			now.SetTime(now.Now().Add(time.Hour))
			layer := images.Layer(ocitest.File("configs/all.yaml", sourcestest.Catalog(level, images.Spec)))
			index := images.Labelled(map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"}, layer)
			images.Entries = bundles
			images.Write(ocitest.Named(index, "org/index:latest"))
		},
	})
}

// define makes the namespaces and the definitions of OLM's kinds.
func define(t *testing.T, api clusterapi.ClusterAPI) {
	t.Helper()
	for _, name := range []string{sourcestest.Namespace, "openshift-marketplace"} {
		n := &corev1.Namespace{}
		n.Name = name
		checktest.OK(t, checktest.Err(clusterapi.Create(t.Context(), api, n, clusterapi.CreateOptions{})))
	}
	kinds := []schema.GroupVersionKind{
		(&olmapi.Subscription{}).APIKind(), (&olmapi.ClusterServiceVersion{}).APIKind(), (&olmapi.CatalogSource{}).APIKind(),
		(&olmapi.InstallPlan{}).APIKind(), (&olmapi.OperatorGroup{}).APIKind(),
	}
	for _, kind := range kinds {
		d := memory.Definition(kind, "Namespaced")
		checktest.OK(t, checktest.Err(api.Create(t.Context(), d, clusterapi.CreateOptions{})))
	}
	for _, kind := range kinds {
		for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			_, err := api.List(t.Context(), kind, clusterapi.ListOptions{})
			if err == nil {
				break
			}
			checktest.FatalIf(t, time.Since(start) > time.Minute, "%s is not served: %v", kind.Kind, err)
		}
	}
}
