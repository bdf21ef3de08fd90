package program

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// List is a [flag.Value] of several values: the flag repeated, or values
// separated by commas, none of them empty.
type List []string

// String joins the values by commas.
func (l *List) String() string { return strings.Join(*l, ",") }

// Set adds values.
func (l *List) Set(value string) error {
	for v := range strings.SplitSeq(value, ",") {
		if v == "" {
			return errors.New("empty")
		}
		*l = append(*l, v)
	}
	return nil
}

// Version is a [flag.Value] of a version as releases have it: without v.
type Version string

// String returns the version.
func (v *Version) String() string { return string(*v) }

// Set takes a version. Whether there is such a release, others know.
func (v *Version) Set(value string) error {
	if rest, ok := strings.CutPrefix(value, "v"); ok && rest != "" && '0' <= rest[0] && rest[0] <= '9' {
		return fmt.Errorf("versions of releases have no v: write %s", rest)
	}
	if _, err := semver.StrictNewVersion(value); err != nil {
		return errors.New("not a version such as 4.18.3")
	}
	*v = Version(value)
	return nil
}

// Speed is a [flag.Value] of a factor above zero. Zero, the default, stands for
// virtual time.
type Speed float64

// String returns the factor.
func (s *Speed) String() string { return strconv.FormatFloat(float64(*s), 'g', -1, 64) }

// Set takes a factor.
func (s *Speed) Set(value string) error {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || !(f > 0 && f <= math.MaxFloat64) {
		return errors.New("not a number above 0")
	}
	*s = Speed(f)
	return nil
}
