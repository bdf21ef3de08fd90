package policyengine_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/clusterupdate/clusterupdate/graph/policyengine"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// TestPaths: which paths there are, under which prefix, and for which methods.
func TestPaths(t *testing.T) {
	all := policyengine.Options{
		GraphData:  func() (io.ReadSeeker, time.Time, error) { return strings.NewReader("x"), start, nil },
		Signatures: fstest.MapFS{},
	}
	for _, tt := range []struct {
		name, prefix, method, path string
		code                       int
	}{
		{"graph", "/api/upgrades_info", "GET", "/api/upgrades_info/graph?channel=c", 200},
		{"first version", "/api/upgrades_info", "GET", "/api/upgrades_info/v1/graph?channel=c", 200},
		{"openapi", "/api/upgrades_info", "GET", "/api/upgrades_info/openapi", 200},
		{"first openapi", "/api/upgrades_info", "GET", "/api/upgrades_info/v1/openapi", 200},
		{"archive", "/api/upgrades_info", "GET", "/api/upgrades_info/graph-data", 200},
		{"slashes in the prefix", "api/", "GET", "/api/graph?channel=c", 200},
		{"slash alone", "/", "GET", "/graph?channel=c", 200},
		{"without the prefix", "/api", "GET", "/graph?channel=c", 404},
		{"trailing slash", "/api", "GET", "/api/graph/?channel=c", 404},
		{"two slashes", "/api", "GET", "/api//graph?channel=c", 404},
		{"second version", "/api", "GET", "/api/v2/graph?channel=c", 404},
		{"prefix alone", "/api", "GET", "/api", 404},
		{"part of a signature", "/api", "GET", "/api/signatures/sha256=a", 404},
		{"below a signature", "/api", "GET", "/api/signatures/sha256=a/b/c", 404},
		{"head", "/api", "HEAD", "/api/graph?channel=c", 200},
		{"head of a 404", "/api", "HEAD", "/api/v2", 404},
		{"post", "/api", "POST", "/api/graph?channel=c", 405},
		{"delete", "/api", "DELETE", "/api/v1/openapi", 405},
		{"options", "/api", "OPTIONS", "/api/graph", 405},
		{"options elsewhere", "/api", "OPTIONS", "/api/other", 404},
		{"post elsewhere", "/api", "POST", "/api/other", 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := all
			o.Prefix = tt.prefix
			got := serve(t, o, sample(t)).ask(t, tt.method, tt.path)
			allow := ""
			if tt.code == 405 {
				allow = "GET, HEAD"
			}
			if got.code != tt.code || got.Get("Allow") != allow {
				t.Errorf("%d, Allow %q: %s", got.code, got.Get("Allow"), got.body)
			}
			if tt.code >= 400 && got.body != "" {
				t.Errorf("a body: %s", got.body)
			}
			if tt.code >= 400 && got.Get("Cache-Control") != "no-store" {
				t.Errorf("Cache-Control is %q", got.Get("Cache-Control"))
			}
			checktest.Has(t, got.Get("Vary"), "Origin")
		})
	}
	small := serve(t, policyengine.Options{}, sample(t))
	for _, path := range []string{"/api/graph-data", "/api/signatures/sha256=" + strings.Repeat("a", 64) + "/signature-1"} {
		if got := small.get(t, path); got.code != 404 || got.body != "" {
			t.Errorf("%s: %d %s", path, got.code, got.body)
		}
	}
}

