package actiontest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/action"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// Version is the ClusterVersion of a cluster that has been updated.
func Version(version string) *configv1.ClusterVersion {
	cv := &configv1.ClusterVersion{}
	cv.Name = "version"
	cv.Status.Desired.Version = version
	cv.Status.History = []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: version}}
	return cv
}

// State reads the world's cluster for the builders of plans.
func (w *World) State() plan.Cluster {
	var c plan.Cluster
	w.alone(func() {
		var err error
		c, err = plan.ReadCluster(context.Background(), w.Cluster)
		if err != nil {
			panic(err)
		}
	})
	return c
}

// Play runs a plan, whose every action is the same one of package action and named
// "update", under faults until it ends, fails or a limit is over, and returns what
// must not have been. The world reports what happens.
func (w *World) Play(seed uint64, f reconcile.Faults, limit time.Duration, a action.Action, o plan.Options) error {
	o.Actions = map[string]plan.Action{"update": action.New(a)}
	o.Observe = func(e clusterapi.Event) { w.Say("%-11s %s", e.Type, e.Message) }
	r, err := plan.New(o)
	if err != nil {
		return err
	}
	order := reconcile.InOrder
	if seed%2 == 1 {
		order = reconcile.Random
	}
	p := r.Process()
	v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: w.Cluster, Clock: w.Clock, Seed: seed, Order: order, Faults: f}, p)
	defer v.Close()
	w.Virtual = v
	for end := w.Now().Add(limit); ; {
		at, ok := v.Next()
		if s := r.Progress().State; s == plan.StateFinished {
			return w.look()
		} else if !ok || s == plan.StateFailed || at.After(end) {
			return errors.Join(fmt.Errorf("the plan is %s", s), w.look())
		}
		if _, err := v.Step(); err != nil {
			return err
		}
		w.runErrands()
		if w.dead {
			w.dead = false
			w.Crash(p.Name)
		}
		if err := w.look(); err != nil {
			return err
		}
	}
}

// Storm plays a plan under one seed in which much goes wrong. It is the
// body of a simulation test.
func (w *World) Storm(
	seed uint64, only map[string]bool, a action.Action, p plan.Plan, atEnd func() error,
) ([]string, error) {
	w.uncordons(rand.New(rand.NewPCG(seed, 11)))
	err := w.Play(seed, storm(only), 24*time.Hour, guarded{a, w, p}, plan.Options{Plan: p})
	if err == nil {
		err = atEnd()
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, strings.Join(w.Lines, "\n"))
	}
	return w.Faults(), err
}
