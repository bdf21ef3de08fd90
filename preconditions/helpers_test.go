package preconditions_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// fakeReader serves fixed objects, fails by kind or name, and counts reads.
type fakeReader struct {
	clusterapi.Reader
	fail map[string]error // by Kind or Kind/name

	mu    sync.Mutex
	calls map[string]int
}

func reader(t testing.TB, objects ...any) *fakeReader {
	t.Helper()
	r := &fakeReader{fail: map[string]error{}, calls: map[string]int{}}
	cluster := memory.New(memory.Options{Lenient: true, Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		what := call.GVK.Kind
		if call.Verb == "Get" {
			what += "/" + call.Key.Name
		}
		r.mu.Lock()
		r.calls[strings.ToLower(call.Verb)+" "+what]++
		r.mu.Unlock()
		for _, name := range []string{call.GVK.Kind, what} {
			if err := r.fail[name]; err != nil {
				return err
			}
		}
		return do(ctx)
	}})
	for _, o := range objects {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			u = checktest.Get(clusterapi.ToUnstructured(o))(t)
		}
		checktest.OK(t, cluster.Load(u))
	}
	r.Reader = clusterapi.ReadOnly(cluster)
	return r
}

func (r *fakeReader) failing(what string, err error) *fakeReader {
	r.fail[what] = err
	return r
}

type gvk = schema.GroupVersionKind

func kindIs(kind string) func(gvk) bool { return func(k gvk) bool { return k.Kind == kind } }

// cvEdit changes a ClusterVersion under construction.
type cvEdit func(*configv1.ClusterVersion)

// clusterVersion builds one that runs version@image, completed.
func clusterVersion(current string, edits ...cvEdit) *configv1.ClusterVersion {
	version, image, _ := strings.Cut(current, "@")
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version", ResourceVersion: "7"}}
	cv.Spec.Channel = "stable-4.3"
	cv.Status.Desired = configv1.Release{Version: version, Image: image}
	for _, edit := range edits {
		edit(cv)
	}
	return cv
}

// history takes entries like "4.2.3@B C", newest first.
func history(entries ...string) cvEdit {
	return func(cv *configv1.ClusterVersion) {
		for _, e := range entries {
			release, state, _ := strings.Cut(e, " ")
			version, image, _ := strings.Cut(release, "@")
			entry := configv1.UpdateHistory{State: configv1.PartialUpdate, Version: version, Image: image}
			if state == "C" {
				entry.State = configv1.CompletedUpdate
			}
			cv.Status.History = append(cv.Status.History, entry)
		}
	}
}

func cond(t, status, reason, message string) cvEdit {
	return func(cv *configv1.ClusterVersion) {
		cv.Status.Conditions = append(cv.Status.Conditions, configv1.ClusterOperatorStatusCondition{
			Type: configv1.ClusterStatusConditionType(t), Status: configv1.ConditionStatus(status), Reason: reason, Message: message,
		})
	}
}

func available(versions ...string) cvEdit {
	return func(cv *configv1.ClusterVersion) {
		for _, v := range versions {
			version, image, _ := strings.Cut(v, "@")
			cv.Status.AvailableUpdates = append(cv.Status.AvailableUpdates, configv1.Release{Version: version, Image: image})
		}
	}
}

func conditional(version string, conditions ...metav1.Condition) cvEdit {
	return func(cv *configv1.ClusterVersion) {
		cv.Status.ConditionalUpdates = append(cv.Status.ConditionalUpdates, configv1.ConditionalUpdate{
			Release: configv1.Release{Version: version}, Conditions: conditions,
			Risks: []configv1.ConditionalUpdateRisk{{Name: "DiskFull"}},
		})
	}
}

func channel(name string) cvEdit {
	return func(cv *configv1.ClusterVersion) { cv.Spec.Channel = name }
}

func override(unmanaged bool) cvEdit {
	return func(cv *configv1.ClusterVersion) {
		cv.Spec.Overrides = append(cv.Spec.Overrides, configv1.ComponentOverride{Kind: "Deployment", Group: "apps", Namespace: "ns", Name: "n", Unmanaged: unmanaged})
	}
}

func clusterOperator(name string, conditions ...configv1.ClusterOperatorStatusCondition) *configv1.ClusterOperator {
	co := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}}
	co.Status.Conditions = conditions
	return co
}

