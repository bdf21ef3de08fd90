package preconditions

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
)

// giantHop stops updates that skip a minor version, or change the major one
// otherwise than from 4 to 5.0. The minor that such a step starts from is not
// looked at.
func giantHop(cv *configv1.ClusterVersion, targetText string) *Finding {
	currentText := cv.Status.Desired.Version
	current, target, fault := parseBoth(currentText, targetText)
	if fault != nil {
		return fault
	}
	if target.Major() > current.Major() {
		fromFourToFive := current.Major() == 4 && target.Major() == 5
		supported := "within the current major version"
		if fromFourToFive {
			if target.Minor() == 0 {
				return nil
			}
			supported += " or to 5.0"
		}
		return &Finding{
			Severity: Blocking, Reason: "MajorVersionUpdate",
			Message: fmt.Sprintf("%s has a larger major version than the current target %s (%d > %d), and only updates %s are supported.",
				targetText, currentText, target.Major(), current.Major(), supported),
			Remedy: "ask for a version of a supported step first",
		}
	}
	if target.Minor() > current.Minor() && target.Minor()-current.Minor() > 1 {
		remedy := fmt.Sprintf("update to %d.%d first", current.Major(), current.Minor()+1)
		if target.Major() < current.Major() { // majors are not compared downward
			remedy = "ask for a version that is not older than " + currentText
		}
		return &Finding{
			Severity: Blocking, Reason: "MultipleMinorVersionsUpdate",
			Message: fmt.Sprintf("%s is more than one minor version beyond the current target %s (%d.%d > %d.(%d+1)), and only updates within the current minor version or to the next minor version are supported.",
				targetText, currentText, target.Major(), target.Minor(), current.Major(), current.Minor()),
			Remedy: remedy,
		}
	}
	return nil
}
