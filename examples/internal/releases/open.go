// Package releases has what example programs share that read releases: where they
// are, and which cluster they are looked at for.
package releases

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/program"
	"github.com/clusterupdate/clusterupdate/manifest/image"
)

// repository is where releases are published. A mirror has other names, which do
// not matter: images are known by their digests.
const repository = "quay.io/openshift-release-dev/ocp-release"

// Release is a release whose contents are at hand.
type Release struct {
	Image    string // its pull spec; without a digest if that is not known
	Verified bool   // what was read has the digest
	FS       fs.FS  // laid out as in its image
}

// The places of two small releases that are built in.
const (
	From = "the built-in release " + sample.FromVersion
	To   = "the built-in release " + sample.ToVersion
)

// Open opens the release in a place: a directory that is laid out as a release image, one
// of manifests alone as oc adm release extract writes them, or, as PLACE@DIGEST, an image
// in an OCI layout or a mirror on disk. A platform chooses from an index. An error of
// usage reports which digests there are.
func Open(ctx context.Context, place string, p image.Platform) (*Release, error) {
	switch place {
	case From:
		return &Release{Image: sample.FromImage, FS: sample.From()}, nil
	case To:
		return &Release{Image: sample.ToImage, FS: sample.To()}, nil
	}
	if i := strings.LastIndex(place, "@"); i > 0 && strings.Contains(place[i:], ":") {
		return openImage(ctx, place[:i], place[i+1:], p)
	}
	info, err := os.Stat(place)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		r := &Release{Image: repository, FS: os.DirFS(place)}
		if exists(place, "release-manifests") {
			return r, nil
		}
		if exists(place, "image-references") {
			r.FS = extracted{r.FS}
			return r, nil
		}
	}
	return nil, listed(ctx, place)
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// openImage opens an image of a layout or mirror.
func openImage(ctx context.Context, place, digest string, p image.Platform) (*Release, error) {
	src, err := image.Open(place, image.Options{Platform: p})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	r := &Release{Image: repository + "@" + digest, Verified: true}
	r.FS, err = src.Payload(ctx, configv1.Release{Image: r.Image})
	return r, err
}

// listed is the error for images without a digest: there is no other way to know the
// right one.
func listed(ctx context.Context, place string) error {
	src, err := image.Open(place, image.Options{})
	if err != nil {
		return err
	}
	defer src.Close()
	entries, err := src.List(ctx)
	if err != nil {
		return err
	}
	var there []string
	for _, e := range entries {
		text := e.Digest
		for _, more := range []string{e.Name, e.Platform.String()} {
			if more != "" {
				text += " " + more
			}
		}
		there = append(there, text)
	}
	return program.Usagef("%s holds images: add @ and the digest of the release; there are %s", place, strings.Join(there, ", "))
}

// extracted is the release of a directory that has the contents of
// release-manifests. It has none of the version operator's own manifests.
type extracted struct{ fs.FS }

// Open implements [fs.FS].
func (e extracted) Open(name string) (fs.File, error) {
	real, err := e.real("open", name)
	if err != nil {
		return nil, err
	}
	f, err := e.FS.Open(real)
	if name == ownManifests && err == nil {
		f = empty{f}
	}
	return f, err
}

// Stat implements [fs.StatFS]: what is there can be known before it is opened.
func (e extracted) Stat(name string) (fs.FileInfo, error) {
	real, err := e.real("stat", name)
	if err != nil {
		return nil, err
	}
	return fs.Stat(e.FS, real)
}

// ownManifests is the directory of the version operator's manifests.
const ownManifests = "manifests"

// real returns the name of a file in the directory.
func (e extracted) real(op, name string) (string, error) {
	rest, ok := strings.CutPrefix(name, "release-manifests/")
	switch {
	case ok:
		return rest, nil
	case name == "release-manifests" || name == ownManifests:
		return ".", nil
	}
	return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

// empty is a directory without files.
type empty struct{ fs.File }

// Read fails, as it does for every directory.
func (empty) Read([]byte) (int, error) { return 0, errors.New("is a directory") }

// ReadDir implements [fs.ReadDirFile].
func (empty) ReadDir(int) ([]fs.DirEntry, error) { return nil, nil }
