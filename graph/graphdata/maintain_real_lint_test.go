package graphdata_test

import (
	"path"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/maintain"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
)

// TestLintRealTree: what is odd in the real tree, each kind with its cause. None
// is an error: the maintainers' own checks pass.
func TestLintRealTree(t *testing.T) {
	if israce.Enabled {
		t.Skip("one goroutine computes for long: nothing that a race detector looks for")
	}
	tree, err := graphdata.Load(t.Context(), realTree(t), graphdata.LoadOptions{InternalChannels: true})
	checktest.OK(t, err)
	got := map[string]int{}
	for _, p := range maintain.Lint(tree, nil, maintain.LintOptions{}) {
		got[p.Rule]++
		if !p.Warning {
			t.Error(p)
		}
	}
	want := map[string]int{
		"eus-feeder":         1,  // eus-4.8 waits a week, as stable did then
		"filter-excludes":    3,  // filters that became narrower, and one from before builds
		"from-half-dead":     5,  // 50]
		"from-within-number": 33, // 4.15.45 by 4[.]15[.][0-9]
		"from-other-minor":   8,  // 4.18.* matches 4.14.18 too
		"tombstone":          8,  // skipped, and not even in the channel
		"tombstone-promoted": 18, // tombstones that came after the promotion
		"version-twice":      1,  // 5.0.0-ec.0 in the internal candidate
	}
	checktest.Same(t, want, got)
}

// TestLintRealTreeBuilt: with the predecessors that builds were told to name, every
// release of the later channels has a patch update and a way to the channel's minor.
func TestLintRealTreeBuilt(t *testing.T) {
	if israce.Enabled {
		t.Skip("one goroutine computes for long: nothing that a race detector looks for")
	}
	tree := loadReal(t)
	s := build(t, tree, approximated(tree), graphdata.BuildOptions{})
	found := map[string]int{}
	for _, p := range maintain.Lint(tree, s, maintain.LintOptions{}) {
		found[p.Rule]++
		if p.Rule != "updates-out" && p.Rule != "updates-patch" {
			continue
		}
		name, ok := graph.ParseChannel(strings.TrimSuffix(path.Base(p.File), ".yaml"))
		if !ok || name.Major > 4 || name.Minor > 10 {
			t.Error(p) // the suggestions of earlier minors leave out releases
		}
	}
	for _, rule := range []string{"updates-out", "updates-patch", "from-matches-nothing"} {
		if found[rule] == 0 {
			t.Errorf("%s finds nothing in the early channels", rule)
		}
	}
	if found["from-other-minor"] != 8 {
		t.Errorf("%d expressions of two minors, as many as without releases are 8", found["from-other-minor"])
	}
}

func BenchmarkLintSnapshot(b *testing.B) {
	tree := loadReal(b)
	s := checktest.Must(graphdata.Build(tree, approximated(tree), graphdata.BuildOptions{}))
	b.ReportAllocs()
	for b.Loop() {
		maintain.Lint(tree, s, maintain.LintOptions{})
	}
}

func BenchmarkLint(b *testing.B) {
	tree, err := graphdata.Load(b.Context(), realTree(b), graphdata.LoadOptions{InternalChannels: true})
	checktest.OK(b, err)
	b.ReportAllocs()
	for b.Loop() {
		maintain.Lint(tree, nil, maintain.LintOptions{})
	}
}
