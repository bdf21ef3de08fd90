package policyengine_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph/policyengine"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

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
