package preconditions

import (
	"github.com/Masterminds/semver/v3"
	blang "github.com/blang/semver/v4"

	"github.com/clusterupdate/clusterupdate/internal/versions"
)

// parseVersion parses a strict semantic version. Its errors are those of the parser
// of the cluster-version operator, whose conditions and summaries quote them.
//
// Build metadata does not count in comparisons (precedence).
func parseVersion(s string) (*semver.Version, error) {
	if _, err := blang.Parse(s); err != nil {
		return nil, err
	}
	return versions.Parse(s)
}

// sameMinor says whether two versions have the same major and minor.
func sameMinor(a, b *semver.Version) bool {
	return a.Major() == b.Major() && a.Minor() == b.Minor()
}
