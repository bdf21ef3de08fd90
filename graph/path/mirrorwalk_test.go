package path_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
)

func TestMirrorChannels(t *testing.T) {
	graphs := map[string]*graph.Graph{
		// 4.8.9 is the highest; 4.8.1 leads to 4.9.1 only under a risk.
		"stable-4.8": graphtest.Sketch(t, "4.8.1>4.8.2 4.8.1>4.8.3 4.8.2>4.8.9 4.8.3>4.8.9 4.8.4", nil),
		"fast-4.8":   graphtest.Sketch(t, "4.8.1>4.8.10 4.8.0", nil),
		"stable-4.9": graphtest.Sketch(t, "4.8.9>4.9.2 4.8.9>4.9.1 4.9.1>4.9.5 4.9.2>4.9.5 4.8.1>4.9.5:U 4.9.6-rc.1", nil),
		"fast-4.9":   graphtest.Sketch(t, "4.8.10>4.9.5 4.8.9>4.9.1", nil),
		"fast-4.10":  graphtest.Sketch(t, "4.9.5>4.10.1 4.10.1>4.10.3", nil),
		"late-4.10":  graphtest.Sketch(t, "4.9.0>4.10.3", nil),
		"okd-4":      graphtest.Sketch(t, "4.0.0>4.9.9", nil),
		"odd":        graphtest.Sketch(t, "4.7.0>4.20.0", nil),
		"empty-4.8":  graphtest.Sketch(t, "", nil),
	}
	source := graph.SourceFunc(func(_ context.Context, q graph.Query) (*graph.Graph, error) {
		if g := graphs[q.Channel]; g != nil {
			return g, nil
		}
		return graphs["empty-4.8"], nil
	})
	ga := regexp.MustCompile(`^[0-9.]+$`)
	type channels = []path.MirrorChannel
	for name, tt := range map[string]struct {
		channels channels
		filter   *regexp.Regexp
		want     string
		warnings []string
		err      string
	}{
		"one: no walk":              {channels: channels{{Name: "stable-4.8"}}, want: "4.8.9"},
		"one: shortest":             {channels: channels{{Name: "stable-4.8", Min: "4.8.1", Max: "4.8.9", ShortestPath: true}}, want: "4.8.1 4.8.3 4.8.9"},
		"one: shortest without way": {channels: channels{{Name: "stable-4.8", Min: "4.8.4", Max: "4.8.9", ShortestPath: true}}, want: "4.8.4 4.8.9"},
		"one: shortest, not by a risk": {
			channels: channels{{Name: "stable-4.9", Min: "4.8.1", Max: "4.9.5", ShortestPath: true}}, want: "4.8.1 4.9.5",
		},
		"one: range":     {channels: channels{{Name: "stable-4.8", Min: "4.8.2", Full: true}}, want: "4.8.2 4.8.3 4.8.4 4.8.9"},
		"one: full":      {channels: channels{{Name: "fast-4.8", Full: true}}, want: "4.8.0 4.8.1 4.8.10"},
		"one: up to max": {channels: channels{{Name: "fast-4.8", Max: "4.8.1"}}, want: "4.8.0 4.8.1"},
		"filter":         {channels: channels{{Name: "stable-4.9"}}, filter: ga, want: "4.9.5"},
		"without filter": {channels: channels{{Name: "stable-4.9"}}, want: "4.9.6-rc.1"},
		"OKD aside: a path though none was asked for": {
			channels: channels{{Name: "okd-4", OKD: true}, {Name: "stable-4.8", Min: "4.8.4", Max: "4.8.9"}}, want: "4.8.4 4.8.9 4.9.9",
		},
		"OKD alone": {channels: channels{{Name: "okd-4", OKD: true}, {Name: "odd", OKD: true}}, want: "4.9.9 4.20.0"},
		"next minor": {
			channels: channels{{Name: "stable-4.8", Min: "4.8.1", Max: "4.8.1"}, {Name: "stable-4.9", Min: "4.9.5", Max: "4.9.5"}},
			want:     "4.8.1 4.8.3 4.8.9 4.9.2 4.9.5",
		},
		"order does not matter": {
			channels: channels{{Name: "stable-4.9", Min: "4.9.5", Max: "4.9.5"}, {Name: "stable-4.8", Min: "4.8.1", Max: "4.8.1"}},
			want:     "4.8.1 4.8.3 4.8.9 4.9.2 4.9.5",
		},
		"by the source's type, the last by the target's": {
			channels: channels{{Name: "fast-4.8", Min: "4.8.1", Max: "4.8.1"}, {Name: "fast-4.10", Min: "4.10.3", Max: "4.10.3"}},
			want:     "4.8.1 4.8.10 4.9.5 4.10.1 4.10.3",
		},
		"blocked at the last step": {
			channels: channels{{Name: "fast-4.8", Min: "4.8.1", Max: "4.8.1"}, {Name: "late-4.10", Min: "4.10.3", Max: "4.10.3"}},
			want:     "4.8.1 4.8.10 4.9.5 4.10.3",
			warnings: []string{"No upgrade path for 4.9.5 in target channel late-4.10"},
		},
		"blocked before it: the goal is not in the target": {
			channels: channels{{Name: "stable-4.8", Min: "4.8.1", Max: "4.8.1"}, {Name: "fast-4.10", Min: "4.10.3", Max: "4.10.3"}},
			filter:   regexp.MustCompile(`^4\.8\.[0-4]$|^4\.9\.2$`), // 4.8.4 is not a node of stable-4.9, and 4.9.2 none of fast-4.10
			err:      `VersionNotFound: current version 4.9.2 not found in the "fast-4.10" channel`,
		},
		"blocked before it: the goal is in the target": {
			channels: channels{{Name: "stable-4.8", Min: "4.8.1", Max: "4.8.1"}, {Name: "fast-4.10", Min: "4.10.3", Max: "4.10.3"}},
			filter:   regexp.MustCompile(`^4\.8\.[0-4]$|^4\.9\.5$`),
			want:     "4.8.1 4.9.5 4.10.3", // no path leads to 4.8.4
			warnings: []string{"No upgrade path for 4.8.4 in target channel fast-4.10"},
		},
		"same minor": {
			channels: channels{{Name: "stable-4.9", Min: "4.8.9", Max: "4.8.9"}, {Name: "fast-4.9", Min: "4.9.1", Max: "4.9.5"}},
			want:     "4.8.9 4.9.1 4.9.5",
		},
		"same minor, start not there": {
			channels: channels{{Name: "stable-4.8", Min: "4.8.2", Max: "4.8.3"}, {Name: "fast-4.8", Min: "4.8.10", Max: "4.8.10"}},
			want:     "4.8.2 4.8.3 4.8.10",
			warnings: []string{"No upgrade path for 4.8.2 in target channel fast-4.8"},
		},
		"same channel": {
			channels: channels{{Name: "stable-4.8", Min: "4.8.1", Max: "4.8.9"}, {Name: "late-4.10", Min: "4.8.2", Max: "4.8.3"}},
			want:     "4.8.1 4.8.2 4.8.3 4.8.4 4.8.9",
		},
		"no minor in a name": {
			channels: channels{{Name: "odd"}, {Name: "stable-4.8"}}, err: "invalid channel name odd",
		},
		"no minor in the target's name": {
			channels: channels{{Name: "stable-4.8", Min: "4.6.0", Max: "4.8.9"}, {Name: "odd"}}, err: "invalid channel name odd",
		},
		"start not in its channel": {
			channels: channels{{Name: "stable-4.8", Min: "4.8.0", Max: "4.8.1"}, {Name: "stable-4.9", Min: "4.9.5", Max: "4.9.5"}},
			err:      `VersionNotFound: current version 4.8.0 not found in the "stable-4.8" channel`,
		},
		"empty": {channels: channels{{Name: "empty-4.8"}}, err: `channel "empty-4.8": NoVersionsFound: no cluster versions found for "amd64" in the "empty-4.8" channel`},
		"an empty channel on the way": {
			channels: channels{{Name: "stable-4.9", Min: "4.8.9", Max: "4.8.9"}, {Name: "late-5.1", Min: "5.1.0", Max: "5.1.0"}},
			err:      `NoVersionsFound: no cluster versions found for "amd64" in the "stable-4.10" channel`,
		},
		"an empty target": {
			channels: channels{{Name: "stable-4.8", Min: "4.8.1", Max: "4.8.1"}, {Name: "gone-4.9", Min: "4.9.5", Max: "4.9.5"}},
			err:      `NoVersionsFound: no cluster versions found in the "gone-4.9" channel`,
		},
		"start not there": {
			channels: channels{{Name: "stable-4.8", Min: "4.8.0", Max: "4.8.9", ShortestPath: true}},
			err:      `channel "stable-4.8": VersionNotFound: current version 4.8.0 not found in the "stable-4.8" channel`,
		},
		"end not there": {
			channels: channels{{Name: "stable-4.8", Min: "4.8.1", Max: "4.8.8", ShortestPath: true}},
			err:      `channel "stable-4.8": VersionNotFound: requested version 4.8.8 not found in the "stable-4.8" channel`,
		},
		"bad bound": {channels: channels{{Name: "stable-4.8", Min: "4.8"}}, err: `channel "stable-4.8": bound "4.8": invalid semantic version`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := path.MirrorChannels(context.Background(), source, graph.Query{Arch: "amd64", Version: "0.0.0"}, tt.channels, path.MirrorOptions{VersionFilter: tt.filter})
			if err != nil || tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Fatalf("error %v, want %s", err, tt.err)
				}
				return
			}
			var versions []string
			for _, r := range got.Releases {
				versions = append(versions, r.Version)
			}
			if diff := cmp.Diff(tt.want, strings.Join(versions, " ")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.warnings, got.Warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A source that has the same graph for every channel ends the walk, too.
func TestMirrorChannelsEnds(t *testing.T) {
	_, err := path.MirrorChannels(context.Background(), graph.Static(graphtest.Sketch(t, "4.8.1>4.9.0", nil)), graph.Query{Arch: "amd64", Version: "4.8.1", Channel: "x"},
		[]path.MirrorChannel{{Name: "stable-4.9", Min: "4.8.1", Max: "4.8.1"}, {Name: "stable-4.8", Min: "4.9.0", Max: "4.9.0"}}, path.MirrorOptions{})
	var limit *graph.LimitError
	if !errors.As(err, &limit) {
		t.Errorf("error %v", err)
	}
	broken := &graph.Error{Reason: "RemoteFailed", Message: "broken"}
	failing := graph.SourceFunc(func(context.Context, graph.Query) (*graph.Graph, error) { return nil, broken })
	if _, err := path.MirrorChannels(context.Background(), failing, graph.Query{}, []path.MirrorChannel{{Name: "a"}}, path.MirrorOptions{}); !errors.Is(err, graph.ErrRemoteFailed) {
		t.Errorf("error %v", err)
	}
}
