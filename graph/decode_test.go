package graph_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// twoNodes stands around what a case is about.
const twoNodes = `"nodes":[{"version":"4.1.0","payload":"a"},{"version":"4.1.1","payload":"b"}]`

func TestDecodeInvalid(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string
		compat           string // what Compat says; empty: accepted
	}{
		{"array", `[]`, "expected an object, found an array", "cannot unmarshal array"},
		{"string", `"x"`, "expected an object, found a string", "cannot unmarshal string"},
		{"empty", ``, "line 1: unexpected end of JSON input", "unexpected end of JSON input"},
		{"trailing", "{}\n{}", "line 2: invalid character '{' after top-level value", "after top-level value"},
		{"trailing zero byte", "{}\x00", "line 1: invalid character '\\x00' after top-level value", "after top-level value"},
		{"cut", `{"nodes":[{"version":"4.1.0"`, "nodes[0] (line 1): unexpected end of JSON input", "unexpected end of JSON input"},
		{"not JSON", "{\n\"nodes\": nodes}", "nodes (line 2): invalid character 'o' in literal null (expecting 'u')", "in literal null"},
		{"bad literal in unknown", `{"x":trux}`, "x (line 1): invalid character 'x' in literal true (expecting 'e')", "in literal true"},
		{"control character", "{\"a\":\"\x01\"}", `a (line 1): invalid character '\x01' in string literal`, "in string literal"},
		{"bad escape", `{"a":"\q"}`, `a (line 1): invalid character 'q' in string escape code`, "in string escape code"},
		{"bad number", `{"a":-}`, `a (line 1): invalid character '}' in numeric literal`, "in numeric literal"},
		{"key that is not a string", `{1:2}`, "line 1: invalid character '1' looking for beginning of object key string", "object key string"},
		{"no colon", `{"nodes" []}`, "line 1: invalid character '[' after object key", "after object key"},
		{"no comma in an object", `{"a":1 "b":2}`, "line 1: invalid character '\"' after object key:value pair", "after object key"},
		{"no comma in an array", `{"a":[1 2]}`, "a (line 1): invalid character '2' after array element", "after array element"},
		{"no comma between edges", `{` + twoNodes + `,"edges":[[0,1][0,1]]}`, "edges[0] (line 1): invalid character '[' after array element", "after array element"},
		{"no comma in an edge", `{` + twoNodes + `,"edges":[[0 1]]}`, "edges[0] (line 1): invalid character '1' after array element", "after array element"},
		{"bad number in a long edge", `{` + twoNodes + `,"edges":[[0,1,-]]}`, "edges[0] (line 1): invalid character ']' in numeric literal", "in numeric literal"},
		{"bad literal for an edge", `{` + twoNodes + `,"edges":[nul]}`, "edges[0] (line 1): invalid character ']' in literal null (expecting 'l')", "in literal null"},
		{"no digits after a point", `{"a":1.}`, "a (line 1): invalid character '}' after decimal point in numeric literal", "after decimal point"},
		{"no digits in an exponent", `{"a":1e+}`, "a (line 1): invalid character '}' in exponent of numeric literal", "in exponent"},
		{"endless text", `{"a":"b\"`, "a (line 1): unexpected end of JSON input", "unexpected end of JSON input"},
		{"endless key", `{"a`, "line 1: unexpected end of JSON input", "unexpected end of JSON input"},
		{"bad value in metadata", `{"nodes":[{"metadata":{"a":"\q"}}]}`, "nodes[0].metadata.a (line 1): invalid character 'q' in string escape code", "in string escape code"},
		{"bad other value in metadata", `{"nodes":[{"metadata":{"a":[1,]}}]}`, "nodes[0].metadata.a (line 1): invalid character ']' looking for beginning of value", "looking for beginning of value"},
		{"leading zero index", `{` + twoNodes + `,"edges":[[0,01]]}`, `edges[0] (line 1): invalid character '1' after array element`, "after array element"},

		{"schema 2", `{"version":2}`, "version: schema version 2 is not known, only 1 is", ""},
		{"schema text", `{"version":"1"}`, "version: expected a number, found a string", ""},
		{"schema fraction", `{"version":1.0}`, "version: expected an integer, found 1.0", ""},

		{"nodes object", `{"nodes":{}}`, "nodes: expected an array, found an object", "cannot unmarshal object"},
		{"no version", `{"nodes":[{"payload":"a"}]}`, "nodes[0].version: missing", ""},
		{"version in another case", `{"nodes":[{"Version":"4.1.0","payload":"a"}]}`, `nodes[0]: key "Version" differs from "version" only by case`, ""},
		{"null version", `{"nodes":[{"version":null,"payload":"a"}]}`, "nodes[0].version: Version string empty", "Version string empty"},
		{"empty version", `{"nodes":[{"version":"","payload":"a"}]}`, "nodes[0].version: Version string empty", "Version string empty"},
		{"two parts", `{"nodes":[{"version":"4.1.0","payload":"a"},{"version":"4.1","payload":"a"}]}`, `nodes[1].version: "4.1": invalid semantic version`, "invalid semantic version"},
		{"leading v", `{"nodes":[{"version":"v4.1.0","payload":"a"}]}`, `nodes[0].version: "v4.1.0": invalid characters in version`, "invalid characters"},
		{"leading zero", `{"nodes":[{"version":"04.1.0","payload":"a"}]}`, `nodes[0].version: "04.1.0": version segment starts with 0`, "starts with 0"},
		{"version number", `{"nodes":[{"version":4,"payload":"a"}]}`, "nodes[0].version: expected a string, found a number", "cannot unmarshal number"},
		{"no payload", `{"nodes":[{"version":"4.1.0"}]}`, "nodes[0].payload: missing", ""},
		{"payload number", `{"nodes":[{"version":"4.1.0","payload":1}]}`, "nodes[0].payload: expected a string, found a number", "cannot unmarshal number"},
		{"metadata array", `{"nodes":[{"version":"4.1.0","payload":"a","metadata":[]}]}`, "nodes[0].metadata: expected an object, found an array", "cannot unmarshal array"},
		{"null node", `{"nodes":[null]}`, "nodes[0]: null is not a node", ""},
		{"duplicate version", `{"nodes":[{"version":"4.1.0","payload":"a"},{"version":"4.1.1","payload":"a"},{"version":"4.1.0","payload":"b"}]}`,
			`nodes[2].version: "4.1.0" is the version of nodes[0] already`, ""},

		{"null edge", `{` + twoNodes + `,"edges":[[0,1],null]}`, "edges[1]: expected 2 fields, found 0", "expected 2 fields, found 0"},
		{"empty edge", `{` + twoNodes + `,"edges":[[]]}`, "edges[0]: expected 2 fields, found 0", "expected 2 fields, found 0"},
		{"short edge", `{` + twoNodes + `,"edges":[[1]]}`, "edges[0]: expected 2 fields, found 1", "expected 2 fields, found 1"},
		{"long edge", `{` + twoNodes + `,"edges":[[0,0,"x",0]]}`, "edges[0]: expected 2 fields, found 4", "cannot unmarshal string"},
		{"edge object", `{` + twoNodes + `,"edges":[{}]}`, "edges[0]: expected an array, found an object", "cannot unmarshal object"},
		{"index fraction", `{` + twoNodes + `,"edges":[[1.0,1]]}`, "edges[0]: expected an integer, found 1.0", "cannot unmarshal number 1.0"},
		{"index text", `{` + twoNodes + `,"edges":[["1",1]]}`, "edges[0]: expected a number, found a string", "cannot unmarshal string"},
		{"index null", `{` + twoNodes + `,"edges":[[null,1]]}`, "edges[0]: expected a number, found null", ""},
		{"index too high", `{` + twoNodes + `,"edges":[[0,1],[1,2]]}`, "edges[1]: index 2 is out of range: the graph has 2 nodes", ""},
		{"origin too high", `{"edges":[[0,1],[5,6]],` + twoNodes + `}`, "edges[1]: index 5 is out of range: the graph has 2 nodes", ""},
		{"index negative", `{` + twoNodes + `,"edges":[[0,1],[0,-3]]}`, "edges[1]: index -3 is out of range: the graph has 2 nodes", ""},
		{"index huge", `{` + twoNodes + `,"edges":[[0,99999999999999999999]]}`, "edges[0]: index 99999999999999999999 is out of range: the graph has 2 nodes", "cannot unmarshal number"},

		{"key twice at top", `{"nodes":[],"edges":[],"nodes":[]}`, `key "nodes" comes twice`, ""},
		{"key twice in node", `{"nodes":[{"version":"4.1.0","payload":"a","payload":"b"}]}`, `nodes[0]: key "payload" comes twice`, ""},
		{"key twice by escape", `{"nodes":[{"version":"4.1.0","payload":"a","p\u0061yload":"b"}]}`, `nodes[0]: key "payload" comes twice`, ""},
		{"key twice in metadata", `{"nodes":[{"version":"4.1.0","payload":"a","metadata":{"url":"x","url":"x"}}]}`, `nodes[0].metadata: key "url" comes twice`, ""},
		{"key twice in the unknown", `{"other":{"a":[{"b":1,"b":1}]}}`, `other: key "b" comes twice`, ""},
		{"key twice of many", `{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"c":0}`, `key "c" comes twice`, ""},

		{"conditional from number", `{` + twoNodes + `,"conditionalEdges":[{"edges":[{"from":1,"to":"4.1.1"}]}]}`, "conditionalEdges[0].edges[0].from: expected a string, found a number", "cannot unmarshal number"},
		{"risk name array", `{` + twoNodes + `,"conditionalEdges":[{},{"risks":[{},{"name":[]}]}]}`, "conditionalEdges[1].risks[1].name: expected a string, found an array", "cannot unmarshal array"},
		{"rule type bool", `{"conditionalEdges":[{"risks":[{"matchingRules":[{"type":true}]}]}]}`, "conditionalEdges[0].risks[0].matchingRules[0].type: expected a string, found a boolean", "cannot unmarshal bool"},
		{"promql text", `{"conditionalEdges":[{"risks":[{"matchingRules":[{"promql":"up"}]}]}]}`, "conditionalEdges[0].risks[0].matchingRules[0].promql: expected an object, found a string", "cannot unmarshal string"},
		{"Version of the schema", `{"VERSION":1}`, `key "VERSION" differs from "version" only by case`, ""},
		{"Nodes", `{"Nodes":[{"version":"4.1.0","payload":"a"}],"NODES":1}`, `key "Nodes" differs from "nodes" only by case`, "cannot unmarshal number"},
		{"Edges", `{"Edges":[]}`, `key "Edges" differs from "edges" only by case`, ""},
		{"conditionaledges", `{` + twoNodes + `,"conditionaledges":[]}`, `key "conditionaledges" differs from "conditionalEdges" only by case`, ""},
		{"a letter that folds", `{"edge\u017f":[]}`, "key \"edge\u017f\" differs from \"edges\" only by case", ""},
		{"Payload beside payload", `{"nodes":[{"version":"4.1.0","payload":"a","Payload":"b"}]}`, `nodes[0]: key "Payload" differs from "payload" only by case`, ""},
		{"Metadata", `{"nodes":[{"version":"4.1.0","payload":"a","Metadata":{}}]}`, `nodes[0]: key "Metadata" differs from "metadata" only by case`, ""},
		{"Edges of an entry", `{"conditionalEdges":[{"Edges":[]}]}`, `conditionalEdges[0]: key "Edges" differs from "edges" only by case`, ""},
		{"Risks of an entry", `{"conditionalEdges":[{},{"RISKS":[]}]}`, `conditionalEdges[1]: key "RISKS" differs from "risks" only by case`, ""},
		{"From", `{"conditionalEdges":[{"edges":[{"From":"4.1.0","to":"4.1.1"}]}]}`, `conditionalEdges[0].edges[0]: key "From" differs from "from" only by case`, ""},
		{"TO", `{"conditionalEdges":[{"edges":[{"from":"4.1.0","to":"4.1.1","TO":"4.1.1"}]}]}`, `conditionalEdges[0].edges[0]: key "TO" differs from "to" only by case`, ""},
		{"Url", `{"conditionalEdges":[{"risks":[{"Url":"u"}]}]}`, `conditionalEdges[0].risks[0]: key "Url" differs from "url" only by case`, ""},
		{"Name", `{"conditionalEdges":[{"risks":[{"Name":"u"}]}]}`, `conditionalEdges[0].risks[0]: key "Name" differs from "name" only by case`, ""},
		{"Message", `{"conditionalEdges":[{"risks":[{"Message":"u"}]}]}`, `conditionalEdges[0].risks[0]: key "Message" differs from "message" only by case`, ""},
		{"matchingrules", `{"conditionalEdges":[{"risks":[{"matchingrules":[]}]}]}`, `conditionalEdges[0].risks[0]: key "matchingrules" differs from "matchingRules" only by case`, ""},
		{"Type", `{"conditionalEdges":[{"risks":[{"matchingRules":[{"Type":"Always"}]}]}]}`, `conditionalEdges[0].risks[0].matchingRules[0]: key "Type" differs from "type" only by case`, ""},
		{"PromQL", `{"conditionalEdges":[{"risks":[{"matchingRules":[{"type":"PromQL","PromQL":{"promql":"up"}}]}]}]}`, `conditionalEdges[0].risks[0].matchingRules[0]: key "PromQL" differs from "promql" only by case`, ""},
		{"promQL within", `{"conditionalEdges":[{"risks":[{"matchingRules":[{"type":"PromQL","promql":{"promQL":"up"}}]}]}]}`, `conditionalEdges[0].risks[0].matchingRules[0].promql: key "promQL" differs from "promql" only by case`, ""},

		{"no from", `{"conditionalEdges":[{"edges":[{"to":"4.1.1"}]}]}`, "conditionalEdges[0].edges[0].from: missing", ""},
		{"empty from", `{"conditionalEdges":[{"edges":[{"from":"4.1.0","to":"4.1.1"},{"from":"","to":"4.1.1"}]}]}`, "conditionalEdges[0].edges[1].from: missing", ""},
		{"null to", `{"conditionalEdges":[{"edges":[{"from":"4.1.0","to":null}]}]}`, "conditionalEdges[0].edges[0].to: missing", ""},
		{"null pair", `{"conditionalEdges":[{"edges":[null]}]}`, "conditionalEdges[0].edges[0].from: missing", ""},
		{"entries object", `{"conditionalEdges":{}}`, "conditionalEdges: expected an array, found an object", "cannot unmarshal object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, err := graph.Decode(strings.NewReader(tt.text), graph.DecodeOptions{})
			if err == nil || g != nil {
				t.Fatalf("accepted, want %q", tt.want)
			}
			checktest.Same(t, tt.want, err.Error())
			if e := new(graph.DecodeError); !errors.As(err, &e) {
				t.Errorf("%T, want a *DecodeError", err)
			}
			_, err = graph.Decode(strings.NewReader(tt.text), graph.DecodeOptions{Compat: true})
			switch {
			case tt.compat == "" && err != nil:
				t.Errorf("Compat: %v", err)
			case tt.compat != "" && (err == nil || !strings.Contains(err.Error(), tt.compat)):
				t.Errorf("Compat: %v, want %q", err, tt.compat)
			}
		})
	}
}

