package testdata

import (
	"fmt"
	"testing/fstest"
)

// Release is a release payload of a version with manifests, each in its own file:
// 0000_50_x_00.yaml, 0000_50_x_01.yaml and so on.
func Release(version string, manifests ...string) fstest.MapFS {
	out := fstest.MapFS{
		"release-manifests/release-metadata": {Data: []byte(`{"kind":"cincinnati-metadata-v0","version":"` + version + `"}`)},
		"release-manifests/image-references": {Data: []byte(`{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":"` + version + `"}}`)},
		"manifests/x":                        {},
	}
	for i, m := range manifests {
		out[fmt.Sprintf("release-manifests/0000_50_x_%02d.yaml", i)] = &fstest.MapFile{Data: []byte(m)}
	}
	return out
}
