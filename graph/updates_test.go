package graph_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestUpdates(t *testing.T) {
	promQL := func(q string) string {
		return fmt.Sprintf(`"matchingRules":[{"type":"PromQL","promql":{"promql":%q}}]`, q)
	}
	for _, tt := range []struct {
		name                         string
		versions, edges, conditional string
		q                            graph.UpdatesQuery
		want, compat                 string // compat empty: as want, without dropped ones
	}{
		{
			name: "the orders of the wire", versions: "4.2.2 4.2.0 4.2.1 4.2.3 4.2.4", edges: "[1,2],[0,2],[1,0]",
			conditional: graphtest.Conditional("4.2.2>4.2.1 4.2.0>4.2.4", graphtest.RiskText("B", graphtest.Always), graphtest.RiskText("A", graphtest.Always)) + "," + graphtest.Conditional("4.2.0>4.2.3", graphtest.RiskText("C", promQL("up"))),
			q:           graph.UpdatesQuery{Version: "4.2.0"},
			want:        "4.2.0: 4.2.1 4.2.2 4.2.4[B:Always,A:Always] 4.2.3[C:PromQL]",
		},
		{
			name: "superseded, pruned, duplicate", versions: "4.2.0 4.2.1 4.2.2 4.2.3 4.2.4", edges: "[0,1],[0,2]",
			conditional: graphtest.Conditional("4.2.0>4.2.2", graphtest.RiskText("R1", graphtest.Always)) + "," + graphtest.Conditional("4.2.0>4.2.3", graphtest.RiskText("R2", `"matchingRules":[{"type":"CEL"}]`)) + "," +
				graphtest.Conditional("4.2.0>4.2.4", graphtest.RiskText("R3", graphtest.Always)) + "," + graphtest.Conditional("4.2.0>4.2.4", graphtest.RiskText("R4", graphtest.Always)),
			q:    graph.UpdatesQuery{Version: "4.2.0"},
			want: "4.2.0: 4.2.1 4.2.2[R1:Always] -4.2.2(Superseded) -4.2.3(UnrecognizedRules) -4.2.4(DuplicateTarget) -4.2.4(DuplicateTarget)",
		},
		{
			name: "duplicates united", versions: "4.2.0 4.2.4", conditional: graphtest.Conditional("4.2.0>4.2.4", graphtest.RiskText("R3", graphtest.Always), graphtest.RiskText("R5", graphtest.Always)) + "," + graphtest.Conditional("4.2.0>4.2.4", graphtest.RiskText("R4", graphtest.Always), graphtest.RiskText("R3", graphtest.Always)),
			q:      graph.UpdatesQuery{Version: "4.2.0", UnionDuplicates: true},
			want:   "4.2.0: 4.2.4[R3:Always,R5:Always,R4:Always]",
			compat: "4.2.0: 4.2.4[R3:Always,R5:Always,R4:Always]",
		},
		{
			name: "no union of one name for two things", versions: "4.2.0 4.2.4", conditional: graphtest.Conditional("4.2.0>4.2.4", graphtest.RiskText("R3", graphtest.Always)) + "," + graphtest.Conditional("4.2.0>4.2.4", graphtest.RiskText("R3", promQL("up"))),
			q:    graph.UpdatesQuery{Version: "4.2.0", UnionDuplicates: true},
			want: "4.2.0: -4.2.4(DuplicateTarget) -4.2.4(DuplicateTarget)",
		},
		{
			name: "pruning before counting", versions: "4.2.0 4.2.4", edges: "[0,1]",
			conditional: graphtest.Conditional("4.2.0>4.2.4", graphtest.RiskText("R3", graphtest.Always)) + "," + graphtest.Conditional("4.2.0>4.2.4", graphtest.RiskText("R4", `"matchingRules":[]`)),
			q:           graph.UpdatesQuery{Version: "4.2.0"},
			want:        "4.2.0: 4.2.4[R3:Always] -4.2.4(Superseded) -4.2.4(UnrecognizedRules)",
		},
		{
			name: "an unknown type fails closed", versions: "4.2.0 4.2.4", edges: "[0,1]", conditional: graphtest.Conditional("4.2.0>4.2.4", graphtest.RiskText("R", `"matchingRules":[{"type":"always"}]`)),
			q:    graph.UpdatesQuery{Version: "4.2.0"},
			want: "4.2.0: -4.2.4(Superseded) -4.2.4(UnrecognizedRules)",
		},
		{
			name: "rules pruned within a risk", versions: "4.2.0 4.2.4",
			conditional: graphtest.Conditional("4.2.0>4.2.4", graphtest.RiskText("R", `"matchingRules":[{"type":"CEL"},{"type":"Always","promql":{"promql":""}},{"type":"PromQL"},{"type":"PromQL","promql":{"promql":"up"}},{"type":"Always"}]`)),
			q:           graph.UpdatesQuery{Version: "4.2.0"},
			want:        "4.2.0: 4.2.4[R:PromQL:Always]",
		},
		{
			name: "one bad risk of two drops the target", versions: "4.2.0 4.2.4",
			conditional: graphtest.Conditional("4.2.0>4.2.4", graphtest.RiskText("A", graphtest.Always), graphtest.RiskText("R", `"matchingRules":[{"type":"PromQL","promql":{"promql":""}}]`)),
			q:           graph.UpdatesQuery{Version: "4.2.0"},
			want:        "4.2.0: -4.2.4(UnrecognizedRules)",
		},
		{
			name: "a registry without PromQL", versions: "4.2.0 4.2.4 4.2.5", conditional: graphtest.Conditional("4.2.0>4.2.4", graphtest.RiskText("A", promQL("up"))) + "," + graphtest.Conditional("4.2.0>4.2.5", graphtest.RiskText("B", graphtest.Always)),
			q:    graph.UpdatesQuery{Version: "4.2.0", Rules: graph.NewRules(nil)},
			want: "4.2.0: 4.2.5[B:Always] -4.2.4(UnrecognizedRules)",
		},
		{
			name: "no risks", versions: "4.2.0 4.2.4", conditional: graphtest.Conditional("4.2.0>4.2.4"),
			q:    graph.UpdatesQuery{Version: "4.2.0"},
			want: "4.2.0: -4.2.4(InvalidRisks)", compat: "4.2.0: 4.2.4[]",
		},
		{
			name: "self edges", versions: "4.2.0 4.2.1", edges: "[0,0],[0,1]", conditional: graphtest.Conditional("4.2.0>4.2.0", graphtest.RiskText("A", graphtest.Always)),
			q: graph.UpdatesQuery{Version: "4.2.0"}, want: "4.2.0: 4.2.1", compat: "4.2.0: 4.2.1 4.2.0[A:Always]",
		},
		{
			name: "unconditional self edge", versions: "4.2.0 4.2.1", edges: "[0,0],[0,1]",
			q: graph.UpdatesQuery{Version: "4.2.0"}, want: "4.2.0: 4.2.1", compat: "4.2.0: 4.2.0 4.2.1",
		},
		{
			name: "equal edges", versions: "4.2.0 4.2.1 4.2.2", edges: "[0,1],[0,2],[0,1]",
			q: graph.UpdatesQuery{Version: "4.2.0"}, want: "4.2.0: 4.2.1 4.2.2", compat: "4.2.0: 4.2.1 4.2.2 4.2.1",
		},
		{
			name: "downgrades and skipped minors are the service's business", versions: "4.2.0 4.1.0 4.9.0", edges: "[0,1],[0,2]",
			q: graph.UpdatesQuery{Version: "4.2.0", Channel: "stable-4.2"}, want: "4.2.0: 4.1.0 4.9.0",
		},
		{
			name: "builds: nodes by precedence, pairs by text", versions: "4.2.0+amd64 4.2.1 4.2.2 4.2.3+x", edges: "[0,1]",
			conditional: graphtest.Conditional("4.2.0+amd64>4.2.2", graphtest.RiskText("A", graphtest.Always)) + "," + graphtest.Conditional("4.2.0>4.2.3+x", graphtest.RiskText("B", graphtest.Always)) + "," + graphtest.Conditional("4.2.0+s390x>4.2.2", graphtest.RiskText("C", graphtest.Always)),
			q:           graph.UpdatesQuery{Version: "4.2.0"},
			want:        "4.2.0+amd64: 4.2.1 4.2.3+x[B:Always]",
		},
		{
			name: "bad metadata of a target", versions: `4.2.0 4.2.1={"url":1} 4.2.2 4.2.3={"url":1} 4.2.4={"url":1}`, edges: "[0,1],[0,2],[0,3]", conditional: graphtest.Conditional("4.2.0>4.2.3", graphtest.RiskText("A", graphtest.Always)),
			q: graph.UpdatesQuery{Version: "4.2.0"}, want: "4.2.0: 4.2.2 -4.2.1(InvalidMetadata) -4.2.3(InvalidMetadata) -4.2.3(InvalidMetadata)",
			compat: "ResponseInvalid: invalid recommended update node: URL is not a string: 1",
		},
		{
			name: "bad metadata of a conditional target", versions: `4.2.0 4.2.1 4.2.3={"url":1}`, edges: "[0,1]", conditional: graphtest.Conditional("4.2.0>4.2.3", graphtest.RiskText("A", graphtest.Always)),
			q: graph.UpdatesQuery{Version: "4.2.0"}, want: "4.2.0: 4.2.1 -4.2.3(InvalidMetadata)",
			compat: "ResponseInvalid: invalid conditional update node: URL is not a string: 1",
		},
		{
			name: "bad metadata of the current node", versions: `4.2.0={"url":1} 4.2.1`, edges: "[0,1]",
			q: graph.UpdatesQuery{Version: "4.2.0"}, want: "ResponseInvalid: invalid current node: URL is not a string: 1",
		},
		{
			name: "no node for a conditional target", versions: "4.2.0 4.2.1", edges: "[0,1]", conditional: graphtest.Conditional("4.2.0>4.2.9", graphtest.RiskText("A", graphtest.Always)),
			q: graph.UpdatesQuery{Version: "4.2.0"}, want: "ResponseInvalid: no node for conditional update 4.2.9",
		},
		{
			name: "no node for a conditional target of another", versions: "4.2.0 4.2.1", edges: "[0,1]", conditional: graphtest.Conditional("4.2.1>4.2.9 4.0.0>4.2.1", graphtest.RiskText("A", graphtest.Always)),
			q: graph.UpdatesQuery{Version: "4.2.0"}, want: "4.2.0: 4.2.1",
		},
		{
			name: "migration", versions: `4.2.0={"release.openshift.io/architecture":"multi"} 4.2.1`, edges: "[0,1]", conditional: graphtest.Conditional("4.2.0>4.2.9", graphtest.RiskText("A", graphtest.Always)),
			q: graph.UpdatesQuery{Version: "4.2.0", Architecture: "amd64", DesiredArchitecture: "Multi"}, want: "4.2.0: 4.2.0",
		},
		{
			name: "multi stays multi", versions: "4.2.0 4.2.1", edges: "[0,1]",
			q: graph.UpdatesQuery{Version: "4.2.0", Architecture: "Multi", DesiredArchitecture: "Multi"}, want: "4.2.0: 4.2.1",
		},
		{
			name: "single stays single", versions: "4.2.0 4.2.1", edges: "[0,1]",
			q: graph.UpdatesQuery{Version: "4.2.0", Architecture: "amd64", DesiredArchitecture: "amd64"}, want: "4.2.0: 4.2.1",
		},
		{
			name: "no updates", versions: "4.2.0", q: graph.UpdatesQuery{Version: "4.2.0"}, want: "4.2.0:",
		},
		{
			name: "not found", versions: "4.2.0", q: graph.UpdatesQuery{Version: "4.2.1", Channel: "stable-4.2"},
			want: `VersionNotFound: currently reconciling cluster version 4.2.1 not found in the "stable-4.2" channel`,
		},
		{
			name: "no version", versions: "4.2.0", want: "NoCurrentVersion: The cluster version does not have a semantic version assigned and cannot calculate valid upgrades.",
		},
		{
			name: "no SemVer", versions: "4.2.0", q: graph.UpdatesQuery{Version: "v4.2.0"},
			want: "InvalidCurrentVersion: The current cluster version is not a valid semantic version and cannot be used to calculate upgrades.",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := graphtest.Build(t, tt.versions, tt.edges, tt.conditional)
			check := func(g *graph.Graph, q graph.UpdatesQuery, want string) {
				t.Helper()
				u, err := g.Updates(q)
				got := ""
				if err != nil {
					got = err.Error()
				} else {
					got = graphtest.Outline(u)
					if u.Available != nil && len(u.Available) == 0 || u.Conditional != nil && len(u.Conditional) == 0 || u.Dropped != nil && len(u.Dropped) == 0 {
						t.Errorf("an empty list is not nil: %#v", u)
					}
					if q.Compat {
						got, _, _ = strings.Cut(got, " -")
					}
				}
				checktest.SameIn(t, fmt.Sprintf("Compat %v", q.Compat), want, got)
			}
			check(g, tt.q, tt.want)
			if tt.compat == "" {
				tt.compat, _, _ = strings.Cut(tt.want, " -")
			}
			// Compat needs the edges as they were written.
			text := fmt.Sprintf(`{"nodes":[],"edges":[%s]}`, tt.edges)
			encoded, err := json.Marshal(g)
			checktest.OK(t, err)
			var whole, edges map[string]json.RawMessage
			checktest.OK(t, errors.Join(json.Unmarshal(encoded, &whole), json.Unmarshal([]byte(text), &edges)))
			whole["edges"] = edges["edges"]
			if encoded, err = json.Marshal(whole); err != nil {
				t.Fatal(err)
			}
			lenient := checktest.Must(graph.DecodeBytes(encoded, graph.DecodeOptions{Compat: true}))
			tt.q.Compat = true
			check(lenient, tt.q, tt.compat)
		})
	}
}

