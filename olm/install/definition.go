package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// errDefinition is an error that makes a CustomResourceDefinition one to be
// refused, in OLM's words.
type errDefinition struct{ error }

// checkDefinition reports whether a CustomResourceDefinition can take the place of
// the stored one: it keeps all versions in which objects are stored, and existing
// objects are valid by the schemas of the versions that both serve. With a
// conversion by webhook invalid objects are a warning: the webhook starts to work
// only with the new operator, and has to convert them.
func checkDefinition(ctx context.Context, r clusterapi.Reader, u *unstructured.Unstructured) (warning, err error) {
	stored, err := r.Get(ctx, u.GroupVersionKind(), clusterapi.KeyOf(u))
	if clusterapi.IsMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	before, after := definitionVersions(stored), definitionVersions(u)
	storedVersions, _, _ := unstructured.NestedStringSlice(stored.Object, "status", "storedVersions")
	for _, v := range storedVersions {
		if _, ok := after[v]; !ok {
			return nil, errDefinition{fmt.Errorf("risk of data loss updating %q: new CRD removes version %s "+
				"that is listed as a stored version on the existing CRD", u.GetName(), v)}
		}
	}
	strategy, _, _ := unstructured.NestedString(u.Object, "spec", "conversion", "strategy")
	for _, name := range slices.Sorted(maps.Keys(after)) {
		served := before[name]["served"] == true && after[name]["served"] == true
		if !served || equality.Semantic.DeepEqual(before[name]["schema"], after[name]["schema"]) {
			continue
		}
		err := checkObjects(ctx, r, stored, name, after[name])
		if wrong := (errDefinition{}); errors.As(err, &wrong) && strategy == "Webhook" {
			warning = errors.Join(warning, err)
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	return warning, nil
}

// definitionVersions are the versions of a definition by name.
func definitionVersions(u *unstructured.Unstructured) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, v := range apiserver.Versions(u.Object) {
		if name, _ := v["name"].(string); name != "" {
			out[name] = v
		}
	}
	return out
}

// checkObjects validates the objects of a definition, as they are in one of its
// versions, by the schema of another.
func checkObjects(
	ctx context.Context, r clusterapi.Reader, definition *unstructured.Unstructured, version string, by map[string]any,
) error {
	tree, ok, _ := unstructured.NestedMap(by, "schema", "openAPIV3Schema")
	if !ok {
		return nil
	}
	s, err := apiserver.Parse(tree)
	if err != nil {
		return errDefinition{fmt.Errorf("schema of version %v of %q: %w", by["name"], definition.GetName(), err)}
	}
	gvk := apiserver.Kind(definition.Object).WithVersion(version)
	objects, err := clusterapi.ListShared(ctx, r, gvk, clusterapi.ListOptions{})
	if meta.IsNoMatchError(err) {
		return nil // the definition is not established: nothing can be stored
	}
	if err != nil {
		return fmt.Errorf("existing objects of %q: %w", definition.GetName(), err)
	}
	for _, o := range objects {
		err := panics.Catch(func() error { // a schema may be anything
			validator := validate.NewSchemaValidator(s, nil, "", strfmt.Default)
			return errors.Join(validator.Validate(o.Unstructured().Object).Errors...)
		})
		if err != nil {
			return errDefinition{fmt.Errorf("error validating existing CRs against new CRD's schema for %q: "+
				"error validating %s %q: updated validation is too restrictive: %w", definition.GetName(), gvk, o.Key(), err)}
		}
	}
	return nil
}
