package plan_test

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/cvtest"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// The built-in action UpdateCluster requests the update of a step, waits for what passes,
// and fails for what does not.
func TestUpdateCluster(t *testing.T) {
	release := func(n int) string { return cvtest.ImageOf(cvtest.Repository, n) }
	refused := &url.Error{Op: "Get", URL: "https://api.example:6443", Err: syscall.ECONNREFUSED}
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	asked := cvtest.Desired(configv1.Update{Version: "4.20.4", Image: release(4)})
	for _, tt := range []struct {
		name   string
		cv     *configv1.ClusterVersion
		args   plan.Args
		allow  clusterversion.UpdateRequest
		fails  map[string]error // the first calls of a verb
		event  clusterapi.EventType
		says   string
		wanted string // the image that is asked for in the end
	}{
		{name: "offered", cv: cvtest.Requestable(), args: plan.Args{Version: "4.20.4"}, wanted: release(4)},
		{name: "by image", cv: cvtest.Requestable(), args: plan.Args{Version: "4.20.4", Image: release(4)}, wanted: release(4)},
		{name: "asked already", cv: cvtest.Requestable(asked), args: plan.Args{Version: "4.20.4"}, wanted: release(4)},
		{name: "there already", cv: cvtest.Requestable(), args: plan.Args{Version: "4.20.3"}, event: plan.EventPlanDone, says: "Finished"},
		{name: "not offered yet", cv: cvtest.Requestable(), args: plan.Args{Version: "4.20.5"}, event: plan.EventWaiting,
			says: "the update is not one of the possible targets: 4.20.10, 4.20.4"},
		{name: "updates cannot be retrieved", cv: cvtest.Requestable(cvtest.WithoutUpdates, cvtest.WithCondition("RetrievedUpdates", "False")),
			args: plan.Args{Version: "4.20.4"}, event: plan.EventWaiting, says: "cannot refresh available updates"},
		{name: "updating", cv: cvtest.Requestable(cvtest.WithCondition("Progressing", "True")), args: plan.Args{Version: "4.20.4"},
			event: plan.EventWaiting, says: "the cluster is already upgrading"},
		{name: "not recommended", cv: cvtest.Requestable(), args: plan.Args{Version: "4.21.1"}, event: plan.EventStepFailed,
			says: "not one of the recommended updates"},
		{name: "not recommended, allowed", cv: cvtest.Requestable(), args: plan.Args{Version: "4.21.1"},
			allow: clusterversion.UpdateRequest{AllowNotRecommended: true, To: "9.9.9"}, wanted: release(21)},
		{name: "not reached when it reads", cv: cvtest.Requestable(), args: plan.Args{Version: "4.20.4"},
			fails: map[string]error{"Get": refused}, wanted: release(4)},
		{name: "not reached when it writes", cv: cvtest.Requestable(), args: plan.Args{Version: "4.20.4"},
			fails: map[string]error{"Update": reset}, wanted: release(4)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			failed := 0
			api := memory.NewOpenShift(memory.Options{Intercept: func(ctx context.Context, c memory.Call, do func(context.Context) error) error {
				if err := tt.fails[c.Verb]; err != nil && c.GVK.Kind == "ClusterVersion" && failed < 6 {
					failed++
					return err
				}
				return do(ctx)
			}})
			for _, o := range []any{tt.cv, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-config"}}} {
				checktest.OK(t, api.Load(checktest.Get(clusterapi.ToUnstructured(o))(t)))
			}
			var events []string
			runner := checktest.Get(plan.New(plan.Options{
				API: api, Plan: custom("p", plan.Step{ID: "update", Kind: plan.UpdateCluster, Args: tt.args}), Update: tt.allow,
				Observe: func(e clusterapi.Event) { events = append(events, string(e.Type)+" "+e.Message) },
			}))(t)
			v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: api, Clock: reconcile.NewClock(mcptest.Epoch)}, runner.Process())
			defer v.Close()
			checktest.OK(t, v.RunUntil(v.Now().Add(5*time.Minute)))
			seen := false
			for _, e := range events {
				seen = seen || strings.HasPrefix(e, string(tt.event)) && strings.Contains(e, tt.says)
			}
			stepFailed := slices.ContainsFunc(events, func(e string) bool { return strings.HasPrefix(e, string(plan.EventStepFailed)) })
			if !seen || stepFailed != (tt.event == plan.EventStepFailed) || tt.fails != nil && failed < 6 {
				t.Errorf("no %s with %q in %q", tt.event, tt.says, events)
			}
			got := ""
			if u := checktest.Get(clusterversion.Get(t.Context(), api))(t).Spec.DesiredUpdate; u != nil {
				got = u.Image
			}
			checktest.Equal(t, tt.wanted, got, "image")
		})
	}
}
