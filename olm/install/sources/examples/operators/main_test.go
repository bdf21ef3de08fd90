package main

import (
	"context"
	"net"
	"os"
	"testing"

	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
	"github.com/clusterupdate/clusterupdate/olm/install/sources/sourcestest"
)

// bundles serves one bundle, in channel stable of package mesh.
type bundles struct {
	api.UnimplementedRegistryServer
	bundle *api.Bundle
}

func (r bundles) ListBundles(_ *api.ListBundlesRequest, s api.Registry_ListBundlesServer) error {
	return s.Send(r.bundle)
}

func (bundles) GetPackage(_ context.Context, q *api.GetPackageRequest) (*api.Package, error) {
	return &api.Package{Name: q.GetName(), DefaultChannelName: "stable"}, nil
}

// serve serves the bundle of mesh.v1 on the address that it returns.
func serve(t *testing.T, images *sourcestest.Images) string {
	t.Helper()
	s := grpc.NewServer()
	api.RegisterRegistryServer(s, bundles{bundle: &api.Bundle{
		PackageName: "mesh", ChannelName: "stable", CsvName: "mesh.v1", Version: "1.0.0", BundlePath: images.Spec("mesh.v1"),
	}})
	listener := checktest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	done := make(chan error, 1)
	go func() { done <- s.Serve(listener) }()
	t.Cleanup(func() {
		s.Stop()
		checktest.OK(t, <-done)
	})
	return listener.Addr().String()
}

// mirror is a folder with the images of a catalog and of its bundles.
func mirror(t *testing.T, images *sourcestest.Images) string {
	t.Helper()
	layer := images.Layer(ocitest.File("configs/all.yaml", sourcestest.Catalog(1, images.Spec)))
	labels := map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"}
	dir := t.TempDir()
	checktest.OK(t, os.CopyFS(dir, images.Write(ocitest.Named(images.Labelled(labels, layer), "org/index:v4.19"))))
	return dir
}

func TestOperators(t *testing.T) {
	const index = "-index " + sourcestest.Host + "/org/index:v4.19 -mirror "
	images := sourcestest.NewImages()
	dir, address := mirror(t, images), serve(t, images)
	objects := []string{`ClusterServiceVersion operators/mesh.v1
CustomResourceDefinition meshs.example.com
ConfigMap operators/mesh-config
ServiceAccount operators/mesh
Role operators/mesh.v1-mesh-`}
	programtest.Test(t, command, []programtest.Case{
		{Args: index + dir + " mesh", Stdout: objects},
		{Args: "-registry " + address + " -mirror " + dir + " mesh", Stdout: objects},
		{Args: "-registry " + address + " -mirror " + dir + " mesh@beta", Code: 1, Stderr: "no operators found in channel beta of package mesh"},
		{Args: index + dir + " mesh@beta", Code: 1, Stderr: "operators: "},
		{Args: index + dir + " other", Code: 1, Stderr: "operators: subscription other: "},
		{Args: "-registry 127.0.0.1:1 mesh", Code: 3, Stderr: "connection refused"},
	})
}

func TestUsage(t *testing.T) { programtest.Usage(t, command) }
