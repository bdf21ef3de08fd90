package graph_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
)

func wantLimit(t *testing.T, err error, limit string, most int64) {
	t.Helper()
	if e := new(graph.LimitError); !errors.As(err, &e) || e.Limit != limit || e.Max != most {
		t.Errorf("%v, want the limit of %d %s", err, most, limit)
	}
}

// decoding returns a run that decodes a text past a limit.
func decoding(text, limit string, most int64) func(*testing.T) int64 {
	data := []byte(text)
	return func(t *testing.T) int64 {
		_, err := graph.DecodeBytes(data, graph.DecodeOptions{})
		wantLimit(t, err, limit, most)
		return 0
	}
}

// list is n elements of a JSON list, the i-th by its format's %d.
func list(n int, format string) string {
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

// fan is a graph whose first release leads to n others.
func fan(t *testing.T, n int, entry graph.ConditionalEdges) *graph.Graph {
	t.Helper()
	d := graph.Data{Nodes: []graph.Node{{Version: semver.MustParse("4.0.0"), Image: "i"}}}
	for i := 1; i <= n; i++ {
		version := fmt.Sprintf("4.1.%d", i)
		d.Nodes = append(d.Nodes, graph.Node{Version: semver.MustParse(version), Image: "i-" + version})
		entry.Edges = append(entry.Edges, graph.VersionPair{From: "4.0.0", To: version})
	}
	d.ConditionalEdges = []graph.ConditionalEdges{entry}
	g, err := graph.New(d, graph.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func risksOf(n int, message string) (entry graph.ConditionalEdges) {
	for i := range n {
		risk := graphtest.Risk(fmt.Sprint("R", i), "T")
		risk.Message = message
		entry.Risks = append(entry.Risks, risk)
	}
	return entry
}

func updatesOf(t *testing.T, g *graph.Graph) *graph.Updates {
	t.Helper()
	u, err := g.Updates(graph.UpdatesQuery{Version: "4.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestLimits(t *testing.T) {
	const small, mib = 64 << 10, 1 << 20
	ctx := context.Background()
	answers := func(body string) *risk.Prometheus {
		return &risk.Prometheus{URL: "http://p", NoToken: true, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			return answer(r, 200, body), nil
		})}
	}
	wantError := func(t *testing.T, err error, text string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
	vector := `{"status":"success","data":{"resultType":"vector","result":[` + list(10_001, `{"value":[1,"1"]}`) + `]}}`
	alerts := `{"status":"success","data":{"alerts":[` + list(5_001, `{}`) + `]}}`
	labels := `{"status":"success","data":{"alerts":[{"labels":{` + list(101, `"l%d":""`) + `}}]}}`
	long := `{"status":"success","data":"` + strings.Repeat("x", 16<<20) + `"}`

	wide, huge := fan(t, 100_000-1, risksOf(1, "m")), fan(t, 20, risksOf(5, strings.Repeat("m", 20_000)))
	many, risky := fan(t, 501, risksOf(1, "m")), fan(t, 1, risksOf(201, "m"))
	exposed := fan(t, 300, risksOf(1, strings.Repeat("m", 2_000)))
	loud := fan(t, 1, risksOf(1, strings.Repeat("世", 33_000)))
	var named []configv1.ConditionalUpdate
	for i := range 501 {
		named = append(named, graphtest.Update(fmt.Sprint("4.1.", i), graphtest.Risk(fmt.Sprint("R", i), "F")))
	}
	kept := func(c *graph.Client, body string, channels int) (conditional int64) {
		c.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("If-None-Match") != "" {
				conditional++
			}
			return answer(r, 200, body, "ETag", `"1"`), nil
		})
		for range 2 {
			for i := channels; i > 0; i-- {
				q := query
				q.Channel = fmt.Sprint("c-", i)
				if _, err := c.Fetch(ctx, q); err != nil {
					t.Error(err)
				}
			}
		}
		return conditional
	}
	half := `{"x":"` + strings.Repeat("x", 33<<20) + `"}`
	remembered := func(t *testing.T, n int, query func(i int) string) int64 {
		evaluated := int64(0)
		cache := &risk.Cache{MinBetween: 1, Matcher: graph.RiskMatcherFunc(func(context.Context, configv1.ClusterCondition) (bool, error) {
			evaluated++
			return true, nil
		})}
		for i := range n {
			time.Sleep(2 * time.Nanosecond)
			if _, err := cache.Match(ctx, graphtest.PromQL(query(i))); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(2 * time.Nanosecond)
		cache.Match(ctx, graphtest.PromQL(query(n-1))) // still there
		time.Sleep(2 * time.Nanosecond)
		cache.Match(ctx, graphtest.PromQL(query(0))) // forgotten
		return evaluated
	}
	releases := func(minor int) path.ChannelGraph {
		var d graph.Data
		for i := range 99_999 {
			d.Nodes = append(d.Nodes, graph.Node{Version: semver.MustParse(fmt.Sprintf("4.%d.%d", minor, i)), Image: "i"})
		}
		g, err := graph.New(d, graph.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return path.ChannelGraph{Channel: fmt.Sprint("c-4.", minor), Graph: g}
	}
	var channels []path.ChannelGraph
	for minor := range 11 {
		channels = append(channels, releases(minor))
	}
	crossed := fan(t, 8_000, risksOf(501, "m"))

	limittest.Walk(t, []limittest.Case{
		{Limit: "bytes of JSON", Default: 64 << 20, Bytes: 4096, Run: decoding(strings.Repeat(" ", 64<<20+1), "bytes", 64<<20)},
		{Limit: "bytes of memory", Default: 128 << 20, Bytes: 200 * mib,
			Run: decoding(`{"conditionalEdges":[`+list(2_000, `{"risks":[`+list(400, `{}`)+`]}`)+`]}`, "bytes of memory", 128<<20)},
		{Limit: "nodes", Default: 100_000, Bytes: 100 * mib, Run: decoding(`{"nodes":[`+list(100_001, `{"version":"4.1.%d","payload":"a"}`)+`]}`, "nodes", 100_000)},
		{Limit: "edges, conditional ones included", Default: 4_000_000, Bytes: 40 * mib, Run: decoding(`{"edges":[`+list(4_000_001, `[0,0]`)+`]}`, "edges", 4_000_000)},
		{Limit: "conditional entries", Default: 100_000, Bytes: 40 * mib, Run: decoding(`{"conditionalEdges":[`+list(100_001, `{}`)+`]}`, "conditional entries", 100_000)},
		{Limit: "edges of a conditional entry", Default: 100_000, Bytes: 40 * mib,
			Run: decoding(`{"conditionalEdges":[{"edges":[`+list(100_001, `{"from":"a","to":"b"}`)+`]}]}`, "edges of a conditional entry", 100_000)},
		{Limit: "risks of a conditional entry", Default: 1_000, Bytes: mib, Run: decoding(`{"conditionalEdges":[{"risks":[`+list(1_001, `{}`)+`]}]}`, "risks of a conditional entry", 1_000)},
		{Limit: "matching rules of a risk", Default: 100, Bytes: small, Run: decoding(`{"conditionalEdges":[{"risks":[{"matchingRules":[`+list(101, `{}`)+`]}]}]}`, "matching rules of a risk", 100)},
		{Limit: "keys of an object", Default: 1_000, Bytes: mib, Run: decoding(`{"x":{`+list(1_001, `"%d":0`)+`}}`, "keys of an object", 1_000)},
		{Limit: "channels of a release", Default: 1_000, Bytes: small,
			Run: decoding(`{"nodes":[{"version":"4.1.0","payload":"a","metadata":{"`+graph.MetadataChannels+`":"`+strings.Repeat(",", 1_000)+`"}}]}`, "channels of a release", 1_000)},
		{Limit: "bytes of a text", Default: 256 << 10, Bytes: small, Run: decoding(`{"nodes":[{"payload":"`+strings.Repeat("x", 256<<10+1)+`"}]}`, "bytes of a text", 256<<10)},
		{Limit: "bytes of a version", Default: 256, Bytes: small, Run: func(t *testing.T) int64 {
			_, err := graph.ParseVersion("4.1.0-" + strings.Repeat("a", 251))
			wantError(t, err, "too long (max 256 bytes)")
			return 0
		}},
		{Limit: "levels of nested JSON", Default: 500, Bytes: 256 << 10, Run: decoding(`{"x":`+strings.Repeat("[", 1<<20), "levels of nested JSON", 500)},

		{Limit: "bytes of a query's lists", Default: 1 << 20, Bytes: 4 * mib, Run: func(t *testing.T) int64 {
			u := updatesOf(t, huge)
			if len(u.Conditional) != 10 || u.Conditional[0].Release.Version != "4.1.11" || len(u.Dropped) != 10 || u.Dropped[0].Cause != graph.ExceedsLimit {
				t.Errorf("%d updates, %d dropped", len(u.Conditional), len(u.Dropped))
			}
			wantLimit(t, u.Dropped[0].Err, "bytes of updates in a ClusterVersion", 1<<20)
			return 0
		}},
		{Limit: "conditional updates", Default: 500, Bytes: 2 * mib, Run: func(t *testing.T) int64 {
			u := updatesOf(t, many)
			if len(u.Conditional) != 500 || len(u.Dropped) != 1 || u.Dropped[0].Release.Version != "4.1.1" || u.Dropped[0].Cause != graph.ExceedsLimit {
				t.Errorf("%d updates, dropped %+v", len(u.Conditional), u.Dropped)
			}
			wantLimit(t, u.Dropped[0].Err, "conditional updates in a ClusterVersion", 500)
			return 0
		}},
		{Limit: "risks of an update", Default: 200, Bytes: mib, Run: func(t *testing.T) int64 {
			u := updatesOf(t, risky)
			if len(u.Conditional) != 0 || len(u.Dropped) != 1 || u.Dropped[0].Cause != graph.InvalidRisks {
				t.Fatalf("dropped %+v", u.Dropped)
			}
			wantError(t, u.Dropped[0].Err, "201 risks, of which a ClusterVersion can hold 200")
			return 0
		}},
		{Limit: "targets listed as dropped", Default: 1_000, Bytes: 60 * mib, Run: func(t *testing.T) int64 {
			if u := updatesOf(t, wide); len(u.Conditional) != 500 || len(u.Dropped) != 1_000 || u.DroppedMore != 98_499 {
				t.Errorf("%d updates, %d and %d dropped", len(u.Conditional), len(u.Dropped), u.DroppedMore)
			}
			return 0
		}},
		{Limit: "bytes of evaluated lists", Default: 1 << 20, Bytes: 40 * mib, Run: func(t *testing.T) int64 {
			u := updatesOf(t, exposed)
			e := risk.Evaluator{Matcher: graphtest.Facts, RiskConditions: true}.Evaluate(ctx, nil, u.Conditional, nil, graphtest.Start)
			if len(e.Conditional) != 300 || len(e.Conditional[0].Conditions[0].Message) > 1024 {
				t.Errorf("%d updates, messages of %d bytes", len(e.Conditional), len(e.Conditional[0].Conditions[0].Message))
			}
			e = risk.Evaluator{Matcher: graphtest.Facts, MaxBytes: 100_000}.Evaluate(ctx, []configv1.Release{u.Conditional[0].Release}, u.Conditional, nil, graphtest.Start)
			if len(e.Conditional) == 0 || len(e.Conditional)+len(e.Dropped) != 300 || e.Conditional[0].Release.Version != "4.1.300" || e.Dropped[0].Cause != graph.ExceedsLimit || e.Available != nil {
				t.Errorf("%d updates, %d dropped, available %v", len(e.Conditional), len(e.Dropped), e.Available)
			}
			wantLimit(t, e.Dropped[0].Err, "bytes of updates in a ClusterVersion", 100_000)
			return 0
		}},
		{Limit: "characters of a condition's message", Default: 32_768, Bytes: 4 * mib, Run: func(t *testing.T) int64 {
			e := risk.Evaluator{Matcher: graphtest.Facts}.Evaluate(ctx, nil, updatesOf(t, loud).Conditional, nil, graphtest.Start)
			message := e.Conditional[0].Conditions[0].Message
			if n := utf8.RuneCountInString(message); n > 32_768 || !strings.HasSuffix(message, "more bytes)") {
				t.Errorf("%d characters", n)
			}
			return 0
		}},
		{Limit: "risks in ClusterVersion's list", Default: 500, Bytes: 2 * mib, Run: func(t *testing.T) int64 {
			if risks := risk.ConditionalUpdateRisks(named); len(risks) != 500 || risks[0].Name != "R0" {
				t.Errorf("%d risks", len(risks))
			}
			return 0
		}},

		{Limit: "kept answers", Default: 16, Bytes: 4 * mib, Steps: 0, Run: func(*testing.T) int64 { return kept(&graph.Client{}, oneNode, 17) }},
		{Limit: "bytes of kept answers", Default: 64 << 20, Bytes: 1100 * mib, Steps: 0, Run: func(*testing.T) int64 { return kept(&graph.Client{}, half, 2) }},
		{Limit: "repetitions of a request", Default: 2, Bytes: mib, Steps: 3, Run: func(t *testing.T) (asked int64) {
			synctest.Test(t, func(t *testing.T) {
				c := &graph.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) { asked++; return answer(r, 429, ""), nil })}
				_, err := c.Fetch(t.Context(), query)
				wantError(t, err, "429")
			})
			return asked
		}},
		{Limit: "wait that a service asks for", Default: int64(2 * time.Minute), Bytes: mib, Steps: 1, Run: func(t *testing.T) (asked int64) {
			synctest.Test(t, func(t *testing.T) {
				c := &graph.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
					asked++
					return answer(r, 503, "", "Retry-After", "121"), nil
				})}
				_, err := c.Fetch(t.Context(), query)
				wantError(t, err, "503")
			})
			return asked
		}},

		{Limit: "bytes of an answer of Prometheus", Default: 16 << 20, Bytes: 40 * mib, Run: func(t *testing.T) int64 {
			_, err := answers(long).Query(ctx, "up")
			wantError(t, err, "limit of 16777216 bytes")
			return 0
		}},
		{Limit: "samples of an answer", Default: 10_000, Bytes: 16 * mib, Run: func(t *testing.T) int64 {
			_, err := answers(vector).Query(ctx, "up")
			wantError(t, err, "limit of 10000 samples")
			return 0
		}},
		{Limit: "alerts", Default: 5_000, Bytes: 8 * mib, Run: func(t *testing.T) int64 {
			_, err := answers(alerts).Firing(ctx)
			wantError(t, err, "limit of 5000 alerts")
			return 0
		}},
		{Limit: "labels of an alert", Default: 100, Bytes: 256 << 10, Run: func(t *testing.T) int64 {
			_, err := answers(labels).Firing(ctx)
			wantError(t, err, "limit of 100 labels")
			return 0
		}},
		{Limit: "remembered rules", Default: 2_000, Bytes: 16 * mib, Steps: 2_002, Run: func(t *testing.T) (evaluated int64) {
			synctest.Test(t, func(t *testing.T) { evaluated = remembered(t, 2_001, func(i int) string { return fmt.Sprint("q", i) }) })
			if evaluated != 2_002 {
				t.Errorf("%d evaluations: the first rule is remembered, or the last is not", evaluated)
			}
			return evaluated
		}},
		{Limit: "bytes of remembered rules", Default: 8 << 20, Bytes: 200 * mib, Steps: 35, Run: func(t *testing.T) (evaluated int64) {
			text := strings.Repeat("q", 256<<10)
			synctest.Test(t, func(t *testing.T) { evaluated = remembered(t, 34, func(i int) string { return text + fmt.Sprint(i) }) })
			if evaluated != 35 {
				t.Errorf("%d evaluations: the first rule is remembered, or the last is not", evaluated)
			}
			return evaluated
		}},

		{Limit: "releases in a network", Default: 1 << 20, Bytes: 400 * mib, Run: func(t *testing.T) int64 {
			_, err := path.NewNetwork(ctx, path.NetworkOptions{}, channels...)
			wantLimit(t, err, "releases in all channels", 1<<20)
			return 0
		}},
		{Limit: "risks on a network's edges", Default: 4_000_000, Bytes: 400 * mib, Run: func(t *testing.T) int64 {
			_, err := path.NewNetwork(ctx, path.NetworkOptions{}, path.ChannelGraph{Channel: "c", Graph: crossed})
			wantLimit(t, err, "risks on all edges", 4_000_000)
			return 0
		}},
	})
}

