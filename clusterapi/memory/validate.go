package memory

import (
	"fmt"
	"slices"
	"unicode/utf8"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// validateClusterVersion is the default of [Options].Validate. It takes all other
// objects, and what an update leaves as it was.
func validateClusterVersion(old, new *unstructured.Unstructured) error {
	gvk := new.GroupVersionKind()
	if gvk.Group != configv1.GroupName || gvk.Kind != "ClusterVersion" {
		return nil
	}
	cv, err := clusterapi.FromUnstructured[configv1.ClusterVersion](new)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if u := cv.Spec.DesiredUpdate; u != nil && changed(old, new, "spec", "desiredUpdate") {
		errs = append(errs, validateUpdate(spec.Child("desiredUpdate"), u)...)
	}
	if changed(old, new, "spec", "overrides") {
		errs = append(errs, validateOverrides(spec.Child("overrides"), cv.Spec.Overrides)...)
	}
	if changed(old, new, "spec", "capabilities") || changed(old, new, "status", "capabilities") {
		errs = append(errs, validateCapabilities(cv)...)
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
	if u.Architecture != "" && u.Architecture != configv1.ClusterVersionArchitectureMulti {
		errs = append(errs, field.NotSupported(path.Child("architecture"), u.Architecture, []configv1.ClusterVersionArchitecture{configv1.ClusterVersionArchitectureMulti, ""}))
	}
	if u.Mode != "" && u.Mode != configv1.UpdateModePreflight {
		errs = append(errs, field.NotSupported(path.Child("mode"), u.Mode, []configv1.UpdateMode{configv1.UpdateModePreflight}))
	}
	risks := path.Child("acceptRisks")
	if len(u.AcceptRisks) > 1000 {
		errs = append(errs, field.TooMany(risks, len(u.AcceptRisks), 1000))
	}
	if u.AcceptRisks != nil && len(u.AcceptRisks) == 0 {
		errs = append(errs, field.Invalid(risks, 0, "should have at least 1 items"))
	}
	seen := make(map[string]bool)
	for i, r := range u.AcceptRisks {
		switch {
		case r.Name == "":
			errs = append(errs, field.Required(risks.Index(i).Child("name"), ""))
		case utf8.RuneCountInString(r.Name) > 256:
			errs = append(errs, field.TooLong(risks.Index(i).Child("name"), r.Name, 256))
		case seen[r.Name]:
			errs = append(errs, field.Duplicate(risks.Index(i), r.Name))
		}
		seen[r.Name] = true
	}
	return errs
}

func validateOverrides(path *field.Path, overrides []configv1.ComponentOverride) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[configv1.ComponentOverride]bool)
	for i, o := range overrides {
		o.Unmanaged = false
		if seen[o] {
			errs = append(errs, field.Duplicate(path.Index(i), fmt.Sprintf("%s/%s %s/%s", o.Group, o.Kind, o.Namespace, o.Name)))
		}
		seen[o] = true
	}
	return errs
}

// requirement is a capability that another needs.
type requirement struct {
	of, needs configv1.ClusterVersionCapability
	// alone applies it only to baseline None; otherwise it always holds.
	alone bool
}

// requirements are stated in the definition of ClusterVersion. The second
// stands behind a gate there, but without the gate a cluster does not take
// the capability ClusterAPI at all.
var requirements = []requirement{
	{of: "marketplace", needs: "OperatorLifecycleManager", alone: true},
	{of: "ClusterAPI", needs: "CompatibilityRequirements"},
}

func validateCapabilities(cv *configv1.ClusterVersion) field.ErrorList {
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
