// Package openshift has OpenShift's minor versions, and the facts that follow from
// their numbers.
package openshift

// EUS reports whether a minor version has extended update support, so that compute
// nodes may go from one to the next with a single reboot. Of 4.y these are the even
// ones, of later majors the second and then every third, as the kubelet version skew
// controller of the API server operator counts them.
func EUS(major, minor uint64) bool {
	if major <= 4 {
		return minor%2 == 0
	}
	return minor%3 == 2
}
