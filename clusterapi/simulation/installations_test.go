package simulation_test

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// csv creates a ClusterServiceVersion that owns a definition, if named.
func csv(t *testing.T, c *cluster, name, replaces, owns string) {
	t.Helper()
	spec := map[string]any{"version": "1.0.0", "replaces": replaces}
	if owns != "" {
		spec["customresourcedefinitions"] = map[string]any{"owned": []any{map[string]any{"name": owns, "version": "v1", "kind": "Widget"}}}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
		"metadata": map[string]any{"namespace": "operators", "name": name}, "spec": spec}}
	checktest.OK(t, checktest.Err(c.Create(t.Context(), u, clusterapi.CreateOptions{})))
}

func phase(t *testing.T, c *cluster, name string) string {
	t.Helper()
	obj, err := clusterapi.Get[olmapi.ClusterServiceVersion](t.Context(), c, clusterapi.Key("operators", name))
	if apierrors.IsNotFound(err) {
		return "gone"
	}
	checktest.OK(t, err)
	return obj.Status.Phase + " " + obj.Status.Reason
}

// recordPhases follows the phases of all ClusterServiceVersions from now on.
func recordPhases(t *testing.T, c *cluster) func() []string {
	changes := c.Follow()
	last := make(map[string]string)
	return func() (out []string) {
		defer changes.Close()
		for change, ok := changes.Next(); ok; change, ok = changes.Next() {
			if change.Object().Kind().Kind != "ClusterServiceVersion" {
				continue
			}
			name, text := change.Object().Name(), "gone"
			if change.New != nil {
				v := checktest.Get(clusterapi.As[olmapi.ClusterServiceVersion](change.New))(t)
				text = v.Status.Phase + " " + v.Status.Reason + ": " + v.Status.Message
			}
			if text != " : " && last[name] != text {
				last[name] = text
				out = append(out, name+" "+text)
			}
		}
		return out
	}
}

func TestInstallation(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3")})
	tell := recordPhases(t, c)
	csv(t, c, "widget.v1", "", "widgets.example.com")
	c.pass(time.Minute)
	if got := phase(t, c, "widget.v1"); got != "Pending RequirementsNotMet" {
		t.Fatalf("without its definition: %s", got)
	}
	if err := c.Load(memory.Definition(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, "Namespaced")); err != nil {
		t.Fatal(err)
	}
	c.pass(time.Minute)
	if got := phase(t, c, "widget.v1"); got != "Installing InstallSucceeded" {
		t.Errorf("just before a minute of installing: %s", got)
	}
	c.pass(2 * time.Second)
	csv(t, c, "widget.v2", "widget.v1", "")
	c.pass(30 * time.Second)
	if got := phase(t, c, "widget.v1"); got != "Replacing BeingReplaced" {
		t.Errorf("while its successor is installed: %s", got)
	}
	c.pass(time.Minute)
	want := []string{
		"widget.v1 Pending RequirementsUnknown: requirements not yet checked",
		"widget.v1 Pending RequirementsNotMet: one or more requirements couldn't be found",
		"widget.v1 InstallReady AllRequirementsMet: all requirements found, attempting install",
		"widget.v1 Installing InstallSucceeded: waiting for install components to report healthy",
		"widget.v1 Succeeded InstallSucceeded: install strategy completed with no errors",
		"widget.v2 Pending RequirementsUnknown: requirements not yet checked",
		"widget.v1 Replacing BeingReplaced: being replaced by csv: widget.v2",
		"widget.v2 InstallReady AllRequirementsMet: all requirements found, attempting install",
		"widget.v2 Installing InstallSucceeded: waiting for install components to report healthy",
		"widget.v2 Succeeded InstallSucceeded: install strategy completed with no errors",
		"widget.v1 Deleting Replaced: has been replaced by a newer ClusterServiceVersion that has successfully installed.",
		"widget.v1 gone",
	}
	checktest.SameIn(t, "phases", want, tell())
	u, err := c.Get(t.Context(), (*olmapi.ClusterServiceVersion)(nil).APIKind(), clusterapi.Key("operators", "widget.v2"))
	checktest.OK(t, err)
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	var phases []string
	for _, c := range conditions {
		phases = append(phases, fmt.Sprint(c.(map[string]any)["phase"]))
	}
	checktest.SameIn(t, "conditions", []string{"Pending", "InstallReady", "Installing", "Succeeded"}, phases)
}

