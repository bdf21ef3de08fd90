package clusterversion_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/cvtest"
)

func at(seconds int64) metav1.Time { return metav1.Unix(seconds, 0) }

func entry(state configv1.UpdateState, version, image string, started, completed int64) configv1.UpdateHistory {
	h := configv1.UpdateHistory{State: state, Version: version, Image: image, StartedTime: at(started)}
	if completed != 0 {
		t := at(completed)
		h.CompletionTime = &t
	}
	return h
}

// measured is a cluster in the middle of its life.
func measured(change ...func(*configv1.ClusterVersion)) *configv1.ClusterVersion {
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version", CreationTimestamp: at(1000)}}
	cv.Spec.Channel = "stable-4.20"
	cv.Status.Desired = configv1.Release{Version: "4.20.3", Image: "C"}
	cv.Status.History = []configv1.UpdateHistory{entry(configv1.CompletedUpdate, "4.20.3", "C", 3000, 3500), entry(configv1.PartialUpdate, "4.20.2", "B", 2500, 3000), entry(configv1.CompletedUpdate, "4.20.1", "A", 1000, 1800)}
	cv.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
		{Type: "Available", Status: "True", Reason: "R", LastTransitionTime: at(1800)}, {Type: "Failing", Status: "False", LastTransitionTime: at(3600)},
		{Type: "Progressing", Status: "Unknown", LastTransitionTime: at(3500)},
	}
	for _, f := range change {
		f(cv)
	}
	return cv
}

func samplesOf(in clusterversion.MetricsInput, names ...string) []string {
	var out []string
	for _, s := range clusterversion.Metrics(in) {
		if slices.Contains(names, s.Name) {
			out = append(out, s.String())
		}
	}
	return out
}

