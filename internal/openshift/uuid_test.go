package openshift_test

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

func TestParseUUID(t *testing.T) {
	const id = "8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01"
	for _, tt := range []struct{ in, err string }{
		{id, ""},
		{strings.ToUpper(id), ""},
		{"{" + id + "}", ""},
		{"URN:uuid:" + id, ""},
		{strings.ReplaceAll(id, "-", ""), ""},
		{"", "invalid UUID length: 0"},
		{id[1:], "invalid UUID length: 35"},
		{"(" + id + ")", "invalid UUID format"},
		{"urn:UUIX:" + id, `invalid urn prefix: "urn:UUIX:"`},
		{strings.Replace(id, "-", "0", 1), "invalid UUID format"},
		{strings.Replace(id, "8", "g", 1), "invalid UUID format"},
	} {
		got, err := openshift.ParseUUID(tt.in)
		switch {
		case tt.err != "":
			checktest.FailIf(t, err == nil || err.Error() != tt.err, "%q: error %v, want %s", tt.in, err, tt.err)
		case err != nil || got.String() != id || got.Version() != 4 || !got.RFC4122():
			t.Errorf("%q: %s, version %d, RFC 4122 %v, %v", tt.in, got, got.Version(), got.RFC4122(), err)
		}
	}
}
