package sources

import (
	"cmp"
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

// defaultRefresh is how long the contents of a catalog are used before it is asked again,
// as OLM polls the images of OpenShift's catalogs.
const defaultRefresh = 10 * time.Minute

// Catalog is a catalog in a registry or an image. It is read when it is first asked for its
// contents, and again from time to time. Make one with [NewRegistry] or [NewImage].
type Catalog struct {
	read    reader
	close   func() error
	clock   clock.PassiveClock
	refresh time.Duration

	turn chan struct{}    // held by who reads and writes what follows
	last *catalog.Catalog // nil until it has been read
	at   time.Time        // of last
}

var _ olm.Catalog = (*Catalog)(nil)

// reader reads a catalog. It may return the last one that it read, nil at first.
type reader func(ctx context.Context, last *catalog.Catalog) (*catalog.Catalog, error)

func newCatalog(read reader, refresh time.Duration, c clock.PassiveClock) *Catalog {
	if c == nil {
		c = clock.RealClock{}
	}
	return &Catalog{
		read: read, close: func() error { return nil }, clock: c, refresh: cmp.Or(refresh, defaultRefresh),
		turn: make(chan struct{}, 1),
	}
}

// Contents implements [olm.Catalog]: it returns those of [Catalog.Read].
func (c *Catalog) Contents(ctx context.Context) (*olm.Contents, error) {
	read, err := c.Read(ctx)
	if err != nil {
		return nil, err
	}
	return read.Contents, nil
}

// Read returns the catalog with the faults that it has. It asks the registry if it has not
// done so for the time of the options. The error explains why that failed: old contents do
// not stand in for new ones.
func (c *Catalog) Read(ctx context.Context) (*catalog.Catalog, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	now := c.clock.Now()
	age := now.Sub(c.at)
	if c.last != nil && age >= 0 && age < c.refresh { // a clock that was set back proves nothing
		return c.last, nil
	}
	read, err := c.read(ctx, c.last)
	if err != nil {
		return nil, err
	}
	c.last = read
	c.at = now
	return read, nil
}

// Close closes the connection to a registry; after it, reading is an error. It does nothing
// for an image. The error is the connection's.
func (c *Catalog) Close() error { return c.close() }
