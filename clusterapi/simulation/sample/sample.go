// Package sample embeds two small releases, self-written and laid out as in a
// release image, and an update graph that leads from one to the other: to try an update
// on a simulated cluster where no real release is at hand.
//
// A release has 10 ClusterOperators and ten runlevels. Levels 03, 20, 25, 50,
// 70 and 90 hold several components, which an update may handle in parallel;
// machine-config is alone at level 80. Besides what every release has
// (Namespaces, CRDs, RBAC, Deployments, ClusterOperators), each holds manifests
// of every sort that is treated in a special way:
//
//   - templates in manifests/ that name the release image and a component image;
//   - a Job alone at level 40, a barrier between the levels around it;
//   - two DaemonSets, a Service, a manifest in JSON form, files of several documents;
//   - custom resources of CRDs that the release brings, one of them create-only;
//     in [To] the CRD of etcd has a field more, and the resource uses it;
//   - a manifest of capability openshift-samples, one of feature set
//     TechPreviewNoUpgrade, and one for the profile ibm-cloud-managed that has
//     the identity of another one;
//   - the ConfigMaps of admin gates and acknowledgments: no gate of [From]
//     applies to its version, the one of [To] applies and is open;
//   - the ConfigMap that configures signature verification; the private part
//     of its key was thrown away;
//   - in [To] a manifest that deletes a ConfigMap of [From].
//
// All functions are safe for concurrent use. [Image] and [Payload] fail for what
// is not one of the two releases.
package sample

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
)

// The versions and images of the two releases. To is a minor update of From
// and names it among its previous versions.
const (
	FromVersion = "4.20.3"
	ToVersion   = "4.21.1"
	FromImage   = "registry.example/ocp/release@sha256:818ed045948bb53337aa38a58bc7cd813142a0c721f3ea390f4fba9380431436"
	ToImage     = "registry.example/ocp/release@sha256:6ab330b5205a6a0cb64d0e3c3a5a04278d90cb85e128e3b5317cdfba22bef41d"
)

// Channel is the channel that every node of [Graph] is in.
const Channel = "stable-4.21"

//go:embed from to graph.json
var files embed.FS

// From returns the release that a cluster starts with, [FromVersion].
func From() fs.FS { return sub("from") }

// To returns the release to update to, [ToVersion].
func To() fs.FS { return sub("to") }

// Graph returns an update graph, schema version 1, of four releases: both of
// this package, 4.20.4, and 4.21.0, which is offered with a risk that always
// applies.
func Graph() []byte {
	data, err := files.ReadFile("graph.json")
	if err != nil {
		panic(err) // embedded: cannot be absent
	}
	return slices.Clone(data)
}

// Image returns the pull spec of the release of the given version, and an error
// for any other.
func Image(version string) (string, error) {
	switch version {
	case FromVersion:
		return FromImage, nil
	case ToVersion:
		return ToImage, nil
	}
	return "", fmt.Errorf("sample: no release %q, only %s and %s", version, FromVersion, ToVersion)
}

// Payload returns the contents of the release image with the given pull spec. For
// any other the error is [fs.ErrNotExist].
func Payload(image string) (fs.FS, error) {
	switch image {
	case FromImage:
		return From(), nil
	case ToImage:
		return To(), nil
	}
	return nil, fmt.Errorf("sample: no release image %q: %w", image, fs.ErrNotExist)
}

func sub(dir string) fs.FS {
	fsys, err := fs.Sub(files, dir)
	if err != nil {
		panic(err) // a constant, valid path
	}
	return fsys
}
