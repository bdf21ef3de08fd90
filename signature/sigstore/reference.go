package sigstore

import (
	"errors"
	"regexp"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/imageref"
)

// reference is the name of an image, normalised: "busybox" is
// docker.io/library/busybox.
type reference struct {
	name   string // host/path
	tag    string
	digest string
}

// identifier could be mistaken for an image's id.
var identifier = regexp.MustCompile(`^[a-f0-9]{64}$`)

// parseReference reads the name of an image as the container tools do.
func parseReference(s string) (reference, error) {
	if identifier.MatchString(s) {
		return reference{}, errors.New("64 hexadecimal digits are no name")
	}
	ref, err := imageref.Parse(s)
	if err != nil {
		return reference{}, err
	}
	host, path, ok := strings.Cut(ref.Name, "/")
	if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" && strings.ToLower(host) == host {
		host = "docker.io"
		path = ref.Name
	}
	if host == "index.docker.io" {
		host = "docker.io"
	}
	if host == "docker.io" && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	return reference{name: host + "/" + path, tag: ref.Tag, digest: ref.Digest}, nil
}

func (r reference) String() string {
	s := r.name
	if r.tag != "" {
		s += ":" + r.tag
	}
	if r.digest != "" {
		s += "@" + r.digest
	}
	return s
}
