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
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestImages(t *testing.T) {
	dir := t.TempDir()
	checktest.OK(t, os.CopyFS(dir, sample.To()))
	image, err := payload.Open(t.Context(), dir, os.DirFS(dir))
	checktest.OK(t, err)
	if image.Version() != sample.ToVersion || image.PullSpec != "registry.example/ocp/release@"+image.Digest() || image.Tag() != "registry.example/ocp/release:4.21.1" {
		t.Errorf("%s %s %s", image.Version(), image.PullSpec, image.Tag())
	}
	images := payload.Images{image}
	fsys := checktest.Get(images.Payload(t.Context(), configv1.Release{Image: image.PullSpec}))(t)
	checktest.Good(t, checktest.Err(fs.Stat(fsys, "release-manifests")))
	if _, err := images.Payload(t.Context(), configv1.Release{Image: "other"}); err == nil || err.Error() != "no release other here" {
		t.Error(err)
	}
	checktest.OK(t, os.WriteFile(filepath.Join(dir, "manifests", "more.yaml"), nil, 0o600))
	if _, err := images.Payload(t.Context(), configv1.Release{Image: image.PullSpec}); err == nil || !strings.Contains(err.Error(), "do not have the digest") {
		t.Error(err)
	}
	if _, err := payload.Open(t.Context(), "empty", os.DirFS(t.TempDir())); err == nil || !strings.HasPrefix(err.Error(), "empty does not hold a release: ") {
		t.Error(err)
	}

	release := payload.Release(image.Payload)
	checktest.Good(t, release.Break("etcd", simulation.Fault{Kind: simulation.FaultDegraded}))
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
