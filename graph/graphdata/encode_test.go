package graphdata_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// TestEncode: what is written is read as the same.
func TestEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[ -~]{1,90}`), rapid.StringN(1, 200, -1), rapid.SampledFrom([]string{"~", "null", "true", "4.20", "0x1", "a: b", "# c", " x ", "x\n\ny\n", "- a", "'", "\"", "\t", "no", "*", "&a", "=", "<<"}))
		from := rapid.SampledFrom([]string{".*", "4", "^4[.]2[.]1[+].*$", "4[.](1|2)[.].*", "[+]amd64", "~", "true", " ", "4.20", "'", "x{2}"})
		b := graphdata.BlockedEdge{File: "blocked-edges/4.1.0.yaml", Line: 2, To: rapid.SampledFrom([]string{"4.1.0", "4.1.0+amd64", "4.1.0-rc.0"}).Draw(t, "to"), From: from.Draw(t, "from")}
		b.FixedIn = rapid.SampledFrom([]string{"", "4.1.1"}).Draw(t, "fixedIn")
		if rapid.Bool().Draw(t, "autoExtend") {
			b.AutoExtend = text.Draw(t, "uri")
		}
		if rapid.Bool().Draw(t, "risk") {
			b.Risk = &configv1.ConditionalUpdateRisk{URL: text.Draw(t, "url"), Name: text.Draw(t, "name"), Message: text.Draw(t, "message"), MatchingRules: []configv1.ClusterCondition{}}
			for range rapid.IntRange(0, 2).Draw(t, "rules") {
				rule := configv1.ClusterCondition{Type: "Always"}
				if rapid.Bool().Draw(t, "query") {
					rule = configv1.ClusterCondition{Type: "PromQL", PromQL: &configv1.PromQLClusterCondition{PromQL: text.Draw(t, "promql")}}
				}
				b.Risk.MatchingRules = append(b.Risk.MatchingRules, rule)
			}
		}
		encoded := checktest.Must(b.Encode())
		tree, err := graphdata.Load(t.Context(), treeOf(map[string]string{b.File: string(encoded)}), graphdata.LoadOptions{})
		if err != nil {
			t.Fatalf("%v in\n%s", err, encoded)
		}
		if diff := cmp.Diff([]graphdata.BlockedEdge{b}, append(tree.Drops, tree.Risks...), cmpopts.IgnoreFields(graphdata.BlockedEdge{}, "Lines")); diff != "" || len(tree.Problems) > 0 {
			t.Fatalf("%v -want +got\n%s in\n%s", tree.Problems, diff, encoded)
		}
	})
	if _, err := (graphdata.BlockedEdge{File: "x.yaml", To: "4.1.0", From: "\xff"}).Encode(); err == nil || !strings.HasPrefix(err.Error(), "x.yaml: ") {
		t.Errorf("a text that is not UTF-8: %v", err)
	}
}

// TestEncodeRealTree: the blocked edges of the real tree.
func TestEncodeRealTree(t *testing.T) {
	tree := loadReal(t)
	fsys := treeOf(nil)
	for _, b := range append(tree.Drops, tree.Risks...) {
		encoded := checktest.Must(b.Encode())
		fsys[b.File] = &fstest.MapFile{Data: encoded}
	}
	again := checktest.Must(graphdata.Load(t.Context(), fsys, graphdata.LoadOptions{}))
	for _, list := range [][]graphdata.BlockedEdge{tree.Drops, tree.Risks, again.Drops, again.Risks} {
		for i := range list {
			list[i].Line, list[i].Lines = 0, nil
		}
	}
	checktest.Same(t, tree.Drops, again.Drops)
	checktest.Same(t, tree.Risks, again.Risks)
}

// TestCompileFrom: what means the same to Go and to the update service compiles,
// the rest does not.
func TestCompileFrom(t *testing.T) {
	const differs = "means something else in the update service's regular expressions"
	for _, c := range []struct{ text, fault string }{
		{`.*`, ""}, {`4[.]2[.](1|2)[+].*`, ""}, {`^4[.]29[.][0-9]+[+]amd64$`, ""}, {`(?i)RC`, ""}, {`\d{1,2}[.]\w+\b`, ""},
		{`a{3}b{3,}c{3,4}`, ""}, {`(?P<a>4)(?P<b>5)`, ""}, {`[]a]`, ""}, {`[^]a-]`, ""}, {`[[:alpha:]_]`, ""}, {`[a\-\-b]`, ""}, {`\[a&&b\]`, ""}, {`4}`, ""}, {`\{`, ""}, {`a--b`, ""}, {`[a]--[b]`, ""},
		{`[a&&b]`, `"&&" ` + differs}, {`[a[b]]`, `"[" ` + differs}, {`[[:]`, `"[" ` + differs}, {`[[:]4[&&]`, `"[" ` + differs}, {`[+--]`, `"--" ` + differs}, {`[a--b]`, "invalid character class range"}, {`[^]~~]`, `"~~" ` + differs}, {`[[:alpha:]&&a]`, `"&&" ` + differs},
		{`\<4`, `"\\<" ` + differs}, {`4\>`, `"\\>" ` + differs}, {`\b{start}`, `"\\b{" ` + differs},
		{`{`, `"{" ` + differs}, {`a{`, `"{" ` + differs}, {`a{,3}`, `"{" ` + differs},
		{`\Q4.2\E`, `"\\Q" ` + differs}, {`\101`, `"\\1" ` + differs},
		{`a**`, "invalid nested repetition operator"}, {`a{1001}`, "invalid repeat count"}, {`\u0041`, "invalid escape sequence"}, {`(?x)a`, "invalid or unsupported Perl syntax"}, {`a(?=b)`, "invalid or unsupported Perl syntax"}, {`(`, "missing closing )"}, {`[`, "missing closing ]"}, {`\`, "trailing backslash"},
		{`(?P<a>4)(?P<a>5)`, `"(?P<a>" ` + differs},
		{strings.Repeat("a", 1024), ""},
		{strings.Repeat("a", 1025), "more than 1024 bytes of a regular expression"},
	} {
		re, err := graphdata.CompileFrom(c.text)
		switch {
		case c.fault == "" && err != nil:
			t.Errorf("%.50s: %v", c.text, err)
		case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%.50s: %v, want %s", c.text, err, c.fault)
		case (re == nil) == (err == nil):
			t.Errorf("%.50s: %v and %v", c.text, re, err)
		}
	}
	if _, err := graphdata.CompileFrom(strings.Repeat("a", 1025)); !errors.As(err, new(*graphdata.LimitError)) {
		t.Error(err)
	}
}

// TestFromMatches: the table of the update service's documentation.
func TestFromMatches(t *testing.T) {
	for _, c := range []struct {
		from, version string
		want          bool
	}{
		{`4[.]2[.]1`, "4.2.10+amd64", true},
		{`^4[.]2[.]1$`, "4.2.10+amd64", false},
		{`^4[.]2[.]10$`, "4.2.10+amd64", false},
		{`4[.]2[.]10[+].*`, "4.2.10+amd64", true},
		{`[+]s390x`, "4.2.10+amd64", false},
		{`.*`, "4.2.10+amd64", true},
		{`2[.]10`, "4.2.10+amd64", true},
		{`4[.]2[.]10`, "14.2.10+amd64", true},
		{`^4`, "14.2.10+amd64", false},
		{`4.18.*`, "4.14.18+amd64", true},
	} {
		re := checktest.Must(graphdata.CompileFrom(c.from))
		checktest.Equal(t, c.want, re.MatchString(c.version), "%s against %s", c.from, c.version)
	}
}

// FuzzCompileFrom: a text that compiles has none of the constructs with another
// meaning where they cannot be escaped or quoted, and no text panics.
func FuzzCompileFrom(f *testing.F) {
	for _, text := range []string{`4[.]2[.](1|2)[+].*$`, `[^]a&&b]`, `a{,2}\b{`, `[[:alpha:]--[x]]`, `\Qa\E`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		re, err := graphdata.CompileFrom(text)
		if err != nil {
			return
		}
		checktest.Equal(t, text, re.String(), "%q compiles to %q", text, re)
		if !strings.ContainsAny(text, `\[`) && strings.Contains(text, "{") {
			for _, part := range strings.Split(text, "{")[1:] {
				if part == "" || part[0] < '0' || part[0] > '9' {
					t.Fatalf("%q compiles, though its brace is no repetition", text)
				}
			}
		}
	})
}
