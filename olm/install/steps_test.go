package install_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/install"
)

// The names and hashes were computed with another implementation of SHA-224
// and base 62 over the JSON written out by hand.
func TestRoleNames(t *testing.T) {
	rules := []rbacv1.PolicyRule{{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"pods"}}}
	const hash = "30ZQ53WpKhy8PX2MRQZbc0CQ4lJVPGxkCnZGz3" // 38 characters
	sa := olmapi.Permission{ServiceAccountName: "sa", Rules: rules}
	escaped := olmapi.Permission{ServiceAccountName: "sa", Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/a&b"}}}}
	base := strings.Repeat("x", 40)
	for _, tc := range []struct {
		name string
		of   func(csv string, p olmapi.Permission) (string, error)
		csv  string
		p    olmapi.Permission
		want string
	}{
		{"role", install.RoleName, "a.v1", sa, "a.v1-sa-" + hash},
		{"cluster role", install.ClusterRoleName, "a.v1", sa, "a.v1-" + hash},
		{"escaped", install.RoleName, "a.v1", escaped, "a.v1-sa-9C11DUmPy652qEu3OPCAvwKDpX3kTKp9mJfI6M"},
		{"no rules", install.ClusterRoleName, "a.v1", olmapi.Permission{ServiceAccountName: "x"}, "a.v1-6vV1VdCkaytyOTt94wGDBStsqwYS5WtrLRSZ4t"},
		{"62 with the hash", install.ClusterRoleName, base[:24], sa, base[:24] + "-" + hash},
		{"63 with the hash: not cut, 64 long", install.ClusterRoleName, base[:25], sa, base[:25] + "-" + hash},
		{"64 with the hash: cut", install.ClusterRoleName, base[:26], sa, base[:24] + "-" + hash},
		{"role, cut in the account", install.RoleName, base[:23], sa, base[:23] + "--" + hash},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.of(tc.csv, tc.p)
			if err != nil || got != tc.want {
				t.Errorf("got %s, %v, want %s", got, err, tc.want)
			}
		})
	}
	if got, err := install.RulesHash(rules); err != nil || got != "3Y9YdhK7d3Fe0rjjaFPWtPIIUI2QxhrMcQX5Z1" {
		t.Errorf("hash of rules: %s, %v", got, err)
	}
	got, err := install.BindingHash(rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "a.v1-sa-" + hash},
		[]rbacv1.Subject{{Kind: "ServiceAccount", Name: "sa", Namespace: ns}})
	if err != nil || got != "4VwRmxex4P3HxOHbcnPmzQLZhjnZiZYQtbgFAC" {
		t.Errorf("hash of a binding: %s, %v", got, err)
	}
}

// inline makes a bundle that carries its objects.
func inline(t *testing.T, name string, objects ...string) *olm.Bundle {
	t.Helper()
	props := []olm.Property{{Type: "olm.package", Value: json.RawMessage(`{"packageName":"a","version":"1.0.0"}`)}}
	for _, o := range objects {
		data := base64.StdEncoding.EncodeToString([]byte(o))
		props = append(props, olm.Property{Type: olm.PropertyBundleObject, Value: json.RawMessage(`{"data":"` + data + `"}`)})
	}
	props = append(props, olm.Property{Type: olm.PropertyCSVMetadata, Value: json.RawMessage(`{}`)})
	b := checktest.Get(olm.NewBundle("a", name, "1.0.0", props))(t)
	return b
}

func operator(b *olm.Bundle, replaces string) olm.Operator {
	return olm.Operator{
		Name: b.Name, Version: b.RawVersion, Package: b.Package, Channel: "stable",
		Catalog: types.NamespacedName{Namespace: "olm", Name: "c"}, Bundle: b, Replaces: replaces,
	}
}

