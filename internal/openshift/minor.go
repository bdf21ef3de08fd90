package openshift

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Minor is a minor version: 4.18 of 4.18.3.
type Minor struct{ Major, Minor uint64 }

// MinorOf returns the minor version of a version.
func MinorOf(v *semver.Version) Minor { return Minor{v.Major(), v.Minor()} }

// ParseMinor reads a minor version of the form 4.16. Anything else is an error.
func ParseMinor(s string) (Minor, error) {
	major, minor, ok := strings.Cut(s, ".")
	x, okMajor := Number(major)
	y, okMinor := Number(minor)
	if !ok || !okMajor || !okMinor {
		return Minor{}, fmt.Errorf("minor version %s is not of the form 4.16", strconv.Quote(s))
	}
	return Minor{x, y}, nil
}

// Number reads decimal digits without leading zeros.
func Number(s string) (uint64, bool) {
	if s == "" || len(s) > 1 && s[0] == '0' || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

// String is the text: 4.18.
func (m Minor) String() string { return fmt.Sprintf("%d.%d", m.Major, m.Minor) }

// Above reports whether m is a later minor version than o.
func (m Minor) Above(o Minor) bool {
	return m.Major > o.Major || m.Major == o.Major && m.Minor > o.Minor
}

// Skips reports whether a minor version lies between two: a known one, since no
// arithmetic tells what follows the last minor of a major, or by number within a
// major.
func Skips(known []Minor, from, to Minor) bool {
	if from.Major == to.Major && to.Minor > from.Minor+1 {
		return true
	}
	return slices.ContainsFunc(known, func(m Minor) bool { return m.Above(from) && to.Above(m) })
}

// Prefix is the part of a version's text that its minor version shares: "4.8.".
func Prefix(version string) string {
	major := strings.IndexByte(version, '.')
	minor := strings.IndexByte(version[major+1:], '.')
	return version[:major+1+minor+1]
}