// TestOrigins: what scripts of other origins may do.
func TestOrigins(t *testing.T) {
	const asks, wants = "Access-Control-Request-Method", "Access-Control-Request-Headers"
	for _, tt := range []struct {
		name, allow, method, path string
		headers                   []string
		code                      int
		origin, body              string
	}{
		{"no origin", "", "GET", "/api/graph?channel=c", nil, 200, "", nothing},
		{"any", "", "GET", "/api/graph?channel=c", []string{"Origin", "https://a.example"}, 200, "https://a.example", nothing},
		{"any, of an error", "", "GET", "/api/graph", []string{"Origin", "https://a.example"}, 400, "https://a.example", failed("missing_params", "mandatory client parameters missing: channel")},
		{"the one", "https://a.example", "GET", "/api/graph?channel=c", []string{"Origin", "https://a.example"}, 200, "https://a.example", nothing},
		{"another", "https://a.example", "GET", "/api/graph?channel=c", []string{"Origin", "https://b.example"}, 200, "", nothing},
		{"before get", "", "OPTIONS", "/api/graph", []string{"Origin", "https://a.example", asks, "GET"}, 200, "https://a.example", ""},
		{"before head", "", "OPTIONS", "/elsewhere", []string{"Origin", "https://a.example", asks, "HEAD"}, 200, "https://a.example", ""},
		{"before post", "", "OPTIONS", "/api/graph", []string{"Origin", "https://a.example", asks, "POST"}, 400, "https://a.example", "Requested method is not allowed"},
		{"before headers", "", "OPTIONS", "/api/graph", []string{"Origin", "https://a.example", asks, "GET", wants, "X-A"}, 400, "https://a.example", "One or more request headers are not allowed"},
		{"before another's", "none", "OPTIONS", "/api/graph", []string{"Origin", "https://a.example", asks, "GET"}, 400, "", "Origin is not allowed to make this request"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := serve(t, policyengine.Options{AllowOrigin: tt.allow}, sample(t)).ask(t, tt.method, tt.path, tt.headers...)
			if got.code != tt.code || got.Get("Access-Control-Allow-Origin") != tt.origin || got.body != tt.body {
				t.Errorf("%d for %q: %s", got.code, got.Get("Access-Control-Allow-Origin"), got.body)
			}
			if tt.code >= 400 && got.Get("Cache-Control") != "no-store" {
				t.Errorf("Cache-Control is %q", got.Get("Cache-Control"))
			}
			methods := ""
			if tt.method == "OPTIONS" && tt.code == 200 {
				methods = "GET, HEAD"
			}
			checktest.Equal(t, methods, got.Get("Access-Control-Allow-Methods"), "methods")
			vary := "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
			if tt.method == "GET" && tt.code == 200 {
				vary = "Accept, Accept-Encoding, Origin"
			}
			checktest.Equal(t, vary, got.Get("Vary"), "Vary")
		})
	}
}