const fullCSV = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion",
"metadata":{"name":"a.v1","annotations":{"operatorframework.io/properties":"old","keep":"me"}},
"spec":{"version":"1.0.0","replaces":"a.v0","unknown":{"kept":10},"install":{"strategy":"deployment","spec":{
"permissions":[{"serviceAccountName":"z","rules":[]},{"serviceAccountName":"sa","rules":[{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]}]}],
"clusterPermissions":[{"serviceAccountName":"default","rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]},{"serviceAccountName":"sa","rules":[{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]}]}]}}}}`

func stepText(s *olmapi.Step) string {
	r := s.Resource
	text := fmt.Sprintf("%s %s/%s %s %s", s.Resolving, r.Group, r.Version, r.Kind, r.Name)
	if r.CatalogSource != "c" || r.CatalogSourceNamespace != "olm" || s.Status != olmapi.StepUnknown {
		text += fmt.Sprintf(" from %s/%s, %s", r.CatalogSourceNamespace, r.CatalogSource, s.Status)
	}
	return text
}

func stepTexts(steps []*olmapi.Step) []string {
	var out []string
	for _, s := range steps {
		out = append(out, stepText(s))
	}
	return out
}

// The steps of an inline bundle: CSV, definitions, the rest, then accounts by
// name with what belongs to each.
func TestBundleSteps(t *testing.T) {
	const hash = "30ZQ53WpKhy8PX2MRQZbc0CQ4lJVPGxkCnZGz3"
	b := inline(t, "a.v1",
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`,
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  generateName: cm-\n",
		fullCSV,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"xs.g"}}`)
	op := operator(b, "a.v0.9")
	g := &olm.Generation{Namespace: ns, Operators: []olm.Operator{op}}
	s := snapshot(nil, nil, sub("a", ""))
	c := checktest.Get(install.NewChanges(&s, g))(t)
	got := stepTexts(c.Steps)
	zRole := checktest.Get(install.RoleName("a.v1", olmapi.Permission{ServiceAccountName: "z", Rules: []rbacv1.PolicyRule{}}))(t)
	defaultRole := checktest.Get(install.ClusterRoleName("a.v1", olmapi.Permission{ServiceAccountName: "default", Rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}}))(t)
	want := []string{
		"a.v1 operators.coreos.com/v1alpha1 ClusterServiceVersion a.v1",
		"a.v1 apiextensions.k8s.io/v1 CustomResourceDefinition xs.g",
		"a.v1 /v1 BundleSecret s",
		"a.v1 /v1 ConfigMap cm-",
		"a.v1 rbac.authorization.k8s.io/v1 ClusterRole " + defaultRole,
		"a.v1 rbac.authorization.k8s.io/v1 ClusterRoleBinding " + defaultRole,
		"a.v1 /v1 ServiceAccount sa",
		"a.v1 rbac.authorization.k8s.io/v1 Role a.v1-sa-" + hash,
		"a.v1 rbac.authorization.k8s.io/v1 RoleBinding a.v1-sa-" + hash,
		"a.v1 rbac.authorization.k8s.io/v1 ClusterRole a.v1-" + hash,
		"a.v1 rbac.authorization.k8s.io/v1 ClusterRoleBinding a.v1-" + hash,
		"a.v1 /v1 ServiceAccount z",
		"a.v1 rbac.authorization.k8s.io/v1 Role " + zRole,
		"a.v1 rbac.authorization.k8s.io/v1 RoleBinding " + zRole,
	}
	checktest.Same(t, want, got)
	if len(c.Lookups) != 0 || c.Empty() {
		t.Errorf("lookups %v, empty %v", c.Lookups, c.Empty())
	}

	var stored unstructured.Unstructured
	checktest.OK(t, stored.UnmarshalJSON([]byte(c.Steps[0].Resource.Manifest)))
	want2 := map[string]any{
		"name": "a.v1", "namespace": ns,
		"annotations": map[string]any{"keep": "me", "operatorframework.io/properties": `{"properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}]}`},
	}
	checktest.Same(t, want2, stored.Object["metadata"])
	spec := stored.Object["spec"].(map[string]any)
	checktest.Same(t, []any{"a.v0.9", map[string]any{"kept": int64(10)}}, []any{spec["replaces"], spec["unknown"]})

	var role rbacv1.Role
	var binding rbacv1.RoleBinding
	for i, v := range map[int]any{7: &role, 8: &binding} {
		checktest.OK(t, json.Unmarshal([]byte(c.Steps[i].Resource.Manifest), v))
	}
	labels := map[string]string{"olm.permissions.hash": "3Y9YdhK7d3Fe0rjjaFPWtPIIUI2QxhrMcQX5Z1"} // the others come when it is written
	checktest.Same(t, labels, role.Labels)
	labels["olm.permissions.hash"] = "4VwRmxex4P3HxOHbcnPmzQLZhjnZiZYQtbgFAC"
	checktest.Same(t, labels, binding.Labels)
	if diff := cmp.Diff([]rbacv1.Subject{{Kind: "ServiceAccount", Name: "sa", Namespace: ns}}, binding.Subjects); diff != "" || binding.RoleRef.Name != role.Name || role.Namespace != ns {
		t.Error(diff, binding.RoleRef, role.Namespace)
	}
}

// A bundle that replaces nothing says so, whatever it says itself.
func TestBundleStepsReplaceNothing(t *testing.T) {
	b := inline(t, "a.v1", fullCSV)
	op := operator(b, "")
	objects := checktest.Get(install.BundleObjects(b))(t)
	steps := checktest.Get(install.BundleSteps(ns, &op, objects))(t)
	if strings.Contains(steps[0].Resource.Manifest, "replaces") {
		t.Errorf("the CSV still replaces something: %s", steps[0].Resource.Manifest)
	}
	if name, _, _ := unstructured.NestedString(objects[0].Object, "spec", "replaces"); name != "a.v0" {
		t.Errorf("the bundle's own object was changed: replaces %q", name)
	}
}

// Of several CSVs that of the operator's name counts, else the first; the
// others are not steps.
func TestBundleStepsOfSeveralCSVs(t *testing.T) {
	csv := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":%q}}`, name)
	}
	for _, tc := range []struct {
		objects []string
		want    string
	}{
		{[]string{csv("x"), csv("a.v1"), csv("y")}, "a.v1"},
		{[]string{csv("a.v1"), csv("x")}, "a.v1"},
		{[]string{csv("x"), csv("y")}, "x"},
	} {
		b := inline(t, "a.v1", tc.objects...)
		objects := checktest.Get(install.BundleObjects(b))(t)
		op := operator(b, "")
		steps := checktest.Get(install.BundleSteps(ns, &op, objects))(t)
		if len(steps) != 1 || steps[0].Resource.Name != tc.want {
			t.Errorf("%v: %v, want %s", tc.objects, stepTexts(steps), tc.want)
		}
	}
}

func TestBundleStepsErrors(t *testing.T) {
	for _, tc := range []struct{ name, object, want string }{
		{"no apiVersion", `{"kind":"ClusterServiceVersion","metadata":{"name":"a.v1"}}`, "bundle CSV a.v1 missing APIVersion"},
		{"no kind", `{"apiVersion":"operators.coreos.com/v1alpha1","metadata":{"name":"a.v1"}}`, "bundle CSV a.v1 missing Kind"},
		{"neither", `{"metadata":{"name":"a.v1"}}`, "bundle CSV a.v1 missing APIVersion"},
		{"no CSV", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`, "bundle a.v1 has no ClusterServiceVersion among its objects"},
		{"no object", `[]`, "bundle a.v1: property 1 (olm.bundle.object): "},
		{"no YAML", "\t- {", "bundle a.v1: property 1 (olm.bundle.object): "},
		{"permissions are text", `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"},"spec":{"install":{"spec":{"permissions":"all"}}}}`, "bundle CSV a.v1: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := snapshot(nil, nil, sub("a", ""))
			_, err := install.NewChanges(&s, &olm.Generation{Operators: []olm.Operator{operator(inline(t, "a.v1", tc.object), "")}})
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// Which Subscriptions an operator is for, and what follows.
func TestChangesMatchSubscriptions(t *testing.T) {
	at := func(current string) func(*olmapi.Subscription) {
		return func(s *olmapi.Subscription) { s.Status.CurrentCSV = current }
	}
	a2 := checktest.Get(olm.NewBundle("a", "a.v2", "2.0.0", nil))(t)
	a2.Image = "registry.example/a:2"
	for _, tc := range []struct {
		name string
		subs []olmapi.Subscription
		csvs []olmapi.ClusterServiceVersion
		want string // CSVs; Subscriptions that progress; whether one is created
	}{
		{"update", []olmapi.Subscription{sub("a", "a.v1")}, installed("a.v1"), "[a.v2] [a] false"},
		{"other package", []olmapi.Subscription{sub("b", "b.v1")}, installed("b.v1"), "[a.v2] [] true"},
		{"other channel", []olmapi.Subscription{sub("a", "", channel("beta"))}, nil, "[a.v2] [] true"},
		{"any channel", []olmapi.Subscription{sub("a", "", channel(""))}, nil, "[a.v2] [a] false"},
		{"other catalog", []olmapi.Subscription{sub("a", "", source("d", "olm"))}, nil, "[a.v2] [] true"},
		{"catalog of another namespace", []olmapi.Subscription{sub("a", "", source("c", "ops"))}, nil, "[a.v2] [] true"},
		{"any catalog", []olmapi.Subscription{sub("a", "", source("", ""))}, nil, "[a.v2] [a] false"},
		{"two", []olmapi.Subscription{sub("a", "", named("z")), sub("a", "", named("y"))}, nil, "[a.v2] [y z] false"},
		{"current, and there", []olmapi.Subscription{sub("a", "", at("a.v2"))}, installed("a.v2"), "[] [] false"},
		{"current, not there", []olmapi.Subscription{sub("a", "", at("a.v2"))}, nil, "[a.v2] [a] false"},
		{"one of two not current", []olmapi.Subscription{sub("a", "", at("a.v2")), sub("a", "", named("z"))}, installed("a.v2"), "[a.v2] [a z] false"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := snapshot(nil, tc.csvs, tc.subs...)
			c := checktest.Get(install.NewChanges(&s, &olm.Generation{Operators: []olm.Operator{operator(a2, "a.v1")}}))(t)
			names := []string{}
			for _, x := range c.Current {
				names = append(names, x.Subscription)
				if x.CSV != "a.v2" {
					t.Errorf("%s progresses to %s", x.Subscription, x.CSV)
				}
			}
			checktest.Same(t, tc.want, fmt.Sprintf("%v %v %v", c.CSVs, names, len(c.Steps) > 0))
		})
	}
}

// A bundle image becomes a lookup, and that its steps once unpacked.
func TestLookup(t *testing.T) {
	b := inline(t, "a.v1", fullCSV)
	objects := checktest.Get(install.BundleObjects(b))(t)
	b.Image = "registry.example/a:1"
	s := snapshot(nil, nil)
	c := checktest.Get(install.NewChanges(&s, &olm.Generation{Operators: []olm.Operator{operator(b, "a.v0")}}))(t)
	want := []olmapi.BundleLookup{{
		Path: "registry.example/a:1", Identifier: "a.v1", Replaces: "a.v0",
		CatalogSourceRef: &corev1.ObjectReference{Namespace: "olm", Name: "c"},
		Properties:       `{"properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}]}`,
		Conditions: []olmapi.Condition{
			{Type: "BundleLookupNotPersisted", Status: "True", Reason: "BundleNotUnpacked", Message: "bundle contents have not yet been persisted to installplan status"},
			{Type: "BundleLookupPending", Status: "True", Reason: "JobNotStarted", Message: "unpack job not yet started"},
		},
	}}
	checktest.Same(t, want, c.Lookups)
	checktest.Same(t, []string{"a.v1 operators.coreos.com/v1alpha1 Subscription a-stable-c-olm"}, stepTexts(c.Steps))
	if err := c.Unpacked("b.v1", objects); err == nil || !strings.Contains(err.Error(), "b.v1") {
		t.Errorf("unpacking what is not looked up: %v", err)
	}
	checktest.OK(t, c.Unpacked("a.v1", objects))
	if len(c.Lookups) != 0 || len(c.Steps) != 12 || c.Steps[0].Resource.Kind != "ClusterServiceVersion" {
		t.Errorf("after unpacking: %d lookups, steps %v", len(c.Lookups), stepTexts(c.Steps))
	}
}

func TestCreatedSubscription(t *testing.T) {
	b := checktest.Get(olm.NewBundle("b", "b.v1", "1.0.0", nil))(t)
	b.Image = "registry.example/b:1"
	s := snapshot(nil, nil, sub("a", ""))
	c := checktest.Get(install.NewChanges(&s, &olm.Generation{Operators: []olm.Operator{operator(b, "")}}))(t)
	if len(c.Steps) != 1 {
		t.Fatalf("steps: %v", stepTexts(c.Steps))
	}
	want := `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"Subscription","metadata":{"name":"b-stable-c-olm","namespace":"ops"},` +
		`"spec":{"channel":"stable","installPlanApproval":"Automatic","name":"b","source":"c","sourceNamespace":"olm","startingCSV":"b.v1"}}`
	checktest.Same(t, want, c.Steps[0].Resource.Manifest)
}

// An unchanged generation asks for nothing.
func TestNoChanges(t *testing.T) {
	s := snapshot(contents("a.v1 X"), installed("a.v1 X"), sub("a", "a.v1"))
	c := checktest.Get(install.NewChanges(&s, resolve(t, s, olm.Options{})))(t)
	if !c.Empty() || len(c.CSVs)+len(c.Current) != 0 {
		t.Errorf("changes: %+v", c)
	}
}
