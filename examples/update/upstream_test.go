package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/clusterupdate/clusterupdate/examples/policyengine/source"
	"github.com/clusterupdate/clusterupdate/graph/policyengine"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
)

// served serves the sample of the example policyengine, and returns the address of its
// graphs.
func served(t *testing.T) string {
	t.Helper()
	handler := checktest.Get(policyengine.New(policyengine.Options{Prefix: "/api/upgrades_info", Mandatory: []string{"channel"}}))(t)
	snapshot := checktest.Get(source.New(source.Options{}).Load(t.Context()))(t)
	handler.Set(snapshot)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL + "/api/upgrades_info/v1/graph"
}

// TestUpstream: the cluster asks a service for its updates, and is offered all that
// it has.
func TestUpstream(t *testing.T) {
	programtest.Test(t, command, []programtest.Case{{Args: "-upstream " + served(t), Stdout: []string{
		"recommended updates of 4.20.3: 4.21.3, 4.21.2, 4.21.1, 4.20.5, 4.20.4", "Done applying 4.21.1",
		"  4.21.1 Completed, started ", "  4.20.3 Completed, started "}}})
}

// TestUpstreamWithout: an update that a service does not recommend is not made, and
// one that does not answer is not known.
func TestUpstreamWithout(t *testing.T) {
	url := served(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	programtest.Test(t, command, []programtest.Case{
		{Args: "-upstream " + url + " -channel fast-4.20", Code: 1, Stderr: " does not recommend the update from 4.20.3 to 4.21.1, image registry.example/ocp/release@sha256:"},
		{Args: "-upstream " + url + " -channel none-4.20", Code: 1, Stderr: `currently reconciling cluster version 4.20.3 not found in the "none-4.20" channel`},
		{Args: "-upstream " + gone.URL, Code: 3, Stderr: "RemoteFailed: "},
		{Args: "-upstream ftp://updates.example", Code: 3, Stderr: "unsupported protocol scheme"},
	})
}
