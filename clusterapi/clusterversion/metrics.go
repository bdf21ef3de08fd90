package clusterversion

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// The metrics of the cluster-version operator.
const (
	MetricClusterVersion       = "cluster_version"
	MetricAvailableUpdates     = "cluster_version_available_updates"
	MetricCapability           = "cluster_version_capability"
	MetricOperatorUp           = "cluster_operator_up"
	MetricOperatorConditions   = "cluster_operator_conditions"
	MetricConditionTransitions = "cluster_operator_condition_transitions"
	MetricPayloadErrors        = "cluster_operator_payload_errors"
	MetricPayload              = "cluster_version_payload"
	MetricRiskCondition        = "cluster_version_risk_conditions"
	MetricConditionalCondition = "cluster_version_conditional_update_condition_seconds"
	MetricRetrievalTime        = "cluster_version_operator_update_retrieval_timestamp_seconds"
	MetricInstaller            = "cluster_installer"
)

// MetricsInput is what [Metrics] are made of. It is plain data.
type MetricsInput struct {
	// ClusterVersion is nil if absent.
	ClusterVersion   *configv1.ClusterVersion
	ClusterOperators []*configv1.ClusterOperator
	// Own is the release that the cluster runs; zero: status.desired. Built is when
	// it was built; zero: not known.
	Own   configv1.Release
	Built time.Time
	// Transitions counts how often conditions have turned; nil leaves them out.
	Transitions *ConditionTransitions
	// Payloads counts the attempts of passes over releases; nil leaves them out.
	Payloads *PayloadProgress
	// Retrieved is when updates were last retrieved, or changed; zero: never.
	Retrieved time.Time
	// AcceptRisks is whether the feature gate ClusterUpdateAcceptRisks is on.
	AcceptRisks bool
	// Installer is ConfigMap openshift-config/openshift-install, and Manifests
	// openshift-install-manifests; nil if absent.
	Installer, Manifests *corev1.ConfigMap
}

// Metrics returns the metrics of the cluster-version operator, as data: in the order of
// their names above, objects by name. It can be called concurrently.
func Metrics(in MetricsInput) []clusterapi.Sample {
	var m metrics
	cv := in.ClusterVersion
	if cv != nil {
		m.version(cv, in)
		m.updates(cv)
	}
	m.operators(in)
	if in.Transitions != nil {
		m = append(m, in.Transitions.samples()...)
	}
	if in.Payloads != nil {
		m = append(m, in.Payloads.samples()...)
	}
	if cv != nil {
		m.risks(cv, in)
	}
	if !in.Retrieved.IsZero() {
		m.add(MetricRetrievalTime, float64(in.Retrieved.Unix()), "name", key.Name)
	}
	m.installer(in)
	return m
}

// ReadMetrics reads the fields of MetricsInput that can be read from a cluster, takes
// the others from in, and returns the metrics. Errors are those of the reads; what is
// not there is left out. It can be called concurrently.
func ReadMetrics(ctx context.Context, r clusterapi.Reader, in MetricsInput) ([]clusterapi.Sample, error) {
	var err error
	in.ClusterVersion, err = readIfThere[configv1.ClusterVersion](ctx, r, key)
	if err != nil {
		return nil, fmt.Errorf("cluster version: %w", err)
	}
	in.ClusterOperators, err = clusterapi.ReadAll[configv1.ClusterOperator](ctx, r, clusterapi.ListOptions{})
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("cluster operators: %w", err)
	}
	in.Installer, err = readIfThere[corev1.ConfigMap](ctx, r, clusterapi.Key("openshift-config", "openshift-install"))
	if err != nil {
		return nil, fmt.Errorf("config map openshift-config/openshift-install: %w", err)
	}
	manifests := clusterapi.Key("openshift-config", "openshift-install-manifests")
	in.Manifests, err = readIfThere[corev1.ConfigMap](ctx, r, manifests)
	if err != nil {
		return nil, fmt.Errorf("config map %s: %w", manifests, err)
	}
	return Metrics(in), nil
}

// readIfThere reads an object, nil if absent.
func readIfThere[T any](ctx context.Context, r clusterapi.Reader, key types.NamespacedName) (*T, error) {
	object, err := clusterapi.Read[T](ctx, r, key)
	if clusterapi.IsMissing(err) {
		return nil, nil
	}
	return object, err
}

