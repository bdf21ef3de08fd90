package facts

import (
	"github.com/Masterminds/semver/v3"
	blang "github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// ParseVersion parses a strict semantic version. Its errors are those of the parser
// of the cluster-version operator, whose conditions and summaries quote them.
//
// Build metadata does not count in comparisons (precedence).
func ParseVersion(s string) (*semver.Version, error) {
	if _, err := blang.Parse(s); err != nil {
		return nil, err
	}
	return openshift.ParseVersion(s)
}

// VersionOrNil is [ParseVersion] without its error.
func VersionOrNil(text string) *semver.Version {
	v, err := ParseVersion(text)
	if err != nil {
		return nil
	}
	return v
}

// Crosses reports whether a step may lead from below a minor version to it, or
// beyond: pre-releases of it count as it, and a nil version may be any.
func Crosses(current, target *semver.Version, minor string) bool {
	edge, err := openshift.ParseMinor(minor)
	if err != nil || current != nil && !edge.Above(openshift.MinorOf(current)) {
		return false
	}
	return target == nil || !edge.Above(openshift.MinorOf(target))
}

// CompletedVersion returns the version of the newest Completed entry.
func CompletedVersion(history []configv1.UpdateHistory) (string, bool) {
	for _, entry := range history {
		if entry.State == configv1.CompletedUpdate {
			return entry.Version, true
		}
	}
	return "", false
}
