package manifest_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"testing/fstest"

	configv1 "github.com/openshift/api/config/v1"

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

// What a cluster applies of a release, and why not the rest, as a table.
func ExamplePayload_Inclusion() {
	p, err := manifest.Load(context.Background(), exampleRelease(), manifest.LoadOptions{Filter: manifest.DefaultFilter()})
	if err != nil {
		log.Fatal(err)
	}
	capabilities := manifest.ResolveCapabilities(&configv1.ClusterVersionCapabilitiesSpec{BaselineCapabilitySet: "None"}, nil, nil)
	if err := p.Inclusion(manifest.Filter{Capabilities: &capabilities}).WriteText(os.Stdout, manifest.InclusionTextOptions{}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// VERDICT     OBJECT              FILE                                             REASON
	// included    ConfigMap release   0000_00_cluster-version-operator_01_config.yaml
	// Capability  Namespace console   0000_50_console_01_namespace.yaml                disabled capabilities: Console
	// included    Namespace dns       0000_50_dns_01_namespace.yaml
	// FeatureSet  ConfigMap preview   0000_50_dns_02_preview.yaml                      "Default" is required, and release.openshift.io/feature-set=TechPreviewNoUpgrade
	// included    Namespace machines  0000_80_machines_01_namespace.yaml
	//
	// 5 manifests of 4.20.1: 3 included, 2 excluded: FeatureSet 1, Capability 1
}

// What an update changes, and what it leaves behind.
func ExampleDiff() {
	load := func(fsys fstest.MapFS) *manifest.Payload {
		p, err := manifest.Load(context.Background(), fsys, manifest.LoadOptions{Filter: manifest.DefaultFilter()})
		if err != nil {
			log.Fatal(err)
		}
		return p
	}
	next := exampleRelease()
	next["release-manifests/0000_50_dns_03_service.yaml"] = &fstest.MapFile{Data: []byte(
		`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "dns", "namespace": "dns", "annotations": {"include.release.openshift.io/self-managed-high-availability": "true"}}}`)}
	next["release-manifests/0000_70_machines_01_namespace.yaml"] = next["release-manifests/0000_80_machines_01_namespace.yaml"]
	delete(next, "release-manifests/0000_80_machines_01_namespace.yaml")
	delete(next, "release-manifests/0000_50_console_01_namespace.yaml")

	d := manifest.Diff(load(exampleRelease()), load(next), manifest.DiffOptions{})
	for _, o := range d.Orphans() {
		fmt.Println("nobody deletes", o.Identity.Kind, o.Identity.Name)
	}
	if err := d.WriteText(os.Stdout, manifest.DiffTextOptions{}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// nobody deletes Namespace console
	// 4.20.1 -> 4.20.1
	// objects: 1 added, 0 newly included, 1 removed (1 orphaned), 0 newly excluded, 0 changed, 1 moved, 2 unchanged
	// deletions: 0 added, 0 removed
	// images: 0 added, 0 removed, 0 changed
	//
	// runlevel 50, console
	//   - Namespace console (orphaned: neither mentioned nor deleted any more)
	//
	// runlevel 50, dns
	//   + Service dns/dns
	//
	// runlevel 70, machines
	//   ~ Namespace machines (moved from machines of runlevel 80)
}

// A payload is checked before anybody installs it.
func ExampleLint() {
	release := exampleRelease()
	release["release-manifests/0000_50_console_00_service.yaml"] = &fstest.MapFile{Data: []byte(
		`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "console", "annotations": {"include.release.openshift.io/self-managed-high-availability": "true"}}}`)}
	release["release-manifests/dns-extra.yaml"] = release["release-manifests/0000_50_dns_01_namespace.yaml"]
	p, err := manifest.Load(context.Background(), release, manifest.LoadOptions{Filter: manifest.DefaultFilter()})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range manifest.Lint(p, manifest.Filter{}) {
		fmt.Println(f)
	}
	// Output:
	// Warning: 0000_50_console_00_service.yaml, document 1: Service console/web: is applied before 0000_50_console_01_namespace.yaml (namespace-order)
	// Warning: dns-extra.yaml: the name has no runlevel and component, as in 0000_50_dns_namespace.yaml (file-name)
	// Warning: dns-extra.yaml, document 1: Namespace dns: the same object is in 0000_50_dns_01_namespace.yaml, document 1 (duplicate)
}

// The same order as in the example of Graph, for Markdown.
func ExampleGraph_Mermaid() {
	p, err := manifest.Load(context.Background(), exampleRelease(), manifest.LoadOptions{Filter: manifest.DefaultFilter()})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(manifest.UpdateGraph(p.Tasks()).Mermaid())
	// Output:
	// flowchart TD
	//   n0["no manifests"]
	//   n1["configmap release (1 of 4)"]
	//   n2["namespace console (2 of 4)"]
	//   n3["namespace dns (3 of 4)"]
	//   n4["namespace machines (4 of 4)"]
	//   n0 --> n1
	//   n1 --> n2
	//   n1 --> n3
	//   n2 --> n4
	//   n3 --> n4
}
