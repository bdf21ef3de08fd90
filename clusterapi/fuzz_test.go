package clusterapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// FuzzFromUnstructured converts anything. An error names the object, and what
// converts has no difference from itself.
func FuzzFromUnstructured(f *testing.F) {
	f.Add(`{"metadata":{"name":"version"},"spec":{"channel":"stable-4.18"},"status":{"availableUpdates":null}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var content map[string]any
		if json.Unmarshal([]byte(text), &content) != nil || content == nil {
			return
		}
		content["apiVersion"], content["kind"] = "config.openshift.io/v1", "ClusterVersion"
		u := &unstructured.Unstructured{Object: content}
		cv, err := clusterapi.FromUnstructured[configv1.ClusterVersion](u)
		if err != nil {
			checktest.FailIf(t, !strings.HasPrefix(err.Error(), "ClusterVersion"), "%v does not name the object", err)
			return
		}
		before := u.DeepCopy()
		for _, statusOnly := range []bool{false, true} {
			changed, err := objects.Overlay(u, cv, cv.DeepCopy(), statusOnly)
			checktest.FailIf(t, err != nil || changed, "an object differs from its copy: %v, %v", changed, err)
		}
		checktest.Same(t, before.Object, u.Object)
	})
}
