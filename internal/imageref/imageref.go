// Package imageref reads the names of images, by the grammar that container tools
// share:
//
//	[host[:port]/]repository[:tag][@digest]
package imageref

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Reference is the name of an image as it is written: nothing is filled in.
type Reference struct {
	Name   string // host and repository
	Tag    string
	Digest string
}

// The errors of Parse, in the words that users know.
var (
	ErrInvalid   = errors.New("invalid reference format")
	ErrUppercase = errors.New("repository name must be lowercase")
	ErrEmpty     = errors.New("repository name must have at least one component")
	ErrTooLong   = fmt.Errorf("repository name must not be more than %d characters", MaxName)
)

// MaxName is the longest repository, in characters.
const MaxName = 255

const (
	hostPart = `(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])`
	host     = `(?:` + hostPart + `(?:\.` + hostPart + `)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?`
	pathPart = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
	path     = pathPart + `(?:/` + pathPart + `)*`
)

var (
	hostSyntax = regexp.MustCompile(`^` + host + `$`)
	pathSyntax = regexp.MustCompile(`^` + path + `$`)
	syntax     = regexp.MustCompile(`^((?:` + host + `/)?` + path + `)(?::([\w][\w.-]{0,127}))?(?:@([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?$`)
)

// IsHost and IsPath say whether a text is the host, with a port if it has one, or
// the repository of a name, however long.
func IsHost(s string) bool { return hostSyntax.MatchString(s) }
func IsPath(s string) bool { return pathSyntax.MatchString(s) }

// Parse reads the name of an image. Its errors are those of this package, and that
// a digest is not one of its algorithm.
func Parse(s string) (Reference, error) {
	parts := syntax.FindStringSubmatch(s)
	switch {
	case s == "":
		return Reference{}, ErrEmpty
	case parts == nil && syntax.MatchString(strings.ToLower(s)):
		return Reference{}, ErrUppercase
	case parts == nil:
		return Reference{}, ErrInvalid
	case len(parts[1]) > MaxName:
		return Reference{}, ErrTooLong
	}
	ref := Reference{Name: parts[1], Tag: parts[2], Digest: parts[3]}
	if ref.Digest == "" {
		return ref, nil
	}
	return ref, CheckDigest(ref.Digest)
}

// CheckDigest reports whether a digest is one of sha256, sha384 and sha512, with
// its number of lower-case hexadecimal digits.
func CheckDigest(digest string) error {
	algorithm, hex, _ := strings.Cut(digest, ":")
	length, known := map[string]int{"sha256": 64, "sha384": 96, "sha512": 128}[algorithm]
	switch {
	case !known:
		return errors.New("unsupported digest algorithm")
	case len(hex) != length:
		return errors.New("invalid checksum digest length")
	case strings.Trim(hex, "0123456789abcdef") != "":
		return errors.New("invalid checksum digest format")
	}
	return nil
}
