package graphdata_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/israce"
)

// TestRealComparison: what is built of the real tree against the plain reading, in
// both modes: the first minors, which most drops are about, and later ones, which
// most risks are about.
func TestRealComparison(t *testing.T) {
	if israce.Enabled {
		t.Skip("one goroutine compares a lot: nothing that a race detector looks for")
	}
	tree := loadReal(t)
	all := approximated(tree)
	for _, c := range []struct{ minors, arches []string }{
		{[]string{"4.1.", "4.2.", "4.3."}, []string{"amd64", "s390x", "ppc64le"}},
		{[]string{"4.13.", "4.14."}, []string{"arm64"}},
	} {
		var releases []graphdata.Release
		for _, r := range all {
			if slices.Contains(c.arches, r.Arch) && slices.ContainsFunc(c.minors, func(minor string) bool { return strings.HasPrefix(r.Version, minor) }) {
				releases = append(releases, r)
			}
		}
		for _, peer := range []bool{false, true} {
			s := build(t, tree, releases, graphdata.BuildOptions{Compat: peer, Partial: true})
			want := readPlainly(tree, releases, peer)
			if want == nil {
				t.Fatal("the plain reading fails")
			}
			compareLines(t, want.lines(), fullLines(s.Full()))
			graphs := 0
			for _, arch := range s.Arches() {
				for at, channel := range s.Channels(arch) {
					if at%4 > 0 { // the others hold the same releases
						continue
					}
					graphs++
					compareLines(t, want.served(channel, arch), servedLines(s.Graph(channel, arch)))
				}
			}
			r := s.Report()
			t.Logf("%v, peer %v: %d releases, %d edges, %d conditional, %d removed; %d graphs compared", c.minors, peer, len(releases), r.Edges, r.Conditional, r.Removed, graphs)
		}
	}
}

// compareLines compares at once what is equal, as most is.
func compareLines(t *testing.T, want, got []string) {
	t.Helper()
	if !slices.Equal(want, got) {
		t.Errorf("-plain +built\n%.5000s", cmp.Diff(want, got))
	}
}
