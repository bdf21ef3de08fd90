package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/examples/policyengine/source"
	"github.com/clusterupdate/clusterupdate/graph/policyengine"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
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
	code, out, errs := rehearsed(t, "-upstream", served(t))
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s\n%s", code, errs, out)
	}
	want(t, out, "recommended updates of 4.20.3: 4.21.3, 4.21.2, 4.21.1, 4.20.5, 4.20.4", "Done applying 4.21.1",
		"  4.21.1 Completed, started ", "  4.20.3 Completed, started ")
}

// TestUpstreamWithout: an update that a service does not recommend is not made, and
// one that does not answer is not known.
func TestUpstreamWithout(t *testing.T) {
	url := served(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-upstream", url, "-channel", "fast-4.20"}, 1, " does not recommend the update from 4.20.3 to 4.21.1, image registry.example/ocp/release@sha256:"},
		{[]string{"-upstream", url, "-channel", "none-4.20"}, 1, `currently reconciling cluster version 4.20.3 not found in the "none-4.20" channel`},
		{[]string{"-upstream", gone.URL}, 3, "RemoteFailed: "},
		{[]string{"-upstream", "ftp://updates.example"}, 3, "unsupported protocol scheme"},
	} {
		code, out, errs := rehearsed(t, tt.args...)
		if code != tt.code || !strings.Contains(errs, tt.want) || out != "" {
			t.Errorf("%v: exit %d, %q, %q", tt.args, code, out, errs)
		}
	}
}