func TestDecodeAccepts(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       string // as encoded again
	}{
		{"nothing", `{}`, `{"version":1,"nodes":[],"edges":[],"conditionalEdges":[]}`},
		{"null", " null\n", `{"version":1,"nodes":[],"edges":[],"conditionalEdges":[]}`},
		{"nulls", `{"version":null,"nodes":null,"edges":null,"conditionalEdges":null}`, `{"version":1,"nodes":[],"edges":[],"conditionalEdges":[]}`},
		{"metadata of any case", `{"nodes":[{"version":"4.1.0","payload":"a","metadata":{"URL":"x","url":"y"}}]}`,
			`{"version":1,"nodes":[{"version":"4.1.0","payload":"a","metadata":{"URL":"x","url":"y"}}],"edges":[],"conditionalEdges":[]}`},
		{"unknown fields", `{"x":{"y":[1,-2.5e+3,true,false,null,"\u00e9\n"]},"nodes":[{"version":"4.1.0","payload":"a","z":[[]]}]}`,
			`{"version":1,"nodes":[{"version":"4.1.0","payload":"a","metadata":{}}],"edges":[],"conditionalEdges":[]}`},
		{"metadata are kept", `{"nodes":[{"version":"4.1.0","payload":"a","metadata":{"z":"\u003c\"","n": 1.50,"o":{ "b":[ null ],"a":"<"},"":""}}]}`,
			`{"version":1,"nodes":[{"version":"4.1.0","payload":"a","metadata":{"":"","n":1.50,"o":{"a":"<","b":[null]},"z":"<\""}}],"edges":[],"conditionalEdges":[]}`},
		{"edges before nodes, equal ones once", `{"edges":[[1,0],[0,1],[0,1],[1,1]],` + twoNodes + `}`,
			`{"version":1,"nodes":[{"version":"4.1.0","payload":"a","metadata":{}},{"version":"4.1.1","payload":"b","metadata":{}}],"edges":[[0,1],[1,0],[1,1]],"conditionalEdges":[]}`},
		{"builds apart", `{"nodes":[{"version":"4.1.0+a","payload":"a"},{"version":"4.1.0+b","payload":"b"}]}`,
			`{"version":1,"nodes":[{"version":"4.1.0+a","payload":"a","metadata":{}},{"version":"4.1.0+b","payload":"b","metadata":{}}],"edges":[],"conditionalEdges":[]}`},
		{"empty conditional things", `{"conditionalEdges":[null,{},{"edges":null,"risks":[null]},{"edges":[{"from":"x","to":"y"}],"risks":[{"matchingRules":[null,{"type":"PromQL","promql":null},{"promql":{"promql":"up"}}]}]}]}`,
			`{"version":1,"nodes":[],"edges":[],"conditionalEdges":[{"edges":[],"risks":[]},{"edges":[],"risks":[]},` +
				`{"edges":[],"risks":[{"url":"","name":"","message":"","matchingRules":[]}]},` +
				`{"edges":[{"from":"x","to":"y"}],"risks":[{"url":"","name":"","message":"","matchingRules":[{"type":""},{"type":"PromQL"},{"type":"","promql":{"promql":"up"}}]}]}]}`},
		{"invalid UTF-8", "{\"nodes\":[{\"version\":\"4.1.0\",\"payload\":\"a\xff\"}]}",
			`{"version":1,"nodes":[{"version":"4.1.0","payload":"a` + "\ufffd" + `","metadata":{}}],"edges":[],"conditionalEdges":[]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := checktest.Must(graph.Decode(strings.NewReader(tt.text), graph.DecodeOptions{}))
			text := g.AppendJSON(nil)
			checktest.Same(t, tt.want, string(text))
			again, err := graph.DecodeBytes(text, graph.DecodeOptions{})
			if err != nil || !again.Equal(g) {
				t.Errorf("decoded again: equal %v, error %v", again.Equal(g), err)
			}
		})
	}
}

func TestDecodeCompat(t *testing.T) {
	text := `{"Nodes":[{"payload":"z"},{"VERSION":"4.1.0","payload":"a","payload":"b","metadata":{"n":1}},{"version":"4.1.0","payload":"c"}],
		"edges":[[1,0],[1,0],[9,9],[null,1]]}`
	g := checktest.Must(graph.Decode(strings.NewReader(text), graph.DecodeOptions{Compat: true}))
	var got []string
	for _, n := range g.Nodes() {
		got = append(got, n.Version.String()+"="+n.Image)
	}
	checktest.Same(t, []string{"0.0.0=z", "4.1.0=b", "4.1.0=c"}, got)
	checktest.Equal(t, 3, g.EdgeCount(), "edges")
	if v, ok := g.Node(1).Metadata.Get("n"); !ok || v != 1.0 {
		t.Errorf("metadata n is %v, %v", v, ok)
	}
}

func TestDecodeLimits(t *testing.T) {
	text := `{` + twoNodes + `,"edges":[[0,1],[1,0]],"conditionalEdges":[{"edges":[{"from":"4.1.0","to":"4.1.1"}]}]}`
	deep := `{"x":` + strings.Repeat("[", 501) + strings.Repeat("]", 501) + `}`
	for _, tt := range []struct {
		name, text string
		o          graph.DecodeOptions
		want       string
	}{
		{"bytes", text, graph.DecodeOptions{MaxBytes: int64(len(text)) - 1}, fmt.Sprintf("more than %d bytes", len(text)-1)},
		{"bytes suffice", text, graph.DecodeOptions{MaxBytes: int64(len(text))}, ""},
		{"nodes", text, graph.DecodeOptions{MaxNodes: 1}, "nodes[1]: more than 1 nodes"},
		{"edges", text, graph.DecodeOptions{MaxEdges: 1}, "edges[1]: more than 1 edges"},
		{"pairs count as edges", text, graph.DecodeOptions{MaxEdges: 2}, "conditionalEdges[0].edges[0]: more than 2 edges"},
		{"edges suffice", text, graph.DecodeOptions{MaxEdges: 3}, ""},
		{"conditional entries", `{"conditionalEdges":[{},{}]}`, graph.DecodeOptions{MaxConditional: 1}, "conditionalEdges[1]: more than 1 conditional entries"},
		{"edges of an entry", `{"conditionalEdges":[{"edges":[{"from":"a","to":"b"},{"from":"a","to":"b"}]}]}`, graph.DecodeOptions{MaxPairs: 1}, "conditionalEdges[0].edges[1]: more than 1 edges of a conditional entry"},
		{"risks", `{"conditionalEdges":[{"risks":[{},null,{}]}]}`, graph.DecodeOptions{MaxRisks: 2}, "conditionalEdges[0].risks[2]: more than 2 risks of a conditional entry"},
		{"rules", `{"conditionalEdges":[{"risks":[{"matchingRules":[{},{}]}]}]}`, graph.DecodeOptions{MaxRules: 1}, "conditionalEdges[0].risks[0].matchingRules[1]: more than 1 matching rules of a risk"},
		{"metadata keys", `{"nodes":[{"version":"4.1.0","payload":"a","metadata":{"a":"","b":"","c":"","d":""}}]}`, graph.DecodeOptions{MaxKeys: 3}, "nodes[0].metadata: more than 3 keys of an object"},
		{"keys of the unknown", `{"x":[{"a":"","b":""}]}`, graph.DecodeOptions{MaxKeys: 1}, "x: more than 1 keys of an object"},
		{"channels", `{"nodes":[{"version":"4.1.0","payload":"a","metadata":{"` + graph.MetadataChannels + `":"a,,b"}}]}`, graph.DecodeOptions{MaxChannels: 2}, "nodes[0].metadata." + graph.MetadataChannels + ": more than 2 channels of a release"},
		{"payload's text", `{"nodes":[{"version":"4.1.0","payload":"123456789"}]}`, graph.DecodeOptions{MaxText: 8}, "nodes[0].payload: more than 8 bytes of a text"},
		{"metadata's text", `{"nodes":[{"version":"4.1.0","payload":"a","metadata":{"k":"123456789"}}]}`, graph.DecodeOptions{MaxText: 8}, "nodes[0].metadata.k: more than 8 bytes of a text"},
		{"metadata's JSON", `{"nodes":[{"version":"4.1.0","payload":"a","metadata":{"k":[1,2,3,4]}}]}`, graph.DecodeOptions{MaxText: 8}, "nodes[0].metadata.k: more than 8 bytes of a text"},
		{"message's text", `{"conditionalEdges":[{"risks":[{"message":"123456789"}]}]}`, graph.DecodeOptions{MaxText: 8}, "conditionalEdges[0].risks[0].message: more than 8 bytes of a text"},
		{"memory", text, graph.DecodeOptions{MaxMemory: 1000}, "nodes[1].version: more than 1000 bytes of memory"},
		{"memory suffices", text, graph.DecodeOptions{MaxMemory: 2000}, ""},
		{"compat entries", `{"conditionalEdges":[{},{}]}`, graph.DecodeOptions{MaxConditional: 1, Compat: true}, "more than 1 conditional entries"},
		{"compat risks", `{"conditionalEdges":[{"risks":[{},null,{}]}]}`, graph.DecodeOptions{MaxRisks: 2, Compat: true}, "conditionalEdges[0]: more than 2 risks of a conditional entry"},
		{"compat rules", `{"conditionalEdges":[{"risks":[{"matchingRules":[{},{}]}]}]}`, graph.DecodeOptions{MaxRules: 1, Compat: true}, "conditionalEdges[0].risks[0]: more than 1 matching rules of a risk"},
		{"compat text", `{"conditionalEdges":[{"risks":[{"message":"123456789"}]}]}`, graph.DecodeOptions{MaxText: 8, Compat: true}, "conditionalEdges[0].risks[0].message: more than 8 bytes of a text"},
		{"compat memory", text, graph.DecodeOptions{MaxMemory: 1000, Compat: true}, "more than 1000 bytes of memory"},
		{"compat memory suffices", text, graph.DecodeOptions{MaxMemory: 4000, Compat: true}, ""},
		{"depth", deep, graph.DecodeOptions{}, "x: more than 500 levels of nested JSON"},
		{"depth of objects", `{"x":` + strings.Repeat(`{"a":`, 501) + "1" + strings.Repeat("}", 502), graph.DecodeOptions{}, "x: more than 500 levels of nested JSON"},
		{"compat nodes", text, graph.DecodeOptions{MaxNodes: 1, Compat: true}, "more than 1 nodes"},
		{"compat edges", text, graph.DecodeOptions{MaxEdges: 2, Compat: true}, "more than 2 edges"},
		{"schema by option", `{"version":7}`, graph.DecodeOptions{AnySchema: true}, ""},
		{"no payload by option", `{"nodes":[{"version":"4.1.0"}]}`, graph.DecodeOptions{AllowNoPayload: true}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := graph.Decode(strings.NewReader(tt.text), tt.o)
			got := ""
			if err != nil {
				got = err.Error()
				if limit := new(graph.LimitError); !errors.As(err, &limit) {
					t.Errorf("%T, want a *LimitError within", err)
				}
			}
			checktest.Same(t, tt.want, got)
		})
	}
}

// Limits hold for a graph that a program puts together, too.
func TestNewLimits(t *testing.T) {
	d := graph.Data{
		Nodes: []graph.Node{{Version: semver.MustParse("4.1.0"), Image: "aa", Metadata: graph.NewMetadata(map[string]string{"x": "", graph.MetadataChannels: "a,b"})}, {Version: semver.MustParse("4.1.1"), Image: "b"}},
		Edges: [][2]int{{0, 1}},
		ConditionalEdges: []graph.ConditionalEdges{{
			Edges: []graph.VersionPair{{From: "4.1.0", To: "4.1.1"}},
			Risks: []configv1.ConditionalUpdateRisk{{MatchingRules: make([]configv1.ClusterCondition, 2)}, {}},
		}},
	}
	for want, o := range map[string]graph.DecodeOptions{
		"":                  {MaxNodes: 2, MaxEdges: 2},
		"more than 1 nodes": {MaxNodes: 1},
		"more than 1 edges": {MaxEdges: 1},
		"nodes[0].payload: more than 1 bytes of a text":                      {MaxText: 1},
		"conditionalEdges[0]: more than 1 risks of a conditional entry":      {MaxRisks: 1},
		"conditionalEdges[0].risks[0]: more than 1 matching rules of a risk": {MaxRules: 1},
		"nodes[0].metadata: more than 1 keys of an object":                   {MaxKeys: 1},
		"nodes[0].metadata: more than 1 channels of a release":               {MaxChannels: 1},
	} {
		_, err := graph.New(d, o)
		if limit := new(graph.LimitError); (err == nil) != (want == "") || err != nil && (err.Error() != want || !errors.As(err, &limit)) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestDecodeReadError(t *testing.T) {
	broken := errors.New("cable cut")
	if _, err := graph.Decode(iotest.ErrReader(broken), graph.DecodeOptions{}); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the reader", err)
	}
}

func TestDecodeReal(t *testing.T) {
	for _, tt := range []struct {
		name                      string
		nodes, edges, conditional int
	}{{graphtest.RealGraph, 101, 3168, 1}, {"candidate-4.12_multi.json", 5, 10, 0}} {
		text := graphtest.ReadGraph(t, tt.name)
		g := checktest.Must(graph.DecodeBytes(text, graph.DecodeOptions{}))
		conditional := 0
		for range g.ConditionalEdges() {
			conditional++
		}
		if g.Len() != tt.nodes || g.EdgeCount() != tt.edges || conditional != tt.conditional {
			t.Errorf("%s: %d nodes, %d edges, %d conditional", tt.name, g.Len(), g.EdgeCount(), conditional)
		}
		compat, err := graph.DecodeBytes(text, graph.DecodeOptions{Compat: true})
		if err != nil || !compat.Equal(g) {
			t.Errorf("%s: Compat decodes another graph (error %v)", tt.name, err)
		}
		if problems := g.Validate(); len(problems) > 0 {
			t.Errorf("%s: %v", tt.name, problems)
		}
		for i := range text {
			text[i] = 'x' // the graph must not look back
		}
		if !compat.Equal(g) {
			t.Errorf("%s: the graph changed with its text", tt.name)
		}
	}
}

func TestNew(t *testing.T) {
	d := graph.Data{Nodes: []graph.Node{{Version: semver.MustParse("4.1.0"), Image: "a", Metadata: graph.NewMetadata(map[string]string{"url": "u"})}, {Version: semver.MustParse("4.1.1"), Image: "b"}}, Edges: [][2]int{{0, 1}}}
	g := checktest.Must(graph.New(d, graph.DecodeOptions{}))
	want, err := graph.Decode(strings.NewReader(`{"nodes":[{"version":"4.1.0","payload":"a","metadata":{"url":"u"}},{"version":"4.1.1","payload":"b"}],"edges":[[0,1]]}`), graph.DecodeOptions{})
	checktest.OK(t, err)
	if !g.Equal(want) {
		t.Error("built and decoded graphs differ")
	}
	for want, bad := range map[string]graph.Data{
		`nodes[0].version: "4.1": invalid semantic version`:         {Nodes: []graph.Node{{Version: semver.MustParse("4.1"), Image: "a"}}},
		`nodes[0].payload: missing`:                                 {Nodes: []graph.Node{{Version: semver.MustParse("4.1.0")}}},
		`edges[0]: index -7 is out of range: the graph has 0 nodes`: {Edges: [][2]int{{-7, 0}}},
	} {
		if _, err := graph.New(bad, graph.DecodeOptions{}); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestValidate(t *testing.T) {
	text := `{"nodes":[
		{"version":"4.1.0","payload":"a"},{"version":"4.1.1","payload":"b"},{"version":"4.1.2","payload":"c","metadata":{"url":1}},{"version":"4.1.3","payload":"d"}],
		"edges":[[0,1],[1,1],[1,2],[2,0],[0,3]],
		"conditionalEdges":[
			{"edges":[{"from":"4.0.9","to":"4.1.1"},{"from":"4.1.0","to":"4.9.9"},{"from":"4.1.3","to":"4.1.3"}],
			 "risks":[{"name":"A","url":"https://x.io","message":"m","matchingRules":[{"type":"Always"}]},{"matchingRules":[{"type":"Always"}]}]},
			{"edges":[],"risks":[]},
			{"edges":[],"risks":[{"name":"A","url":"relative","message":"m","matchingRules":[]}]}]}`
	g := checktest.Must(graph.Decode(strings.NewReader(text), graph.DecodeOptions{}))
	var got []string
	for _, p := range g.Validate() {
		got = append(got, p.String())
	}
	want := []string{
		"nodes[2].metadata: 4.1.2: URL is not a string: 1",
		"edges: 4.1.1 leads to itself",
		"edges: 4.1.0 is on a cycle",
		"edges: 4.1.1 is on a cycle",
		"edges: 4.1.2 is on a cycle",
		`conditionalEdges[0].edges[0]: no node for "4.0.9", from which it leads`,
		`conditionalEdges[0].edges[1]: no node for "4.9.9", to which it leads`,
		"conditionalEdges[0].edges[2]: 4.1.3 leads to itself",
		"conditionalEdges[0].risks[1]: name is empty",
		"conditionalEdges[0].risks[1]: url is empty",
		"conditionalEdges[0].risks[1]: message is empty",
		"conditionalEdges[1].risks: no risk, so nothing can say whether the updates are recommended",
		`conditionalEdges[2].risks[0]: url "relative" is not a URI`,
		"conditionalEdges[2].risks[0]: no matching rule",
		`conditionalEdges[2].risks[0]: risk "A" differs from that of conditionalEdges[0].risks[0]`,
	}
	checktest.Same(t, want, got)
}

func TestValidateContents(t *testing.T) {
	d := graph.Data{
		Nodes: []graph.Node{
			{Version: semver.MustParse("4.20.0"), Image: "r@sha256:a", Metadata: graph.NewMetadata(map[string]string{graph.MetadataManifestRef: "sha256:a"})},
			{Version: semver.MustParse("4.21.0"), Image: "r@sha256:b", Metadata: graph.NewMetadata(map[string]string{graph.MetadataManifestRef: "sha256:c"})},
			{Version: semver.MustParse("4.22.0"), Image: "r@sha256:d"},
			{Version: semver.MustParse("5.0.0"), Image: "r@sha256:e"},
			{Version: semver.MustParse("5.1.0"), Image: "r@sha256:f"},
		},
		// 4.22 comes before 5.0, and 4.21 to 5.0 skips it.
		Edges: [][2]int{{0, 1}, {0, 2}, {2, 3}, {1, 3}, {3, 0}},
		ConditionalEdges: []graph.ConditionalEdges{
			{Edges: []graph.VersionPair{{From: "4.20.0", To: "4.22.0"}, {From: "4.22.0", To: "5.0.0"}}, Risks: graphtest.Named(strings.Repeat("ä", 256))},
			{Risks: graphtest.Named(strings.Repeat("ä", 257))},
			{Risks: slices.Repeat(graphtest.Named("A"), 200)}, {Risks: slices.Repeat(graphtest.Named("A"), 201)},
			{Edges: slices.Repeat([]graph.VersionPair{{From: "5.0.0", To: "5.1.0"}}, 501), Risks: graphtest.Named("A")},
			{Edges: slices.Repeat([]graph.VersionPair{{From: "4.22.0", To: "5.0.0"}}, 499), Risks: graphtest.Named("A")},
		},
	}
	g := checktest.Must(graph.New(d, graph.DecodeOptions{}))
	var got []string
	for _, p := range g.Validate() {
		if !strings.HasSuffix(p.Message, "is on a cycle") {
			got = append(got, p.String())
		}
	}
	want := []string{
		"nodes[1].metadata: 4.21.0: the manifest reference sha256:c is not that of the payload r@sha256:b",
		"edges: 4.20.0 to 4.22.0 skips a minor version",
		"edges: 4.21.0 to 5.0.0 skips a minor version",
		"conditionalEdges[0].edges[0]: 4.20.0 to 4.22.0 skips a minor version",
		"conditionalEdges[1].risks[0]: the name has 257 characters, of which a ClusterVersion can hold 256",
		"conditionalEdges[3].risks: 201 risks, of which a ClusterVersion can hold 200",
		"conditionalEdges: 501 updates of 5.0.0, of which a ClusterVersion can hold 500",
	}
	checktest.Same(t, want, got)
}

// What an update service serves is in order.
func TestValidateReal(t *testing.T) {
	for _, name := range []string{graphtest.RealGraph, "candidate-4.12_multi.json"} {
		g := checktest.Must(graph.DecodeBytes(graphtest.ReadGraph(t, name), graph.DecodeOptions{}))
		for _, p := range g.Validate() {
			t.Errorf("%s: %s", name, p)
		}
	}
}

func TestEdges(t *testing.T) {
	g, err := graph.Decode(strings.NewReader(`{`+twoNodes+`,"edges":[[1,0],[0,1]]}`), graph.DecodeOptions{})
	checktest.OK(t, err)
	var got []graph.Edge
	for i := range g.Len() {
		for e := range g.Edges(i) {
			got = append(got, e)
		}
	}
	checktest.Same(t, []graph.Edge{{From: 0, To: 1}, {From: 1, To: 0, Downgrade: true}}, got)
}
