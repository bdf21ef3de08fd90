package graph

import (
	"context"
	"errors"
	"fmt"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/httpclient"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// flight is an exchange that one call began and more calls wait for. It
// belongs to none of them: it has no deadline but its own, and is cancelled when
// the last of them has left.
type flight struct {
	ctx     context.Context
	done    chan struct{} // closed when graph and err are there
	cancel  context.CancelFunc
	waiting int // under Client.mu
	graph   *Graph
	err     error
}

// share joins the exchange for a key, or starts it.
func (c *Client) share(ctx context.Context, key answerKey, exchange func(context.Context) (*Graph, error)) (*Graph, error) {
	for again := false; ; again = true {
		if err := ended(ctx); err != nil {
			return nil, failure(ErrRemoteFailed, err)
		}
		f, began := c.join(ctx, key)
		if began { // the others wait for it even where this caller leaves
			_, _ = reconcile.Await(ctx, func() (_ struct{}, _ error) {
				c.fly(key, f, exchange)
				return
			})
		}
		select {
		case <-f.done:
			c.leave(key, f)
		case <-ctx.Done():
			c.leave(key, f)
			return nil, failure(ErrRemoteFailed, ended(ctx))
		}
		// What began before this call has used up time that is not this call's.
		if late := !began && !again; late && errors.As(f.err, new(*httpclient.TimeoutError)) {
			continue
		}
		return f.graph, f.err
	}
}

// join takes part in the exchange for a key, or makes one that is to start.
func (c *Client) join(ctx context.Context, key answerKey) (f *flight, began bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, ok := c.flights[key]; ok {
		f.waiting++
		return f, false
	}
	f = &flight{done: make(chan struct{}), waiting: 1}
	f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if c.flights == nil {
		c.flights = map[answerKey]*flight{}
	}
	c.flights[key] = f
	return f, true
}

// fly makes the exchange.
func (c *Client) fly(key answerKey, f *flight, exchange func(context.Context) (*Graph, error)) {
	defer func() {
		c.mu.Lock()
		c.forget(key, f)
		c.mu.Unlock()
		close(f.done)
	}()
	f.err = failure(ErrRemoteFailed, &panics.Error{}) // stays if the goroutine is ended
	if err := panics.Catch(func() error {
		f.graph, f.err = exchange(f.ctx)
		return nil
	}); err != nil { // the caller's transport panicked
		f.graph, f.err = nil, failure(ErrRemoteFailed, err)
	}
}

// leave stops waiting. Once nobody waits, the next call starts another exchange.
func (c *Client) leave(key answerKey, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.waiting--
	if f.waiting == 0 {
		c.forget(key, f)
		f.cancel()
	}
}

// forget lets nobody join any more.
func (c *Client) forget(key answerKey, f *flight) {
	if c.flights[key] == f {
		delete(c.flights, key)
	}
}

// ended is why a context has ended, nil if it has not.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err != nil && !errors.Is(cause, err) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