// metrics are samples in the making.
type metrics []clusterapi.Sample

// add adds a sample with labels, given as names and values in turn.
func (m *metrics) add(name string, value float64, labels ...string) {
	s := clusterapi.Sample{Name: name, Labels: map[string]string{}, Value: value}
	for i := 0; i+1 < len(labels); i += 2 {
		s.Labels[labels[i]] = labels[i+1]
	}
	*m = append(*m, s)
}

// version are the times of the cluster's versions.
func (m *metrics) version(cv *configv1.ClusterVersion, in MetricsInput) {
	add := func(kind, version, image, from string, at time.Time) {
		seconds := 0.
		if !at.IsZero() {
			seconds = float64(at.Unix())
		}
		m.add(MetricClusterVersion, seconds, "type", kind, "version", version, "image", image, "from_version", from)
	}
	own := in.Own
	if own.Version == "" && own.Image == "" {
		own = cv.Status.Desired
	}
	history := cv.Status.History
	var completed []configv1.UpdateHistory
	for _, h := range history {
		if h.State == configv1.CompletedUpdate {
			completed = append(completed, h)
		}
	}
	last := ""
	if len(completed) > 0 {
		last = completed[0].Version
		from := ""
		if len(completed) > 1 {
			from = completed[1].Version
		}
		var at time.Time
		if completed[0].CompletionTime != nil {
			at = completed[0].CompletionTime.Time
		}
		add("completed", completed[0].Version, completed[0].Image, from, at)
	}
	var initial configv1.UpdateHistory
	if len(history) > 0 {
		initial = history[len(history)-1]
	}
	add("initial", initial.Version, initial.Image, "", cv.CreationTimestamp.Time)
	installed := ""
	if len(completed) > 0 {
		installed = initial.Version
	}
	add("cluster", own.Version, own.Image, installed, cv.CreationTimestamp.Time)
	target := own
	if u := cv.Spec.DesiredUpdate; u != nil && u.Mode == "" {
		if u.Image != "" {
			target = configv1.Release{Version: u.Version, Image: u.Image}
		}
		if u.Image != own.Image {
			add("desired", u.Version, u.Image, last, latestTime(cv))
		}
	}
	failing := openshift.FindCondition(cv.Status.Conditions, ConditionFailing)
	if failing != nil && failing.Status == configv1.ConditionTrue {
		add("failure", target.Version, target.Image, last, failing.LastTransitionTime.Time)
	}
	if len(history) > 0 && history[0].State == configv1.PartialUpdate {
		add("updating", history[0].Version, history[0].Image, last, history[0].StartedTime.Time)
	}
	add("current", own.Version, own.Image, last, in.Built)
}

// latestTime is the latest time in history and conditions.
func latestTime(cv *configv1.ClusterVersion) time.Time {
	var latest time.Time
	note := func(t metav1.Time) {
		if t.After(latest) {
			latest = t.Time
		}
	}
	for _, h := range cv.Status.History {
		note(h.StartedTime)
		if h.CompletionTime != nil {
			note(*h.CompletionTime)
		}
	}
	for _, c := range cv.Status.Conditions {
		note(c.LastTransitionTime)
	}
	return latest
}

// updates are how many updates there are, and the capabilities.
func (m *metrics) updates(cv *configv1.ClusterVersion) {
	c := openshift.FindCondition(cv.Status.Conditions, configv1.RetrievedUpdates)
	retrieved := c != nil && c.Status == configv1.ConditionTrue
	if cv.Spec.Upstream != "" || len(cv.Status.AvailableUpdates) > 0 || retrieved {
		upstream := string(cv.Spec.Upstream)
		if upstream == "" || upstream == graph.DefaultUpstream {
			upstream = "<default>"
		}
		available := float64(len(cv.Status.AvailableUpdates))
		m.add(MetricAvailableUpdates, available, "upstream", upstream, "channel", cv.Spec.Channel)
	}
	enabled := cv.Status.Capabilities.EnabledCapabilities
	names := slices.Concat(enabled, cv.Status.Capabilities.KnownCapabilities)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		value := 0.
		if slices.Contains(enabled, name) {
			value = 1
		}
		m.add(MetricCapability, value, "name", string(name))
	}
}

