package memory_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

func TestValidateClusterVersion(t *testing.T) {
	for _, tc := range []struct{ name, spec, status, want string }{
		{name: "nothing", spec: `{}`},
		{name: "version", spec: `{desiredUpdate: {version: 4.18.2}}`},
		{name: "image", spec: `{desiredUpdate: {image: x, architecture: ""}}`},
		{name: "architecture and version", spec: `{desiredUpdate: {architecture: Multi, version: 4.18.2}}`},
		{name: "architecture and image", spec: `{desiredUpdate: {architecture: Multi, version: 4.18.2, image: x}}`, want: "cannot set both Architecture and Image"},
		{name: "architecture alone", spec: `{desiredUpdate: {architecture: Multi}}`, want: "Version must be set if Architecture is set"},
		{name: "preflight", spec: `{desiredUpdate: {version: 4.18.2, mode: Preflight}}`},
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
			c := memory.New(memory.Options{Lenient: true})
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

// Which capability requires another differs between the definitions of releases.
func TestClusterVersionRulesOfDefinition(t *testing.T) {
	dir := filepath.Join(testdata.Dir(t), "definitions")
	for release, refused := range map[string][]string{
		"4.12": {}, "4.14": {"baremetal"}, "4.15": {"baremetal", "marketplace"}, "4.17": {"marketplace"},
		"5.0": {"marketplace"}, "5.0-CustomNoUpgrade": {"marketplace", "ClusterAPI"},
	} {
		c := memory.New(memory.Options{})
		mustLoad(t, c, string(checktest.Get(os.ReadFile(filepath.Join(dir, "clusterversion-"+release+".yaml")))(t)))
		for _, capability := range []string{"baremetal", "marketplace", "ClusterAPI"} {
			if capability == "ClusterAPI" && release != "5.0-CustomNoUpgrade" {
				continue // not one of the enum's
			}
			cv := object(t, `{apiVersion: config.openshift.io/v1, kind: ClusterVersion, metadata: {name: version}, spec: {clusterID: x, capabilities: {baselineCapabilitySet: None, additionalEnabledCapabilities: [`+capability+`]}}}`)
			_, err := c.Create(t.Context(), cv, clusterapi.CreateOptions{})
			checktest.Equal(t, slices.Contains(refused, capability), err != nil, "%s refuses %s", release, capability)
			if err == nil {
				checktest.OK(t, c.Delete(t.Context(), cv.GroupVersionKind(), clusterapi.KeyOf(cv), clusterapi.DeleteOptions{}))
			}
		}
	}
}
