package sources_test

import (
	"context"
	"fmt"
	"log"

	"github.com/google/go-containerregistry/pkg/authn"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
	"github.com/clusterupdate/clusterupdate/manifest/image"
	"github.com/clusterupdate/clusterupdate/manifest/image/registry"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/install"
	"github.com/clusterupdate/clusterupdate/olm/install/sources"
	"github.com/clusterupdate/clusterupdate/olm/install/sources/sourcestest"
)

// An operator of a catalog's image is installed from its bundle's image. Both are in a
// mirror: image.Open opens one on disk, and package registry one in a registry.
func Example() {
	ctx := context.Background()
	mirror := sourcestest.NewImages()
	index := indexImage(mirror.Layout, "/configs", "configs", sourcestest.Catalog(1, mirror.Spec))
	images, err := image.FromFS(mirror.Write(ocitest.Named(index, "org/index:v4.19")), image.Options{})
	if err != nil {
		log.Fatal(err)
	}
	catalog, err := sources.NewImage(sources.ImageOptions{Source: images, Image: "r.example/org/index:v4.19"})
	if err != nil {
		log.Fatal(err)
	}
	unpacker, err := sources.NewUnpacker(sources.UnpackerOptions{Source: images})
	if err != nil {
		log.Fatal(err)
	}

	cluster := memory.NewOpenShift(memory.Options{})
	controller, err := install.New(install.Options{
		API: cluster,
		SnapshotOptions: install.SnapshotOptions{Catalogs: map[types.NamespacedName]olm.Catalog{
			clusterapi.Key("openshift-marketplace", "community"): catalog,
		}},
		Unpacker: unpacker,
		Execute:  true,
	})
	if err != nil {
		log.Fatal(err)
	}
	group := &olmapi.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "group"}}
	if _, err := clusterapi.Create(ctx, cluster, group, clusterapi.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
	sub := &olmapi.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "mesh"}}
	sub.Spec = olmapi.SubscriptionSpec{
		Source: "community", SourceNamespace: "openshift-marketplace", Package: "mesh", Channel: "stable",
	}
	if _, err := clusterapi.Create(ctx, cluster, sub, clusterapi.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
	for changed := true; changed; {
		result, err := controller.Sync(ctx, "operators")
		if err != nil {
			log.Fatal(err)
		}
		changed = result.Changed
	}
	csv, err := clusterapi.Get[olmapi.ClusterServiceVersion](ctx, cluster, clusterapi.Key("operators", "mesh.v1"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(csv.Name, csv.Spec.Version)
	// Output: mesh.v1 1.0.0
}

// Each CatalogSource of a cluster is read out of its image, or else from its registry.
func ExampleCatalog() {
	ctx := context.Background()
	cluster := memory.NewOpenShift(memory.Options{}) // or any other

	images, err := registry.New(registry.Options{Keychain: authn.DefaultKeychain})
	if err != nil {
		log.Fatal(err)
	}
	all, err := clusterapi.List[olmapi.CatalogSource](ctx, cluster, clusterapi.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	catalogs := map[types.NamespacedName]olm.Catalog{}
	for i := range all {
		key := clusterapi.Key(all[i].Namespace, all[i].Name)
		if image := all[i].Spec.Image; image != "" {
			catalogs[key], err = sources.NewImage(sources.ImageOptions{Source: images, Image: image})
		} else {
			catalogs[key], err = sources.NewRegistry(sources.RegistryOptions{Address: sources.Address(&all[i])})
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	unpacker, err := sources.NewUnpacker(sources.UnpackerOptions{Source: images})
	if err != nil {
		log.Fatal(err)
	}
	controller, err := install.New(install.Options{
		API:             cluster,
		SnapshotOptions: install.SnapshotOptions{Catalogs: catalogs},
		Unpacker:        unpacker,
		Execute:         true,
	})
	if err != nil {
		log.Fatal(err)
	}
	result, err := controller.Sync(ctx, "operators") // or Run, for all namespaces
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(catalogs), result.Changed)
	// Output: 0 false
}
