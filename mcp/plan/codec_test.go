package plan_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// Errors name all faults of a plan, each with its place.
func TestDecodeErrors(t *testing.T) {
	step := func(text string) string {
		return `{"version": 1, "id": "p", "kind": "Custom", "steps": [` + text + `]}`
	}
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"newer format", `{"version": 2, "new": true}`, []string{"plan has format version 2; this program reads versions up to 1"}},
		{"no format", `{"id": "p"}`, []string{"plan has no format version: field version must be 1 to 1"}},
		{"no JSON", `{`, []string{"plan: unexpected end of JSON input"}},
		{"no comma", "{\"version\": 1,\n  \"id\": \"p\"\n  \"kind\": \"Custom\"}", []string{"plan: invalid character '\"' after object key:value pair (line 3, column 3)"}},
		{"a list", `[]`, []string{"plan: array in place of an object"}},
		{"version in words", `{"version": "1"}`, []string{"plan: version: string in place of a whole number"}},
		{"values that do not fit", step(`{"id": "a", "kind": "Drain", "args": {"node": "n"}}, {"id": "b", "kind": "SetPaused", "timeout": "5 minutes", "needs": {},
			"args": {"pools": "x", "paused": "yes", "until": "noon", "maxUnavailable": true, "add": {"k": 1}, "nodes": ["n", 7], "object": [], "checks": [{"kind": 1}]}}, 5`), []string{
			`plan: steps[1] (b).timeout: time: unknown unit " minutes" in duration "5 minutes"`, "plan: steps[1] (b).needs: object in place of a list",
			"plan: steps[1] (b).args.pools: string in place of a list", "plan: steps[1] (b).args.paused: string in place of true or false", `plan: steps[1] (b).args.until: parsing time "noon"`,
			`plan: steps[1] (b).args.maxUnavailable: bool in place of a whole number or a percentage such as "10%"`, "plan: steps[1] (b).args.add.k: number in place of a string",
			"plan: steps[1] (b).args.nodes[1]: number in place of a string", "plan: steps[1] (b).args.object: array in place of an object", "plan: steps[1] (b).args.checks[0].kind: number in place of a string",
			"plan: steps[2]: number in place of an object"}},
		{"a number in place of a duration", step(`{"id": "a", "kind": "Drain", "args": {"node": "n"}, "timeout": 5}`), []string{`plan: steps[0] (a).timeout: number in place of a duration such as "1h30m"`}},
		{"unknown field", `{"version": 1, "id": "p", "kind": "Custom", "Steps": []}`, []string{`plan: unknown field "Steps"`}},
		{"twice", `{"version": 1, "id": "p", "id": "q", "kind": "Custom"}`, []string{`plan: duplicate field "id"`}},
		{"id and kind", `{"version": 1, "id": "P", "kind": "Magic"}`, []string{`id "P": `, `kind "Magic" is not known`}},
		{"step kind", step(`{"id": "a", "kind": "Reboot"}`), []string{`steps[0] (a): kind "Reboot" is not known`}},
		{"step id", step(`{"id": "a b", "kind": "Drain", "args": {"node": "n"}}`), []string{`steps[0]: id "a b" is not made of`}},
		{"two steps", step(`{"id": "a", "kind": "Drain", "args": {"node": "n"}}, {"id": "a", "kind": "Drain", "args": {"node": "n"}}`), []string{"steps[1] (a): another step has this id"}},
		{"missing and needless", step(`{"id": "a", "kind": "SetPaused", "args": {"pool": "x", "paused": true}}`), []string{
			"steps[0] (a): args.pools is missing", "steps[0] (a): args.pool has no meaning for SetPaused"}},
		{"empty names", step(`{"id": "a", "kind": "SetPaused", "args": {"pools": [""], "paused": true}, "needs": [{"kind": "NodesReady", "nodes": [""]}]}`), []string{
			`steps[0] (a).args: pools: "": `, `steps[0] (a).needs[0]: nodes: "": `}},
		{"maxUnavailable", step(`{"id": "a", "kind": "SetMaxUnavailable", "args": {"pools": ["x"], "maxUnavailable": -1}}`), []string{"args: maxUnavailable: "}},
		{"master", step(`{"id": "a", "kind": "CreatePool", "args": {"pool": "master", "roles": ["worker"]}}`), []string{"master is not a custom pool"}},
		{"no worker", step(`{"id": "a", "kind": "CreatePool", "args": {"pool": "x", "roles": ["x"]}}`), []string{"All custom MachineConfigPools must inherit from the worker pool"}},
		{"role worker", step(`{"id": "a", "kind": "LabelNodes", "args": {"pool": "x", "nodes": ["n"], "remove": ["node-role.kubernetes.io/worker"]}}`), []string{"the role worker is never removed"}},
		{"labels", step(`{"id": "a", "kind": "LabelNodes", "args": {"pool": "x", "nodes": ["n", "n"], "add": {"k": "a b", "/": ""}, "remove": ["k"]}}`), []string{
			`nodes: "n" comes twice`, `value "a b"`, "label k is both added and removed", `label "/"`}},
		{"no labels", step(`{"id": "a", "kind": "LabelNodes", "args": {"pool": "x", "nodes": ["n"]}}`), []string{"args.add and args.remove are both missing"}},
		{"version", step(`{"id": "a", "kind": "UpdateCluster", "args": {"version": "next"}}`), []string{`version "next"`}},
		{"part of a version", step(`{"id": "a", "kind": "WaitCluster", "args": {"version": "4.21"}}`), []string{`version "4.21": invalid semantic version`}},
		{"unpause what is unfinished", step(`{"id": "a", "kind": "SetPaused", "args": {"pools": ["x"], "paused": false, "unfinished": true}}`), []string{
			"steps[0] (a): args.unfinished has no meaning where pools are unpaused"}},
		{"range", step(`{"id": "a", "kind": "Gate", "args": {"action": "health", "nodes": ["w-{0-2,7-5}"]}}`), []string{`plan: steps[0] (a): nodes: "w-{0-2,7-5}": "7-5" is not a range of numbers`}},
		{"checks", step(`{"id": "a", "kind": "CheckAll", "needs": [{"kind": "ClusterAt"}], "done": {"kind": "Well"}, "args": {"checks": [{"kind": "PoolsPaused", "nodes": ["n"]}]}}`), []string{
			"args.checks[0]: nodes has no meaning for PoolsPaused", "args.checks[0]: pools is missing", "needs[0]: version is missing", `done: kind "Well" is not known`}},
		{"neither a step nor steps that repeat", step(`{"each": ["n"], "steps": []}`), []string{"steps[0]: it has neither the fields of a step nor each and steps alone"}},
		{"both", step(`{"id": "a", "each": ["n"], "steps": [{"id": "b", "kind": "Drain"}]}`), []string{"steps[0]: it has neither the fields of a step nor each and steps alone"}},
		{"what does not fit in steps that repeat", step(`{"each": ["n"], "steps": [{"id": "a", "kind": "Drain", "timeout": "soon"}]}`), []string{"plan: steps[0].steps[0] (a).timeout: time: invalid duration"}},
		{"time", step(`{"id": "a", "kind": "Drain", "timeout": "-1s", "onFailure": "Retry", "args": {"node": "n"}}`), []string{"timeout is negative: -1s", `onFailure "Retry" is neither Stop nor Continue`}},
		{"secret", step(`{"id": "a", "kind": "ApplyObject", "args": {"object": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "uid": "u"}, "status": {}}}}`), []string{
			"a Secret has no place in a plan", "status is not written by a plan", "metadata.uid is not written by a plan"}},
		{"nameless", step(`{"id": "a", "kind": "ApplyObject", "args": {"object": {"kind": "X"}}}`), []string{"apiVersion, kind and metadata.name are required"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := plan.Decode([]byte(tt.text))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in:\n%v", want, err)
				}
			}
			if lines := strings.Count(err.Error(), "\n") + 1; lines != len(tt.want) {
				t.Errorf("%d faults, want %d:\n%v", lines, len(tt.want), err)
			}
		})
	}
}

