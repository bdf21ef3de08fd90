package memory_test

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestValidateClusterVersion(t *testing.T) {
	for _, tc := range []struct{ name, spec, status, want string }{
		{name: "nothing", spec: `{}`},
		{name: "version", spec: `{desiredUpdate: {version: 4.18.2}}`},
		{name: "image", spec: `{desiredUpdate: {image: x, architecture: ""}}`},
		{name: "architecture and version", spec: `{desiredUpdate: {architecture: Multi, version: 4.18.2}}`},
		{name: "architecture and image", spec: `{desiredUpdate: {architecture: Multi, version: 4.18.2, image: x}}`, want: "cannot set both Architecture and Image"},
		{name: "architecture alone", spec: `{desiredUpdate: {architecture: Multi}}`, want: "Version must be set if Architecture is set"},
		{name: "another architecture", spec: `{desiredUpdate: {architecture: s390x, version: 4.18.2}}`, want: `spec.desiredUpdate.architecture: Unsupported value: "s390x"`},
		{name: "another mode", spec: `{desiredUpdate: {version: 4.18.2, mode: Fast}}`, want: `spec.desiredUpdate.mode: Unsupported value: "Fast"`},
		{name: "preflight", spec: `{desiredUpdate: {version: 4.18.2, mode: Preflight}}`},
		{name: "no risks", spec: `{desiredUpdate: {version: 4.18.2, acceptRisks: []}}`, want: "should have at least 1 items"},
		{name: "risk without a name", spec: `{desiredUpdate: {version: 4.18.2, acceptRisks: [{name: ""}]}}`, want: "spec.desiredUpdate.acceptRisks[0].name: Required"},
		{name: "long risk", spec: `{desiredUpdate: {version: 4.18.2, acceptRisks: [{name: ` + strings.Repeat("é", 257) + `}]}}`, want: "spec.desiredUpdate.acceptRisks[0].name: Too long"},
		{name: "longest risk", spec: `{desiredUpdate: {version: 4.18.2, acceptRisks: [{name: ` + strings.Repeat("é", 256) + `}]}}`},
		{name: "risk twice", spec: `{desiredUpdate: {version: 4.18.2, acceptRisks: [{name: a}, {name: a}]}}`, want: "spec.desiredUpdate.acceptRisks[1]: Duplicate"},
		{name: "too many risks", spec: `{desiredUpdate: {version: 4.18.2, acceptRisks: [` + strings.Repeat("{name: a},", 1001) + `]}}`, want: "must have at most 1000 items"},
		{name: "override twice", spec: `{overrides: [{kind: A, group: b, namespace: c, name: d, unmanaged: true}, {kind: A, group: b, namespace: c, name: d, unmanaged: false}]}`, want: "spec.overrides[1]: Duplicate"},
		{name: "marketplace without its lifecycle manager", spec: `{capabilities: {baselineCapabilitySet: None, additionalEnabledCapabilities: [marketplace]}}`,
			want: "the `marketplace` capability requires the `OperatorLifecycleManager` capability, which is neither explicitly or implicitly enabled in this cluster, please enable the `OperatorLifecycleManager` capability"},
		{name: "marketplace, both added", spec: `{capabilities: {baselineCapabilitySet: None, additionalEnabledCapabilities: [marketplace, OperatorLifecycleManager]}}`},
		{name: "marketplace on a baseline", spec: `{capabilities: {baselineCapabilitySet: v4.11, additionalEnabledCapabilities: [marketplace]}}`},
		{name: "marketplace, enabled already", spec: `{capabilities: {baselineCapabilitySet: None, additionalEnabledCapabilities: [marketplace]}}`, status: `{capabilities: {enabledCapabilities: [OperatorLifecycleManager]}}`},
		{name: "ClusterAPI", spec: `{capabilities: {baselineCapabilitySet: vCurrent, additionalEnabledCapabilities: [ClusterAPI]}}`,
			want: "the `ClusterAPI` capability requires the `CompatibilityRequirements` capability"},
		{name: "a wrong type", spec: `{channel: 5}`, want: "spec.channel"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status := tc.status
			if status == "" {
				status = "{}"
			}
			c := memory.New(memory.Options{Lenient: true}) // the schema of the definition would refuse some of it first
			mustLoad(t, c, `{apiVersion: config.openshift.io/v1, kind: ClusterVersion, metadata: {name: version}, status: `+status+`}`)
			u := mustGet(t, c, configv1.GroupVersion.WithKind("ClusterVersion"), "", "version")
			u.Object["spec"] = object(t, `{kind: ClusterVersion, spec: `+tc.spec+`}`).Object["spec"]
			_, err := c.Update(t.Context(), u, clusterapi.UpdateOptions{})
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %s", err, tc.want)
			}
			other := memory.New(memory.Options{Lenient: true})
			checktest.OK(t, other.Load(u))
			u.SetLabels(map[string]string{"changed": "yes"})
			u.SetResourceVersion("1")
			if _, err := other.Update(t.Context(), u, clusterapi.UpdateOptions{}); tc.name != "a wrong type" && err != nil {
				t.Errorf("unchanged: %v", err)
			}
		})
	}
}

func TestClusterVersionRulesAreTheDefault(t *testing.T) {
	c := memory.NewOpenShift(memory.Options{})
	mustApply(t, c, `{apiVersion: config.openshift.io/v1, kind: ClusterVersion, metadata: {name: version}, spec: {channel: stable-4.18, clusterID: 8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01}}`)
	_, err := clusterapi.Modify(t.Context(), c, clusterapi.Key("", "version"), clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) error {
		cv.Spec.DesiredUpdate = &configv1.Update{Architecture: configv1.ClusterVersionArchitectureMulti, Image: "x", Version: "4.18.2"}
		return nil
	})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "cannot set both Architecture and Image") {
		t.Errorf("got %v", err)
	}
}
