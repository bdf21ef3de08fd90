package sigstore

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/imageref"
	"github.com/clusterupdate/clusterupdate/signature"
)

// reference is the name of an image, normalised: "busybox" is
// docker.io/library/busybox.
type reference struct {
	name   string // host/path
	tag    string
	digest string
}

var (
	tagSyntax = regexp.MustCompile(`^\w[\w.-]{0,127}$`)
	// identifier could be mistaken for an image's id.
	identifier = regexp.MustCompile(`^[a-f0-9]{64}$`)
)

// parseReference reads the name of an image as the container tools do.
func parseReference(s string) (reference, error) {
	var r reference
	if identifier.MatchString(s) {
		return r, errors.New("64 hexadecimal digits are no name")
	}
	rest, digest, ok := strings.Cut(s, "@")
	if ok {
		if err := signature.ValidateDigestStrict(digest); err != nil {
			return r, err
		}
		r.digest = digest
	}
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, '/') {
		r.tag = rest[i+1:]
		rest = rest[:i]
		if !tagSyntax.MatchString(r.tag) {
			return r, fmt.Errorf("invalid tag %q", r.tag)
		}
	}
	host, path, ok := strings.Cut(rest, "/")
	if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" && strings.ToLower(host) == host {
		host, path = "docker.io", rest
	}
	if host == "index.docker.io" {
		host = "docker.io"
	}
	if host == "docker.io" && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	switch {
	case !imageref.IsHost(host):
		return r, fmt.Errorf("invalid host %q", host)
	case !imageref.IsPath(path):
		return r, fmt.Errorf("invalid repository %q", path)
	case len(path) > imageref.MaxName:
		return r, fmt.Errorf("repository name of %d characters, more than %d", len(path), imageref.MaxName)
	}
	r.name = host + "/" + path
	return r, nil
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
