package upgradeconfig

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// ChannelError is the error of [InferChannel].
type ChannelError struct {
	Group, Version string
	// PolicyID is the policy that names the version; empty if absent.
	PolicyID string
	// Err is what is wrong with the version.
	Err error
}

func (e *ChannelError) Error() string {
	text := fmt.Sprintf("unable to determine channel from channel group '%s' and version '%s'", e.Group, e.Version)
	if e.PolicyID != "" {
		text += fmt.Sprintf(" for policy ID '%s'", e.PolicyID)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *ChannelError) Unwrap() error { return e.Err }

// InferChannel returns the channel from which a cluster of a channel group
// gets a version: GROUP-MAJOR.MINOR of the version. An empty group is stable.
// The group eus has channels of minors with extended update support only, so others are
// rounded up.
// The error is a [*ChannelError] if the version is not a full semantic version.
func InferChannel(group, version string) (string, error) {
	group = cmp.Or(group, "stable")
	v, err := openshift.ParseVersion(version)
	if err != nil {
		return "", &ChannelError{Group: group, Version: version, Err: err}
	}
	minor := openshift.MinorOf(v)
	if group == "eus" {
		if minor.Minor == math.MaxUint64 {
			return "", &ChannelError{Group: group, Version: version, Err: errors.New("the minor version is too large")}
		}
		minor = minor.RoundUpEUS()
	}
	return fmt.Sprintf("%s-%s", group, minor), nil
}
