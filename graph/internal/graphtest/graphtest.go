// Package graphtest makes graphs, risks and clusters for the tests of package graph and those on top of it.
package graphtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

var Start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// facts: T… applies, F… does not, others cannot be evaluated.
var Facts = graph.RiskMatcherFunc(func(_ context.Context, rule configv1.ClusterCondition) (bool, error) {
	switch rule.PromQL.PromQL[0] {
	case 'T':
		return true, nil
	case 'F':
		return false, nil
	}
	return false, errors.New("no data")
})

const Always = `"matchingRules":[{"type":"Always"}]`

var AlwaysRule = configv1.ClusterCondition{Type: "Always"}

const RealGraph = "stable-4.8_amd64.json"

func Named(names ...string) (risks []configv1.ConditionalUpdateRisk) {
	for _, name := range names {
		risks = append(risks, Risk(name, "T"))
	}
	return risks
}

// Sketch writes graphs in short: "a>b c>d:Risk" are an edge and one under a
// risk whose query is the risk's first letter; metadata name channels.
func Sketch(t testing.TB, edges string, channels map[string]string) *graph.Graph {
	t.Helper()
	var d graph.Data
	index := map[string]int{}
	node := func(v string) int {
		i, ok := index[v]
		if !ok {
			i = len(d.Nodes)
			index[v] = i
			n := graph.Node{Version: semver.MustParse(v), Image: "example.com/release@sha256:" + v}
			if c := channels[v]; c != "" {
				n.Metadata = graph.NewMetadata(map[string]string{graph.MetadataChannels: c})
			}
			d.Nodes = append(d.Nodes, n)
		}
		return i
	}
	for _, e := range strings.Fields(edges) {
		pair, risks, conditional := strings.Cut(e, ":")
		from, to, isEdge := strings.Cut(pair, ">")
		a := node(from)
		if !isEdge {
			continue
		}
		b := node(to)
		if !conditional {
			d.Edges = append(d.Edges, [2]int{a, b})
			continue
		}
		c := graph.ConditionalEdges{Edges: []graph.VersionPair{{From: from, To: to}}}
		for _, name := range strings.Split(risks, ",") {
			if name == "" {
				continue
			}
			r := Risk(name, "-")
			r.MatchingRules = []configv1.ClusterCondition{PromQL(name[:1])}
			if name == "CEL" {
				r.MatchingRules = []configv1.ClusterCondition{{Type: "CEL"}}
			}
			c.Risks = append(c.Risks, r)
		}
		d.ConditionalEdges = append(d.ConditionalEdges, c)
	}
	g := checktest.Get(graph.New(d, graph.DecodeOptions{}))(t)
	return g
}

func Risk(name, query string) configv1.ConditionalUpdateRisk {
	return configv1.ConditionalUpdateRisk{Name: name, URL: "https://x.io/" + name, Message: "About " + name + ".", MatchingRules: []configv1.ClusterCondition{PromQL(query)}}
}

func Update(version string, risks ...configv1.ConditionalUpdateRisk) configv1.ConditionalUpdate {
	return configv1.ConditionalUpdate{Release: Release(version), Risks: risks}
}

// build decodes a graph whose nodes are versions, with edges and conditional
// entries as JSON. The image of a version is i-<version>.
func Build(t *testing.T, versions, edges, conditional string) *graph.Graph {
	t.Helper()
	var nodes []string
	for _, v := range strings.Fields(versions) {
		v, metadata, _ := strings.Cut(v, "=")
		metadata = cmp.Or(metadata, "{}")
		nodes = append(nodes, fmt.Sprintf(`{"version":%q,"payload":"i-%s","metadata":%s}`, v, v, metadata))
	}
	text := fmt.Sprintf(`{"nodes":[%s],"edges":[%s],"conditionalEdges":[%s]}`, strings.Join(nodes, ","), edges, conditional)
	g := checktest.Get(graph.Decode(strings.NewReader(text), graph.DecodeOptions{}))(t)
	return g
}

// Conditional returns an entry for pairs "a>b c>d" with risks as JSON.
func Conditional(pairs string, risks ...string) string {
	var edges []string
	for _, p := range strings.Fields(pairs) {
		from, to, _ := strings.Cut(p, ">")
		edges = append(edges, fmt.Sprintf(`{"from":%q,"to":%q}`, from, to))
	}
	return fmt.Sprintf(`{"edges":[%s],"risks":[%s]}`, strings.Join(edges, ","), strings.Join(risks, ","))
}

func RiskText(name, rules string) string {
	return fmt.Sprintf(`{"name":%q,"url":"https://x.io/%s","message":"About %s.",%s}`, name, name, name, rules)
}

// Outline lists what is in Updates: versions, risk names, causes.
func Outline(u *graph.Updates) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:", u.Current.Version)
	for _, r := range u.Available {
		fmt.Fprintf(&b, " %s", r.Version)
	}
	for _, c := range u.Conditional {
		fmt.Fprintf(&b, " %s[", c.Release.Version)
		for i, r := range c.Risks {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(r.Name)
			for _, rule := range r.MatchingRules {
				b.WriteString(":" + rule.Type)
			}
		}
		b.WriteString("]")
	}
	for _, d := range u.Dropped {
		fmt.Fprintf(&b, " -%s(%s)", d.Release.Version, d.Cause)
	}
	return b.String()
}

