package graph_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
)

// decoding returns a run that decodes a text past a limit.
func decoding(text, limit string, most int64) func(*testing.T) int64 {
	data := []byte(text)
	return func(t *testing.T) int64 {
		_, err := graph.DecodeBytes(data, graph.DecodeOptions{})
		graphtest.WantLimit(t, err, limit, most)
		return 0
	}
}

func TestLimits(t *testing.T) {
	const small, mib = 64 << 10, 1 << 20
	ctx := context.Background()
	wantError := func(t *testing.T, err error, text string) {
		t.Helper()
		checktest.ErrorHas(t, text, err)
	}

	wide, huge := graphtest.Fan(t, 100_000-1, graphtest.ManyRisks(1, "m")), graphtest.Fan(t, 20, graphtest.ManyRisks(5, strings.Repeat("m", 20_000)))
	many, risky := graphtest.Fan(t, 501, graphtest.ManyRisks(1, "m")), graphtest.Fan(t, 1, graphtest.ManyRisks(201, "m"))
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
				checktest.Good(t, checktest.Err(c.Fetch(ctx, q)))
			}
		}
		return conditional
	}
	half := `{"x":"` + strings.Repeat("x", 33<<20) + `"}`

	limittest.Walk(t, []limittest.Case{
		{Limit: "bytes of JSON", Default: 64 << 20, Bytes: 4096, Run: decoding(strings.Repeat(" ", 64<<20+1), "bytes", 64<<20)},
		{Limit: "bytes of memory", Default: 128 << 20, Bytes: 200 * mib,
			Run: decoding(`{"conditionalEdges":[`+graphtest.List(2_000, `{"risks":[`+graphtest.List(400, `{}`)+`]}`)+`]}`, "bytes of memory", 128<<20)},
		{Limit: "nodes", Default: 100_000, Bytes: 100 * mib, Run: decoding(`{"nodes":[`+graphtest.List(100_001, `{"version":"4.1.%d","payload":"a"}`)+`]}`, "nodes", 100_000)},
		{Limit: "edges, conditional ones included", Default: 4_000_000, Bytes: 40 * mib, Run: decoding(`{"edges":[`+graphtest.List(4_000_001, `[0,0]`)+`]}`, "edges", 4_000_000)},
		{Limit: "conditional entries", Default: 100_000, Bytes: 40 * mib, Run: decoding(`{"conditionalEdges":[`+graphtest.List(100_001, `{}`)+`]}`, "conditional entries", 100_000)},
		{Limit: "edges of a conditional entry", Default: 100_000, Bytes: 40 * mib,
			Run: decoding(`{"conditionalEdges":[{"edges":[`+graphtest.List(100_001, `{"from":"a","to":"b"}`)+`]}]}`, "edges of a conditional entry", 100_000)},
		{Limit: "risks of a conditional entry", Default: 1_000, Bytes: mib, Run: decoding(`{"conditionalEdges":[{"risks":[`+graphtest.List(1_001, `{}`)+`]}]}`, "risks of a conditional entry", 1_000)},
		{Limit: "matching rules of a risk", Default: 100, Bytes: small, Run: decoding(`{"conditionalEdges":[{"risks":[{"matchingRules":[`+graphtest.List(101, `{}`)+`]}]}]}`, "matching rules of a risk", 100)},
		{Limit: "keys of an object", Default: 1_000, Bytes: mib, Run: decoding(`{"x":{`+graphtest.List(1_001, `"%d":0`)+`}}`, "keys of an object", 1_000)},
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
			u := graphtest.Updates(t, huge)
			if len(u.Conditional) != 10 || u.Conditional[0].Release.Version != "4.1.11" || len(u.Dropped) != 10 || u.Dropped[0].Cause != graph.ExceedsLimit {
				t.Errorf("%d updates, %d dropped", len(u.Conditional), len(u.Dropped))
			}
			graphtest.WantLimit(t, u.Dropped[0].Err, "bytes of updates in a ClusterVersion", 1<<20)
			return 0
		}},
		{Limit: "conditional updates", Default: 500, Bytes: 2 * mib, Run: func(t *testing.T) int64 {
			u := graphtest.Updates(t, many)
			if len(u.Conditional) != 500 || len(u.Dropped) != 1 || u.Dropped[0].Release.Version != "4.1.1" || u.Dropped[0].Cause != graph.ExceedsLimit {
				t.Errorf("%d updates, dropped %+v", len(u.Conditional), u.Dropped)
			}
			graphtest.WantLimit(t, u.Dropped[0].Err, "conditional updates in a ClusterVersion", 500)
			return 0
		}},
		{Limit: "risks of an update", Default: 200, Bytes: mib, Run: func(t *testing.T) int64 {
			u := graphtest.Updates(t, risky)
			if len(u.Conditional) != 0 || len(u.Dropped) != 1 || u.Dropped[0].Cause != graph.InvalidRisks {
				t.Fatalf("dropped %+v", u.Dropped)
			}
			wantError(t, u.Dropped[0].Err, "201 risks, of which a ClusterVersion can hold 200")
			return 0
		}},
		{Limit: "targets listed as dropped", Default: 1_000, Bytes: 60 * mib, Run: func(t *testing.T) int64 {
			if u := graphtest.Updates(t, wide); len(u.Conditional) != 500 || len(u.Dropped) != 1_000 || u.DroppedMore != 98_499 {
				t.Errorf("%d updates, %d and %d dropped", len(u.Conditional), len(u.Dropped), u.DroppedMore)
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
		"entries full of risks": repeat(`{"conditionalEdges":[`, `{"risks":[`+graphtest.List(900, `{}`)+`]}`, `]}`),
		"rules":                 repeat(`{"conditionalEdges":[`, `{"risks":[{"matchingRules":[`+graphtest.List(99, `{"promql":{}}`)+`]}]}`, `]}`),
		"edges":                 repeat(`{"edges":[`, `[0,0]`, `]}`),
		"brackets":              repeat(`{"edges":[[0,0]],"x":"`, `[[[[`, `"}`),
		"pairs":                 repeat(`{"conditionalEdges":[`, `{"edges":[`+graphtest.List(5000, `{"from":"a","to":"b"}`)+`]}`, `]}`),
		"nodes without any":     repeat(`{"nodes":[`, `{"version":"4.1.0","payload":"a"}`, `]}`),
		"metadata":              `{"nodes":[{"version":"4.1.0","payload":"a","metadata":{"k":` + repeat(`[`, `[]`, `]`) + `}}]}`,
		"channels":              `{"nodes":[{"version":"4.1.0","payload":"a","metadata":{"` + graph.MetadataChannels + `":"` + strings.Repeat(",", 900) + `"}}],"x":"` + strings.Repeat("x", text) + `"}`,
		"keys":                  `{"x":{` + graphtest.List(1_500_000, `"%d":0`) + `}}`,
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

// A number below zero is refused with the name of its field.
func TestNegativeOptions(t *testing.T) {
	ctx := context.Background()
	g := graphtest.Sketch(t, "4.1.0>4.1.1", nil)
	network, err := path.NewNetwork(ctx, path.NetworkOptions{}, path.ChannelGraph{Channel: "stable-4.1", Graph: g})
	checktest.OK(t, err)
	fetch := func(c *graph.Client) error {
		_, err := c.Fetch(ctx, graph.Query{Channel: "stable-4.1", Arch: "amd64", Version: "4.1.0", ClusterID: clusterID})
		return err
	}
	for want, ask := range map[string]func() error{
		"graph.Client: Timeout is negative: -1s":        func() error { return fetch(&graph.Client{Timeout: -time.Second}) },
		"graph.Client: Kept is negative: -1":            func() error { return fetch(&graph.Client{Kept: -1}) },
		"graph.Client: Decode.MaxNodes is negative: -1": func() error { return fetch(&graph.Client{Decode: graph.DecodeOptions{MaxNodes: -1}}) },
		"graph.DecodeOptions: MaxBytes is negative: -1": func() error {
			_, err := graph.Decode(strings.NewReader("{}"), graph.DecodeOptions{MaxBytes: -1})
			return err
		},
		"graph.DecodeOptions: MaxEdges is negative: -1": func() error { _, err := graph.DecodeBytes([]byte("{}"), graph.DecodeOptions{MaxEdges: -1}); return err },
		"graph.DecodeOptions: MaxRisks is negative: -1": func() error { _, err := graph.New(graph.Data{}, graph.DecodeOptions{MaxRisks: -1}); return err },
		"graph.UpdatesQuery: MaxBytes is negative: -1":  func() error { _, err := g.Updates(graph.UpdatesQuery{Version: "4.1.0", MaxBytes: -1}); return err },
		"risk.Cache: MinFor is negative: -1h0m0s": func() error {
			_, err := (&risk.Cache{Matcher: graphtest.Facts, MinFor: -time.Hour}).Match(ctx, graphtest.PromQL("T"))
			return err
		},
		"risk.Prometheus: MaxSamples is negative: -1":   func() error { _, err := (&risk.Prometheus{MaxSamples: -1}).Query(ctx, "up"); return err },
		"path.PictureOptions: MaxNodes is negative: -1": func() error { _, err := network.Picture(path.PictureOptions{MaxNodes: -1}); return err },
	} {
		if err := ask(); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
