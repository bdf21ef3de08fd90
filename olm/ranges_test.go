package olm_test

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/google/go-cmp/cmp"
)

func TestRange(t *testing.T) {
	tests := []struct {
		text    string
		in, out []string
	}{
		{"<2.0.0", []string{"1.9.9", "2.0.0-rc.1", "0.0.0"}, []string{"2.0.0", "2.0.0+build"}},
		{">=1.0.0 <2.0.0", []string{"1.0.0", "1.5.0", "1.0.0+x", "2.0.0-alpha"}, []string{"1.0.0-rc.1", "2.0.0"}},
		{"<1.0.0 || >=2.0.0", []string{"0.9.0", "2.0.0", "3.0.0"}, []string{"1.0.0", "1.9.9"}},
		{"1.2.3", []string{"1.2.3", "1.2.3+b"}, []string{"1.2.4", "1.2.3-rc.1"}},
		{"=1.2.3", []string{"1.2.3"}, []string{"1.2.2"}},
		{"==1.2.3", []string{"1.2.3"}, []string{"1.2.2"}},
		{"!=1.2.3", []string{"1.2.4"}, []string{"1.2.3"}},
		{"!1.2.3", []string{"1.2.4"}, []string{"1.2.3"}},
		{">=1.0.0 !=1.2.0", []string{"1.1.0"}, []string{"1.2.0", "0.9.0"}},
		{"1.2.x", []string{"1.2.0", "1.2.9"}, []string{"1.3.0", "1.1.9"}},
		{"1.x", []string{"1.0.0", "1.9.9"}, []string{"2.0.0", "0.9.0"}},
		{"1.x.x", []string{"1.0.0", "1.0.9"}, []string{"1.1.0"}},
		{">1.x", []string{"2.0.0"}, []string{"1.9.9"}},
		{"<=1.x", []string{"1.9.9"}, []string{"2.0.0"}},
		{"!=1.x", nil, []string{"0.5.0", "1.5.0", "2.5.0"}},
		{">= 1.0.0", []string{"1.0.0"}, []string{"0.9.9"}},
		{"<  2.0.0", []string{"1.0.0"}, []string{"2.0.0"}},
		{"= 1.0.0", []string{"1.0.0"}, []string{"1.0.1"}},
		{"! 1.0.0", []string{"1.0.0"}, []string{"1.0.1"}},
		{"1.0.0 - 2.0.0", nil, []string{"1.0.0", "1.5.0", "2.0.0"}},
		{">=1.0.0 , <2.0.0", []string{"1.5.0"}, []string{"2.0.0", "0.1.0"}},
		{">=1.x.0", []string{"1.0.0"}, []string{"0.9.0"}},
		{"<1.x.0", []string{"0.9.0"}, []string{"1.0.0"}},
		{"  >=1.0.0   <2.0.0  ", []string{"1.0.0"}, []string{"2.0.0"}},
	}
	for _, test := range tests {
		r, err := olm.ParseRange(test.text)
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		if r.String() != test.text {
			t.Errorf("%q prints as %q", test.text, r)
		}
		for _, v := range test.in {
			if !r.Contains(*version(t, v)) {
				t.Errorf("%q does not contain %s", test.text, v)
			}
		}
		for _, v := range test.out {
			if r.Contains(*version(t, v)) {
				t.Errorf("%q contains %s", test.text, v)
			}
		}
	}
}

func TestRangeErrors(t *testing.T) {
	for _, text := range []string{
		"", " ", "   ", "^1.0.0", "~1.0.0", "=>1.0.0", "v1.0.0", ">=v1.0.0", "01.0.0", "1.02.0",
		">=1.0.0,<2.0.0", "1.0.0||2.0.0", "|| 1.0.0", "1.0.0 ||", ">=1.0", "1", "1.X", "1.2.X", "*",
		"1.x.0", "=1.x.0", "1.0.0-next.1", "!=1.0.0-next.1", ">", "=x",
		"1.0.0 || || 2.0.0", "1.0.0 ||  || 2.0.0", "1.0.0 || - || 2.0.0", "1.0.0 || x || 2.0.0",
		strings.Repeat("=1.0.0 ", 10_000),
	} {
		if r, err := olm.ParseRange(text); err == nil {
			t.Errorf("%.40q is accepted as %s", text, r)
		} else if !cmp.Equal(r.Contains(*version(t, "1.0.0")), false) {
			t.Errorf("%.40q: contains something in spite of %v", text, err)
		}
	}
	if _, err := olm.ParseRange(">=1.0.0-next.1"); err != nil {
		t.Errorf("an x is fine behind >=: %v", err)
	}
	if new(olm.Range).Contains(*version(t, "1.0.0")) {
		t.Error("the zero range contains something")
	}
}