func PromQL(query string) configv1.ClusterCondition {
	return configv1.ClusterCondition{Type: "PromQL", PromQL: &configv1.PromQLClusterCondition{PromQL: query}}
}

func EachSize(b *testing.B, f func(b *testing.B, text []byte, version string)) {
	b.Run("stable-4.8", func(b *testing.B) { f(b, ReadGraph(b, RealGraph), "4.7.41") })
	for _, n := range []int{100, 1_000, 10_000} {
		text := Synthetic(b, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) { f(b, text, "4.0.10") })
	}
}

func ReadGraph(tb testing.TB, name string) []byte {
	tb.Helper()
	text := checktest.Get(os.ReadFile(filepath.Join(testdata.Dir(tb), "graphs", name)))(tb)
	return text
}

// Allocated is how many bytes a function allocates.
func Allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func Release(version string) configv1.Release {
	return configv1.Release{Version: version, Image: "i-" + version}
}

// Synthetic returns a graph of n releases over minors of 50 releases, each of
// which leads to the 30 that follow, every tenth of them under a risk.
func Synthetic(tb testing.TB, n int) []byte {
	tb.Helper()
	version := func(i int) string { return fmt.Sprintf("4.%d.%d", i/50, i%50) }
	var d graph.Data
	for i := range n {
		d.Nodes = append(d.Nodes, graph.Node{
			Version: semver.MustParse(version(i)),
			Image:   fmt.Sprintf("quay.io/openshift-release-dev/ocp-release@sha256:%064x", i),
			Metadata: graph.NewMetadata(map[string]string{
				graph.MetadataURL:         fmt.Sprintf("https://access.redhat.com/errata/RHBA-2026:%d", i),
				graph.MetadataChannels:    fmt.Sprintf("candidate-4.%[1]d,fast-4.%[1]d,stable-4.%[1]d,candidate-4.%[2]d,fast-4.%[2]d,stable-4.%[2]d", i/50, i/50+1),
				graph.MetadataManifestRef: fmt.Sprintf("sha256:%064x", i),
			}),
		})
		for to := i + 1; to < min(i+31, n); to++ {
			if to%10 != 0 {
				d.Edges = append(d.Edges, [2]int{i, to})
				continue
			}
			d.ConditionalEdges = append(d.ConditionalEdges, graph.ConditionalEdges{
				Edges: []graph.VersionPair{{From: version(i), To: version(to)}},
				Risks: []configv1.ConditionalUpdateRisk{{
					Name: fmt.Sprintf("Risk%d", to), URL: "https://example.com/risk", Message: "Nodes of some kind may not come back.",
					MatchingRules: []configv1.ClusterCondition{{Type: "PromQL", PromQL: &configv1.PromQLClusterCondition{PromQL: "max(cluster_infrastructure_provider)"}}},
				}},
			})
		}
	}
	g := checktest.Get(graph.New(d, graph.DecodeOptions{}))(tb)
	return g.AppendJSON(nil)
}

// Fan is a graph whose first release leads to n others.
func Fan(tb testing.TB, n int, entry graph.ConditionalEdges) *graph.Graph {
	tb.Helper()
	d := graph.Data{Nodes: []graph.Node{{Version: semver.MustParse("4.0.0"), Image: "i"}}}
	for i := 1; i <= n; i++ {
		version := fmt.Sprintf("4.1.%d", i)
		d.Nodes = append(d.Nodes, graph.Node{Version: semver.MustParse(version), Image: "i-" + version})
		entry.Edges = append(entry.Edges, graph.VersionPair{From: "4.0.0", To: version})
	}
	d.ConditionalEdges = []graph.ConditionalEdges{entry}
	g := checktest.Get(graph.New(d, graph.DecodeOptions{}))(tb)
	return g
}

// ManyRisks is an entry with n risks R0, R1, … that apply.
func ManyRisks(n int, message string) (entry graph.ConditionalEdges) {
	for i := range n {
		risk := Risk(fmt.Sprint("R", i), "T")
		risk.Message = message
		entry.Risks = append(entry.Risks, risk)
	}
	return entry
}

// Updates lists the updates of 4.0.0.
func Updates(tb testing.TB, g *graph.Graph) *graph.Updates {
	tb.Helper()
	u := checktest.Get(g.Updates(graph.UpdatesQuery{Version: "4.0.0"}))(tb)
	return u
}

// List is n elements of a JSON list, the i-th by its format's %d.
func List(n int, format string) string {
	if !strings.Contains(format, "%") {
		return strings.TrimSuffix(strings.Repeat(format+",", n), ",")
	}
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// WantLimit fails the test unless err is a [*graph.LimitError] of the limit.
func WantLimit(tb testing.TB, err error, limit string, most int64) {
	tb.Helper()
	if e := new(graph.LimitError); !errors.As(err, &e) || e.What != limit || e.Max != most {
		tb.Errorf("%v, want the limit of %d %s", err, most, limit)
	}
}