// What a plan and its record have from anywhere does not reach a terminal as it is.
func TestTextIsQuoted(t *testing.T) {
	const bad = "\x1b[2J\n"
	p := custom("p", plan.Step{ID: "a", Kind: plan.Manual, Args: plan.Args{Node: "n", Text: bad}}, hook("b"+bad),
		plan.Step{ID: "c", Kind: plan.Hook, Args: plan.Args{Node: "n", Action: bad, Parameters: map[string]string{bad: bad}}},
		plan.Step{ID: "d", Kind: plan.ApplyObject, Args: plan.Args{Object: map[string]any{"kind": bad, "metadata": map[string]any{bad: bad}}}})
	p.Steps[1].ID = "b"
	progress := plan.Progress{State: bad, Holder: bad, Steps: map[string]plan.StepProgress{"a": {State: bad, Error: bad}},
		Report: &plan.Report{Left: []plan.Item{{Object: bad, Field: bad, Text: bad}}}}
	var b strings.Builder
	checktest.OK(t, plan.WriteText(&b, p))
	checktest.OK(t, plan.WriteProgress(&b, p, progress))
	b.WriteString(p.Validate().Error())
	b.WriteString(checktest.Err(plan.Decode([]byte(`{"version": 1, "id": "p", "steps": [{"args": {"add": {"\u001b": 1}}}]}`))).Error())
	if strings.Contains(b.String(), "\x1b") || !strings.Contains(b.String(), `"by hand, node n: \x1b[2J\n"`) {
		t.Errorf("%q", b.String())
	}
}

func TestEncodeDecode(t *testing.T) {
	for _, p := range []plan.Plan{tiny(), examplePlans(t)["canary"], examplePlans(t)["windows"]} {
		text, err := plan.Encode(p)
		checktest.OK(t, err)
		got := checktest.Get(plan.Decode(text))(t)
		checktest.Same(t, p, got)
	}
	bad := tiny()
	bad.ID = ""
	if _, err := plan.Encode(bad); err == nil {
		t.Error("a plan without ID was written")
	}
	large := tiny()
	for range 20 {
		large.Steps = append(large.Steps, plan.Step{ID: strings.Repeat("x", len(large.Steps)+1), Kind: plan.Manual, Args: plan.Args{Text: strings.Repeat("x", 50<<10)}})
	}
	_, err := plan.Encode(large)
	if !isSize(err, "plan") || err.Error() != "plan: more than 921600 bytes" {
		t.Errorf("a plan that is too large: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	golden, _ := filepath.Glob("testdata/plans/*.json")
	for _, name := range golden {
		text := checktest.Get(os.ReadFile(name))(f)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := plan.Decode(text)
		if err != nil {
			return
		}
		again, err := plan.Encode(p)
		if err != nil {
			if isSize(err, "plan") {
				return
			}
			t.Fatalf("what was read cannot be written: %v", err)
		}
		q, err := plan.Decode(again)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, again)
		}
		third, err := plan.Encode(q)
		if err != nil || string(third) != string(again) {
			t.Fatalf("written twice: %v\n%s\n%s", err, again, third)
		}
	})
}
