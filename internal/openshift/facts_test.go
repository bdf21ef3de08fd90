package openshift_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

func texts(minors []openshift.Minor) string {
	var out []string
	for _, m := range minors {
		out = append(out, m.String())
	}
	return strings.Join(out, " ")
}

// Every question about every minor version from 4.10 to 5.8.
func TestFacts(t *testing.T) {
	want := `minor next previous eus up hops kubernetes skew packages
4.10 4.11 4.9 true 4.10 4.11+4.12 23 2 true
4.11 4.12 4.10 false 4.12 - 24 1 true
4.12 4.13 4.11 true 4.12 4.13+4.14 25 2 true
4.13 4.14 4.12 false 4.14 - 26 1 true
4.14 4.15 4.13 true 4.14 4.15+4.16 27 2 true
4.15 4.16 4.14 false 4.16 - 28 1 true
4.16 4.17 4.15 true 4.16 4.17+4.18 29 2 true
4.17 4.18 4.16 false 4.18 - 30 1 true
4.18 4.19 4.17 true 4.18 4.19+4.20 31 2 true
4.19 4.20 4.18 false 4.20 - 32 1 false
4.20 4.21 4.19 true 4.20 4.21+4.22 33 2 false
4.21 4.22 4.20 false 4.22 - 34 1 false
4.22 5.0+4.23 4.21 true 4.22 5.0+5.1+5.2 35 2 false
4.23 5.1 4.22 false 5.2 - 36 1 false
5.0 5.1 4.22 false 5.2 - 36 1 false
5.1 5.2 5.0+4.23 false 5.2 - ? 2 false
5.2 5.3 5.1 true 5.2 5.3+5.4+5.5 ? 3 false
5.3 5.4 5.2 false 5.5 - ? 1 false
5.4 5.5 5.3 false 5.5 - ? 2 false
5.5 5.6 5.4 true 5.5 5.6+5.7+5.8 ? 3 false
5.6 5.7 5.5 false 5.8 - ? 1 false
5.7 5.8 5.6 false 5.8 - ? 2 false
5.8 5.9 5.7 true 5.8 5.9+5.10+5.11 ? 3 false`
	got := "minor next previous eus up hops kubernetes skew packages"
	list := func(minors []openshift.Minor) string {
		if minors == nil {
			return "-"
		}
		return strings.ReplaceAll(texts(minors), " ", "+")
	}
	for line := range strings.Lines(want) {
		m, err := openshift.ParseMinor(strings.Fields(line)[0])
		if err != nil {
			continue // the heading
		}
		kubernetes := "?"
		if k, known := m.Kubernetes(); known {
			kubernetes = fmt.Sprint(k)
		}
		got += fmt.Sprintf("\n%s %s %s %v %s %s %s %d %v", m, list(m.Next()), list(m.Previous()), m.EUS(), m.RoundUpEUS(),
			list(m.ControlPlaneOnly()), kubernetes, m.KubeletSkew(), m.PackageBased())
	}
	checktest.Same(t, want, got)
}

// Kubelets of paused pools are within the skew at each hop of a control-plane-only update,
// and exactly so far.
func TestControlPlaneOnlySkew(t *testing.T) {
	for from := (openshift.Minor{Major: 4, Minor: 10}); from.Major < 6 && from.Minor < 30; {
		hops := from.ControlPlaneOnly()
		for i, hop := range hops {
			if behind := uint64(i + 1); behind > hop.KubeletSkew() {
				t.Errorf("%s at %s: %d behind, %d allowed", from, hop, behind, hop.KubeletSkew())
			}
		}
		from = hops[len(hops)-1]
	}
}

func TestSteps(t *testing.T) {
	m := func(text string) openshift.Minor { return checktest.Get(openshift.ParseMinor(text))(t) }
	for pair, want := range map[string]int{
		"4.18 4.19": 1, "4.18 4.20": 2, "4.22 5.0": 1, "4.22 4.23": 1, "4.22 5.1": 2, "4.21 5.0": 2, "4.20 5.2": 5, "4.23 5.1": 1,
		"4.18 4.18": 0, "5.0 4.22": 0, "5.0 6.0": 0,
	} {
		from, to, _ := strings.Cut(pair, " ")
		checktest.Equal(t, want, m(from).Steps(m(to)), "%s", pair)
	}
	if m("5.0").Follows(m("4.21")) || !m("5.0").Follows(m("4.22")) || !slices.Contains(m("5.1").Previous(), m("4.23")) {
		t.Error("what follows what")
	}
	checktest.Equal(t, 0, len(openshift.Minor{Major: 6}.Previous()), "before 6.0")
}