// Of a chain of versions only the last one stays, and the oldest goes first.
func TestChainOfVersions(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3")})
	csv(t, c, "widget.v1", "", "")
	c.pass(2 * time.Minute)
	tell := recordPhases(t, c)
	csv(t, c, "widget.v2", "widget.v1", "")
	c.pass(10 * time.Second)
	csv(t, c, "widget.v3", "widget.v2", "")
	c.pass(5 * time.Minute)
	var gone []string
	for _, line := range tell() {
		if line == "widget.v1 gone" || line == "widget.v2 gone" {
			gone = append(gone, line)
		}
	}
	checktest.SameIn(t, "deleted", []string{"widget.v1 gone", "widget.v2 gone"}, gone)
	if got := phase(t, c, "widget.v3"); got != "Succeeded InstallSucceeded" {
		t.Errorf("the last one: %s", got)
	}
}

func TestInstallationFaults(t *testing.T) {
	for _, tt := range []struct {
		fault simulation.Fault
		want  string
	}{
		{simulation.Fault{Kind: simulation.FaultDegraded, Message: "no image"}, "Failed InstallComponentFailed"},
		{simulation.Fault{Kind: simulation.FaultStuck}, "Installing InstallSucceeded"},
		{simulation.Fault{Kind: simulation.FaultDegraded, For: 10 * time.Minute}, "Failed InstallComponentFailed"},
	} {
		t.Run(string(tt.fault.Kind), func(t *testing.T) {
			c := start(t, simulation.Options{Release: release("4.20.3")})
			c.pass(time.Second)
			c.SetOperatorFault("operators/widget.v1", &tt.fault)
			csv(t, c, "widget.v1", "", "")
			c.pass(5 * time.Minute)
			if got := phase(t, c, "widget.v1"); got != tt.want {
				t.Errorf("with the fault: %s, want %s", got, tt.want)
			}
			if tt.fault.For == 0 {
				c.SetOperatorFault("operators/widget.v1", nil)
			}
			c.pass(20 * time.Minute)
			if got := phase(t, c, "widget.v1"); got != "Succeeded InstallSucceeded" {
				t.Errorf("without it: %s", got)
			}
		})
	}
}

// What a dump shows of other namespaces' operators, and versions that are
// installed, stay as they are; and a stopped simulation goes on from the status.
func TestInstallationGoesOn(t *testing.T) {
	c := made(t, simulation.Options{Release: release("4.20.3")})
	stop := c.run(t)
	csv(t, c, "widget.v1", "", "")
	c.pass(40 * time.Second)
	stop()
	c.run(t)
	c.pass(23 * time.Second)
	if got := phase(t, c, "widget.v1"); got != "Succeeded InstallSucceeded" {
		t.Errorf("a minute of installing, with a restart: %s", got)
	}
	modify(t, c, "operators", "widget.v1", func(v *olmapi.ClusterServiceVersion) { v.Labels = map[string]string{"olm.copiedFrom": "elsewhere"} })
	csv(t, c, "widget.v2", "widget.v1", "")
	c.pass(5 * time.Minute)
	if got := phase(t, c, "widget.v1"); got != "Succeeded InstallSucceeded" {
		t.Errorf("a copy: %s", got)
	}
}

func TestCatalogs(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3")})
	source := func(name, state string) {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
			"metadata": map[string]any{"namespace": "openshift-marketplace", "name": name}, "spec": map[string]any{"sourceType": "grpc", "image": "registry.example/index:v1"}}}
		if state != "" {
			u.Object["status"] = map[string]any{"connectionState": map[string]any{"lastObservedState": state}}
		}
		checktest.OK(t, c.Load(u))
	}
	source("ours", "")
	source("broken", "TRANSIENT_FAILURE")
	state := func(name string) string {
		return get[olmapi.CatalogSource](t, c, "openshift-marketplace", name).Status.ConnectionState.LastObservedState
	}
	c.pass(5 * time.Second)
	if got := state("ours"); got != "CONNECTING" {
		t.Errorf("after 5 s %s", got)
	}
	c.pass(6 * time.Second)
	if got := state("ours"); got != "READY" {
		t.Errorf("after 11 s %s", got)
	}
	if got := state("broken"); got != "TRANSIENT_FAILURE" {
		t.Errorf("a catalog that does not answer: %s", got)
	}
}
