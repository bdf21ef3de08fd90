package path_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// What to mirror for two clusters, and one that is to be installed.
func ExampleMirror() {
	graphs, err := path.Load(context.Background(), []string{"testdata/stable-4.8_amd64.json", "testdata/stable-4.9_amd64.json"}, path.LoadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	networks, err := path.ByArchitecture(context.Background(), path.NetworkOptions{}, graphs...)
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := path.Mirror(context.Background(), networks, []path.Want{
		{Cluster: "shop", From: "4.8.1", To: "4.9.4"},
		{Cluster: "lab", From: "4.8.5"},
		{Cluster: "new", To: "4.9.4"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan)
	// Output:
	// shop (amd64): 4.8.1 -> 4.8.9 -> 4.9.4
	//   1. 4.8.1 -> 4.8.9  in stable-4.8
	//      switch to channel stable-4.9
	//   2. 4.8.9 -> 4.9.4  in stable-4.9
	// lab (amd64): 4.8.5 -> 4.8.9 -> 4.9.4
	//   1. 4.8.5 -> 4.8.9  in stable-4.8
	//      switch to channel stable-4.9
	//   2. 4.8.9 -> 4.9.4  in stable-4.9
	// new (amd64): 4.9.4
	// Releases to copy: 4
	//   4.8.1 (amd64)  quay.io/r@sha256:481
	//     signatures: sha256=481
	//   4.8.5 (amd64)  quay.io/r@sha256:485
	//     signatures: sha256=485
	//   4.8.9 (amd64)  quay.io/r@sha256:489
	//     signatures: sha256=489
	//   4.9.4 (amd64)  quay.io/r@sha256:494
	//     signatures: sha256=494
	// Graph data: https://api.openshift.com/api/upgrades_info/graph-data
}

// mirrored are the releases of a plan: "<version>" or "<version>/<architecture>".
func mirrored(plan *path.MirrorPlan) (all []string) {
	for _, r := range plan.Releases {
		all = append(all, strings.TrimSuffix(r.Release.Version+"/"+r.Arch, "/"))
	}
	return all
}

func TestMirror(t *testing.T) {
	channels := func(arch string, graphs map[string]string) (list []path.ChannelGraph) {
		for name, edges := range graphs {
			list = append(list, path.ChannelGraph{Channel: name, Arch: arch, Graph: graphtest.Sketch(t, edges, nil)})
		}
		return list
	}
	twoMinors := map[string]string{
		"stable-4.2": "4.1.0>4.1.1 4.1.1>4.2.0:U 4.1.0>4.1.2 4.1.2>4.1.3 4.1.3>4.2.0 4.2.1 4.3.0-rc.1", "stable-4.1": "4.0.9>4.1.0",
	}
	anyEdge := path.Policy{Edges: path.AnyEdge}
	for name, test := range map[string]struct {
		graphs []path.ChannelGraph
		wants  []path.Want
		want   string // releases, or the error
		ranges string
	}{
		"shortest":          {channels("", twoMinors), []path.Want{{From: "4.1.0", To: "4.2.0"}}, "4.1.0 4.1.2 4.1.3 4.2.0", "stable-4.2:4.1.2-4.2.0 stable-4.1:4.1.0-4.1.0"},
		"conditional":       {channels("", twoMinors), []path.Want{{From: "4.1.0", To: "4.2.0", Policy: anyEdge}}, "4.1.0 4.1.1 4.2.0", ""},
		"every":             {channels("", twoMinors), []path.Want{{From: "4.1.0", To: "4.2.0", Policy: anyEdge, Every: true}}, "4.1.0 4.1.1 4.1.2 4.1.3 4.2.0", ""},
		"highest":           {channels("", twoMinors), []path.Want{{From: "4.0.9"}}, "4.0.9 4.1.0 4.1.2 4.1.3 4.2.0", ""},
		"installation":      {channels("", twoMinors), []path.Want{{To: "4.2.0"}}, "4.2.0", "stable-4.2:4.2.0-4.2.0"},
		"head":              {channels("", twoMinors), []path.Want{{}}, "4.3.0-rc.1", ""},
		"head, final":       {channels("", twoMinors), []path.Want{{Policy: path.Policy{NoPreReleases: true}}}, "4.2.1", ""},
		"nothing":           {channels("", twoMinors), nil, "", ""},
		"no way":            {channels("", twoMinors), []path.Want{{From: "4.1.0", To: "4.2.0"}, {Cluster: "shop", From: "4.1.0", To: "4.2.1"}}, `error: cluster "shop": no path from 4.1.0 to 4.2.1`, ""},
		"two without a way": {channels("", twoMinors), []path.Want{{From: "4.2.0", To: "4.2.1"}, {From: "4.2.0", To: "4.3.0-rc.1"}}, "want 2: no path from 4.2.0 to 4.3.0-rc.1", ""},
		"unknown":           {channels("", twoMinors), []path.Want{{From: "4.9.9"}}, "error: want 1: VersionNotFound", ""},
		"barred":            {channels("", twoMinors), []path.Want{{To: "4.3.0-rc.1", Policy: path.Policy{NoPreReleases: true}}}, "error: want 1: 4.3.0-rc.1 is not allowed: it is a pre-release", ""},
		"all barred":        {channels("", twoMinors), []path.Want{{Policy: path.Policy{MaxVersion: "4.0.0"}}}, "error: want 1: the policy allows no release", ""},
		"bad policy":        {channels("", twoMinors), []path.Want{{Policy: path.Policy{MaxVersion: "4"}}}, `error: want 1: policy: maximum version "4"`, ""},
		"every from where":  {channels("", twoMinors), []path.Want{{To: "4.2.0", Every: true}}, "the version to start from is missing", ""},
		"no architecture":   {channels("amd64", twoMinors), []path.Want{{Arch: "arm64"}}, "error: want 1 (arm64): there is no graph of the architecture", ""},
		"architectures": {
			append(channels("amd64", twoMinors), channels("arm64", map[string]string{"stable-4.2": "4.1.0>4.2.0 4.1.0>4.1.7"})...),
			[]path.Want{{From: "4.1.0", To: "4.2.0"}, {From: "4.1.0", To: "4.1.7", Arch: "arm64"}},
			"4.1.0/amd64 4.1.2/amd64 4.1.3/amd64 4.2.0/amd64 4.1.0/arm64 4.1.7/arm64 4.2.0/arm64", "",
		},
		"a new major": {
			channels("", map[string]string{"candidate-4.22": "4.22.1>4.22.3", "candidate-4.23": "", "candidate-5.0": "4.22.3>5.0.0 5.0.0>5.0.1"}),
			[]path.Want{{From: "4.22.1", To: "5.0.1"}}, "4.22.1 4.22.3 5.0.0 5.0.1", "candidate-5.0:5.0.0-5.0.1 candidate-4.22:4.22.1-4.22.3",
		},
		"extended support": {
			channels("", map[string]string{"eus-4.12": "4.12.1>4.12.9 4.12.2>4.12.9", "eus-4.13": "", "eus-4.14": "4.12.9>4.13.4 4.13.4>4.14.2 4.13.5>4.14.2"}),
			[]path.Want{{From: "4.12.1", To: "4.14.2"}, {From: "4.12.2", To: "4.14.2"}},
			"4.12.1 4.12.2 4.12.9 4.13.4 4.14.2", "eus-4.14:4.13.4-4.13.4 eus-4.14:4.14.2-4.14.2 eus-4.12:4.12.1-4.12.9",
		},
	} {
		t.Run(name, func(t *testing.T) {
			networks := checktest.Must(path.ByArchitecture(t.Context(), path.NetworkOptions{}, test.graphs...))
			plan, err := path.Mirror(t.Context(), networks, test.wants)
			if err != nil {
				checktest.ErrorHas(t, strings.TrimPrefix(test.want, "error: "), err)
				var e *path.WantError
				if !errors.As(err, &e) || plan != nil {
					t.Errorf("%#v, %v", err, plan)
				}
				return
			}
			checktest.Equal(t, test.want, strings.Join(mirrored(plan), " "), "releases")
			var ranges []string
			for _, r := range plan.Ranges {
				ranges = append(ranges, fmt.Sprintf("%s:%s-%s", r.Channel, r.Min, r.Max))
			}
			if test.ranges != "" {
				checktest.Equal(t, test.ranges, strings.Join(ranges, " "), "ranges")
			}
		})
	}
	n := network(t, path.NetworkOptions{}, channels("", twoMinors)...)
	checktest.ErrorHas(t, `two networks of architecture ""`, checktest.Err(path.Mirror(t.Context(), []*path.Network{n, n}, nil)))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	checktest.ErrorIs(t, context.Canceled, checktest.Err(path.Mirror(ended, []*path.Network{n}, []path.Want{{}})))
	plan := checktest.Must(path.Mirror(t.Context(), []*path.Network{n}, []path.Want{{From: "4.1.3", To: "4.2.0"}}))
	checktest.Same(t, map[string]string{"amd64-stable-4.2-4.1.3.yaml": `apiVersion: mirror.openshift.io/v2alpha1
kind: ImageSetConfiguration
mirror:
  platform:
    architectures: ["amd64"]
    graph: true
    channels:
    - name: "stable-4.2"
      type: ocp
      minVersion: "4.1.3"
      maxVersion: "4.2.0"
`}, plan.ImageSetConfigurations())
}

// kept is a graph without the releases that a plan does not copy.
func kept(c path.ChannelGraph, copied map[string]bool) path.ChannelGraph {
	var d graph.Data
	index := map[int]int{}
	for i, n := range c.Graph.Nodes() {
		if copied[n.Version.Original()] {
			index[i] = len(d.Nodes)
			d.Nodes = append(d.Nodes, n)
		}
	}
	for i := range c.Graph.Len() {
		from, ok := index[i]
		for e := range c.Graph.Edges(i) {
			to, both := index[e.To]
			if ok && both {
				d.Edges = append(d.Edges, [2]int{from, to})
			}
		}
	}
	for _, entry := range c.Graph.ConditionalEdges() {
		left := slices.DeleteFunc(slices.Clone(entry.Edges), func(p graph.VersionPair) bool { return !copied[p.From] || !copied[p.To] })
		if len(left) > 0 {
			d.ConditionalEdges = append(d.ConditionalEdges, graph.ConditionalEdges{Edges: left, Risks: entry.Risks})
		}
	}
	c.Graph = checktest.Must(graph.New(d, graph.DecodeOptions{}))
	return c
}

// Every want has its way in a graph of the plan's releases alone, no release is
// copied that no want needs, ranges cover exactly these, and a want that is refused
// has no way. `go test -run TestMirrorProperty -rapid.checks 10000` proves 10,000 plans.
func TestMirrorProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cyclic := rapid.Bool().Draw(t, "cyclic")
		graphs := drawChannels(t, cyclic)
		options := path.NetworkOptions{Matcher: graphtest.Facts, Present: rapid.SampledFrom([]string{"", "zeta"}).Draw(t, "present")}
		n := checktest.Must(path.NewNetwork(context.Background(), options, graphs...))
		ref := newReference(graphs, options.Present)
		var wants []path.Want
		needed := map[string]bool{}
		blocked := map[int]bool{}
		for i := range rapid.IntRange(1, 4).Draw(t, "wants") {
			w := path.Want{
				From: rapid.SampledFrom(ref.versions).Draw(t, "from"), To: rapid.SampledFrom(ref.versions).Draw(t, "to"),
				Policy: drawPolicy(t), Every: rapid.Bool().Draw(t, "every"),
			}
			wants = append(wants, w)
			ways := ref.paths(w.Policy, path.Shortest, w.From, w.To)
			blocked[i] = len(ways) == 0
			if !w.Every {
				ways = ways[:min(1, len(ways))]
			}
			for _, way := range ways {
				for _, v := range way.versions {
					needed[v] = true
				}
			}
		}
		plan, err := path.Mirror(context.Background(), []*path.Network{n}, wants)
		if err != nil {
			checkRefusals(t, err, blocked)
			wants = slices.DeleteFunc(wants, func(w path.Want) bool { return len(ref.paths(w.Policy, path.Shortest, w.From, w.To)) == 0 })
			plan = checktest.Must(path.Mirror(context.Background(), []*path.Network{n}, wants))
		} else if slices.Contains(slices.Collect(maps.Values(blocked)), true) {
			t.Fatalf("no error, though a want has no way: %v", blocked)
		}
		copied := map[string]bool{}
		for _, v := range plan.Versions() {
			copied[v] = true
		}
		for v := range needed {
			if !copied[v] {
				t.Fatalf("%s is needed and not copied", v)
			}
		}
		if !cyclic && len(needed) != len(copied) {
			t.Fatalf("copied %v, needed %v", copied, needed)
		}
		checkRanges(t, plan, graphs, copied)
		if len(copied) == 0 {
			return
		}
		var left []path.ChannelGraph
		for _, c := range graphs {
			left = append(left, kept(c, copied))
		}
		alone := checktest.Must(path.NewNetwork(context.Background(), options, left...))
		again := checktest.Must(path.Mirror(context.Background(), []*path.Network{alone}, wants))
		for i, way := range plan.Ways {
			checktest.Equal(t, way.Path.String(), again.Ways[i].Path.String(), "way %d", i)
		}
		checktest.Same(t, mirrored(plan), mirrored(again))
	})
}

// checkRefusals: each want without a way has its error, and no other has one.
func checkRefusals(t *rapid.T, err error, blocked map[int]bool) {
	refused := map[int]bool{}
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var want *path.WantError
		if !errors.As(e, &want) || !errors.Is(e, path.ErrNoPath) {
			t.Fatalf("%v", e)
		}
		refused[want.Index] = true
	}
	for i, is := range blocked {
		if refused[i] != is {
			t.Fatalf("want %d: refused %v, without a way %v", i, refused[i], is)
		}
	}
}

func checkRanges(t *rapid.T, plan *path.MirrorPlan, graphs []path.ChannelGraph, copied map[string]bool) {
	covered := map[string]bool{}
	for _, r := range plan.Ranges {
		i := slices.IndexFunc(graphs, func(c path.ChannelGraph) bool { return c.Channel == r.Channel })
		for _, n := range graphs[i].Graph.Nodes() {
			v := n.Version.Original()
			if graph.CompareVersions(v, r.Min) >= 0 && graph.CompareVersions(v, r.Max) <= 0 {
				covered[v] = true
			}
		}
	}
	checktest.Same(t, copied, covered)
}
