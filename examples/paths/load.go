package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
)

// load reads the graphs that the flags name.
func load(ctx context.Context, o options) ([]path.ChannelGraph, error) {
	var all []path.ChannelGraph
	var errs []error
	for _, place := range o.graphs {
		graphs, err := loadPlace(ctx, place, o)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", place, err))
		}
		all = append(all, graphs...)
	}
	return all, errors.Join(errs...)
}

func loadPlace(ctx context.Context, place string, o options) ([]path.ChannelGraph, error) {
	if u, err := url.Parse(place); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		client := &graph.Client{Upstream: place, UserAgent: "clusterupdate-paths"}
		defer client.CloseIdleConnections()
		return fetch(ctx, client, o)
	}
	info, err := os.Stat(place)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return fetch(ctx, graph.File{Path: place}, o)
	}
	file, err := os.Open(place)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	g, err := graph.Decode(file, graph.DecodeOptions{})
	if err != nil {
		return nil, err
	}
	channel, arch := nameOf(place)
	if o.arch != "" {
		arch = o.arch
	}
	if len(o.graphs) == 1 && len(o.channels) == 1 {
		channel = o.channels[0]
	}
	return []path.ChannelGraph{{Channel: channel, Arch: arch, Graph: g}}, nil
}

// nameOf reads channel and architecture from a file's name: stable-4.8_amd64 or
// amd64-stable-4.8. Other names are channels themselves.
func nameOf(file string) (channel, arch string) {
	name := strings.TrimSuffix(filepath.Base(file), ".json")
	if channel, arch, ok := strings.Cut(name, "_"); ok {
		return channel, arch
	}
	if arch, channel, ok := strings.Cut(name, "-"); ok {
		switch arch {
		case "amd64", "arm64", "ppc64le", "s390x", "multi":
			return channel, arch
		}
	}
	return name, ""
}

// fetch asks a source for each channel.
func fetch(ctx context.Context, source graph.Source, o options) ([]path.ChannelGraph, error) {
	if len(o.channels) == 0 {
		return nil, errors.New("-channel is missing: which graphs to ask for")
	}
	arch := o.arch
	if arch == "" {
		arch = "amd64"
	}
	version := o.from
	if version == "" {
		version = "0.0.0" // the whole channel comes in any case
	}
	// The service wants to know who asks; nobody in particular does.
	id := make([]byte, 16)
	rand.Read(id)
	var graphs []path.ChannelGraph
	var errs []error
	for _, channel := range o.channels {
		g, err := source.Fetch(ctx, graph.Query{Channel: channel, Arch: arch, Version: version, ClusterID: fmt.Sprintf("%x", id)})
		if err != nil {
			errs = append(errs, fmt.Errorf("channel %s: %w", channel, err))
			continue
		}
		graphs = append(graphs, path.ChannelGraph{Channel: channel, Arch: arch, Graph: g})
	}
	return graphs, errors.Join(errs...)
}
