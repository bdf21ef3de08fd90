package memory

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// validateClusterVersion is the default of [Options].Validate. It takes all other
// objects, and what an update leaves as it was.
func (c *Cluster) validateClusterVersion(old, new *unstructured.Unstructured) error {
	gvk := new.GroupVersionKind()
	if gvk.Group != configv1.GroupName || gvk.Kind != "ClusterVersion" {
		return nil
	}
	cv, err := clusterapi.FromUnstructured[configv1.ClusterVersion](new)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	var errs field.ErrorList
	if u := cv.Spec.DesiredUpdate; u != nil && changed(old, new, "spec", "desiredUpdate") {
		errs = append(errs, validateUpdate(field.NewPath("spec", "desiredUpdate"), u)...)
	}
	if changed(old, new, "spec", "capabilities") || changed(old, new, "status", "capabilities") {
		errs = append(errs, validateCapabilities(cv, c.requirements(gvk))...)
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(gvk.GroupKind(), new.GetName(), errs)
}

// changed reports whether a field differs from the old object's.
func changed(old, new *unstructured.Unstructured, fields ...string) bool {
	if old == nil {
		return true
	}
	a, _, _ := unstructured.NestedFieldNoCopy(old.Object, fields...)
	b, _, _ := unstructured.NestedFieldNoCopy(new.Object, fields...)
	return !objects.Equal(a, b)
}

func validateUpdate(path *field.Path, u *configv1.Update) field.ErrorList {
	var errs field.ErrorList
	if u.Architecture != "" && u.Image != "" {
		errs = append(errs, field.Invalid(path, "object", "cannot set both Architecture and Image"))
	}
	if u.Architecture != "" && u.Version == "" {
		errs = append(errs, field.Invalid(path, "object", "Version must be set if Architecture is set"))
	}
	return errs
}

// requirement is a capability that another needs.
type requirement struct {
	of, needs configv1.ClusterVersionCapability
	// alone applies it only to baseline None; otherwise it always holds.
	alone bool
}

// newestRequirements are those that the definition of ClusterVersion states today.
var newestRequirements = []requirement{
	{of: "marketplace", needs: "OperatorLifecycleManager", alone: true},
	{of: "ClusterAPI", needs: "CompatibilityRequirements"},
}

var requirementMessage = regexp.MustCompile("^the `([^`]+)` capability requires the `([^`]+)` capability,")

// requirements returns those that the stored definition states, which differ from
// release to release, or newestRequirements if none is stored.
func (c *Cluster) requirements(gvk schema.GroupVersionKind) []requirement {
	c.mu.RLock()
	d := c.crds[gvk.GroupKind()]
	c.mu.RUnlock()
	if d == nil {
		return newestRequirements
	}
	var out []requirement
	rules, _ := apiserver.Of(d.obj.Object, gvk.Version)["x-kubernetes-validations"].([]any)
	for _, r := range rules {
		stated, _ := r.(map[string]any)
		message, _ := stated["message"].(string)
		rule, _ := stated["rule"].(string)
		if m := requirementMessage.FindStringSubmatch(message); m != nil {
			out = append(out, requirement{
				of:    configv1.ClusterVersionCapability(m[1]),
				needs: configv1.ClusterVersionCapability(m[2]),
				alone: strings.Contains(rule, "baselineCapabilitySet == 'None'"),
			})
		}
	}
	return out
}

func validateCapabilities(cv *configv1.ClusterVersion, requirements []requirement) field.ErrorList {
	c := cv.Spec.Capabilities
	if c == nil {
		return nil
	}
	var errs field.ErrorList
	for _, r := range requirements {
		if !slices.Contains(c.AdditionalEnabledCapabilities, r.of) ||
			r.alone && c.BaselineCapabilitySet != configv1.ClusterVersionCapabilitySetNone ||
			slices.Contains(c.AdditionalEnabledCapabilities, r.needs) ||
			slices.Contains(cv.Status.Capabilities.EnabledCapabilities, r.needs) {
			continue
		}
		errs = append(errs, field.Invalid(nil, "object", fmt.Sprintf(
			"the `%s` capability requires the `%s` capability, which is neither explicitly or implicitly enabled in this cluster, please enable the `%s` capability",
			r.of, r.needs, r.needs)))
	}
	return errs
}
