package oci

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"path"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/imageref"
)

// Media types of indexes and manifests, of OCI and of Docker.
const (
	TypeIndex          = "application/vnd.oci.image.index.v1+json"
	TypeManifest       = "application/vnd.oci.image.manifest.v1+json"
	TypeDockerIndex    = "application/vnd.docker.distribution.manifest.list.v2+json"
	TypeDockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
)

// RefName is the annotation of an index's entry that names it.
const RefName = "org.opencontainers.image.ref.name"

// Descriptor names a blob by its digest.
type Descriptor struct {
	MediaType    string            `json:"mediaType"`
	ArtifactType string            `json:"artifactType,omitempty"`
	Digest       string            `json:"digest"`
	Size         int64             `json:"size"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	Platform     *Platform         `json:"platform,omitempty"`

	unsized bool // only the digest is known
}

// Unsized returns a descriptor of which only the digest is known.
func Unsized(digest string) Descriptor { return Descriptor{Digest: digest, unsized: true} }

// Manifest is an index or the manifest of an image.
type Manifest struct {
	Digest    string       `json:"-"` // by which it was read
	MediaType string       `json:"mediaType"`
	Manifests []Descriptor `json:"manifests,omitempty"` // of an index
	Config    *Descriptor  `json:"config,omitempty"`
	Layers    []Descriptor `json:"layers,omitempty"`
	Subject   *Descriptor  `json:"subject,omitempty"`
}

// DigestError reports that a blob is not the one that a descriptor names.
type DigestError struct {
	// Want is the digest of the descriptor, WantSize its size in bytes.
	Want     string
	WantSize int64
	// Got is the digest of the bytes read, GotSize its size in bytes. Of a blob
	// that is too large only one byte more than WantSize is read.
	Got     string
	GotSize int64
}

func (e *DigestError) Error() string {
	if e.GotSize > e.WantSize {
		return fmt.Sprintf("blob differs from its descriptor: it has more than %d bytes", e.WantSize)
	}
	return fmt.Sprintf("blob differs from its descriptor: it has %d bytes with the digest %s, not %d with %s",
		e.GotSize, e.Got, e.WantSize, e.Want)
}

// verifier compares a blob with its descriptor as it is read.
type verifier struct {
	want      Descriptor
	algorithm string
	hash      hash.Hash
	size      int64
}

// newVerifier returns a verifier for a descriptor with a valid digest.
func newVerifier(d Descriptor) *verifier {
	v := &verifier{want: d}
	v.algorithm, _, _ = strings.Cut(d.Digest, ":")
	switch v.algorithm {
	case "sha256":
		v.hash = sha256.New()
	case "sha384":
		v.hash = sha512.New384()
	default:
		v.hash = sha512.New()
	}
	return v
}

func (v *verifier) Write(p []byte) (int, error) {
	v.size += int64(len(p))
	return v.hash.Write(p)
}

func (v *verifier) check() error {
	got := v.algorithm + ":" + hex.EncodeToString(v.hash.Sum(nil))
	if v.want.unsized {
		v.want.Size = v.size
	}
	if v.size != v.want.Size || got != v.want.Digest {
		return &DigestError{Want: v.want.Digest, WantSize: v.want.Size, Got: got, GotSize: v.size}
	}
	return nil
}

// CheckDigest reports whether a digest is one of sha256, sha384 and sha512 with
// its number of lower-case hexadecimal digits.
func CheckDigest(digest string) error {
	if err := imageref.CheckDigest(digest); err != nil {
		return fmt.Errorf("digest %s: %w", bounded.Quote(digest), err)
	}
	return nil
}

// BlobPath returns the place of a blob in a layout, for a valid digest.
func BlobPath(digest string) string {
	algorithm, sum, _ := strings.Cut(digest, ":")
	return path.Join("blobs", algorithm, sum)
}
