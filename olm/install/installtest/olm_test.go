package installtest_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/install/installtest"
)

// cluster is a cluster in virtual time on which OLM runs.
type cluster struct {
	*memory.Cluster
	*reconcile.Virtual
	t      *testing.T
	phases func() []string // of all ClusterServiceVersions, since the last call
}

func start(t *testing.T, o installtest.OLM) *cluster {
	clock := reconcile.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	api := memory.NewOpenShift(memory.Options{Clock: clock})
	c := &cluster{api, reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: api, Clock: clock}, o.Process()), t, nil}
	c.phases = recordPhases(t, c)
	t.Cleanup(c.Close)
	return c
}

// pass lets time pass.
func (c *cluster) pass(d time.Duration) { checktest.OK(c.t, c.RunUntil(c.Now().Add(d))) }

func (c *cluster) load(kind, namespace, name string, content map[string]any) {
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion("operators.coreos.com/v1alpha1")
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	checktest.OK(c.t, c.Load(u))
}

// install creates a ClusterServiceVersion that owns a definition, if named.
func (c *cluster) install(name, replaces, owns string) {
	spec := map[string]any{"version": "1.0.0", "replaces": replaces}
	if owns != "" {
		owned := map[string]any{"name": owns, "version": "v1", "kind": "Widget"}
		spec["customresourcedefinitions"] = map[string]any{"owned": []any{owned}}
	}
	c.load("ClusterServiceVersion", "operators", name, map[string]any{"spec": spec})
}

// expect wants a ClusterServiceVersion to be in a phase, for a reason.
func (c *cluster) expect(when, name, want string) {
	c.t.Helper()
	v := checktest.Get(clusterapi.Get[olmapi.ClusterServiceVersion](c.t.Context(), c, clusterapi.Key("operators", name)))(c.t)
	checktest.SameIn(c.t, when, want, v.Status.Phase+" "+v.Status.Reason)
}

func recordPhases(t *testing.T, c *cluster) func() []string {
	changes := c.Follow()
	t.Cleanup(changes.Close)
	last := make(map[string]string)
	return func() (out []string) {
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
	c := start(t, installtest.OLM{})
	c.install("widget.v1", "", "widgets.example.com")
	c.pass(time.Minute)
	c.expect("without its definition", "widget.v1", "Pending RequirementsNotMet")
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	checktest.OK(t, c.Load(memory.Definition(widget, "Namespaced")))
	c.pass(time.Minute)
	c.expect("just before a minute of installing", "widget.v1", "Installing InstallSucceeded")
	c.pass(2 * time.Second)
	c.install("widget.v2", "widget.v1", "")
	c.pass(30 * time.Second)
	c.expect("while its successor is installed", "widget.v1", "Replacing BeingReplaced")
	c.pass(time.Minute)
	checktest.Same(t, []string{
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
	}, c.phases())
}

// Of a chain of versions only the last one stays, and the oldest goes first.
func TestChainOfVersions(t *testing.T) {
	c := start(t, installtest.OLM{})
	c.install("widget.v1", "", "")
	c.pass(2 * time.Minute)
	c.install("widget.v2", "widget.v1", "")
	c.pass(10 * time.Second)
	c.install("widget.v3", "widget.v2", "")
	c.pass(5 * time.Minute)
	var deleted []string
	for _, line := range c.phases() {
		if line == "widget.v1 gone" || line == "widget.v2 gone" {
			deleted = append(deleted, line)
		}
	}
	checktest.SameIn(t, "deleted", []string{"widget.v1 gone", "widget.v2 gone"}, deleted)
	c.expect("in the end", "widget.v3", "Succeeded InstallSucceeded")
}

func TestInstallationFault(t *testing.T) {
	fault := "no image"
	c := start(t, installtest.OLM{Fault: func(csv *olmapi.ClusterServiceVersion) string {
		if csv.Name == "broken.v1" {
			return fault
		}
		return ""
	}})
	c.install("broken.v1", "", "")
	c.install("widget.v1", "", "")
	c.pass(5 * time.Minute)
	c.expect("with the fault", "broken.v1", "Failed InstallComponentFailed")
	c.expect("next to it", "widget.v1", "Succeeded InstallSucceeded")
	fault = ""
	c.pass(5 * time.Minute)
	c.expect("without it", "broken.v1", "Succeeded InstallSucceeded")
}

// A copy of another namespace's operator stays as it is, and after a crash an
// installation continues from its status.
func TestInstallationContinues(t *testing.T) {
	c := start(t, installtest.OLM{})
	c.install("widget.v1", "", "")
	c.pass(40 * time.Second)
	c.Crash("olm")
	c.pass(23 * time.Second)
	c.expect("after a minute of installing, with a restart", "widget.v1", "Succeeded InstallSucceeded")
	_, err := clusterapi.Modify(t.Context(), c, clusterapi.Key("operators", "widget.v1"), clusterapi.ModifyOptions{},
		func(v *olmapi.ClusterServiceVersion) error {
			v.Labels = map[string]string{olmapi.LabelCopiedFrom: "elsewhere"}
			return nil
		})
	checktest.OK(t, err)
	c.install("widget.v2", "widget.v1", "")
	c.pass(5 * time.Minute)
	c.expect("a copy", "widget.v1", "Succeeded InstallSucceeded")
}

// Advance comes to the same end as the process does.
func TestAdvance(t *testing.T) {
	c := start(t, installtest.OLM{})
	c.Stop("olm")
	c.install("widget.v1", "", "")
	c.install("widget.v2", "widget.v1", "")
	for range 20 {
		if !checktest.Get(installtest.OLM{}.Advance(t.Context(), c, "operators"))(t) {
			break
		}
	}
	c.expect("in the end", "widget.v2", "Succeeded InstallSucceeded")
	if all := checktest.Get(clusterapi.ReadAll[olmapi.ClusterServiceVersion](t.Context(), c, clusterapi.ListOptions{}))(t); len(all) != 1 {
		t.Errorf("%d versions stay, want 1", len(all))
	}
}

func TestCatalogs(t *testing.T) {
	c := start(t, installtest.OLM{})
	source := func(name string, status map[string]any) {
		spec := map[string]any{"sourceType": "grpc", "image": "registry.example/index:v1"}
		c.load("CatalogSource", "openshift-marketplace", name, map[string]any{"spec": spec, "status": status})
	}
	source("ours", nil)
	source("broken", map[string]any{"connectionState": map[string]any{"lastObservedState": "TRANSIENT_FAILURE"}})
	expect := func(name, want string) {
		t.Helper()
		key := clusterapi.Key("openshift-marketplace", name)
		stored := checktest.Get(clusterapi.Get[olmapi.CatalogSource](t.Context(), c, key))(t)
		checktest.SameIn(t, name, want, stored.Status.ConnectionState.LastObservedState)
	}
	c.pass(5 * time.Second)
	expect("ours", "CONNECTING")
	c.pass(6 * time.Second)
	expect("ours", "READY")
	expect("broken", "TRANSIENT_FAILURE")
}
