package path

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// LoadOptions are the options of [Load]. The zero value reads files.
type LoadOptions struct {
	// Channels to read; required for folders and services. A file whose name
	// contains no channel holds the first of them.
	Channels []string
	// Arch is the architecture; empty means the one in a file's name, else amd64. A
	// file whose name has a different one is an error, as with Channels.
	Arch string
	// Client asks services; its Upstream must be empty. Nil means one without
	// options, whose idle connections end by themselves.
	Client *graph.Client
	// Decode describes what a graph in a file may be.
	Decode graph.DecodeOptions
}

// Load reads the graphs at places: files, named <channel>_<arch>.json,
// <arch>-<channel>.json or <channel>.json; folders of such files; addresses of
// update services. One error names all places that cannot be read, and wraps those
// of [graph.Decode] and [graph.Client].
func Load(ctx context.Context, places []string, o LoadOptions) ([]ChannelGraph, error) {
	var all []ChannelGraph
	var errs []error
	for _, place := range places {
		graphs, err := o.load(ctx, place)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", place, err))
		}
		all = append(all, graphs...)
	}
	return all, bounded.Errors(errs...)
}

// ChannelsWith names the channels of folders and services among places that hold a
// version, in addition to the Channels of the options: to say which have it when those do
// not hold it. Channels that cannot be read are left out. It is for the path of an
// error: of a service it asks for every channel that its releases name.
func (o LoadOptions) ChannelsWith(ctx context.Context, places []string, version string) []string {
	var found []string
	for _, place := range places {
		source, held := o.source(place)
		if source == nil {
			continue
		}
		for i := 0; held == nil && i < len(o.Channels); i++ {
			more, _ := graph.DiscoverChannels(ctx, source, o.query(o.Channels[i]))
			found = append(found, more...)
		}
		found = append(found, held...)
		slices.SortFunc(found, graph.CompareChannels)
		found = slices.DeleteFunc(slices.Compact(found), func(channel string) bool {
			g, err := source.Fetch(ctx, o.query(channel))
			return err != nil || slices.Contains(o.Channels, channel) || !contains(g, version)
		})
	}
	return found
}

// source returns a folder or a service as a source, nil for a file. held, if
// not nil, are all the channels that it has.
func (o LoadOptions) source(place string) (s graph.Source, held []string) {
	if u, err := url.Parse(place); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		client := o.Client
		if client == nil {
			client = &graph.Client{}
		}
		return client.WithUpstream(place), nil
	}
	if info, err := os.Stat(place); err == nil && info.IsDir() {
		return graph.File{Path: place, Decode: o.Decode}, o.held(place)
	}
	return nil, nil
}

func (o LoadOptions) query(channel string) graph.Query {
	// The whole channel comes whatever the version, and a service wants to know
	// who asks: nobody in particular does.
	id := make([]byte, 16)
	rand.Read(id)
	return graph.Query{Channel: channel, Arch: cmp.Or(o.Arch, "amd64"), Version: "0.0.0", ClusterID: fmt.Sprintf("%x", id)}
}

func (o LoadOptions) load(ctx context.Context, place string) ([]ChannelGraph, error) {
	if source, held := o.source(place); source != nil {
		return o.fetch(ctx, source, held)
	}
	channel, arch := nameOf(place)
	switch {
	case arch == "" && len(o.Channels) > 0:
		channel = o.Channels[0]
	case len(o.Channels) > 0 && !slices.Contains(o.Channels, channel):
		return nil, fmt.Errorf("the file holds channel %s, not %s", channel, strings.Join(o.Channels, ", "))
	case arch != "" && o.Arch != "" && o.Arch != arch:
		return nil, fmt.Errorf("the file holds architecture %s, not %s", arch, o.Arch)
	}
	file, err := os.Open(place)
	if err != nil {
		return nil, reason(err)
	}
	defer file.Close()
	g, err := graph.Decode(file, o.Decode)
	if err != nil {
		return nil, err
	}
	return []ChannelGraph{{Channel: channel, Arch: cmp.Or(o.Arch, arch), Graph: g}}, nil
}

// reason is an error about a file without its name, which its place gives.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// nameOf reads channel and architecture from a file's name.
func nameOf(file string) (channel, arch string) {
	name := strings.TrimSuffix(filepath.Base(file), ".json")
	if channel, arch, ok := strings.Cut(name, "_"); ok {
		return channel, arch
	}
	if arch, channel, ok := strings.Cut(name, "-"); ok && slices.Contains([]string{"amd64", "arm64", "ppc64le", "s390x", "multi"}, arch) {
		return channel, arch
	}
	return name, ""
}

// held lists the channels that a folder has for the architecture.
func (o LoadOptions) held(dir string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	channels := []string{}
	for _, f := range files {
		if channel, arch := nameOf(f); arch == cmp.Or(o.Arch, "amd64") {
			channels = append(channels, channel)
		}
	}
	slices.SortFunc(channels, graph.CompareChannels)
	return slices.Compact(channels)
}

// fetch asks a source for each channel; held, if not nil, are all that it has.
func (o LoadOptions) fetch(ctx context.Context, source graph.Source, held []string) ([]ChannelGraph, error) {
	if len(o.Channels) == 0 {
		return nil, errors.New("a folder or service needs the name of a channel")
	}
	arch := cmp.Or(o.Arch, "amd64")
	var graphs []ChannelGraph
	var errs []error
	for _, channel := range o.Channels {
		if held != nil && !slices.Contains(held, channel) {
			only := ", only of " + strings.Join(held, ", ")
			if len(held) == 0 {
				only = ", nor of another channel"
			}
			errs = append(errs, fmt.Errorf("no graph of channel %s for %s%s", channel, arch, only))
			continue
		}
		g, err := source.Fetch(ctx, o.query(channel))
		if err != nil {
			errs = append(errs, fmt.Errorf("channel %s: %w", channel, err))
			continue
		}
		graphs = append(graphs, ChannelGraph{Channel: channel, Arch: arch, Graph: g})
	}
	return graphs, bounded.Errors(errs...)
}
