package policyengine

import (
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// metricPrefix is the prefix of the existing service's engine.
const metricPrefix = "cincinnati_pe_"

// families are the metrics, in the order in which they are written.
var families = []struct{ name, kind, help string }{
	{"build_info", "gauge", "The commit that the program was built of."},
	{"graph_incoming_requests_total", "counter", "Requests for graphs."},
	{"graph_serve_duration_seconds", "histogram", "How long requests for graphs took."},
	{"graph_response_errors_total", "counter", "Answers that were errors."},
	{"signatures_incoming_requests_total", "counter", "Requests for signatures."},
	{"signatures_serve_duration_seconds", "histogram", "How long requests for signatures took."},
	{"graph_final_releases", "gauge", "Releases of the graph that is served."},
	{"graph_age_seconds", "gauge", "For how long the graph that is served has not been set."},
	{"graph_last_successful_refresh_timestamp", "gauge", "When the graph was last set, in seconds since 1970."},
	{"graph_cached_bytes", "gauge", "Bytes of the answers that are kept."},
	{"http_upstream_requests_total", "counter", "Attempts of a Refresher to load a graph."},
	{"http_upstream_errors_total", "counter", "Attempts of a Refresher that failed."},
}

// bounds are the upper ends of a histogram's buckets, in seconds.
var bounds = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 5}

// counts are what a handler counts.
type counts struct {
	graphs        map[string]*atomic.Uint64 // by path
	signed        string
	signatures    atomic.Uint64
	graphTimes    histogram
	signedTimes   histogram
	loads, failed atomic.Uint64

	mu     sync.Mutex
	errors map[outcome]uint64
}

type outcome struct {
	code int
	kind string
}

func newCounts(graphs []string, signed string) *counts {
	c := &counts{graphs: map[string]*atomic.Uint64{}, signed: signed, errors: map[outcome]uint64{}}
	for _, path := range graphs {
		c.graphs[path] = new(atomic.Uint64)
	}
	return c
}

// request counts one. Labels are paths that are served and kinds of errors: no
// client can add one.
func (c *counts) request(path string, code int, kind string, took time.Duration) {
	if n := c.graphs[path]; n != nil {
		n.Add(1)
		c.graphTimes.observe(took)
	} else if path == c.signed && path != "" {
		c.signatures.Add(1)
		c.signedTimes.observe(took)
	}
	if kind != "" {
		c.mu.Lock()
		c.errors[outcome{code, kind}]++
		c.mu.Unlock()
	}
}

// histogram counts durations.
type histogram struct {
	buckets [12]atomic.Uint64 // the last: above all bounds
	sum     atomic.Int64      // nanoseconds
}

func (h *histogram) observe(d time.Duration) {
	at, _ := slices.BinarySearch(bounds, d.Seconds())
	h.buckets[at].Add(1)
	h.sum.Add(int64(d))
}

func (h *histogram) samples(add func(name string, value float64, labels ...string), name string) {
	total := uint64(0)
	for i := range h.buckets {
		total += h.buckets[i].Load()
		le := "+Inf"
		if i < len(bounds) {
			le = strconv.FormatFloat(bounds[i], 'g', -1, 64)
		}
		add(name+"_bucket", float64(total), "le", le)
	}
	add(name+"_sum", time.Duration(h.sum.Load()).Seconds())
	add(name+"_count", float64(total))
}

// Samples returns the metrics as data: those of the existing service's engine, with
// its names, and some of its builder's. What no graph exists for is left out.
func (h *Handler) Samples() []clusterapi.Sample {
	var out []clusterapi.Sample
	for _, f := range h.collect() {
		out = append(out, f...)
	}
	return out
}

// collect returns the samples of each family.
func (h *Handler) collect() [][]clusterapi.Sample {
	out := make([][]clusterapi.Sample, len(families))
	current := h.current.Load()
	for i, f := range families {
		add := func(name string, value float64, labels ...string) {
			s := clusterapi.Sample{Name: metricPrefix + name, Labels: map[string]string{}, Value: value}
			for j := 0; j+1 < len(labels); j += 2 {
				s.Labels[labels[j]] = labels[j+1]
			}
			out[i] = append(out[i], s)
		}
		h.counts.collect(f.name, add)
		if current != nil {
			h.collectGraph(current, f.name, add)
		}
	}
	return out
}

func (c *counts) collect(name string, add func(name string, value float64, labels ...string)) {
	switch name {
	case "build_info":
		add(name, 1, "git_commit", commit())
	case "graph_incoming_requests_total":
		for _, path := range slices.Sorted(maps.Keys(c.graphs)) {
			add(name, float64(c.graphs[path].Load()), "uri_path", path)
		}
	case "graph_serve_duration_seconds":
		c.graphTimes.samples(add, name)
	case "graph_response_errors_total":
		c.mu.Lock()
		defer c.mu.Unlock()
		for o, n := range c.errors {
			add(name, float64(n), "code", strconv.Itoa(o.code), "kind", o.kind)
		}
	case "signatures_incoming_requests_total":
		if c.signed != "" {
			add(name, float64(c.signatures.Load()), "uri_path", c.signed)
		}
	case "signatures_serve_duration_seconds":
		if c.signed != "" {
			c.signedTimes.samples(add, name)
		}
	case "http_upstream_requests_total":
		add(name, float64(c.loads.Load()))
	case "http_upstream_errors_total":
		add(name, float64(c.failed.Load()))
	}
}

func (h *Handler) collectGraph(c *current, name string, add func(name string, value float64, labels ...string)) {
	switch name {
	case "graph_final_releases":
		add(name, float64(c.content.nodes))
	case "graph_age_seconds":
		add(name, h.o.Clock.Since(c.at).Seconds())
	case "graph_last_successful_refresh_timestamp":
		add(name, float64(c.at.UnixNano())/1e9)
	case "graph_cached_bytes":
		c.content.mu.Lock()
		defer c.content.mu.Unlock()
		add(name, float64(c.content.size))
	}
}

// writeMetrics writes the samples in the text format of Prometheus.
func (h *Handler) writeMetrics(w io.Writer) {
	for i, samples := range h.collect() {
		if len(samples) == 0 {
			continue
		}
		f := families[i]
		lines := make([]string, len(samples))
		for j, s := range samples {
			lines[j] = s.String()
		}
		if f.name == "graph_response_errors_total" {
			slices.Sort(lines)
		}
		_, _ = fmt.Fprintf(w, "# HELP %s%s %s\n# TYPE %[1]s%[2]s %[4]s\n", metricPrefix, f.name, f.help, f.kind) // into memory
		for _, line := range lines {
			_, _ = fmt.Fprintln(w, line)
		}
	}
}

// commit is what the program was built of, as the go command knows it.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "unknown"
}
