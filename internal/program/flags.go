package program

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

// Format declares the flag -o: the format of the output. The first is text, the
// default.
func Format(set *flag.FlagSet, p *string, formats ...string) {
	Choice(set, p, "o", "`format` of the output", append([]string{"text"}, formats...)...)
}

// Choice declares a flag of one of several words. The first is the default.
func Choice(set *flag.FlagSet, p *string, name, usage string, words ...string) {
	*p = words[0]
	set.Var(&choice{p, words}, name, usage+": "+alternatives(words))
}

type choice struct {
	p     *string
	words []string
}

func (c *choice) String() string {
	if c.p == nil {
		return "" // package flag makes a zero value to learn whether the default is zero
	}
	return *c.p
}

func (c *choice) Set(value string) error {
	if !slices.Contains(c.words, value) {
		return fmt.Errorf("not %s", alternatives(c.words))
	}
	*c.p = value
	return nil
}

func alternatives(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// List is a [flag.Value] of several values: the flag repeated, or values
// separated by commas, none of them empty.
type List []string

// String joins the values by commas.
func (l *List) String() string { return strings.Join(*l, ",") }

// Set adds values. It returns an error for an empty one.
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

// Set sets the version. It returns an error for a text that is not a version.
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

// Set sets the factor. It returns an error for one that is not above zero.
func (s *Speed) Set(value string) error {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || !(f > 0 && f <= math.MaxFloat64) {
		return errors.New("not a number above 0")
	}
	*s = Speed(f)
	return nil
}

// Count is a [flag.Value] of a whole number above zero.
type Count int

// String returns the number.
func (c *Count) String() string { return strconv.Itoa(int(*c)) }

// Set sets the number. It returns an error for one that is not above zero.
func (c *Count) Set(value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return errors.New("not a number above 0")
	}
	*c = Count(n)
	return nil
}

// Span is a [flag.Value] of a duration above zero.
type Span time.Duration

// String returns the duration.
func (s *Span) String() string { return time.Duration(*s).String() }

// Set sets the duration. It returns an error for one that is not above zero.
func (s *Span) Set(value string) error {
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return errors.New("not a duration above 0, such as 10m")
	}
	*s = Span(d)
	return nil
}

// single is the value of a flag that may be set once.
type single struct {
	flag.Value
	set bool
}

// Set sets the value. It returns an error the second time.
func (s *single) Set(value string) error {
	if s.set {
		return errors.New("the flag is set already")
	}
	s.set = true
	return s.Value.Set(value)
}

// IsBoolFlag reports whether the flag needs no value, as package flag asks it.
func (s *single) IsBoolFlag() bool {
	b, ok := s.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}
