package memory

import (
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// withoutManagers hides the managed fields, which the cluster itself writes
// and which are costly to convert.
type withoutManagers struct{ *unstructured.Unstructured }

func (withoutManagers) GetManagedFields() []metav1.ManagedFieldsEntry { return nil }

// judgeMetadata judges a new object's metadata, or what changed in it.
func (k *kind) judgeMetadata(old, obj *unstructured.Unstructured) field.ErrorList {
	at := field.NewPath("metadata")
	if old == nil {
		name := k.rules.name
		if name == nil {
			name = apivalidation.NameIsDNSSubdomain
		}
		namespaced := k.scope == scopeNamespaced || k.scope == scopeAny && obj.GetNamespace() != ""
		return apivalidation.ValidateObjectMetaAccessor(withoutManagers{obj}, namespaced, name, at)
	}
	before, after := metadata(old), metadata(obj)
	differs := func(name string) bool { return !objects.Equal(before[name], after[name]) }
	var errs field.ErrorList
	if differs("labels") {
		errs = append(errs, v1validation.ValidateLabels(obj.GetLabels(), at.Child("labels"))...)
	}
	if differs("annotations") && !plainAnnotations(after["annotations"]) {
		errs = append(errs, apivalidation.ValidateAnnotations(obj.GetAnnotations(), at.Child("annotations"))...)
	}
	if differs("ownerReferences") {
		errs = append(errs, apivalidation.ValidateOwnerReferences(obj.GetOwnerReferences(), at.Child("ownerReferences"))...)
	}
	if differs("finalizers") {
		errs = append(errs, apivalidation.ValidateFinalizers(obj.GetFinalizers(), at.Child("finalizers"))...)
	}
	if differs("generateName") {
		errs = append(errs, field.Invalid(at.Child("generateName"), obj.GetGenerateName(), "field is immutable"))
	}
	return errs
}

// plainAnnotations reports whether annotations are certainly good: their keys are
// of a form that one look decides, and they are far from too long.
func plainAnnotations(v any) bool {
	m, ok := v.(map[string]any)
	size := 0
	for key, value := range m {
		text, isText := value.(string)
		if size += len(key) + len(text); !isText || !plainKey(key) || size > apivalidation.TotalAnnotationSizeLimitB/2 {
			return false
		}
	}
	return ok
}

// plainKey reports whether a key is short and made of letters, digits and single
// dashes and dots between them, with a slash at most once.
func plainKey(s string) bool {
	if len(s) == 0 || len(s) > 63 || strings.Count(s, "/") > 1 {
		return false
	}
	between := true // after nothing, or what may not be next to another
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
			between = false
		case (c == '-' || c == '.' || c == '/') && !between:
			between = true
		default:
			return false
		}
	}
	return !between
}

// segment is the rule for names that need only be one segment of a URL's path.
// A prefix may be what a whole name may not.
func segment(name string, prefix bool) []string {
	if !prefix && (name == "." || name == "..") {
		return []string{fmt.Sprintf("may not be '%s'", name)}
	}
	var faults []string
	for _, illegal := range []string{"/", "%"} {
		if strings.Contains(name, illegal) {
			faults = append(faults, fmt.Sprintf("may not contain '%s'", illegal))
		}
	}
	return faults
}

// selector judges a label selector and returns it, nil for one that is wrong.
func (n node) selector() labels.Selector {
	var s metav1.LabelSelector
	for _, key := range n.get("matchLabels").keys() {
		metav1.AddLabelToSelector(&s, key, n.get("matchLabels", key).text())
	}
	for _, e := range n.get("matchExpressions").items() {
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: e.get("key").text(), Operator: metav1.LabelSelectorOperator(e.get("operator").text()), Values: e.get("values").texts(),
		})
	}
	*n.errs = append(*n.errs, v1validation.ValidateLabelSelector(&s, v1validation.LabelSelectorValidationOptions{}, n.path())...)
	out, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		return nil
	}
	return out
}

// labelsAt are the labels in a template's metadata.
func labelsAt(template node) labels.Set {
	out := make(labels.Set)
	l := template.get("metadata", "labels")
	for _, key := range l.keys() {
		out[key] = l.get(key).text()
	}
	return out
}

// templateMetadata judges the metadata of a template.
func (n node) templateMetadata() {
	m := n.get("metadata")
	*n.errs = append(*n.errs, v1validation.ValidateLabels(labelsAt(n), m.get("labels").path())...)
	annotations := make(map[string]string)
	for _, key := range m.get("annotations").keys() {
		annotations[key] = m.get("annotations", key).text()
	}
	*n.errs = append(*n.errs, apivalidation.ValidateAnnotations(annotations, m.get("annotations").path())...)
}

// controls judges the selector of a workload, and that it selects the pods of
// its template.
func (n node) controls(kind string) {
	s := n.get("selector")
	if !s.set() {
		s.required("")
	} else if s.get("matchLabels").size()+s.get("matchExpressions").size() == 0 {
		s.invalid(fmt.Sprintf("empty selector is invalid for %s", kind))
	}
	before := len(*n.errs)
	selector := s.selector()
	if selector == nil {
		if len(*n.errs) == before {
			s.invalid("invalid label selector")
		}
		return
	}
	template := n.get("template")
	if s.set() && !selector.Empty() && !selector.Matches(labelsAt(template)) {
		template.get("metadata", "labels").invalid("`selector` does not match template `labels`")
	}
}