// operators are the states of operators; the ClusterVersion is one called version.
func (m *metrics) operators(in MetricsInput) {
	type operator struct {
		name, version string
		conditions    []configv1.ClusterOperatorStatusCondition
	}
	var all []operator
	if cv := in.ClusterVersion; cv != nil {
		all = append(all, operator{key.Name, cv.Status.Desired.Version, cv.Status.Conditions})
	}
	for _, co := range in.ClusterOperators {
		o := operator{name: co.Name, conditions: co.Status.Conditions}
		for _, v := range co.Status.Versions {
			if v.Name == "operator" {
				o.version = v.Version
				break
			}
		}
		all = append(all, o)
	}
	slices.SortStableFunc(all, func(a, b operator) int { return strings.Compare(a.name, b.name) })
	if in.ClusterVersion == nil {
		m.add(MetricOperatorUp, 0, "name", key.Name, "version", "", "reason", "ClusterVersionNotFound")
	}
	for _, o := range all {
		up, reason := 0., "NoAvailableCondition"
		if c := openshift.FindCondition(o.conditions, configv1.OperatorAvailable); c != nil {
			reason = c.Reason
			if c.Status == configv1.ConditionTrue {
				up = 1
			}
		}
		m.add(MetricOperatorUp, up, "name", o.name, "version", o.version, "reason", reason)
	}
	for _, o := range all {
		for _, c := range o.conditions {
			if value, ok := truth(string(c.Status)); ok {
				m.add(MetricOperatorConditions, value, "name", o.name, "condition", string(c.Type), "reason", c.Reason)
			}
		}
	}
}

// truth is 1 and 0 for True and False.
func truth(status string) (value float64, known bool) {
	switch status {
	case "True":
		return 1, true
	case "False":
		return 0, true
	}
	return 0, false
}

// risks are the verdicts on risks, and since when conditional updates are what they are.
func (m *metrics) risks(cv *configv1.ClusterVersion, in MetricsInput) {
	if in.AcceptRisks {
		for _, r := range cv.Status.ConditionalUpdateRisks {
			for _, c := range r.Conditions {
				value, ok := truth(string(c.Status))
				if !ok {
					value = -1
				}
				m.add(MetricRiskCondition, value, "condition", c.Type, "risk", r.Name, "reason", c.Reason)
			}
		}
	}
	for _, u := range cv.Status.ConditionalUpdates {
		for _, c := range u.Conditions {
			m.add(MetricConditionalCondition, float64(c.LastTransitionTime.Unix()),
				"version", u.Release.Version, "condition", c.Type, "status", string(c.Status), "reason", c.Reason)
		}
	}
}

// installer is what installed the cluster.
func (m *metrics) installer(in MetricsInput) {
	kind, cm := "openshift-install", in.Installer
	if cm == nil {
		kind, cm = "other", in.Manifests
	}
	if cm == nil {
		return
	}
	value := func(key string) string {
		if v, ok := cm.Data[key]; ok {
			return v
		}
		return "<missing>"
	}
	m.add(MetricInstaller, 1, "type", kind, "version", value("version"), "invoker", value("invoker"))
}

// ConditionTransitions counts how often conditions of operators turn: from True to False
// or back. Those of the ClusterVersion are those of an operator called version. The zero
// value works; it is safe for concurrent use.
type ConditionTransitions struct {
	mu     sync.Mutex
	last   map[conditionName]string
	counts map[conditionName]int
}

type conditionName struct{ name, condition string }

// Observe records the conditions of an operator.
func (t *ConditionTransitions) Observe(name string, conditions []configv1.ClusterOperatorStatusCondition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		t.last, t.counts = map[conditionName]string{}, map[conditionName]int{}
	}
	for _, c := range conditions {
		key, status := conditionName{name, string(c.Type)}, string(c.Status)
		if _, known := truth(status); !known {
			continue
		}
		if before, ok := t.last[key]; ok && before != status {
			t.counts[key]++
		}
		t.last[key] = status
	}
}

func (t *ConditionTransitions) samples() []clusterapi.Sample {
	t.mu.Lock()
	defer t.mu.Unlock()
	var m metrics
	for key := range t.last {
		m.add(MetricConditionTransitions, float64(t.counts[key]), "name", key.name, "condition", key.condition)
	}
	slices.SortFunc(m, clusterapi.Sample.Compare)
	return m
}
