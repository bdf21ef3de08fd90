package openshift_test

import (
	"testing"

	"github.com/blang/semver/v4"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// agree compares with the parser of the cluster-version operator.
func agree(t checktest.T, s string) {
	v, err := openshift.ParseVersion(s)
	theirs, theirErr := semver.Parse(s)
	checktest.FailIf(t, (err == nil) != (theirErr == nil), "%q: %v, and the operator: %v", s, err, theirErr)
	checktest.FailIf(t, err == nil && theirErr == nil && v.String() != theirs.String(),
		"%q is %s, and to the operator %s", s, v, theirs)
}

func TestParseVersion(t *testing.T) {
	for s, want := range map[string]bool{
		"4.2.1": true, "4.2.1-rc.1": true, "4.2.1-0.nightly-2019-10-09-203001": true, "4.2.1+b": true, "4.2.1-18446744073709551615": true,
		"": false, "4.2": false, "v4.2.1": false, "4.02.1": false, "4.2.1-": false, "4.2.1-01": false, "4.2.1-a..b": false, "4.2.1+": false,
		"4.2.1-99999999999999999999": false, "4.2.1-rc.18446744073709551616": false, "99999999999999999999.0.0": false, " 4.2.1": false,
	} {
		agree(t, s)
		_, err := openshift.ParseVersion(s)
		checktest.FailIf(t, (err == nil) != want, "%q: %v", s, err)
	}
}

func TestParseProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		agree(t, rapid.StringMatching(`v?[0-9]{0,21}(\.[0-9]{1,2}){0,3}(-[0-9a-c.-]{0,24})?(\+[0-9a.-]{0,3})?`).Draw(t, "version"))
	})
}

// FuzzParse: what parses, and as what, is as the operator has it.
func FuzzParseVersion(f *testing.F) {
	for _, s := range []string{"4.21.1", "4.21.0-rc.3", "4.2.1-0.nightly-2019-10-09-203001+b", "4.02.1", "4.2.1-01", "v4.2.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { agree(t, s) })
}