// What a conditional edge guards is guarded by its image, also where the target
// itself has to be dropped.
func TestUpdatesGuardedByImage(t *testing.T) {
	g, err := graph.Decode(strings.NewReader(`{"nodes":[{"version":"4.2.0","payload":"a"},{"version":"4.2.1","payload":"b"},
		{"version":"4.2.1+build","payload":"b","metadata":{"url":1}}],"edges":[[0,1]],"conditionalEdges":[`+graphtest.Conditional("4.2.0>4.2.1+build", graphtest.RiskText("R", graphtest.Always))+`]}`), graph.DecodeOptions{})
	checktest.OK(t, err)
	u := checktest.Must(g.Updates(graph.UpdatesQuery{Version: "4.2.0"}))
	checktest.Same(t, "4.2.0: -4.2.1+build(InvalidMetadata) -4.2.1(Superseded)", graphtest.Outline(u))
}

func TestUpdatesEdgeToNowhere(t *testing.T) {
	g, err := graph.Decode(strings.NewReader(`{`+twoNodes+`,"edges":[[0,7],[1,0]]}`), graph.DecodeOptions{Compat: true})
	checktest.OK(t, err)
	_, err = g.Updates(graph.UpdatesQuery{Version: "4.1.0", Compat: true})
	wantError(t, err, graph.ErrResponseInvalid, "leads to a node that does not exist")
	if u, err := g.Updates(graph.UpdatesQuery{Version: "4.1.1", Compat: true}); err != nil || len(u.Available) != 1 {
		t.Errorf("another version is hurt: %v", err)
	}
}