func TestMetrics(t *testing.T) {
	version := func(kind, version, image, from, value string) string {
		return `cluster_version{from_version="` + from + `",image="` + image + `",type="` + kind + `",version="` + version + `"} ` + value
	}
	rest := []string{version("completed", "4.20.3", "C", "4.20.1", "3500"), version("initial", "4.20.1", "A", "", "1000"), version("cluster", "4.20.3", "C", "4.20.1", "1000")}
	operator := func(name, v string, conditions ...configv1.ClusterOperatorStatusCondition) *configv1.ClusterOperator {
		co := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
		co.Status.Versions = []configv1.OperandVersion{{Name: "other", Version: "x"}, {Name: "operator", Version: v}}
		co.Status.Conditions = conditions
		return co
	}
	var turned clusterversion.ConditionTransitions
	for _, status := range []configv1.ConditionStatus{"True", "False", "Unknown", "False", "True"} {
		turned.Observe("etcd", []configv1.ClusterOperatorStatusCondition{{Type: "Available", Status: status}, {Type: "Degraded", Status: "False"}})
	}
	config := func(data ...string) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{Data: map[string]string{}}
		for i := 0; i < len(data); i += 2 {
			cm.Data[data[i]] = data[i+1]
		}
		return cm
	}
	conditional := func(cv *configv1.ClusterVersion) {
		cv.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{Release: configv1.Release{Version: "4.20.9"}, Conditions: []metav1.Condition{{Type: "Recommended", Status: "False", Reason: "R", LastTransitionTime: at(42)}}}}
		cv.Status.ConditionalUpdateRisks = []configv1.ConditionalUpdateRisk{
			{Name: "R1", Conditions: []metav1.Condition{{Type: "Applies", Status: "True", Reason: "A"}}}, {Name: "R2", Conditions: []metav1.Condition{{Type: "Applies", Status: "False", Reason: "B"}}},
			{Name: "R3", Conditions: []metav1.Condition{{Type: "Applies", Status: "Unknown", Reason: "C"}}},
		}
	}
	for _, tt := range []struct {
		name string
		in   clusterversion.MetricsInput
		of   string
		want []string
	}{
		{"at rest", clusterversion.MetricsInput{ClusterVersion: measured(), Built: time.Unix(500, 0)}, "cluster_version", append(slices.Clone(rest), version("current", "4.20.3", "C", "4.20.3", "500"))},
		{"build time not known", clusterversion.MetricsInput{ClusterVersion: measured(), Own: configv1.Release{Version: "4.20.0", Image: "O"}}, "cluster_version",
			[]string{rest[0], rest[1], version("cluster", "4.20.0", "O", "4.20.1", "1000"), version("current", "4.20.0", "O", "4.20.3", "0")}},
		{"checked", clusterversion.MetricsInput{ClusterVersion: measured(cvtest.Desired(configv1.Update{Version: "4.20.4", Image: "D", Mode: configv1.UpdateModePreflight}))}, "cluster_version",
			append(slices.Clone(rest), version("current", "4.20.3", "C", "4.20.3", "0"))},
		{"asked for", clusterversion.MetricsInput{ClusterVersion: measured(cvtest.Desired(configv1.Update{Version: "4.20.4", Image: "D"}))}, "cluster_version",
			append(slices.Clone(rest), version("desired", "4.20.4", "D", "4.20.3", "3600"), version("current", "4.20.3", "C", "4.20.3", "0"))},
		{"asked for what it has", clusterversion.MetricsInput{ClusterVersion: measured(cvtest.Desired(configv1.Update{Version: "4.20.3", Image: "C"}))}, "cluster_version",
			append(slices.Clone(rest), version("current", "4.20.3", "C", "4.20.3", "0"))},
		{"failing", clusterversion.MetricsInput{ClusterVersion: measured(func(cv *configv1.ClusterVersion) { cv.Status.Conditions[1].Status = "True" })}, "cluster_version",
			append(slices.Clone(rest), version("failure", "4.20.3", "C", "4.20.3", "3600"), version("current", "4.20.3", "C", "4.20.3", "0"))},
		{"updating", clusterversion.MetricsInput{ClusterVersion: measured(func(cv *configv1.ClusterVersion) {
			cv.Status.History = append([]configv1.UpdateHistory{entry(configv1.PartialUpdate, "4.20.4", "D", 4000, 0)}, cv.Status.History...)
		})}, "cluster_version", append(slices.Clone(rest), version("updating", "4.20.4", "D", "4.20.3", "4000"), version("current", "4.20.3", "C", "4.20.3", "0"))},
		{"installing", clusterversion.MetricsInput{ClusterVersion: measured(func(cv *configv1.ClusterVersion) {
			cv.Status.History = []configv1.UpdateHistory{entry(configv1.PartialUpdate, "4.20.3", "C", 1000, 0)}
		})}, "cluster_version", []string{version("initial", "4.20.3", "C", "", "1000"), version("cluster", "4.20.3", "C", "", "1000"), version("updating", "4.20.3", "C", "", "1000"), version("current", "4.20.3", "C", "", "0")}},
		{"no history", clusterversion.MetricsInput{ClusterVersion: measured(func(cv *configv1.ClusterVersion) { cv.Status.History = nil })}, "cluster_version",
			[]string{version("initial", "", "", "", "1000"), version("cluster", "4.20.3", "C", "", "1000"), version("current", "4.20.3", "C", "", "0")}},
		{"no ClusterVersion", clusterversion.MetricsInput{}, "cluster_version cluster_operator_up", []string{`cluster_operator_up{name="version",reason="ClusterVersionNotFound",version=""} 0`}},

		{"no updates", clusterversion.MetricsInput{ClusterVersion: measured()}, "cluster_version_available_updates", nil},
		{"retrieved none", clusterversion.MetricsInput{ClusterVersion: measured(cvtest.WithCondition("RetrievedUpdates", "True"))}, "cluster_version_available_updates",
			[]string{`cluster_version_available_updates{channel="stable-4.20",upstream="<default>"} 0`}},
		{"two updates, own service", clusterversion.MetricsInput{ClusterVersion: measured(func(cv *configv1.ClusterVersion) {
			cv.Spec.Upstream, cv.Status.AvailableUpdates = "https://a.example", make([]configv1.Release, 2)
		})}, "cluster_version_available_updates", []string{`cluster_version_available_updates{channel="stable-4.20",upstream="https://a.example"} 2`}},
		{"capabilities", clusterversion.MetricsInput{ClusterVersion: measured(func(cv *configv1.ClusterVersion) {
			cv.Status.Capabilities = configv1.ClusterVersionCapabilitiesStatus{EnabledCapabilities: []configv1.ClusterVersionCapability{"B", "Z"}, KnownCapabilities: []configv1.ClusterVersionCapability{"A", "B"}}
		})}, "cluster_version_capability", []string{`cluster_version_capability{name="A"} 0`, `cluster_version_capability{name="B"} 1`, `cluster_version_capability{name="Z"} 1`}},

		{"operators", clusterversion.MetricsInput{ClusterVersion: measured(), ClusterOperators: []*configv1.ClusterOperator{
			operator("etcd", "4.20.3", configv1.ClusterOperatorStatusCondition{Type: "Available", Status: "False", Reason: "Down"}, configv1.ClusterOperatorStatusCondition{Type: "Degraded", Status: "Unknown"}),
			operator("dns", "4.20.2"),
		}}, "cluster_operator_up cluster_operator_conditions", []string{
			`cluster_operator_up{name="dns",reason="NoAvailableCondition",version="4.20.2"} 0`, `cluster_operator_up{name="etcd",reason="Down",version="4.20.3"} 0`, `cluster_operator_up{name="version",reason="R",version="4.20.3"} 1`,
			`cluster_operator_conditions{condition="Available",name="etcd",reason="Down"} 0`, `cluster_operator_conditions{condition="Available",name="version",reason="R"} 1`, `cluster_operator_conditions{condition="Failing",name="version",reason=""} 0`}},
		{"transitions", clusterversion.MetricsInput{Transitions: &turned}, "cluster_operator_condition_transitions", []string{
			`cluster_operator_condition_transitions{condition="Available",name="etcd"} 2`, `cluster_operator_condition_transitions{condition="Degraded",name="etcd"} 0`}},

		{"conditional updates", clusterversion.MetricsInput{ClusterVersion: measured(conditional)}, "cluster_version_conditional_update_condition_seconds cluster_version_risk_conditions",
			[]string{`cluster_version_conditional_update_condition_seconds{condition="Recommended",reason="R",status="False",version="4.20.9"} 42`}},
		{"risks", clusterversion.MetricsInput{ClusterVersion: measured(conditional), AcceptRisks: true}, "cluster_version_risk_conditions", []string{
			`cluster_version_risk_conditions{condition="Applies",reason="A",risk="R1"} 1`, `cluster_version_risk_conditions{condition="Applies",reason="B",risk="R2"} 0`, `cluster_version_risk_conditions{condition="Applies",reason="C",risk="R3"} -1`}},
		{"retrieved", clusterversion.MetricsInput{Retrieved: time.Unix(77, 0)}, "cluster_version_operator_update_retrieval_timestamp_seconds", []string{`cluster_version_operator_update_retrieval_timestamp_seconds{name="version"} 77`}},
		{"installer", clusterversion.MetricsInput{Installer: config("version", "v1", "invoker", "user"), Manifests: config()}, "cluster_installer", []string{`cluster_installer{invoker="user",type="openshift-install",version="v1"} 1`}},
		{"other installer", clusterversion.MetricsInput{Manifests: config("version", "v2")}, "cluster_installer", []string{`cluster_installer{invoker="<missing>",type="other",version="v2"} 1`}},
		{"no installer", clusterversion.MetricsInput{}, "cluster_installer", nil},
	} {
		if diff := cmp.Diff(tt.want, samplesOf(tt.in, strings.Fields(tt.of)...)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestReadMetrics(t *testing.T) {
	api := clusterOf(t, memory.Options{}, measured())
	for _, o := range []any{&configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "dns"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-config"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config", Name: "openshift-install"}, Data: map[string]string{"version": "v1", "invoker": "user"}}} {
		u := checktest.Get(clusterapi.ToUnstructured(o))(t)
		checktest.OK(t, api.Load(u))
	}
	got := checktest.Get(clusterversion.ReadMetrics(t.Context(), api, clusterversion.MetricsInput{Built: time.Unix(500, 0)}))(t)
	var text []string
	for _, s := range got {
		text = append(text, s.String())
	}
	for _, want := range []string{`cluster_operator_up{name="dns",reason="NoAvailableCondition",version=""} 0`, `cluster_installer{invoker="user",type="openshift-install",version="v1"} 1`,
		`cluster_version{from_version="4.20.3",image="C",type="current",version="4.20.3"} 500`} {
		if !slices.Contains(text, want) {
			t.Errorf("no %s in %q", want, text)
		}
	}
	if got, err := clusterversion.ReadMetrics(t.Context(), memory.NewOpenShift(memory.Options{}), clusterversion.MetricsInput{}); err != nil || len(got) != 1 {
		t.Errorf("an empty cluster: %v, %v", got, err)
	}
	if _, err := clusterversion.ReadMetrics(t.Context(), failingReader{api, "ClusterOperator"}, clusterversion.MetricsInput{}); err == nil || !strings.Contains(err.Error(), "cluster operators: ") || !errors.Is(err, errAway) {
		t.Errorf("%v", err)
	}
}

var errAway = errors.New("away")

// failingReader cannot read one kind.
type failingReader struct {
	clusterapi.Reader
	kind string
}

func (r failingReader) List(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	if gvk.Kind == r.kind {
		return nil, errAway
	}
	return r.Reader.List(ctx, gvk, o)
}
