package graph

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/regular"
)

// Source has update graphs: an update service ([Client]), files ([File]), a
// graph in memory ([Static]).
//
// Fetch returns the graph of a channel for an architecture. The version in the
// query need not be in it: [Graph.Updates] reports it. Errors are [*Error], one
// that KeepsUpdates when the source could not be reached. A graph that was returned
// is immutable and may be returned again. Fetch must be safe for concurrent use and
// honour its context.
//
// A source may implement [Upstreamer].
type Source interface {
	Fetch(ctx context.Context, q Query) (*Graph, error)
}

// Upstreamer is a [Source] that can ask another service: the one that
// ClusterVersion's spec.upstream names. Find it by type assertion. It must be
// safe for concurrent use, as the source that it is.
type Upstreamer interface {
	// WithUpstream returns the source for an upstream, which is the default for
	// an empty one. The source that it is called on stays as it is.
	WithUpstream(upstream string) Source
}

// SourceFunc is a function as a [Source]. It is as safe for concurrent use as the
// function, and its errors are the function's.
type SourceFunc func(ctx context.Context, q Query) (*Graph, error)

// Fetch calls f and returns its error.
func (f SourceFunc) Fetch(ctx context.Context, q Query) (*Graph, error) { return f(ctx, q) }

type static struct{ g *Graph }

// Static returns a source of one graph, whatever the channel and architecture.
// A query without them, or without a version, fails as it would anywhere.
func Static(g *Graph) Source { return static{g} }

func (s static) Fetch(ctx context.Context, q Query) (*Graph, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, failure(ErrRemoteFailed, err)
	}
	return s.g, nil
}

// File is a source that reads a file, or a folder of files for many channels,
// again at each Fetch. It is safe for concurrent use.
type File struct {
	// Path names a file with a graph, or a folder that holds
	// <arch>-<channel>.json or <channel>_<arch>.json for each channel.
	Path string
	// FS is where Path is; nil means the machine's files.
	FS fs.FS
	// Decode describes what a graph may be.
	Decode DecodeOptions
}

// Fetch reads the graph. Errors are [*Error]: what the query lacks; RemoteFailed
// where the file cannot be opened, ResponseFailed if it cannot be read,
// ResponseInvalid if it is not a graph.
func (f File) Fetch(ctx context.Context, q Query) (*Graph, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, failure(ErrRemoteFailed, err)
	}
	fsys, name := f.FS, f.Path
	if fsys == nil {
		fsys = machine{}
	}
	file, err := open(fsys, name, q)
	if err != nil {
		return nil, failure(ErrRemoteFailed, err)
	}
	defer file.Close()
	g, err := Decode(file, f.Decode)
	if err != nil {
		if errors.As(err, new(*fs.PathError)) {
			return nil, failure(ErrResponseFailed, err)
		}
		return nil, failure(ErrResponseInvalid, err)
	}
	return g, nil
}

// machine are the machine's files, by their names there.
type machine struct{}

func (machine) Open(name string) (fs.File, error)     { return os.Open(name) }
func (machine) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// open opens a file, or in a folder the channel's.
func open(fsys fs.FS, name string, q Query) (fs.File, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return fsys.Open(name)
	}
	if strings.ContainsAny(q.Channel+q.Arch, `/\`) {
		return nil, fmt.Errorf("channel %q for %q cannot be a file", q.Channel, q.Arch)
	}
	file, err := regular.Open(fsys, path.Join(name, q.Architecture()+"-"+q.Channel+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		if other, otherErr := regular.Open(fsys, path.Join(name, q.Channel+"_"+q.Architecture()+".json")); otherErr == nil {
			return other, nil
		}
	}
	return file, err
}