func TestUpdatesDetails(t *testing.T) {
	g := graphtest.Build(t, `4.2.0 4.2.1 4.2.3={"url":1}`, "[0,2]", graphtest.Conditional("4.2.0>4.2.1", graphtest.RiskText("A", `"matchingRules":[]`), graphtest.RiskText("B", `"matchingRules":[{"type":"X"},{"type":"X"},{"type":"Y"}]`)))
	u := checktest.Must(g.Updates(graph.UpdatesQuery{Version: "4.2.0"}))
	if u.Available != nil || u.Conditional != nil {
		t.Error("empty lists must be nil")
	}
	if len(u.Dropped) != 2 {
		t.Fatal(graphtest.Outline(u))
	}
	if got, want := u.Dropped[1].Err.Error(), `[risk "A": no matching rules, risk "B": [skipping unrecognized cluster condition type "X", skipping unrecognized cluster condition type "Y"]]`; got != want {
		t.Errorf("cause %q, want %q", got, want)
	}
	if len(u.Dropped[1].Risks) != 2 || u.Dropped[0].Err.Error() != "URL is not a string: 1" {
		t.Errorf("%+v", u.Dropped)
	}
}

func TestVersionNotFoundDetails(t *testing.T) {
	versions := "4.2.0 4.1.3 4.3.0 4.2.5 4.0.9"
	for _, tt := range []struct {
		versions string
		want     graph.NotFoundError
		text     string
	}{
		{versions, graph.NotFoundError{Version: "4.2.3", Nodes: 5, MinorKnown: true, Below: "4.2.0", Above: "4.2.5"}, `version 4.2.3 is not among the 5 releases of channel "c"; nearest are 4.2.0 and 4.2.5`},
		{versions, graph.NotFoundError{Version: "4.20.0", Nodes: 5, Below: "4.3.0"}, `version 4.20.0 is not among the 5 releases of channel "c", which has none of its minor; the highest below is 4.3.0`},
		{versions, graph.NotFoundError{Version: "4.0.0", Nodes: 5, MinorKnown: true, Above: "4.0.9"}, `version 4.0.0 is not among the 5 releases of channel "c"; the lowest above is 4.0.9`},
		{"", graph.NotFoundError{Version: "4.2.3"}, `the graph of channel "c" is empty: the channel is empty or unknown`},
	} {
		tt.want.Channel = "c"
		_, err := graphtest.Build(t, tt.versions, "", "").Updates(graph.UpdatesQuery{Version: tt.want.Version, Channel: "c"})
		wantError(t, err, graph.ErrVersionNotFound, prefix+"currently reconciling cluster version "+tt.want.Version+` not found in the "c" channel`)
		got := new(graph.NotFoundError)
		if !errors.As(err, &got) {
			t.Fatalf("%#v carries no details", err)
		}
		if diff := cmp.Diff(tt.want, *got); diff != "" || got.Error() != tt.text {
			t.Errorf("%s\n%s", diff, got)
		}
	}
}

