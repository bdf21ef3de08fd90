package sourcestest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
)

// The labels of bundles, which are annotations of their metadata, too.
const prefix = "operators.operatorframework.io.bundle."

// Host is the registry in the pull specs of bundles.
const Host = "r.example"

// operators are those of the catalog: mesh, whose second version needs an API of tracing.
var operators = []string{"mesh.v1", "mesh.v2", "mesh.v3", "tracing.v1"}

// Images are the bundles of the operators, in a layout.
type Images struct {
	*ocitest.Layout
	Bundles map[string]oci.Descriptor // by operator
}

// NewImages makes the bundles.
func NewImages() *Images {
	i := &Images{Layout: ocitest.NewLayout(), Bundles: map[string]oci.Descriptor{}}
	for _, name := range operators {
		files := []ocitest.Entry{ocitest.Dir("manifests/"), ocitest.Dir("metadata/")}
		bundle := Bundle(name)
		for _, file := range slices.Sorted(maps.Keys(bundle)) {
			files = append(files, ocitest.File(file, bundle[file]))
		}
		d := i.Labelled(Labels(), i.Layer(files...))
		i.Bundles[name] = d
		i.Entries = append(i.Entries, ocitest.Named(d, Repository(name)+":v1"))
	}
	i.Write()
	return i
}

// Repository is the name of an operator's image, without the host.
func Repository(name string) string { return "org/" + strings.ReplaceAll(name, ".", "-") }

// Spec is the pull spec of an operator's bundle.
func (i *Images) Spec(name string) string {
	return Host + "/" + Repository(name) + "@" + i.Bundles[name].Digest
}

// Labels are those of a bundle's image.
func Labels() map[string]string {
	return map[string]string{
		prefix + "mediatype.v1": "registry+v1",
		prefix + "manifests.v1": "manifests/",
		prefix + "metadata.v1":  "metadata/",
	}
}

// Bundle returns the files of an operator's bundle, by path.
func Bundle(name string) map[string]string {
	pkg, version, _ := strings.Cut(name, ".v")
	kind := strings.ToUpper(pkg[:1]) + pkg[1:]
	files := map[string]string{
		"metadata/annotations.yaml": "annotations:\n",
		"manifests/crd.yaml": fmt.Sprintf(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.example.com}
spec:
  group: example.com
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[1]ss, singular: %[1]s}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, description: "as of %[3]s", x-kubernetes-preserve-unknown-fields: true}}
`, pkg, kind, name),
		"manifests/config.yaml": fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: %s-config}
data: {version: "%s"}
`, pkg, version),
		"manifests/README.md": "# Not an object",
		"manifests/csv.yaml": fmt.Sprintf(`apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: %[1]s}
spec:
  version: %[2]s.0.0
  customresourcedefinitions:
    owned: [{name: %[3]ss.example.com, version: v1, kind: %[4]s}]
  installModes: [{type: AllNamespaces, supported: true}]
  install:
    strategy: deployment
    spec:
      permissions:
      - serviceAccountName: %[3]s
        rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
      clusterPermissions:
      - serviceAccountName: %[3]s
        rules: [{apiGroups: [example.com], resources: ["*"], verbs: ["*"]}]
      deployments: []
`, name, version, pkg, kind),
	}
	labels := Labels()
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		files["metadata/annotations.yaml"] += "  " + label + ": " + labels[label] + "\n"
	}
	return files
}

// Catalog returns the catalog of a level, from 1 to 3: how many versions of mesh it has, as
// a stream of YAML. image returns the pull spec of an operator's bundle.
func Catalog(level int, image func(name string) string) string {
	var b strings.Builder
	for _, name := range operators {
		pkg, version, _ := strings.Cut(name, ".v")
		if pkg == "mesh" && version > fmt.Sprint(level) {
			continue
		}
		needs := ""
		if name == "mesh.v2" || name == "mesh.v3" {
			needs = "\n- {type: olm.gvk.required, value: {group: example.com, version: v1, kind: Tracing}}"
		}
		fmt.Fprintf(&b, `---
schema: olm.bundle
package: %[1]s
name: %[2]s
image: %[3]s
properties:
- {type: olm.package, value: {packageName: %[1]s, version: %[4]s.0.0}}
- {type: olm.gvk, value: {group: example.com, version: v1, kind: %[5]s}}%[6]s
`, pkg, name, image(name), version, strings.ToUpper(pkg[:1])+pkg[1:], needs)
	}
	for _, name := range []string{"mesh", "tracing"} {
		fmt.Fprintf(&b, "---\n{schema: olm.package, name: %s, defaultChannel: stable}\n", name)
	}
	b.WriteString("---\n{schema: olm.channel, package: tracing, name: stable, entries: [{name: tracing.v1}]}\n")
	b.WriteString("---\nschema: olm.channel\npackage: mesh\nname: stable\nentries:\n- name: mesh.v1\n")
	for n := 2; n <= level; n++ {
		fmt.Fprintf(&b, "- {name: mesh.v%d, replaces: mesh.v%d}\n", n, n-1)
	}
	return b.String()
}
