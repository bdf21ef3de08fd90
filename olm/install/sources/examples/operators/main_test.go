package main

import (
	"os"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
	"github.com/clusterupdate/clusterupdate/olm/install/sources/sourcestest"
)

// mirror is a folder with the images of a catalog and of its bundles.
func mirror(t *testing.T) string {
	t.Helper()
	images := sourcestest.NewImages()
	layer := images.Layer(ocitest.File("configs/all.yaml", sourcestest.Catalog(1, images.Spec)))
	labels := map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"}
	dir := t.TempDir()
	checktest.OK(t, os.CopyFS(dir, images.Write(ocitest.Named(images.Labelled(labels, layer), "org/index:v4.19"))))
	return dir
}

func TestOperators(t *testing.T) {
	const index = "-index " + sourcestest.Host + "/org/index:v4.19 -mirror "
	dir := mirror(t)
	programtest.Test(t, command, []programtest.Case{
		{Args: index + dir + " mesh", Stdout: []string{`ClusterServiceVersion operators/mesh.v1
CustomResourceDefinition meshs.example.com
ConfigMap operators/mesh-config
ServiceAccount operators/mesh
Role operators/mesh.v1-mesh-`}},
		{Args: index + dir + " mesh@beta", Code: 1, Stderr: "operators: "},
		{Args: index + dir + " other", Code: 1, Stderr: "operators: subscription other: "},
		{Args: "-registry 127.0.0.1:1 mesh", Code: 3, Stderr: "connection refused"},
	})
}

func TestUsage(t *testing.T) { programtest.Usage(t, command) }
