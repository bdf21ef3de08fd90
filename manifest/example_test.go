package manifest_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/manifest"
)

// exampleRelease is a small release image. Real ones are directories, tar
// streams or whatever else is a file system.
func exampleRelease() fstest.MapFS {
	manifestOf := func(kind, name, more string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: " + kind + "\nmetadata:\n  name: " + name + "\n  annotations:\n    include.release.openshift.io/self-managed-high-availability: \"true\"\n" + more)}
	}
	return fstest.MapFS{
		"manifests/0000_00_cluster-version-operator_01_config.yaml": manifestOf("ConfigMap", "release", "data: {image: '{{.ReleaseImage}}'}\n"),
		"release-manifests/release-metadata":                        {Data: []byte(`{"kind": "cincinnati-metadata-v0", "version": "4.20.1", "previous": ["4.20.0"]}`)},
		"release-manifests/image-references":                        {Data: []byte(`{"kind": "ImageStream", "apiVersion": "image.openshift.io/v1", "metadata": {"name": "4.20.1"}}`)},
		"release-manifests/0000_50_console_01_namespace.yaml":       manifestOf("Namespace", "console", "    capability.openshift.io/name: Console\n"),
		"release-manifests/0000_50_dns_01_namespace.yaml":           manifestOf("Namespace", "dns", ""),
		"release-manifests/0000_50_dns_02_preview.yaml":             manifestOf("ConfigMap", "preview", "    release.openshift.io/feature-set: TechPreviewNoUpgrade\n"),
		"release-manifests/0000_80_machines_01_namespace.yaml":      manifestOf("Namespace", "machines", ""),
	}
}

// A payload tells what applies to a cluster, what does not, and why.
func ExampleLoad() {
	p, err := manifest.Load(context.Background(), exampleRelease(), manifest.LoadOptions{
		Image:  "example.com/release@sha256:0f",
		Filter: manifest.DefaultFilter(),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("release", p.Release.Version, "from", p.Previous)
	for _, t := range p.Tasks() {
		fmt.Println("+", t)
	}
	for _, e := range p.Excluded {
		fmt.Println("-", e.Manifest.Filename, "because", e.Reason)
	}
	// Output:
	// release 4.20.1 from [4.20.0]
	// + configmap "release" (1 of 4)
	// + namespace "console" (2 of 4)
	// + namespace "dns" (3 of 4)
	// + namespace "machines" (4 of 4)
	// - 0000_50_dns_02_preview.yaml because "Default" is required, and release.openshift.io/feature-set=TechPreviewNoUpgrade
}

// The order of an update: components of one runlevel next to each other, one
// runlevel after another.
func ExampleGraph() {
	p, err := manifest.Load(context.Background(), exampleRelease(), manifest.LoadOptions{Filter: manifest.DefaultFilter()})
	if err != nil {
		log.Fatal(err)
	}
	g := manifest.UpdateGraph(p.Tasks())
	fmt.Println(g.DOT())
	// Output:
	// digraph tasks {
	//   labelloc=t;
	//   rankdir=TB;
	//   0 [ label="no manifests" shape="box" ];
	//   1 [ label="configmap release (1 of 4)" shape="box" ];
	//   2 [ label="namespace console (2 of 4)" shape="box" ];
	//   3 [ label="namespace dns (3 of 4)" shape="box" ];
	//   4 [ label="namespace machines (4 of 4)" shape="box" ];
	//   0 -> 1;
	//   1 -> 2;
	//   1 -> 3;
	//   2 -> 4;
	//   3 -> 4;
	// }
}

// Capabilities filter what has been loaded, in each pass over it.
func ExamplePayload_Included() {
	p, err := manifest.Load(context.Background(), exampleRelease(), manifest.LoadOptions{Filter: manifest.DefaultFilter()})
	if err != nil {
		log.Fatal(err)
	}
	caps := manifest.Capabilities{}
	_, excluded := p.Included(manifest.Filter{Capabilities: &caps, AllowUnknownCapabilities: true})
	for _, e := range excluded {
		fmt.Println(e.Manifest.Identity().Name, e.Verdict)
	}
	// Output:
	// console Capability: disabled capabilities: Console
}
