package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
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
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{index + dir + " mesh", 0, `ClusterServiceVersion operators/mesh.v1
CustomResourceDefinition meshs.example.com
ConfigMap operators/mesh-config
ServiceAccount operators/mesh
Role operators/mesh.v1-mesh-`},
		{index + dir + " mesh@beta", 1, "operators: "},
		{index + dir + " other", 1, "operators: subscription other: "},
		{index + "/no mesh", 1, "operators: "},
		{"-registry 127.0.0.1:1 mesh", 1, "connection refused"},
		{"-index " + sourcestest.Host + "/org/index:v4.19 -plain-http=x mesh", 2, "invalid boolean value"},
		{"mesh", 2, "one of -index and -registry is wanted"},
		{index + dir, 2, "no package is named"},
		{"-h", 0, "pull spec"},
	} {
		var out bytes.Buffer
		code := run(t.Context(), strings.Fields(tt.args), &out, &out)
		checktest.Equal(t, tt.code, code, "%s: %s", tt.args, out.String())
		checktest.Has(t, out.String(), tt.want)
	}
}
