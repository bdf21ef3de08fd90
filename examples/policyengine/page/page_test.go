package page_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/clusterupdate/clusterupdate/examples/policyengine/page"
	"github.com/clusterupdate/clusterupdate/examples/policyengine/source"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

const hostile = `<script>alert(1)</script>"'&`

// snapshot is a graph of one channel with a risk whose texts are hostile, and an
// update that is blocked.
func snapshot(t *testing.T) *graphdata.Snapshot {
	t.Helper()
	tree := checktest.Get(graphdata.Load(t.Context(), fstest.MapFS{
		"version":                       {Data: []byte("1.1.0\n")},
		"raw/metadata.json":             {Data: []byte("{}")},
		"channels/fast-4.30.yaml":       {Data: []byte("name: fast-4.30\nversions: [4.29.8, 4.30.0, 4.30.1, 4.30.2]\n")},
		"blocked-edges/4.30.1-Bad.yaml": {Data: []byte("to: 4.30.1\nfrom: 4[.]29[.].*\nurl: https://docs.example/bad\nname: Bad\nmessage: " + fmt.Sprintf("%q", hostile) + "\nmatchingRules:\n- type: PromQL\n  promql:\n    promql: up < 1\n")},
		"blocked-edges/4.30.2.yaml":     {Data: []byte("to: 4.30.2\nfrom: 4[.]29[.].*\n")},
	}, graphdata.LoadOptions{}))(t)
	release := func(version string, previous ...string) graphdata.Release {
		return graphdata.Release{Version: version, Arch: "amd64", Image: "registry.example/r@sha256:" + version, Previous: previous, Source: hostile}
	}
	s := checktest.Get(graphdata.Build(tree, []graphdata.Release{
		release("4.29.8"), release("4.30.0", "4.29.8"), release("4.30.1", "4.29.8", "4.30.0"), release("4.30.2", "4.29.8", "4.30.1"),
	}, graphdata.BuildOptions{}))(t)
	return s
}

// get asks a handler with a state for a page.
func get(t *testing.T, s source.Last, url string) (*httptest.ResponseRecorder, string) {
	t.Helper()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	s.Loaded = now.Add(-90 * time.Second)
	h := page.New(page.Options{State: func() source.Last { return s }, Graph: "/v1/graph", Now: func() time.Time { return now }})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", url, nil))
	if policy := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; style-src 'self'; script-src 'self';") || strings.Contains(policy, "unsafe") {
		t.Errorf("%s: policy %s", url, policy)
	}
	return w, w.Body.String()
}

