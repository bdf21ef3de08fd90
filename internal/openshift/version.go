package openshift

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// ParseVersion parses a strict SemVer 2 version, as OpenShift's operators do: three
// numbers, no leading v, no leading zeros, optionally a pre-release and a build.
// Numbers have 64 bits, in pre-releases too. Errors are those of
// semver.StrictNewVersion, or name the number that is too large.
func ParseVersion(s string) (*semver.Version, error) {
	v, err := semver.StrictNewVersion(s)
	if err != nil {
		return nil, err
	}
	for id := range strings.SplitSeq(v.Prerelease(), ".") {
		if strings.Trim(id, "0123456789") != "" || id == "" {
			continue
		}
		if _, err := strconv.ParseUint(id, 10, 64); err != nil {
			return nil, fmt.Errorf("the number %s of the pre-release is too large", id)
		}
	}
	return v, nil
}
