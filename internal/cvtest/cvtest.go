// Package cvtest makes ClusterVersions for tests.
package cvtest

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ImageOf is a release image by digest, of a repository.
func ImageOf(repository string, n int) string {
	return fmt.Sprintf("%s@sha256:%064x", repository, n)
}

// Repository is where the images of Requestable are.
const Repository = "registry.example/ocp/release"

// Requestable is a ClusterVersion at 4.20.3 with two recommended updates and two
// with known issues.
func Requestable(change ...func(*configv1.ClusterVersion)) *configv1.ClusterVersion {
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	cv.Spec.ClusterID = "8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01"
	cv.Spec.Channel = "stable-4.20"
	cv.Status.Desired = configv1.Release{Version: "4.20.3", Image: ImageOf(Repository, 3), Channels: []string{"fast-4.20", "stable-4.20"}}
	cv.Status.AvailableUpdates = []configv1.Release{{Version: "4.20.4", Image: ImageOf(Repository, 4)}, {Version: "4.20.10", Image: ImageOf(Repository, 10)}}
	conditional := func(version string, n int, status metav1.ConditionStatus) configv1.ConditionalUpdate {
		return configv1.ConditionalUpdate{
			Release:    configv1.Release{Version: version, Image: ImageOf(Repository, n)},
			Risks:      []configv1.ConditionalUpdateRisk{{Name: "Slow", URL: "https://example.com", Message: "x", MatchingRules: []configv1.ClusterCondition{{Type: "Always"}}}},
			Conditions: []metav1.Condition{{Type: "Recommended", Status: status, Reason: "Slow", Message: "one\ntwo"}},
		}
	}
	cv.Status.ConditionalUpdates = []configv1.ConditionalUpdate{
		conditional("4.21.1", 21, metav1.ConditionFalse), conditional("4.21.0", 20, metav1.ConditionUnknown), conditional("4.21.2", 22, metav1.ConditionTrue),
		{Release: configv1.Release{Version: "4.21.3", Image: ImageOf(Repository, 23)}},
	}
	cv.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: "Progressing", Status: "False"}, {Type: "RetrievedUpdates", Status: "True"}}
	cv.Status.History = []configv1.UpdateHistory{
		{Version: "4.20.3", Image: ImageOf(Repository, 3), State: configv1.CompletedUpdate},
		{Version: "4.20.2", Image: ImageOf(Repository, 2), State: configv1.CompletedUpdate},
	}
	for _, f := range change {
		f(cv)
	}
	return cv
}

// WithCondition sets a condition.
func WithCondition(t configv1.ClusterStatusConditionType, status configv1.ConditionStatus) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) {
		c := configv1.ClusterOperatorStatusCondition{Type: t, Status: status, Reason: "R", Message: "M\nmore"}
		for i := range cv.Status.Conditions {
			if cv.Status.Conditions[i].Type == t {
				cv.Status.Conditions[i] = c
				return
			}
		}
		cv.Status.Conditions = append(cv.Status.Conditions, c)
	}
}

// Desired makes u the request.
func Desired(u configv1.Update) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) { cv.Spec.DesiredUpdate = &u }
}

// WithoutUpdates removes all updates.
func WithoutUpdates(cv *configv1.ClusterVersion) {
	cv.Status.AvailableUpdates, cv.Status.ConditionalUpdates = nil, nil
}
