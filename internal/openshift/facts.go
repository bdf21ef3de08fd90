package openshift

import "strings"

// The last minor version of OpenShift 4 that has a successor of another major version, and
// what stands on both sides of the change: 4.23 stands beside 5.0, of the same code.
var (
	last4  = Minor{4, 22}
	aside  = Minor{4, 23}
	first5 = Minor{5, 0}
	after5 = Minor{5, 1}
)

// Next returns the minor versions that updates lead to, the usual one first. What a graph
// has beats it.
func (m Minor) Next() []Minor {
	switch m {
	case last4:
		return []Minor{first5, aside}
	case aside:
		return []Minor{after5}
	}
	return []Minor{{m.Major, m.Minor + 1}}
}

// Previous returns the minor versions that updates come from, the usual one first; nil if
// that is not known.
func (m Minor) Previous() []Minor {
	switch m {
	case first5:
		return []Minor{last4}
	case after5:
		return []Minor{first5, aside}
	}
	if m.Minor == 0 {
		return nil
	}
	return []Minor{{m.Major, m.Minor - 1}}
}

// Follows reports whether an update may lead from o to m in one step, or within one minor
// version, as far as the table of minor versions says.
func (m Minor) Follows(o Minor) bool {
	if m == o {
		return true
	}
	for _, next := range o.Next() {
		if m == next {
			return true
		}
	}
	return false
}

// Steps returns how many updates lead from m to a later minor version, each to the next
// one; 0 if there are none or more than 100.
func (m Minor) Steps(to Minor) int {
	const most = 100
	for n := 1; n <= most && to.Above(m); n++ {
		if to.Follows(m) {
			return n
		}
		m = m.Next()[0]
	}
	return 0
}

// EUS reports whether a minor version has extended update support, so that compute
// nodes may go from one to the next with a single reboot. Of 4.y these are the even
// ones, of later majors the second and then every third, as the kubelet version skew
// controller of the API server operator counts them.
func (m Minor) EUS() bool {
	if m.Major <= 4 {
		return m.Minor%2 == 0
	}
	return m.Minor%3 == 2
}

// RoundUpEUS returns the first minor version from m on that has extended update support.
func (m Minor) RoundUpEUS() Minor {
	for !m.EUS() {
		m = m.Next()[0]
	}
	return m
}

// ControlPlaneOnly returns the minor versions of the updates by which a control plane goes
// from one minor version with extended update support to the next, while compute nodes stay
// as they are: 5.0, 5.1 and 5.2 of 4.22. It is nil if m has no such support.
func (m Minor) ControlPlaneOnly() []Minor {
	if !m.EUS() {
		return nil
	}
	var hops []Minor
	for {
		m = m.Next()[0]
		hops = append(hops, m)
		if m.EUS() {
			return hops
		}
	}
}

// Kubernetes returns the minor version of Kubernetes 1 in an OpenShift version, and whether
// it is known. What a release or a cluster says of itself beats it.
func (m Minor) Kubernetes() (minor uint64, known bool) {
	const ahead = 13 // of OpenShift 4, in minor versions
	switch {
	case m.Major == 4:
		return m.Minor + ahead, true
	case m == first5:
		return aside.Kubernetes()
	}
	return 0, false
}

// KubeletSkew returns how many minor versions a kubelet may be behind the API server, as
// the kubelet version skew controller of the API server operator has it.
func (m Minor) KubeletSkew() uint64 {
	if m.Major <= 4 {
		return 2 - m.Minor%2
	}
	return m.Minor%3 + 1
}

// PackageBased reports whether compute nodes of a minor version may run Red Hat Enterprise
// Linux from packages, which OpenShift 4.19 ends.
func (m Minor) PackageBased() bool {
	return !m.Above(Minor{4, 18})
}

// PackageRHEL reports whether the OS image of a node is Red Hat Enterprise Linux made of
// packages and not CoreOS, and its version as in 8.6; empty if the image does not say.
func PackageRHEL(osImage string) (version string, is bool) {
	rest, ok := strings.CutPrefix(osImage, "Red Hat Enterprise Linux")
	rest = strings.TrimPrefix(rest, " ")
	if !ok || strings.HasPrefix(rest, "CoreOS") {
		return "", false
	}
	version, _, _ = strings.Cut(strings.TrimPrefix(rest, "Server "), " ")
	return version, true
}
