package preconditions_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

const badFormat = `has invalid format; must comply with "^ack-([4-5][.][0-9]{1,})-[^-]"`

func TestGates(t *testing.T) {
	for _, tt := range []struct {
		key, text string
		want      preconditions.Gate
	}{
		{"ack-4.18-x", "Read https://a.b/c.", preconditions.Gate{From: "4.18", URL: "https://a.b/c."}},
		{"ack-4.18-x", "no link, http://a.b", preconditions.Gate{From: "4.18", URL: docs}},
		{"ack-4.18-x", "https://%zz or https://b.c/d", preconditions.Gate{From: "4.18", URL: "https://b.c/d"}},
		{"ack-4.18-x", "(https://) and https://b", preconditions.Gate{From: "4.18", URL: "https://)"}},
		{"ack-4.18-x", "https:// first", preconditions.Gate{From: "4.18", URL: "https://"}},
		{"ack-4.18-x", "a\thttps://q\nb", preconditions.Gate{From: "4.18", URL: "https://q"}},
		{"ack-5.0-x", "t", preconditions.Gate{From: "5.0", URL: docs}},
		{"ack-4.18-x", " ", preconditions.Gate{From: "4.18", URL: docs}},
		{"ack-4.18-x", "", preconditions.Gate{From: "4.18", URL: docs, Problem: "admin-gates configmap gate ack-4.18-x must contain a non-empty value."}},
		{"ack-4.18--x", "t", preconditions.Gate{URL: docs, Problem: `admin-gates configmap gate "ack-4.18--x" is invalid: admin-gates configmap gate name ack-4.18--x ` + badFormat}},
		{"ack-4.18-", "t", preconditions.Gate{URL: docs, Problem: `admin-gates configmap gate "ack-4.18-" is invalid: admin-gates configmap gate name ack-4.18- ` + badFormat}},
		{"ack-4.18", "t", preconditions.Gate{URL: docs, Problem: `admin-gates configmap gate "ack-4.18" is invalid: admin-gates configmap gate name ack-4.18 ` + badFormat}},
		{"ack-6.0-x", "t", preconditions.Gate{URL: docs, Problem: `admin-gates configmap gate "ack-6.0-x" is invalid: admin-gates configmap gate name ack-6.0-x ` + badFormat}},
		{"ack-4.-x", "t", preconditions.Gate{URL: docs, Problem: `admin-gates configmap gate "ack-4.-x" is invalid: admin-gates configmap gate name ack-4.-x ` + badFormat}},
		{"xack-4.18-x", "https://a", preconditions.Gate{URL: docs, Problem: `admin-gates configmap gate "xack-4.18-x" is invalid: admin-gates configmap gate name xack-4.18-x ` + badFormat}},
		{"ack-4.08-x", "t", preconditions.Gate{URL: docs, Problem: `admin-gates configmap gate "ack-4.08-x" is invalid: failed to parse SemVer ack version from admin-gate "ack-4.08-x": Minor number must not contain leading zeroes "08"`}},
		{"ack-4.18446744073709551616-x", "t", preconditions.Gate{URL: docs, Problem: `admin-gates configmap gate "ack-4.18446744073709551616-x" is invalid: failed to parse SemVer ack version from admin-gate "ack-4.18446744073709551616-x": strconv.ParseUint: parsing "18446744073709551616": value out of range`}},
	} {
		tt.want.Key, tt.want.Text = tt.key, tt.text
		checktest.SameIn(t, fmt.Sprintf("%s=%q", tt.key, tt.text), []preconditions.Gate{tt.want},
			preconditions.Gates(map[string]string{tt.key: tt.text}))
	}
}

func TestOpenGates(t *testing.T) {
	gates := preconditions.Gates(map[string]string{
		"ack-4.18-x": "x", "ack-4.18-empty": "", "ack-4.17-y": "y", "ack-4.17-empty": "", "ack-4.1-z": "z", "bad": "b", "ack-4.08-q": "q",
	})
	for _, tt := range []struct {
		minor string
		acks  map[string]string
		want  string
	}{
		{"4.18", nil, "ack-4.08-q ack-4.18-empty ack-4.18-x bad"},
		{"4.18", map[string]string{"ack-4.18-x": "true"}, "ack-4.08-q ack-4.18-empty bad"},
		{"4.18", map[string]string{"ack-4.18-x": "True"}, "ack-4.08-q ack-4.18-empty ack-4.18-x bad"},
		{"4.18", map[string]string{"ack-4.18-x": "true "}, "ack-4.08-q ack-4.18-empty ack-4.18-x bad"},
		{"4.18", map[string]string{"ack-4.18-empty": "true", "bad": "true", "ack-4.08-q": "true", "ack-4.17-y": "true"}, "ack-4.08-q ack-4.18-empty ack-4.18-x bad"},
		{"4.17", nil, "ack-4.08-q ack-4.17-empty ack-4.17-y bad"},
		{"4.1", nil, "ack-4.08-q ack-4.1-z bad"},
		{"4.8", nil, "ack-4.08-q bad"},
	} {
		var keys []string
		for _, g := range preconditions.OpenGates(gates, tt.acks, tt.minor) {
			keys = append(keys, g.Key)
		}
		checktest.SameIn(t, fmt.Sprintf("%s, %v", tt.minor, tt.acks), tt.want, strings.Join(keys, " "))
	}
}

// FuzzGates: every gate is either bound to a minor version that its key names,
// or says what is wrong with it and cannot be acknowledged.
func FuzzGates(f *testing.F) {
	for _, key := range []string{"ack-4.18-x", "ack-4.18--x", "ack-4.08-x", "ack-5.0-y", "ack-4.99999999999999999999-x", "", "ack-4.1-\n"} {
		f.Add(key, "see https://a.b/c. ok")
	}
	minor := regexp.MustCompile(`^[45]\.(0|[1-9][0-9]*)$`)
	f.Fuzz(func(t *testing.T, key, text string) {
		g := preconditions.Gates(map[string]string{key: text})[0]
		if g.Key != key || g.Text != text || g.URL == "" {
			t.Fatalf("%+v", g)
		}
		acks := map[string]string{key: "true"}
		if g.From == "" {
			if g.Problem == "" || len(preconditions.OpenGates([]preconditions.Gate{g}, acks, "4.18")) != 1 {
				t.Fatalf("%+v does not block", g)
			}
			return
		}
		if !minor.MatchString(g.From) || !strings.HasPrefix(key, "ack-"+g.From+"-") {
			t.Fatalf("%+v", g)
		}
		open := len(preconditions.OpenGates([]preconditions.Gate{g}, acks, g.From)) == 1
		checktest.Equal(t, text == "", open, "%+v: open", g)
	})
}
