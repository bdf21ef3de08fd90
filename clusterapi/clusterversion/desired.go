package clusterversion

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

const (
	notUnderstood = "not understood by this version"

	maxFaults    = 10  // of one request
	maxFieldName = 100 // bytes
)

// NotUnderstood returns a fault for each field of spec.desiredUpdate that
// github.com/openshift/api does not have, and for each value of mode or architecture
// that this library does not carry out; at most 10, sorted by field. A request that
// has one must change nothing: without that field it would be another request. It
// returns nil if all is understood, or nothing is requested. It does not change cv.
func NotUnderstood(cv *unstructured.Unstructured) field.ErrorList {
	desired, found, err := unstructured.NestedFieldNoCopy(cv.Object, "spec", "desiredUpdate")
	if err != nil || !found || desired == nil {
		return nil // spec itself is not an object: every typed read reports it
	}
	path := field.NewPath("spec", "desiredUpdate")
	data, err := json.Marshal(desired)
	if err != nil {
		return field.ErrorList{field.Forbidden(path, notUnderstood)}
	}
	var u configv1.Update
	unknown, err := kjson.UnmarshalStrict(data, &u, kjson.DisallowUnknownFields)
	if err != nil {
		return field.ErrorList{field.Forbidden(path, notUnderstood+": "+bounded.Text(err.Error(), 200))}
	}
	var faults field.ErrorList
	for _, err := range unknown {
		name := ""
		if f, ok := err.(kjson.FieldError); ok {
			name = f.FieldPath()
		}
		faults = append(faults, field.Forbidden(path.Child(printable(name)), notUnderstood))
	}
	if u.Mode != "" && u.Mode != configv1.UpdateModePreflight {
		faults = append(faults, field.Forbidden(path.Child("mode"), notUnderstood))
	}
	if u.Architecture != "" && u.Architecture != configv1.ClusterVersionArchitectureMulti {
		faults = append(faults, field.Forbidden(path.Child("architecture"), notUnderstood))
	}
	slices.SortFunc(faults, func(a, b *field.Error) int { return cmp.Compare(a.Field, b.Field) })
	return faults[:min(len(faults), maxFaults)]
}

// printable is a name of a field as a message can show it.
func printable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		name = strconv.Quote(name)
	}
	return bounded.Text(name, maxFieldName)
}
