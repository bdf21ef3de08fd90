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
		code int
		out  string
	}{
		{"text", options{format: "text", details: "all"}, t.Context(), newCluster(t), 0, "The cluster is not updating.\n"},
		{"json", options{format: "json"}, t.Context(), newCluster(t), 0, `"updating":false`},
		{"no cluster", options{format: "text"}, t.Context(), memory.New(memory.Options{}), 1, ""},
		{"interrupted", options{format: "text"}, ctx, newCluster(t), 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			if code := tt.o.show(tt.ctx, tt.api, &out, &errOut); code != tt.code || !strings.Contains(out.String(), tt.out) {
				t.Errorf("code %d, printed %q and %q", code, out.String(), errOut.String())
			}
		})
	}
}

// told hands on what is written.
type told struct{ lines chan string }

func (w told) Write(p []byte) (int, error) {
	w.lines <- string(p)
	return len(p), nil
}

// A watch tells of the status at first, and again when it changes.
func TestWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	api, out := newCluster(t), told{make(chan string, 10)}
	code := make(chan int)
	go func() { code <- options{format: "text", watch: true}.show(ctx, api, out, out) }()
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
	checktest.Equal(t, 0, <-code, "code")
}

func TestUsage(t *testing.T) {
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"-h":              {0, "exit codes: 0: all is well"},
		"-x":              {2, "flag provided but not defined"},
		"more":            {2, `unexpected argument "more"`},
		"-o yaml":         {2, "-o yaml: not text or json"},
		"-details some":   {2, "invalid value for --details: some"},
		"-kubeconfig /no": {1, "status: "},
	} {
		var out bytes.Buffer
		if code := run(t.Context(), strings.Fields(args), &out, &out); code != want.code || !strings.Contains(out.String(), want.text) {
			t.Errorf("%s: code %d, %s", args, code, out.String())
		}
	}
}
