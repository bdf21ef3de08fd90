package graphdata

import (
	"regexp"
	"strings"
)

// Where reading is stricter than the update service, Compat does what that does:
//
//   - Of files, those whose extension holds ya+ml anywhere are read (load.go).
//   - A file that is not understood is ignored: its channel vanishes, or the
//     updates that it blocks stay open. The problem is an error, and Load returns
//     the tree nevertheless.
//   - Unknown keys count only in a file of blocked-edges that is not a risk, which
//     is then ignored. What an update service does not read may be anything: the
//     feeder and the tombstones of a channel, fixedIn and autoExtend, what a rule
//     has beside its type and its query, build-suggestions.
//   - A drop with fixedIn or autoExtend is ignored, and so is a file with some of
//     the four keys of a risk.
//   - from may be empty, which matches every version, and ~ stands for itself.
//   - Versions are read by another grammar: see compatVersion.
//   - Aliases of YAML are resolved.
//   - A key of raw/metadata.json may be no version.
//
// Not even Compat can use an expression that Go cannot compile, or that means
// something else in Go: its file is ignored. A list or map as from, which crashes
// the service, is treated the same way.

const compatIdentifier = `[0-9A-Za-z]+(-[0-9A-Za-z]+)*`

var compatSemver = regexp.MustCompile(`^(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)` +
	`(-` + compatIdentifier + `([.]` + compatIdentifier + `)*)?([+]` + compatIdentifier + `([.]` + compatIdentifier + `)*)?$`)

// compatVersion reads a version as the update service does: white space around it
// is cut, numbers of a pre-release may start with zeros, and an identifier may
// neither start nor end with a hyphen nor have two in a row.
func compatVersion(text string) (version string, ok bool) {
	version = strings.Trim(text, " \t\r\n")
	return version, compatSemver.MatchString(version)
}

// compatNumbers cuts a version that the update service reads down to its numbers;
// of any other text nothing is left.
func compatNumbers(version string) string {
	if !compatSemver.MatchString(version) {
		return ""
	}
	if end := strings.IndexAny(version, "-+"); end >= 0 {
		return version[:end]
	}
	return version
}
