package graph_test

import (
	stdcmp "cmp"
	"slices"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
)

func TestParseChannel(t *testing.T) {
	for name, want := range map[string]graph.Channel{
		"stable-4.8":      {Type: "stable", Major: 4, Minor: 8},
		"eus-4.16":        {Type: "eus", Major: 4, Minor: 16},
		"candidate-5.0":   {Type: "candidate", Major: 5},
		"my-own-one-4.10": {Type: "my-own-one", Major: 4, Minor: 10},
	} {
		if got, ok := graph.ParseChannel(name); !ok || got != want || got.String() != name {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	for _, name := range []string{"", "stable", "stable-4", "stable-scos-4", "-4.8", "stable-4.8.1", "stable-4.08", "stable-4.", "stable-.8", "stable-4.x", "stable-v4.8", "stable-4.8 ", "stable-+4.8", "stable-4.99999999999999999999"} {
		if got, ok := graph.ParseChannel(name); ok {
			t.Errorf("%q parses as %+v", name, got)
		}
	}
}

func TestCompareChannels(t *testing.T) {
	want := []string{"", "nightly", "stable-4", "candidate-4.9", "stable-4.9", "eus-4.10", "stable-4.10", "candidate-5.0"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, graph.CompareChannels)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for i := range want {
		for j := range want {
			if c := graph.CompareChannels(want[i], want[j]); (c < 0) != (i < j) || (c == 0) != (i == j) {
				t.Errorf("%q against %q: %d", want[i], want[j], c)
			}
		}
	}
}

func TestChannelFor(t *testing.T) {
	for _, tt := range []struct{ group, version, want string }{
		{"", "4.13.2", "stable-4.13"}, {"fast", "4.13.2", "fast-4.13"},
		{"eus", "4.13.2", "eus-4.14"}, {"eus", "4.14.2", "eus-4.14"},
	} {
		v, err := graph.ParseVersion(tt.version)
		if err != nil {
			t.Fatal(err)
		}
		if got := graph.ChannelFor(tt.group, v); got != tt.want {
			t.Errorf("%q for %s: %s, want %s", tt.group, tt.version, got, tt.want)
		}
	}
}

func TestCompareVersions(t *testing.T) {
	// Each is below the next; what does not parse comes first, bytewise.
	order := []string{"", "4.1", "v4.1.0", "4.1.0-rc.1", "4.1.0", "4.9.0", "4.10.0-a", "4.10.0", "5.0.0"}
	for i, a := range order {
		for j, b := range order {
			if got := graph.CompareVersions(a, b); got != stdcmp.Compare(i, j) {
				t.Errorf("%q to %q: %d", a, b, got)
			}
		}
	}
	if graph.CompareVersions("4.1.0+a", "4.1.0+b") != 0 {
		t.Error("a build takes part")
	}
}

func TestOfferedChannels(t *testing.T) {
	r := configv1.Release{Channels: []string{"stable-4.10", "fast-4.9", "stable-4.9"}}
	if diff := cmp.Diff([]string{"fast-4.9", "stable-4.9", "stable-4.10"}, graph.OfferedChannels(r)); diff != "" {
		t.Error(diff)
	}
	if r.Channels[0] != "stable-4.10" {
		t.Error("the release was changed")
	}
}

func TestUnexpectedChannels(t *testing.T) {
	for name, tt := range map[string]struct{ version, channels, want string }{
		"odd":            {"4.13.40", "candidate-4.13,fast-4.14,eus-4.14,stable-4.12,stable-4.15,eus-4.13", "stable-4.12,eus-4.13,stable-4.15"},
		"even":           {"4.14.27", "stable-4.14,stable-4.15,stable-4.16,eus-4.14,eus-4.15,eus-4.16,fast-4.17", "eus-4.15,fast-4.17"},
		"another major":  {"4.22.1", "candidate-5.0,stable-4.22", ""},
		"other names":    {"4.14.1", "stable-4,stable-scos-4", ""},
		"not a version":  {"4.14", "stable-4.1", ""},
		"nothing at all": {"4.14.1", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := configv1.Release{Version: tt.version}
			if tt.channels != "" {
				r.Channels = strings.Split(tt.channels, ",")
			}
			if got := strings.Join(graph.UnexpectedChannels(r), ","); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
	g, err := graph.DecodeBytes(graphtest.ReadGraph(t, graphtest.RealGraph), graph.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range g.Nodes() {
		if r, err := n.Release(); err != nil || len(r.Channels) == 0 || len(graph.UnexpectedChannels(r)) > 0 {
			t.Errorf("%s: %v of %v (%v)", r.Version, graph.UnexpectedChannels(r), r.Channels, err)
		}
	}
}

func TestCheckChannelChange(t *testing.T) {
	offered := []string{"stable-4.10", "stable-4.9"}
	for _, tt := range []struct {
		name    string
		c       graph.ChannelChange
		changed bool
		warning string
		err     string
	}{
		{"same", graph.ChannelChange{Present: "x", Requested: "x", Offered: offered}, false, "", ""},
		{"offered", graph.ChannelChange{Present: "x", Requested: "stable-4.9", Offered: offered}, true, "", ""},
		{"not offered", graph.ChannelChange{Present: "stable-4.9", Requested: "y", Offered: offered}, false, "",
			`the requested channel "y" is not one of the available channels (stable-4.9, stable-4.10), you must pass --allow-explicit-channel to continue`},
		{"forced", graph.ChannelChange{Present: "stable-4.9", Requested: "y", Offered: offered, Force: true}, true, "", ""},
		{"not known", graph.ChannelChange{Requested: "y"}, true, `no channels known to be compatible with the current version; unable to validate "y"`, ""},
		{"clear an offered one", graph.ChannelChange{Present: "stable-4.9", Offered: offered}, false, "",
			`clearing channel "stable-4.9", one of the available channels (stable-4.9, stable-4.10), stops the retrieval of updates: this must be forced`},
		{"clear by force", graph.ChannelChange{Present: "stable-4.9", Offered: offered, Force: true}, true, "", ""},
		{"clear another", graph.ChannelChange{Present: "x", Offered: offered}, true, "", ""},
	} {
		changed, warning, err := graph.CheckChannelChange(tt.c)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if changed != tt.changed || warning != tt.warning || text != tt.err {
			t.Errorf("%s: %v, %q, %q", tt.name, changed, warning, text)
		}
	}
}

func TestGraphChannels(t *testing.T) {
	g, err := graph.DecodeBytes(graphtest.ReadGraph(t, graphtest.RealGraph), graph.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"candidate-4.7", "fast-4.7", "stable-4.7", "candidate-4.8", "eus-4.8", "fast-4.8", "stable-4.8", "candidate-4.9", "fast-4.9", "stable-4.9", "eus-4.10"}
	if diff := cmp.Diff(want, g.Channels()); diff != "" {
		t.Error(diff)
	}
}