func coCond(t, status, reason, message string) configv1.ClusterOperatorStatusCondition {
	return configv1.ClusterOperatorStatusCondition{
		Type: configv1.ClusterStatusConditionType(t), Status: configv1.ConditionStatus(status), Reason: reason, Message: message,
	}
}

func configMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "1"}, Data: data}
}

func gates(data map[string]string) *corev1.ConfigMap {
	return configMap("openshift-config-managed", "admin-gates", data)
}

func acks(data map[string]string) *corev1.ConfigMap {
	return configMap("openshift-config", "admin-acks", data)
}

// input asks for target (VERSION or VERSION@IMAGE) of the cluster behind r.
func input(r clusterapi.Reader, cv *configv1.ClusterVersion, target string) *preconditions.Input {
	version, image, _ := strings.Cut(target, "@")
	return &preconditions.Input{
		Reader:     r,
		Transition: preconditions.NewTransition(cv, configv1.Release{Version: version, Image: image}, false, preconditions.Full),
	}
}

func run(t testing.TB, checks []preconditions.Check, in *preconditions.Input) *preconditions.Report {
	t.Helper()
	report := checktest.Get(preconditions.Run(context.Background(), checks, in, preconditions.Options{}))(t)
	if in == nil {
		return report
	}
	if r, ok := in.Reader.(*fakeReader); ok {
		checkRules(t, checks, r, report)
	}
	return report
}

// checkCase is a cluster and what a check says of it.
type checkCase struct {
	check, name      string                   // check: that of runCases
	cv               *configv1.ClusterVersion // default: of current and edits
	current          string                   // default 4.18.5@A
	edits            []cvEdit
	target           string // default 4.19.1@T
	arch             configv1.ClusterVersionArchitecture
	plan             preconditions.Plan
	planTarget       string
	payload, running *manifest.Payload
	objects          []any
	fail             map[string]error
	input            func(*preconditions.Input)
	want             string
	remedy           string // what the first one contains
}

// runCases runs a check on each case. No result has a password of the objects.
func runCases(t *testing.T, check preconditions.Check, cases []checkCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.check+tt.name, func(t *testing.T) {
			check := check
			if tt.check != "" {
				check = checkNamed(t, tt.check)
			}
			cv := tt.cv
			if cv == nil {
				cv = clusterVersion(cmp.Or(tt.current, "4.18.5@A"), tt.edits...)
			}
			r := reader(t, append([]any{cv}, tt.objects...)...)
			for what, err := range tt.fail {
				r.failing(what, err)
			}
			version, image, _ := strings.Cut(cmp.Or(tt.target, "4.19.1@T"), "@")
			release := configv1.Release{Version: version, Image: image, Architecture: tt.arch}
			in := &preconditions.Input{Reader: r, Transition: preconditions.NewTransition(cv, release, false, tt.plan), TargetPayload: tt.payload, CurrentPayload: tt.running}
			if tt.planTarget != "" {
				in.PlanTarget = semver.MustParse(tt.planTarget)
			}
			if tt.input != nil {
				tt.input(in)
			}
			result := run(t, []preconditions.Check{check}, in).Results[0]
			if got := brief(result); got != tt.want || strings.Contains(fmt.Sprintf("%+v", result), "secret@") {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if tt.remedy != "" && !strings.Contains(result.Findings[0].Remedy, tt.remedy) {
				t.Errorf("remedy %s", result.Findings[0].Remedy)
			}
		})
	}
}

// text renders findings as SEVERITY REASON: MESSAGE lines.
func text(r preconditions.Result) string {
	lines := []string{string(r.State)}
	for _, f := range r.Findings {
		lines = append(lines, f.Severity.String()+" "+f.Reason+": "+f.Message)
	}
	return strings.Join(lines, "\n")
}

// onlyVersion is a cluster that serves preflight validations as v1beta1 alone.
type onlyVersion struct{ *fakeReader }

func (r onlyVersion) List(ctx context.Context, k schema.GroupVersionKind, o clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	if k.Kind == "PreflightValidationOCP" && k.Version != "v1beta1" {
		return nil, noKind(k.Kind)
	}
	return r.fakeReader.List(ctx, k, o)
}
