package clusterversion_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// version returns a valid object: own 4.2.0@A, available 4.2.1@B, history
// 4.1.9@Z.
func version(change func(*configv1.ClusterVersion)) *configv1.ClusterVersion {
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	cv.Spec.ClusterID = "8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01"
	cv.Status.Desired = release("4.2.0@A")
	cv.Status.AvailableUpdates = []configv1.Release{release("4.2.1@B")}
	cv.Status.History = history("4.2.0@A C, 4.1.9@Z C")
	if change != nil {
		change(cv)
	}
	return cv
}

func request(u configv1.Update) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) { cv.Spec.DesiredUpdate = &u }
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name        string
		change      func(*configv1.ClusterVersion)
		acceptRisks bool
		want        []string
	}{
		{name: "valid"},
		{name: "name", change: func(cv *configv1.ClusterVersion) { cv.Name = "Version" }, want: []string{
			`name: Invalid value: "Version": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`}},
		{name: "namespaced", change: func(cv *configv1.ClusterVersion) { cv.Namespace = "x" }, want: []string{`namespace: Forbidden: not allowed on this type`}},
		{name: "generated name", change: func(cv *configv1.ClusterVersion) { cv.GenerateName = "v-" }},
		{name: "generated name in capitals", change: func(cv *configv1.ClusterVersion) { cv.GenerateName = "V1-" }, want: []string{
			`generateName: Invalid value: "V1-": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`}},
		{name: "upstream foo passes", change: func(cv *configv1.ClusterVersion) { cv.Spec.Upstream = "foo" }},
		{name: "upstream colon", change: func(cv *configv1.ClusterVersion) { cv.Spec.Upstream = ":a&b" }, want: []string{`spec.upstream: Invalid value: ":a\u0026b": must be a valid URL or empty`}},
		{name: "upstream escape", change: func(cv *configv1.ClusterVersion) { cv.Spec.Upstream = "https://a/%zz" }, want: []string{`spec.upstream: Invalid value: "https://(redacted)": must be a valid URL or empty`}},
		{name: "no cluster ID", change: func(cv *configv1.ClusterVersion) { cv.Spec.ClusterID = "" }},
		{name: "cluster ID in braces", change: func(cv *configv1.ClusterVersion) { cv.Spec.ClusterID = "{8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01}" }},
		{name: "cluster ID as URN", change: func(cv *configv1.ClusterVersion) { cv.Spec.ClusterID = "URN:uuid:8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01" }},
		{name: "cluster ID bare", change: func(cv *configv1.ClusterVersion) { cv.Spec.ClusterID = "8d4c5c1a8e0e4bd99d5d8d2a4c9f7f01" }},
		{name: "cluster ID in other braces", change: func(cv *configv1.ClusterVersion) { cv.Spec.ClusterID = "(8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01)" }, want: []string{
			`spec.clusterID: Invalid value: "(8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01)": must be an RFC4122-variant UUID`}},
		{name: "cluster ID with rubbish at the end", change: func(cv *configv1.ClusterVersion) { cv.Spec.ClusterID = "8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7fxx" }, want: []string{
			`spec.clusterID: Invalid value: "8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7fxx": must be an RFC4122-variant UUID`}},
		{name: "cluster ID of another variant", change: func(cv *configv1.ClusterVersion) { cv.Spec.ClusterID = "8d4c5c1a-8e0e-4bd9-1d5d-8d2a4c9f7f01" }, want: []string{
			`spec.clusterID: Invalid value: "8d4c5c1a-8e0e-4bd9-1d5d-8d2a4c9f7f01": must be an RFC4122-variant UUID`}},
		{name: "cluster ID of version 1", change: func(cv *configv1.ClusterVersion) { cv.Spec.ClusterID = "8d4c5c1a-8e0e-1bd9-9d5d-8d2a4c9f7f01" }, want: []string{
			`spec.clusterID: Invalid value: "8d4c5c1a-8e0e-1bd9-9d5d-8d2a4c9f7f01": must be a version-4 UUID`}},

		{name: "available", change: request(configv1.Update{Version: "4.2.1"})},
		{name: "in the history", change: request(configv1.Update{Version: "4.1.9"})},
		{name: "image alone", change: request(configv1.Update{Image: "C"})},
		{name: "unknown version with image", change: request(configv1.Update{Version: "4.9.9", Image: "C"})},
		{name: "unknown", change: request(configv1.Update{Version: "4.2.3"}), want: []string{
			`spec.desiredUpdate.version: Invalid value: "4.2.3": when image is empty the update must be an available update`}},
		{name: "force does not help", change: request(configv1.Update{Version: "4.2.3", Force: true}), want: []string{
			`spec.desiredUpdate.version: Invalid value: "4.2.3": when image is empty the update must be an available update`}},
		{name: "conditional does not count", change: func(cv *configv1.ClusterVersion) {
			cv.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{Release: release("4.2.3@D")}}
			cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.2.3"}
		}, want: []string{`spec.desiredUpdate.version: Invalid value: "4.2.3": when image is empty the update must be an available update`}},
		{name: "several images", change: func(cv *configv1.ClusterVersion) {
			cv.Status.AvailableUpdates = append(cv.Status.AvailableUpdates, release("4.2.1@B"))
			cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.2.1"}
		}, want: []string{`spec.desiredUpdate.version: Invalid value: "4.2.1": there are multiple possible payloads for this version, specify the exact image`}},
		{name: "not semver", change: request(configv1.Update{Version: "v4.2.1"}), want: []string{
			`spec.desiredUpdate.version: Invalid value: "v4.2.1": must be a semantic version (1.2.3[-...])`}},
		{name: "a number that is too large", change: request(configv1.Update{Version: "4.2.1-99999999999999999999", Image: "C"}), want: []string{
			`spec.desiredUpdate.version: Invalid value: "4.2.1-99999999999999999999": must be a semantic version (1.2.3[-...])`}},
		{name: "not semver, with image", change: request(configv1.Update{Version: "4.2", Image: "C"}), want: []string{
			`spec.desiredUpdate.version: Invalid value: "4.2": must be a semantic version (1.2.3[-...])`}},
		{name: "nothing", change: request(configv1.Update{}), want: []string{
			`spec.desiredUpdate: Required value: must specify architecture, version, or image`}},
		{name: "nothing, gate on", change: request(configv1.Update{}), acceptRisks: true, want: []string{
			`spec.desiredUpdate: Required value: must specify architecture, version, image, or acceptRisks`}},
		{name: "risks without the gate", change: request(configv1.Update{Version: "4.2.1", AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}}), want: []string{
			`spec.desiredUpdate.acceptRisks: Forbidden: acceptRisks must not be specified`}},
		{name: "risks alone, gate on", change: request(configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}}), acceptRisks: true},
		{name: "all at once", change: func(cv *configv1.ClusterVersion) {
			cv.Spec.Upstream, cv.Spec.ClusterID, cv.Spec.DesiredUpdate = ":", "x", &configv1.Update{Version: "x"}
		}, want: []string{
			`spec.upstream: Invalid value: ":": must be a valid URL or empty`,
			`spec.clusterID: Invalid value: "x": must be an RFC4122-variant UUID`,
			`spec.desiredUpdate.version: Invalid value: "x": must be a semantic version (1.2.3[-...])`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, err := range clusterversion.Validate(version(tt.change), tt.acceptRisks) {
				got = append(got, err.Error())
			}
			checktest.Same(t, tt.want, got)
		})
	}
}

func TestClear(t *testing.T) {
	bad := version(func(cv *configv1.ClusterVersion) {
		cv.Spec.Upstream, cv.Spec.ClusterID, cv.Spec.Channel = ":", "x", "stable-4.2"
		cv.Spec.DesiredUpdate = &configv1.Update{Version: "x", Image: "C"}
	})
	before := bad.DeepCopy()
	got := clusterversion.Clear(bad, clusterversion.Validate(bad, false))
	want := configv1.ClusterVersionSpec{Channel: "stable-4.2"}
	checktest.Same(t, want, got.Spec)
	checktest.SameIn(t, "the object itself changed (-before +after)", before, bad)

	required := version(request(configv1.Update{Force: true}))
	if got := clusterversion.Clear(required, clusterversion.Validate(required, false)); got.Spec.DesiredUpdate == nil {
		t.Error("a fault of desiredUpdate itself cleared it")
	}
}
