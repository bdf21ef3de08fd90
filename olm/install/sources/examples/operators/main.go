// Command operators installs operators into a cluster in memory, and lists every object that
// a real one would get from their bundles. It follows docs/olm.md without a cluster.
//
//	go run . -index registry.example/index:v4.19 mesh tracing@beta
//	go run . -index registry.example/index:v4.19 -mirror mirror/ mesh
//	go run . -registry 127.0.0.1:50051 mesh
//
// An argument is PACKAGE[@CHANNEL], without a channel the default one. Catalogs come from an
// image or a gRPC registry, bundles from the registries in their pull specs or from a mirror
// on disk.
//
// The exit code is 0 when all are installed, 1 when one is not, 2 when the command line is
// wrong, 3 when something cannot be read.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/program"
	"github.com/clusterupdate/clusterupdate/manifest/image"
	"github.com/clusterupdate/clusterupdate/manifest/image/registry"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/install"
	"github.com/clusterupdate/clusterupdate/olm/install/sources"
)

const namespace = "operators"

var catalogKey = types.NamespacedName{Namespace: "openshift-marketplace", Name: "catalog"}

func main() { program.Main(command()) }

type options struct {
	index, registry, mirror string
	tags, plain             bool
}

func command() program.Command {
	var o options
	return program.Command{
		Name:     "operators",
		Args:     "PACKAGE[@CHANNEL]...",
		About:    "Operators installs operators into a cluster in memory, and lists the objects that it gets.",
		Codes:    "0: all are installed; 1: one is not; 3: something cannot be read",
		Min:      1,
		Max:      -1,
		Required: [][]string{{"index", "registry"}},
		Excludes: map[string][]string{"index": {"registry"}, "mirror": {"plain-http"}},
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&o.index, "index", "", "pull `spec` of an image with a file-based catalog")
			f.StringVar(&o.registry, "registry", "", "`address` of a gRPC registry")
			f.StringVar(&o.mirror, "mirror", "", "`place` of a mirror or image layout on disk that has the images")
			f.BoolVar(&o.tags, "tags", false, "also read bundles that are named by tags")
			f.BoolVar(&o.plain, "plain-http", false, "allow registries without TLS")
		},
		Run: func(ctx context.Context, args []string, stdout, _ io.Writer) error {
			return o.install(ctx, args, stdout)
		},
	}
}

// install subscribes to packages, and lists what comes of it.
func (o *options) install(ctx context.Context, packages []string, out io.Writer) error {
	images, err := o.images()
	if err != nil {
		return err
	}
	defer images.Close()
	catalog, err := o.catalog(images)
	if err != nil {
		return err
	}
	defer catalog.Close()
	unpacker, err := sources.NewUnpacker(sources.UnpackerOptions{Source: images, Tags: o.tags})
	if err != nil {
		return err
	}
	cluster := memory.NewOpenShift(memory.Options{})
	written := &recorder{Cluster: cluster}
	controller, err := install.New(install.Options{
		API:             written,
		SnapshotOptions: install.SnapshotOptions{Catalogs: map[types.NamespacedName]olm.Catalog{catalogKey: catalog}},
		Unpacker:        unpacker,
		Execute:         true,
	})
	if err != nil {
		return err
	}
	group := &olmapi.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: namespace}}
	if _, err := clusterapi.Create(ctx, cluster, group, clusterapi.CreateOptions{}); err != nil {
		return err
	}
	for _, p := range packages {
		if err := subscribe(ctx, cluster, p); err != nil {
			return err
		}
	}
	for changed := true; changed; {
		result, err := controller.Sync(ctx, namespace)
		if err != nil {
			return err
		}
		changed = result.Changed
	}
	for _, line := range written.lines {
		fmt.Fprintln(out, line)
	}
	return missing(ctx, cluster)
}

func (o *options) images() (*image.Source, error) {
	if o.mirror != "" {
		return image.Open(o.mirror, image.Options{})
	}
	return registry.New(registry.Options{Keychain: authn.DefaultKeychain, PlainHTTP: o.plain})
}

func (o *options) catalog(images *image.Source) (*sources.Catalog, error) {
	if o.registry != "" {
		return sources.NewRegistry(sources.RegistryOptions{Address: o.registry})
	}
	return sources.NewImage(sources.ImageOptions{Source: images, Image: o.index})
}

func subscribe(ctx context.Context, cluster clusterapi.ClusterAPI, argument string) error {
	name, channel, _ := strings.Cut(argument, "@")
	sub := &olmapi.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	sub.Spec = olmapi.SubscriptionSpec{
		Source: catalogKey.Name, SourceNamespace: catalogKey.Namespace, Package: name, Channel: channel,
	}
	_, err := clusterapi.Create(ctx, cluster, sub, clusterapi.CreateOptions{})
	return err
}

// missing returns why Subscriptions have nothing.
func missing(ctx context.Context, cluster clusterapi.ClusterAPI) error {
	subs, err := clusterapi.List[olmapi.Subscription](ctx, cluster, clusterapi.ListOptions{Namespace: namespace})
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range subs {
		for _, c := range s.Status.Conditions {
			if c.Type == "ResolutionFailed" {
				errs = append(errs, fmt.Errorf("subscription %s: %s", s.Name, c.Message))
			}
		}
	}
	return program.No(errors.Join(errs...))
}
