package graph

import (
	"cmp"
	"errors"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// ParseVersion parses a strict SemVer 2 version: three numeric parts, no
// leading v, no leading zeros, optionally a pre-release and a build. Nothing is
// trimmed or completed. Two versions that differ in their build alone compare
// as equal. Errors are those of semver.StrictNewVersion, or say that s is empty or
// a number too large.
func ParseVersion(s string) (*semver.Version, error) {
	if s == "" {
		return nil, errEmptyVersion
	}
	return openshift.ParseVersion(s)
}

var errEmptyVersion = errors.New("Version string empty") // the text that users of the cluster-version operator know

// CompareVersions orders version strings by SemVer precedence. Those that do
// not parse come before all others, bytewise.
func CompareVersions(a, b string) int {
	va, errA := ParseVersion(a)
	vb, errB := ParseVersion(b)
	switch {
	case errA != nil && errB != nil:
		return cmp.Compare(a, b)
	case errA != nil:
		return -1
	case errB != nil:
		return 1
	}
	return va.Compare(vb)
}

// precedenceKey is equal for versions of equal precedence: a strict version
// without its build.
func precedenceKey(version string) string {
	key, _, _ := strings.Cut(version, "+")
	return key
}
