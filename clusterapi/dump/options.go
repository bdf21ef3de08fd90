package dump

import (
	"cmp"
	"runtime"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/internal/options"
)

// Options describes how a recording is opened. The zero value works.
type Options struct {
	// Now is the time at which the recording is looked at. Zero: what
	// [Recording.Time] finds in it.
	Now time.Time

	// Root chooses of a tree with recordings of several clusters, each with its own
	// folder, those at or below this folder: a path with slashes, as
	// [ClustersError] has it. Empty: all of the tree, which is of one cluster.
	Root string

	// Whole names resources of which all objects are there, in all namespaces,
	// though each has its own file: what is absent does not exist. Nil:
	// [MustGather] for the part of a tree that a must-gather wrote, nothing for the
	// rest. Give an empty list for none. In a tree of manifests, cluster-scoped kinds
	// that it has at all are whole, and namespaced ones are not: the output of oc get
	// pods -n a does not answer for other namespaces. What [Record] wrote says itself
	// what is whole. A kind of which every cluster has some, such as nodes, is never
	// whole when it is empty.
	Whole []schema.GroupResource

	// Skip names kinds that are not kept, besides Events. They count as not
	// collected.
	Skip []schema.GroupKind

	// Workers is how many files are decoded at a time; 0: as many as there are
	// processors.
	Workers int

	// MaxFileBytes is the largest size of a file, decompressed, in bytes; 0:
	// 64 MiB. A document whose YAML aliases stand for more is a problem.
	MaxFileBytes int64
	// MaxFiles is the largest number of files that are read, and of folders
	// that are looked into; 0: 200,000. An archive may have ten times as many
	// entries.
	MaxFiles int
	// MaxObjects is the largest number of objects; 0: 1,000,000.
	MaxObjects int
	// MaxBytes is the largest size of all files that are read, decompressed, in
	// bytes; 0: 4 GiB. All contents of a compressed archive, including what is not
	// read, may have this size and 64 times the archive's.
	MaxBytes int64
	// MaxProblems is how many problems are kept; 0: 10,000. One more reports how
	// many others there were.
	MaxProblems int
	// MaxDepth is how deep the maps and lists of a document may be nested; 0:
	// 500. A deeper one is a problem.
	MaxDepth int
}

// withDefaults refuses negative numbers.
func (o Options) withDefaults() (Options, error) {
	if err := options.NonNegative(o); err != nil {
		return o, err
	}
	o.Workers = cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
	o.MaxFileBytes = cmp.Or(o.MaxFileBytes, 64<<20)
	o.MaxFiles = cmp.Or(o.MaxFiles, 200_000)
	o.MaxObjects = cmp.Or(o.MaxObjects, 1_000_000)
	o.MaxBytes = cmp.Or(o.MaxBytes, 4<<30)
	o.MaxProblems = cmp.Or(o.MaxProblems, 10_000)
	o.MaxDepth = cmp.Or(o.MaxDepth, 500)
	return o, nil
}
