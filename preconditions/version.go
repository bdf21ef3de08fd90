package preconditions

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// parseVersion reads a strict semantic version: three numbers, an optional
// pre-release, optional build metadata, and nothing else. Faults are looked for
// in the order major, minor, patch, pre-release, build, and the error of the
// first one is worded as by the cluster-version operator, whose conditions and
// summaries quote that text.
//
// Build metadata does not count in comparisons (precedence).
func parseVersion(s string) (*semver.Version, error) {
	if s == "" {
		return nil, errors.New("Version string empty")
	}
	parts := strings.SplitN(s, ".", 3)
	if len(parts) != 3 {
		return nil, errors.New("No Major.Minor.Patch elements found")
	}
	rest, build, hasBuild := strings.Cut(parts[2], "+")
	patchText, pre, hasPre := strings.Cut(rest, "-")

	var numbers [3]uint64
	for i, text := range []string{parts[0], parts[1], patchText} {
		n, err := parseNumber([]string{"Major", "Minor", "Patch"}[i], text)
		if err != nil {
			return nil, err
		}
		numbers[i] = n
	}
	if hasPre {
		if err := checkPrerelease(pre); err != nil {
			return nil, err
		}
	}
	if hasBuild {
		if err := checkBuild(build); err != nil {
			return nil, err
		}
	}
	return semver.New(numbers[0], numbers[1], numbers[2], pre, build), nil
}

// parseNumber reads one of the three numbers; part names it in errors.
func parseNumber(part, text string) (uint64, error) {
	if !consistsOf(text, isDigit) {
		return 0, fmt.Errorf("Invalid character(s) found in %s number %q", strings.ToLower(part), text)
	}
	if leadingZero(text) {
		return 0, fmt.Errorf("%s number must not contain leading zeroes %q", part, text)
	}
	return strconv.ParseUint(text, 10, 64) // fails when empty or too large
}

func checkPrerelease(pre string) error {
	for id := range strings.SplitSeq(pre, ".") {
		switch {
		case id == "":
			return errors.New("Prerelease is empty")
		case consistsOf(id, isDigit):
			if leadingZero(id) {
				return fmt.Errorf("Numeric PreRelease version must not contain leading zeroes %q", id)
			}
			if _, err := strconv.ParseUint(id, 10, 64); err != nil {
				return err
			}
		case !consistsOf(id, isIdentifier):
			return fmt.Errorf("Invalid character(s) found in prerelease %q", id)
		}
	}
	return nil
}

func checkBuild(build string) error {
	for id := range strings.SplitSeq(build, ".") {
		if id == "" {
			return errors.New("Build meta data is empty")
		}
		if !consistsOf(id, isIdentifier) {
			return fmt.Errorf("Invalid character(s) found in build meta data %q", id)
		}
	}
	return nil
}

func leadingZero(s string) bool { return len(s) > 1 && s[0] == '0' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isIdentifier(c byte) bool {
	return isDigit(c) || c == '-' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// consistsOf says whether every byte of s is of the class; so is the empty text.
func consistsOf(s string, class func(byte) bool) bool {
	for i := range len(s) {
		if !class(s[i]) {
			return false
		}
	}
	return true
}

// sameMinor says whether two versions have the same major and minor.
func sameMinor(a, b *semver.Version) bool {
	return a.Major() == b.Major() && a.Minor() == b.Minor()
}
