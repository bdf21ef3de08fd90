package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
)

// An image of an archive, for one of the platforms of an index.
func TestArchive(t *testing.T) {
	l := ocitest.NewLayout()
	older, newer := l.Layer(ocitest.Files(sample.From())...), l.Layer(ocitest.Files(sample.To())...)
	index := l.Index(l.Image("linux/amd64", older), l.Image("linux/arm64", newer))
	archive := filepath.Join(t.TempDir(), "mirror.tar")
	checktest.OK(t, os.WriteFile(archive, ocitest.Tar(ocitest.Files(l.Write(index))...), 0o600))
	for _, tt := range []struct {
		args      []string
		code      int
		out, errs string
	}{
		{args: []string{"inspect", archive + "@" + index.Digest, "-platform", "amd64"}, out: "103 manifests of 4.20.3: "},
		{args: []string{"inspect", archive + "@" + index.Digest, "-platform", "linux/arm64"}, out: "104 manifests of 4.21.1: "},
		{args: []string{"inspect", archive + "@" + index.Digest}, code: 3, errs: "linux/arm64"},
		{args: []string{"inspect", archive + "@" + index.Digest[:20]}, code: 3, errs: index.Digest[:20]},
		{args: []string{"lint", archive}, code: 2, errs: "holds images: add @ and the digest of the release; there are " + index.Digest},
	} {
		code, out, errs := run(t, tt.args...)
		if code != tt.code || !strings.Contains(out, tt.out) || !strings.Contains(errs, tt.errs) || (tt.errs == "") != (errs == "") {
			t.Errorf("%q: exit %d, %s%.300s", tt.args[1:], code, errs, out[max(0, len(out)-300):])
		}
	}
}
