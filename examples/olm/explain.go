package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/clusterupdate/clusterupdate/olm"
)

// explain says, for the Subscriptions, packages or operators that are asked
// for, or else for all Subscriptions, why they are as they are.
func explain(ctx context.Context, s *olm.Snapshot, o options) error {
	g, err := olm.Resolve(ctx, *s, o.resolve())
	var no *olm.NotSatisfiable
	if errors.As(err, &no) {
		why, err := no.Explain(ctx, *s, o.resolve())
		if err != nil {
			return err
		}
		fmt.Fprint(o.stdout, why)
		return errNoAnswer
	}
	if err != nil {
		return err
	}
	names := o.args
	if len(names) == 0 {
		for i := range s.Subscriptions {
			names = append(names, s.Subscriptions[i].Name)
		}
	}
	for _, name := range names {
		why, err := g.Explain(ctx, name)
		if err != nil {
			return err
		}
		fmt.Fprint(o.stdout, why)
	}
	if len(g.HeldBack) > 0 {
		return errNoAnswer
	}
	return nil
}
