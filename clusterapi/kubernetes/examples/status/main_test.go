package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
)

func newCluster(t *testing.T) *memory.Cluster {
	t.Helper()
	c := checktest.Get(simulation.New(simulation.Options{Release: simulation.Release{Version: "4.17.30", Operators: []simulation.Operator{{Name: "machine-config"}}}}))(t)
	return c.Cluster
}

func TestShow(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name string
		o    options
		ctx  context.Context
		api  clusterapi.ClusterAPI
		err  string
		out  string
	}{
		{"text", options{format: "text", details: "all"}, t.Context(), newCluster(t), "", "The cluster is not updating.\n"},
		{"json", options{format: "json"}, t.Context(), newCluster(t), "", `"updating":false`},
		{"no cluster", options{format: "text"}, t.Context(), memory.New(memory.Options{}), "no cluster version information available", ""},
		{"interrupted", options{format: "text"}, ctx, newCluster(t), "canceled", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			err := tt.o.show(tt.ctx, tt.api, &out, &out)
			if tt.err != "" {
				checktest.ErrorHas(t, tt.err, err)
				return
			}
			checktest.OK(t, err)
			checktest.Has(t, out.String(), tt.out)
		})
	}
}

// pipe passes on what is written.
type pipe struct{ lines chan string }

func (w pipe) Write(p []byte) (int, error) {
	w.lines <- string(p)
	return len(p), nil
}

// A watch prints the status at first, and again when it changes.
func TestWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	api, out := newCluster(t), pipe{make(chan string, 10)}
	ended := make(chan error)
	o := options{format: "text", watch: true}
	go func() { ended <- o.show(ctx, api, out, out) }()
	if line := <-out.lines; !strings.HasSuffix(line, " not updating\n") {
		t.Errorf("at first %q", line)
	}
	checktest.OK(t, checktest.Err(
		clusterapi.Modify(ctx, api, clusterapi.Key("", "version"), clusterapi.ModifyOptions{Status: true},
			func(cv *configv1.ClusterVersion) error {
				for i := range cv.Status.Conditions {
					if cv.Status.Conditions[i].Type == configv1.OperatorProgressing {
						cv.Status.Conditions[i].Status = configv1.ConditionTrue
					}
				}
				return nil
			})))
	checktest.Has(t, <-out.lines, "1 of 1 operators updated")
	cancel()
	checktest.OK(t, <-ended)
}

func TestUsage(t *testing.T) { programtest.Usage(t, command) }
