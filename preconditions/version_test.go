package preconditions_test

import (
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/preconditions"
)

func TestParseVersion(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"4.18.5", ""},
		{"4.18.5-rc.1", ""},
		{"4.18.5-0.nightly-2024-01-01-000000+amd64.x", ""},
		{"0.0.0", ""},
		{"1.2.3-a-b.-", ""},
		{"1.2.3+001", ""}, // build metadata may have leading zeroes
		{"18446744073709551615.0.0", ""},
		{"", "Version string empty"},
		{"4.18", "No Major.Minor.Patch elements found"},
		{"4", "No Major.Minor.Patch elements found"},
		{"v4.18.5", `Invalid character(s) found in major number "v4"`},
		{" 4.18.5", `Invalid character(s) found in major number " 4"`},
		{"4.x.5", `Invalid character(s) found in minor number "x"`},
		{"4.18.5.1", `Invalid character(s) found in patch number "5.1"`},
		{"4.18.x-1", `Invalid character(s) found in patch number "x"`},
		{"04.18.5", `Major number must not contain leading zeroes "04"`},
		{"4.08.0", `Minor number must not contain leading zeroes "08"`},
		{"4.8.00", `Patch number must not contain leading zeroes "00"`},
		{".1.2", `strconv.ParseUint: parsing "": invalid syntax`},
		{"1..2", `strconv.ParseUint: parsing "": invalid syntax`},
		{"1.2.", `strconv.ParseUint: parsing "": invalid syntax`},
		{"1.2.-rc", `strconv.ParseUint: parsing "": invalid syntax`},
		{"4.18446744073709551616.0", `strconv.ParseUint: parsing "18446744073709551616": value out of range`},
		{"4.1.0-99999999999999999999", `strconv.ParseUint: parsing "99999999999999999999": value out of range`},
		{"4.1.0-", "Prerelease is empty"},
		{"4.1.0-rc..1", "Prerelease is empty"},
		{"4.1.0-01", `Numeric PreRelease version must not contain leading zeroes "01"`},
		{"4.1.0-rc_1", `Invalid character(s) found in prerelease "rc_1"`},
		{"4.1.0+", "Build meta data is empty"},
		{"4.1.0+a_b", `Invalid character(s) found in build meta data "a_b"`},
		{"4.1.0+a-b+c", `Invalid character(s) found in build meta data "a-b+c"`},
		// Several faults: major, minor, patch, pre-release, build.
		{"x.08.0-01+", `Invalid character(s) found in major number "x"`},
		{"4.08.x-01+", `Minor number must not contain leading zeroes "08"`},
		{"4.8.x-01+", `Invalid character(s) found in patch number "x"`},
		{"4.8.0-01+", `Numeric PreRelease version must not contain leading zeroes "01"`},
	} {
		v, err := preconditions.ParseVersion(tt.in)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("ParseVersion(%q): %v", tt.in, err)
		case tt.want == "" && v.String() != tt.in:
			t.Errorf("ParseVersion(%q) = %v", tt.in, v)
		case tt.want != "" && (err == nil || err.Error() != tt.want):
			t.Errorf("ParseVersion(%q): %v, want %s", tt.in, err, tt.want)
		}
	}
}

// FuzzParseVersion: what is accepted is a strict semantic version for an
// independent parser too, and comes back as it was.
func FuzzParseVersion(f *testing.F) {
	for _, s := range []string{"4.18.5", "4.18.5-rc.1+amd64", "4.08.0", "", "1.2.3-01", "1.2.3-a..b", "v1.2.3", "1.2.3+"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := preconditions.ParseVersion(s)
		strict, strictErr := semver.StrictNewVersion(s)
		if err == nil {
			if v.String() != s {
				t.Fatalf("%q came back as %q", s, v)
			}
			if strictErr != nil && len(s) <= semver.MaxVersionLen {
				t.Fatalf("%q accepted, but: %v", s, strictErr)
			}
			return
		}
		if err.Error() == "" {
			t.Fatalf("%q: no text", s)
		}
		if strictErr == nil && !strings.Contains(err.Error(), "out of range") {
			t.Fatalf("%q refused (%v), but is %v", s, err, strict)
		}
	})
}
