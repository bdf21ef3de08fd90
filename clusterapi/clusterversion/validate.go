package clusterversion

import (
	"net/url"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/internal/redact"
)

// Validate returns what is wrong with a ClusterVersion, in the order and words of
// the cluster-version operator: its metadata, upstream, cluster ID and desired
// update. acceptRisks reports whether the feature gate ClusterUpdateAcceptRisks is
// on. A valid object returns nil.
//
// An invalid object is not refused: see [Clear].
func Validate(cv *configv1.ClusterVersion, acceptRisks bool) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&cv.ObjectMeta, false, apivalidation.NameIsDNS1035Label, nil)
	spec := field.NewPath("spec")
	if cv.Spec.Upstream != "" {
		if _, err := url.Parse(string(cv.Spec.Upstream)); err != nil {
			errs = append(errs, field.Invalid(spec.Child("upstream"), configv1.URL(redact.URL(string(cv.Spec.Upstream))), "must be a valid URL or empty"))
		}
	}
	if id := cv.Spec.ClusterID; id != "" {
		if fault := clusterIDFault(string(id)); fault != "" {
			errs = append(errs, field.Invalid(spec.Child("clusterID"), id, fault))
		}
	}
	if err := validateDesiredUpdate(cv, acceptRisks); err != nil {
		errs = append(errs, err)
	}
	return errs
}

func validateDesiredUpdate(cv *configv1.ClusterVersion, acceptRisks bool) *field.Error {
	u := cv.Spec.DesiredUpdate
	if u == nil {
		return nil
	}
	path := field.NewPath("spec", "desiredUpdate")
	empty := u.Architecture == "" && u.Version == "" && u.Image == ""
	switch {
	case !acceptRisks && len(u.AcceptRisks) > 0:
		return field.Forbidden(path.Child("acceptRisks"), "acceptRisks must not be specified")
	case !acceptRisks && empty:
		return field.Required(path, "must specify architecture, version, or image")
	case empty && len(u.AcceptRisks) == 0:
		return field.Required(path, "must specify architecture, version, image, or acceptRisks")
	case u.Version == "":
		return nil
	}
	if _, err := openshift.ParseVersion(u.Version); err != nil {
		return field.Invalid(path.Child("version"), u.Version, "must be a semantic version (1.2.3[-...])")
	}
	if u.Image != "" {
		return nil
	}
	switch n := matchingPayloads(cv, u.Version, u.Mode == configv1.UpdateModePreflight); {
	case n == 0:
		return field.Invalid(path.Child("version"), u.Version, "when image is empty the update must be an available update")
	case n > 1:
		return field.Invalid(path.Child("version"), u.Version, "there are multiple possible payloads for this version, specify the exact image")
	}
	return nil
}

// matchingPayloads counts the images that a bare version may mean: each entry
// of the available updates counts, and of the conditional ones if the version is only
// checked; if there is none, the history counts once.
func matchingPayloads(cv *configv1.ClusterVersion, version string, preflight bool) int {
	n := 0
	for i := range cv.Status.ConditionalUpdates {
		c := &cv.Status.ConditionalUpdates[i]
		if preflight && c.Release.Version == version && c.Release.Image != "" && !isAvailable(cv, c.Release) {
			n++
		}
	}
	for _, r := range cv.Status.AvailableUpdates {
		if r.Version == version && r.Image != "" {
			n++
		}
	}
	if n == 0 && historyImage(cv, version) != "" {
		return 1
	}
	return n
}

// isAvailable reports whether a release, of that version and image, is an available update.
func isAvailable(cv *configv1.ClusterVersion, r configv1.Release) bool {
	return slices.ContainsFunc(cv.Status.AvailableUpdates, func(a configv1.Release) bool {
		return a.Version == r.Version && a.Image == r.Image
	})
}

// historyImage returns the image of the newest history entry of a version.
func historyImage(cv *configv1.ClusterVersion, version string) string {
	for _, h := range cv.Status.History {
		if h.Version == version && h.Image != "" {
			return h.Image
		}
	}
	return ""
}

// Clear returns a copy of cv without the spec fields that errs finds fault with,
// which is what the cluster then follows: any fault below spec.desiredUpdate drops
// the whole request, as does one that is not understood. Another fault of
// spec.desiredUpdate itself or of the metadata clears nothing. The copy is never
// written back.
func Clear(cv *configv1.ClusterVersion, errs field.ErrorList) *configv1.ClusterVersion {
	cv = cv.DeepCopy()
	for _, err := range errs {
		switch {
		case strings.HasPrefix(err.Field, "spec.desiredUpdate."), err.Field == "spec.desiredUpdate" && err.Type == field.ErrorTypeForbidden:
			cv.Spec.DesiredUpdate = nil
		case err.Field == "spec.upstream":
			cv.Spec.Upstream = ""
		case err.Field == "spec.clusterID":
			cv.Spec.ClusterID = ""
		}
	}
	return cv
}

// clusterIDFault describes what is wrong with a cluster ID: it must be a version 4
// UUID of the RFC 4122 variant, as 36 characters, with braces or urn:uuid: around
// or before them, or as 32 hexadecimal digits.
func clusterIDFault(s string) string {
	id, err := openshift.ParseUUID(s)
	switch {
	case err != nil || !id.RFC4122():
		return "must be an RFC4122-variant UUID"
	case id.Version() != 4:
		return "must be a version-4 UUID"
	}
	return ""
}
