// Package recording opens recordings of clusters for the example programs.
package recording

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
)

// maxProblems is how many problems of a recording are printed.
const maxProblems = 10

// Open opens a recording of a cluster: a directory or an archive. It writes to
// problems, in lines, which parts cannot be used. whole names resources of a group
// that are complete, in addition to those of a must-gather. Errors are those of
// [dump.OpenFile], and name the flag -dump.
func Open(ctx context.Context, path string, problems io.Writer, group string, whole ...string) (*dump.Recording, error) {
	var o dump.Options
	if len(whole) > 0 {
		o.Whole = dump.MustGather()
		for _, name := range whole {
			o.Whole = append(o.Whole, schema.GroupResource{Group: group, Resource: name})
		}
	}
	recording, err := dump.OpenFile(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("-dump: %w", err)
	}
	all := recording.Problems()
	for i, p := range all {
		if i == maxProblems {
			fmt.Fprintf(problems, "%s: %d more problems\n", path, len(all)-i)
			break
		}
		fmt.Fprintf(problems, "%s: %v\n", path, p)
	}
	return recording, nil
}