// TestPage: pages that there are, with what they say, and without what they must not.
func TestPage(t *testing.T) {
	s := source.Last{Snapshot: snapshot(t), Revision: "cafe", Findings: []graphdata.Problem{
		{File: "blocked-edges/4.30.1-Bad.yaml", Line: 2, Message: "matches nothing"}, {File: "channels/a.yaml", Message: "4.30.10 is there twice"},
		{File: "channels/fast-4.30.yaml", Message: "Release 4.29.8 present in fast-4.30 " + hostile}, {File: "channels/b.yaml", Message: "no versions"},
	}}
	for _, tt := range []struct {
		name, url string
		code      int
		want      []string
	}{
		{"the first channel and version", "/", 200, []string{
			"<code>cafe</code>", "1m30s, loaded 2030-01-02 03:02:35 UTC", "Updates of 4.29.8", "4 releases, 4 updates",
			`<a href="/?arch=amd64&amp;channel=fast-4.30" aria-current="true">fast-4.30</a>`, "4.29.8 → 4.30.1, conditional: Bad: why", "<td>Conditional</td><td>Bad</td>",
			`href="/v1/graph?arch=amd64&amp;channel=fast-4.30"`, "<h3>Blocked</h3>",
		}},
		{"a conditional update", "/?channel=fast-4.30&arch=amd64&version=4.29.8&to=4.30.1", 200, []string{
			"&lt;script&gt;alert(1)&lt;/script&gt;", `<a href="https://docs.example/bad" rel="noreferrer">`, "<code>PromQL: up &lt; 1</code>", "<code>blocked-edges/4.30.1-Bad.yaml:2</code>",
		}},
		{"findings", "/?version=4.29.8&to=4.30.1", 200, []string{"Findings about 4.29.8 and 4.30.1</h2>\n<ul class=\"problems\"><li><code>blocked-edges/4.30.1-Bad.yaml:2: matches nothing</code></li>\n<li><code>channels/fast-4.30.yaml: Release 4.29.8 present"}},
		{"a way", "/?version=4.30.0&to=4.30.2", 200, []string{
			"<h3>Way</h3><p>4.30.0 cannot be updated to 4.30.2 (NoEdge): ", "; only via 4.30.0 -&gt; 4.30.1 -&gt; 4.30.2</p>",
			`data-show="update">4.30.0 → 4.30.1</a> <span class="kind">Recommended</span>`, "<option selected>4.30.2</option>",
		}},
		{"a way over risks", "/?version=4.29.8&to=4.30.2", 200, []string{`data-show="update">4.30.1 → 4.30.2</a>`}},
		{"a blocked update", "/?version=4.29.8&to=4.30.2", 200, []string{"<strong>Removed</strong> by from", "<code>blocked-edges/4.30.2.yaml:2</code>"}},
		{"no such update", "/?version=4.30.2&to=4.29.8", 404, []string{"There is no update from 4.30.2 to 4.29.8."}},
		{"no such channel", "/?channel=%3Cscript%3Ealert(1)%3C/script%3E", 404, []string{"There is no channel &#34;&lt;script&gt;alert(1)"}},
		{"no such architecture", "/?arch=vax", 404, []string{"There is no architecture &#34;vax&#34; here."}},
		{"no such version", "/?version=9.9.9", 404, []string{"There is no version &#34;9.9.9&#34; here.", "Updates of 4.29.8"}},
		{"a table alone", "/updates?channel=fast-4.30&arch=amd64", 200, []string{"4 updates", "<td>Conditional</td><td>Bad</td>", "Back to the picture"}},
		{"style", "/page/page.css", 200, []string{"prefers-color-scheme: dark"}},
		{"script", "/page/page.js", 200, []string{"use strict"}},
		{"nothing", "/page/", 404, nil},
		{"nothing else", "/index.html", 404, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, body := get(t, s, tt.url)
			checktest.Equal(t, tt.code, w.Code, "status")
			for _, want := range tt.want {
				checktest.Has(t, body, want)
			}
			for _, bad := range []string{"<script>", "4.30.10", "no versions", " style=", " onclick=", "ZgotmplZ"} {
				if strings.Contains(body, bad) {
					t.Errorf("the page has %q", bad)
				}
			}
		})
	}
}

// TestStates: before the first graph, and after a load that failed.
func TestStates(t *testing.T) {
	problem := graphdata.Problem{File: "channels/a.yaml", Line: 2, Message: hostile}
	w, body := get(t, source.Last{Err: errors.New(hostile), Problems: []graphdata.Problem{problem}}, "/")
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "10" {
		t.Errorf("status %d, %v", w.Code, w.Header())
	}
	for _, want := range []string{"There is no graph yet.", "The last load failed.", "<code>channels/a.yaml:2: &lt;script&gt;"} {
		if !strings.Contains(body, want) || strings.Contains(body, "<script>") {
			t.Errorf("the page lacks %q:\n%s", want, body)
		}
	}
	w, body = get(t, source.Last{Snapshot: snapshot(t), Err: errors.New("no"), Problems: make([]graphdata.Problem, 130)}, "/")
	if w.Code != 200 || !strings.Contains(body, "What was loaded before is shown.") || !strings.Contains(body, "And 30 more.") {
		t.Errorf("%d: %s", w.Code, body)
	}
	empty := checktest.Get(graphdata.Build(&graphdata.Tree{}, nil, graphdata.BuildOptions{}))(t)
	if w, body = get(t, source.Last{Snapshot: empty}, "/"); w.Code != 200 || !strings.Contains(body, "No releases") {
		t.Errorf("%d: %s", w.Code, body)
	}
}

// TestMethods: nothing is changed by the page.
func TestMethods(t *testing.T) {
	h := page.New(page.Options{State: func() source.Last { return source.Last{} }})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/", nil))
	checktest.Equal(t, http.StatusMethodNotAllowed, w.Code, "status")
}
