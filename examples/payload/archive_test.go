package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
)

// An image of an archive, for one of the platforms of an index.
func TestArchive(t *testing.T) {
	l := ocitest.NewLayout()
	older, newer := l.Layer(ocitest.Files(sample.From())...), l.Layer(ocitest.Files(sample.To())...)
	index := l.Index(l.Image("linux/amd64", older), l.Image("linux/arm64", newer))
	archive := filepath.Join(t.TempDir(), "mirror.tar")
	checktest.OK(t, os.WriteFile(archive, ocitest.Tar(ocitest.Files(l.Write(index))...), 0o600))
	image := archive + "@" + index.Digest
	programtest.Test(t, command, []programtest.Case{
		{Args: "inspect " + image + " -platform amd64", Stdout: []string{"103 manifests of 4.20.3: "}},
		{Args: "inspect " + image + " -platform linux/arm64", Stdout: []string{"104 manifests of 4.21.1: "}},
		{Args: "inspect " + image, Code: 3, Stderr: "linux/arm64"},
		{Args: "inspect " + archive + "@" + index.Digest[:20], Code: 3, Stderr: index.Digest[:20]},
		{Args: "lint " + archive, Code: 2, Stderr: "holds images: add @ and the digest of the release; there are " + index.Digest},
	})
}