// What an answer holds is the caller's to change.
func TestUpdatesAreCopies(t *testing.T) {
	meta := `{"io.openshift.upgrades.graph.release.channels":"a,b"}`
	g := graphtest.Build(t, "4.2.0="+meta+" 4.2.1="+meta+" 4.2.2="+meta, "[0,1]", graphtest.Conditional("4.2.0>4.2.2", graphtest.RiskText("A", `"matchingRules":[{"type":"PromQL","promql":{"promql":"up"}}]`)))
	q := graph.UpdatesQuery{Version: "4.2.0"}
	first := checktest.Must(g.Updates(q))
	want := checktest.Must(g.Updates(q))
	first.Current.Channels[0] = "x"
	_ = append(first.Current.Channels, "y")
	first.Available[0].Channels[1] = "x"
	first.Conditional[0].Release.Channels[0] = "x"
	first.Conditional[0].Risks[0].Name = "x"
	first.Conditional[0].Risks[0].MatchingRules[0].PromQL.PromQL = "x"
	checktest.Same(t, []string{"a", "x"}, first.Available[0].Channels)
	got := checktest.Must(g.Updates(q))
	checktest.Same(t, want, got)
}

func TestUpdatesReal(t *testing.T) {
	g := checktest.Must(graph.DecodeBytes(graphtest.ReadGraph(t, graphtest.RealGraph), graph.DecodeOptions{}))
	u, err := g.Updates(graph.UpdatesQuery{Version: "4.7.1", Channel: "stable-4.8", Architecture: "amd64"})
	checktest.OK(t, err)
	if len(u.Available) != 44 || len(u.Conditional) != 1 || len(u.Dropped) != 0 {
		t.Fatal(graphtest.Outline(u))
	}
	c := u.Conditional[0]
	if c.Release.Version != "4.7.4" || c.Risks[0].Name != "VSphereNodeNameChanges" || c.Release.URL == "" {
		t.Errorf("%+v", c)
	}
	if got := []configv1.URL{u.Available[0].URL}; u.Available[0].Version != "4.7.2" || got[0] == "" || len(u.Available[0].Channels) == 0 {
		t.Errorf("%+v", u.Available[0])
	}
}
