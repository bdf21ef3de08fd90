package releases

import (
	"context"
	"fmt"
	"io"

	"github.com/clusterupdate/clusterupdate/examples/internal/rehearsal"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// Update is what an update is looked at for: a cluster, the release that it runs,
// nil if there is no such place, and the release that args name. Without a
// recording all are built in, but for the latter if it is named; and the cluster is
// simulated. Errors are those of reading.
func (f *Flags) Update(ctx context.Context, running string, args []string, problems io.Writer) (c *Cluster, from, to *manifest.Payload, err error) {
	if f.Dump != "" {
		c, err = f.Cluster(ctx, problems)
	} else {
		c, err = f.simulated(ctx, problems)
		running, args = From, append(args, To)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if running != "" {
		from, err = c.Read(ctx, running)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("-running: %w", err)
		}
	}
	to, err = c.Read(ctx, args[0])
	return c, from, to, err
}

func (f *Flags) simulated(ctx context.Context, problems io.Writer) (*Cluster, error) {
	r, _, err := rehearsal.AtRest(ctx)
	if err != nil {
		return nil, err
	}
	return f.live(ctx, r, problems)
}