// TestOptions: options that cannot work are refused, with the name of the field.
func TestOptions(t *testing.T) {
	for want, o := range map[string]policyengine.Options{
		"policyengine.Options: MaxAge is negative: -1s":                  {MaxAge: -time.Second},
		"policyengine.Options: MaxStale is negative: -1s":                {MaxStale: -time.Second},
		"policyengine.Options: MaxCached is negative: -1":                {MaxCached: -1},
		"policyengine.Options: Prefix is not a path":                     {Prefix: "/a?b"},
		"policyengine.Options: DefaultArch is not an architecture":       {DefaultArch: "AMD64"},
		"policyengine.RefresherOptions: Interval is negative: -1s":       {},
		"policyengine.RefresherOptions: a handler and Load are required": {},
	} {
		var err error
		if strings.Contains(want, "Refresher") {
			h, _ := policyengine.New(o)
			refresher := policyengine.RefresherOptions{}
			if strings.Contains(want, "Interval") {
				refresher = policyengine.RefresherOptions{Interval: -time.Second, Load: noLoad}
			}
			_, err = policyengine.NewRefresher(h, refresher)
		} else {
			_, err = policyengine.New(o)
		}
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestHead: HEAD is GET without a body.
func TestHead(t *testing.T) {
	s := serve(t, policyengine.Options{}, sample(t))
	for _, path := range []string{"/api/graph?channel=candidate-1.1", "/api/graph?channel=none", "/api/graph", "/api/openapi"} {
		get, head := s.get(t, path, "Accept-Encoding", "gzip"), s.ask(t, http.MethodHead, path, "Accept-Encoding", "gzip")
		get.Del("Date")
		head.Del("Date")
		if head.body != "" || head.code != get.code || get.body == "" {
			t.Errorf("%s: %d %q", path, head.code, head.body)
		}
		checktest.SameIn(t, fmt.Sprint(path), get.Header, head.Header)
	}
}

// TestDefaultArch: a request that names no architecture gets the graph of the default.
func TestDefaultArch(t *testing.T) {
	s := serve(t, policyengine.Options{DefaultArch: "s390x"}, sample(t))
	if got := s.get(t, candidate); strings.Count(got.body, `"payload"`) != 1 {
		t.Errorf("the default architecture: %s", got.body)
	}
}

// document is what of an OpenAPI document is looked at.
type document struct {
	OpenAPI string `json:"openapi"`
	Paths   map[string]struct {
		Get struct {
			Parameters []struct {
				Name, In string
				Required bool
			}
			Responses map[string]struct {
				Content map[string]struct{ Schema json.RawMessage }
			}
		}
	}
	Components struct {
		Schemas map[string]struct {
			Pattern    string
			Required   []string
			Properties map[string]json.RawMessage
		}
	}
}

// TestOpenAPI: the document is JSON, under the prefix, and says what is served.
func TestOpenAPI(t *testing.T) {
	s := serve(t, policyengine.Options{Prefix: "/api/upgrades_info", Mandatory: []string{"id", "token", "id"}}, nil)
	got := s.get(t, "/api/upgrades_info/v1/openapi")
	var d document
	if err := json.Unmarshal([]byte(got.body), &d); err != nil || got.code != 200 || got.Get("Content-Type") != plain {
		t.Fatalf("%d %v %v", got.code, got.Header, err)
	}
	if d.OpenAPI != "3.0.3" || len(d.Paths) != 2 {
		t.Errorf("%s, %d paths", d.OpenAPI, len(d.Paths))
	}
	for _, path := range []string{"/api/upgrades_info/graph", "/api/upgrades_info/v1/graph"} {
		required := map[string]bool{}
		for _, p := range d.Paths[path].Get.Parameters {
			required[p.Name] = p.Required
			checktest.Equal(t, "query", p.In, "%s is in", p.Name)
		}
		checktest.Same(t, map[string]bool{"channel": true, "arch": false, "id": true, "version": false, "token": true}, required)
		for code, types := range map[string]int{"200": 2, "304": 0, "400": 1, "406": 1, "414": 1, "500": 1, "503": 1} {
			if r, ok := d.Paths[path].Get.Responses[code]; !ok || len(r.Content) != types {
				t.Errorf("%s: %d types", code, len(r.Content))
			}
		}
	}
	version := regexp.MustCompile(d.Components.Schemas["Version"].Pattern)
	for text, ok := range map[string]bool{"4.1.0": true, "4.1.0-rc.0": true, "4.1.0-0.ci.2020": true, "4.1.0+amd64": true, "4.1.0-rc.01": false, "4.1": false, "v4.1.0": false, "04.1.0": false} {
		checktest.Equal(t, ok, version.MatchString(text), "%s", text)
	}
	for _, kind := range []string{"invalid_content_type", "missing_params", "invalid_params", "failed_upstream_fetch", "failed_plugin_execution"} {
		checktest.Has(t, got.body, `"`+kind+`"`)
	}
	// What is referred to is there, and what is served is what is described.
	for _, name := range regexp.MustCompile(`#/components/schemas/(\w+)`).FindAllStringSubmatch(got.body, -1) {
		if _, ok := d.Components.Schemas[name[1]]; !ok {
			t.Errorf("no schema %s", name[1])
		}
	}
	s.Set(sample(t))
	var g map[string]json.RawMessage
	checktest.OK(t, json.Unmarshal([]byte(s.get(t, "/api/upgrades_info/graph?channel=candidate-1.1&id&token").body), &g))
	var fields []string
	for name := range g {
		fields = append(fields, name)
	}
	slices.Sort(fields)
	want := d.Components.Schemas["Graph"].Required
	slices.Sort(want)
	checktest.Same(t, want, fields)
	if strings.Contains(got.body, `"minimum": 1`) || !strings.Contains(got.body, `"minimum": 0`) {
		t.Error("the first node is 0")
	}
}
