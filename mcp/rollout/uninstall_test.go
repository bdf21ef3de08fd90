package rollout_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

func TestUninstall(t *testing.T) {
	refuse, writes := "", 0
	api := memory.New(memory.Options{Intercept: func(ctx context.Context, c memory.Call, do func(context.Context) error) error {
		if c.Verb == "Update" && c.Key.Name == refuse {
			return errors.New("refused")
		}
		if c.Verb == "Update" {
			writes++
		}
		return do(ctx)
	}})
	for name, annotations := range map[string]map[string]string{
		"a": {"clusterupdate.github.io/drain-since": `{"version":1}`, mcp.AnnotationState: mcp.StateDone},
		"b": {"clusterupdate.github.io/drain-since": "not JSON"},
		"c": {mcp.AnnotationState: mcp.StateDone},
	} {
		n := &corev1.Node{}
		n.Name, n.Annotations = name, annotations
		load(t, api, n)
	}
	before, err := clusterapi.Get[corev1.Node](t.Context(), api, clusterapi.Key("", "c"))
	checktest.OK(t, err)
	refuse = "a"
	if err := rollout.Uninstall(t.Context(), api); err == nil || !strings.Contains(err.Error(), "node a: refused") {
		t.Errorf("got %v", err)
	}
	refuse = ""
	for range 2 {
		checktest.Good(t, rollout.Uninstall(t.Context(), api))
	}
	if writes != 2 {
		t.Errorf("%d writes, want one of each node that has the annotation", writes)
	}
	nodes := checktest.Get(clusterapi.List[corev1.Node](t.Context(), api, clusterapi.ListOptions{}))(t)
	got := map[string]map[string]string{}
	for _, n := range nodes {
		got[n.Name] = n.Annotations
		if n.Name == "c" && n.ResourceVersion != before.ResourceVersion {
			t.Error("a node without the annotation was written")
		}
	}
	want := map[string]map[string]string{"a": {mcp.AnnotationState: mcp.StateDone}, "b": nil, "c": {mcp.AnnotationState: mcp.StateDone}}
	checktest.SameIn(t, "annotations", want, got)
}
