package payload_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
)

func TestImages(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, sample.To()); err != nil {
		t.Fatal(err)
	}
	image, err := payload.Open(t.Context(), dir, os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	if image.Version() != sample.ToVersion || image.PullSpec != "registry.example/ocp/release@"+image.Digest() || image.Tag() != "registry.example/ocp/release:4.21.1" {
		t.Errorf("%s %s %s", image.Version(), image.PullSpec, image.Tag())
	}
	images := payload.Images{image}
	fsys, err := images.Payload(t.Context(), configv1.Release{Image: image.PullSpec})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Stat(fsys, "release-manifests"); err != nil {
		t.Error(err)
	}
	if _, err := images.Payload(t.Context(), configv1.Release{Image: "other"}); err == nil || err.Error() != "no release other here" {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "manifests", "more.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := images.Payload(t.Context(), configv1.Release{Image: image.PullSpec}); err == nil || !strings.Contains(err.Error(), "do not have the digest") {
		t.Error(err)
	}
	if _, err := payload.Open(t.Context(), "empty", os.DirFS(t.TempDir())); err == nil || !strings.HasPrefix(err.Error(), "empty does not hold a release: ") {
		t.Error(err)
	}

	release := payload.Release(image.Payload)
	if err := release.Break("etcd", simulation.Fault{Kind: simulation.FaultDegraded}); err != nil {
		t.Error(err)
	}
	broken := 0
	for _, op := range release.Operators {
		if op.Fault != nil {
			broken++
		}
	}
	if err := release.Break("nobody", simulation.Fault{}); err == nil || broken != 1 {
		t.Errorf("%v; %d operators are broken", err, broken)
	}
}
