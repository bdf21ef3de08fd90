package catalog

import (
	"errors"
	"regexp"
	"strings"
)

var errImage = errors.New("invalid reference format")

// The grammar of image references, [host[:port]/]path[:tag][@digest], as
// container registries have it. The first group is host and path.
var (
	imageReference = regexp.MustCompile(`^((?:` + imageHost + `(?::[0-9]+)?/)?` + imagePath + `(?:/` + imagePath + `)*)` +
		`(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@(` + digestAlgorithm + `):([0-9a-fA-F]{32,}))?$`)
	digestLengths = map[string]int{"sha256": 64, "sha384": 96, "sha512": 128}
)

const (
	imageLabel      = `(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])`
	imageHost       = `(?:` + imageLabel + `(?:\.` + imageLabel + `)*|\[(?:[a-fA-F0-9:]+)\])`
	imagePath       = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
	digestAlgorithm = `[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*`
)

// checkImage refuses what is not an image reference.
func checkImage(image string) error {
	m := imageReference.FindStringSubmatch(image)
	if m == nil {
		return errImage
	}
	if n, known := digestLengths[m[2]]; known && (len(m[3]) != n || strings.ToLower(m[3]) != m[3]) {
		return errImage
	}
	if len(m[1]) > 255 {
		return errors.New("repository name must not be more than 255 characters")
	}
	return nil
}