// However a few kilobytes of gzip are spent, an answer of them costs little: the
// text itself twice, since a buffer grows by doubling, and what MaxMemory bounds.
func TestSmallAnswersAllocateLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("decodes 16 MB several times")
	}
	text := 16 << 20 // of JSON, which gzip makes 16 KB of
	if israce.Enabled {
		text = 1 << 20
	}
	repeat := func(before, element, after string) string {
		return before + strings.TrimSuffix(strings.Repeat(element+",", (text-len(before)-len(after))/(len(element)+1)), ",") + after
	}
	for name, body := range map[string]string{
		"entries":               repeat(`{"conditionalEdges":[`, `{}`, `]}`),
		"null entries":          repeat(`{"conditionalEdges":[`, `null`, `]}`),
		"risks":                 repeat(`{"conditionalEdges":[{"risks":[`, `{}`, `]}]}`),
		"entries full of risks": repeat(`{"conditionalEdges":[`, `{"risks":[`+list(900, `{}`)+`]}`, `]}`),
		"rules":                 repeat(`{"conditionalEdges":[`, `{"risks":[{"matchingRules":[`+list(99, `{"promql":{}}`)+`]}]}`, `]}`),
		"edges":                 repeat(`{"edges":[`, `[0,0]`, `]}`),
		"brackets":              repeat(`{"edges":[[0,0]],"x":"`, `[[[[`, `"}`),
		"pairs":                 repeat(`{"conditionalEdges":[`, `{"edges":[`+list(5000, `{"from":"a","to":"b"}`)+`]}`, `]}`),
		"nodes without any":     repeat(`{"nodes":[`, `{"version":"4.1.0","payload":"a"}`, `]}`),
		"metadata":              `{"nodes":[{"version":"4.1.0","payload":"a","metadata":{"k":` + repeat(`[`, `[]`, `]`) + `}}]}`,
		"channels":              `{"nodes":[{"version":"4.1.0","payload":"a","metadata":{"` + graph.MetadataChannels + `":"` + strings.Repeat(",", 900) + `"}}],"x":"` + strings.Repeat("x", text) + `"}`,
		"keys":                  `{"x":{` + list(1_500_000, `"%d":0`) + `}}`,
		"objects":               repeat(`{"x":[`, `{}`, `]}`),
	} {
		compressed := gzipped(body)
		for _, compat := range []bool{false, true} {
			c := &graph.Client{Decode: graph.DecodeOptions{Compat: compat}, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				resp := answer(r, 200, "", "Content-Encoding", "gzip")
				resp.Body = io.NopCloser(bytes.NewReader(compressed))
				return resp, nil
			})}
			spent := graphtest.Allocated(func() {
				if g, err := c.Fetch(context.Background(), query); err == nil {
					g.Updates(graph.UpdatesQuery{Version: "4.1.0"})
				}
			})
			if most := uint64(2*text + 200<<20); spent > most {
				t.Errorf("%s (%d bytes, Compat %v): %d MiB, at most %d are allowed", name, len(compressed), compat, spent>>20, most>>20)
			}
		}
	}
}

func gzipped(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.Bytes()
}
