package install_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/install"
)

// bundles serves bundles: of operators in the form of parseOperator the CSV,
// and what further is given by its name.
func bundles(t testing.TB, lines []string, further map[string][]string) install.Unpacker {
	t.Helper()
	all := map[string][]*unstructured.Unstructured{}
	for _, line := range lines {
		csv := installed(line)[0]
		csv.Status = olmapi.ClusterServiceVersionStatus{}
		u := checktest.Get(clusterapi.ToUnstructured(&csv))(t)
		unstructured.RemoveNestedField(u.Object, "status")
		objects := []*unstructured.Unstructured{u}
		for _, text := range further[csv.Name] {
			o := &unstructured.Unstructured{}
			checktest.OK(t, json.Unmarshal([]byte(text), &o.Object))
			objects = append(objects, o)
		}
		all[csv.Name] = objects
	}
	return unpackerOf(func(r install.UnpackRequest) ([]*unstructured.Unstructured, error) {
		if all[r.Lookup.Identifier] == nil {
			return nil, fmt.Errorf("no bundle %s", r.Lookup.Identifier)
		}
		return all[r.Lookup.Identifier], nil
	})
}

// settleFailing makes passes until nothing changes, and returns the last error.
func (w *managed) settleFailing() error {
	w.t.Helper()
	for range 30 {
		if r, err := w.controller().Sync(context.Background(), ns); !r.Changed {
			return err
		}
	}
	w.t.Fatal("does not settle")
	return nil
}

func definition(versions, stored string) string {
	status := ""
	if stored != "" {
		status = `,"status":{"storedVersions":` + stored + `,"acceptedNames":{"kind":"Gadget","plural":"gadgets"},"conditions":[]}`
	}
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"kind":"Gadget","plural":"gadgets"},"versions":[` + versions + `]}` + status + `}`
}

func crdVersion(name, size string, storage bool) string {
	return fmt.Sprintf(`{"name":%q,"served":true,"storage":%v,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":%s}}}}}}`, name, storage, size)
}

// What a plan may not write fails it before anything is written, with an error
// that names plan, step, object and rule.
func TestControllerRefuses(t *testing.T) {
	const gadget = `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"namespace":"elsewhere","name":"big"},"spec":{"size":100}}`
	number := `{"type":"integer"}`
	for _, tc := range []struct {
		name    string
		object  string
		there   []string
		rule    string
		message string // of the plan in the end
	}{
		{"a Deployment in kube-system", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x","namespace":"kube-system"}}`, nil, "Kind",
			"the InstallPlan contains invalid data: plan ops/install-1, step Deployment kube-system/x of a.v1, rule Kind: kind Deployment.apps is not supported in a bundle"},
		{"a webhook", `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","metadata":{"name":"x"}}`, nil, "Kind",
			"the InstallPlan contains invalid data: plan ops/install-1, step MutatingWebhookConfiguration x of a.v1, rule Kind: kind MutatingWebhookConfiguration.admissionregistration.k8s.io is not supported in a bundle"},
		{"a Secret of another group", `{"apiVersion":"example.com/v1","kind":"Secret","metadata":{"name":"x"}}`, nil, "Kind",
			"the InstallPlan contains invalid data: plan ops/install-1, step Secret x of a.v1, rule Kind: kind Secret.example.com is not supported in a bundle"},
		{"a Subscription to something else", `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"Subscription","metadata":{"name":"x"},"spec":{"name":"evil","startingCSV":"evil.v1"}}`, nil, "Operator",
			`the InstallPlan contains invalid data: plan ops/install-1, step Subscription ops/x of a.v1, rule Operator: it asks for "evil.v1", and the step is one of a.v1`},
		{"a stored version is dropped", definition(crdVersion("v2", number, true), ""), []string{definition(crdVersion("v1", number, true), `["v1"]`)}, "Definition",
			`plan ops/install-1, step CustomResourceDefinition gadgets.example.com of a.v1, rule Definition: risk of data loss updating "gadgets.example.com": new CRD removes version v1 that is listed as a stored version on the existing CRD`},
		{"objects become invalid", definition(crdVersion("v1", `{"type":"integer","maximum":10}`, true), ""), []string{definition(crdVersion("v1", number, true), `["v1"]`), gadget}, "Definition",
			`plan ops/install-1, step CustomResourceDefinition gadgets.example.com of a.v1, rule Definition: error validating existing CRs against new CRD's schema for "gadgets.example.com": error validating example.com/v1, Kind=Gadget "elsewhere/big": updated validation is too restrictive: spec.size in body should be less than or equal to 10`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := manage(t, contents("a.v1 X"), ptr(sub("a", "")))
			for _, text := range tc.there {
				u := &unstructured.Unstructured{}
				checktest.OK(t, u.UnmarshalJSON([]byte(text)))
				w.put(u)
			}
			w.options.Execute = true
			w.options.Unpacker = bundles(t, []string{"a.v1 X"}, map[string][]string{"a.v1": {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"innocent"}}`, tc.object}})
			told := w.settleFailing()
			refusal := &install.Refusal{}
			if tc.rule == "Definition" {
				if !errors.As(told, &refusal) {
					t.Errorf("Sync: %v", told)
				}
				w.clock.Step(time.Minute)
				_ = w.settleFailing()
			}
			expect(t, "plans", w.plans(), []string{"1 Automatic Failed [a.v1]"})
			p := get[olmapi.InstallPlan](w, "install-1")
			checktest.Equal(t, tc.message, p.Status.Message, "message")
			if c := p.Status.Conditions; len(c) != 1 || c[0].Type != "Installed" || c[0].Status != "False" || c[0].Reason != "InstallComponentFailed" || c[0].Message != tc.message {
				t.Errorf("conditions %+v", c)
			}
			expect(t, "Subscriptions", w.states(), []string{"a UpgradePending /a.v1: InstallPlanFailed=True InstallComponentFailed " + tc.message})
			refused := 0
			for _, e := range w.events {
				if e.Type == install.EventPlanRefused {
					refused++
					if !errors.As(e.Err, &refusal) || refusal.Rule != tc.rule || refusal.Plan != "ops/install-1" || refusal.Operator != "a.v1" {
						t.Errorf("event %+v", e)
					}
				}
			}
			if refused == 0 {
				t.Error("nobody was told")
			}
			if csvs := list[olmapi.ClusterServiceVersion](w); len(csvs) > 0 {
				t.Errorf("%s was written", csvs[0].Name)
			}
			if maps, err := w.List(context.Background(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, clusterapi.ListOptions{}); err != nil || len(maps.Items) > 0 {
				t.Errorf("ConfigMaps %v, %v", maps, err)
			}
		})
	}
}

// A definition that keeps what is stored takes the place of what is there, its
// conversion included. Only objects of versions that both serve are looked at.
func TestControllerUpdatesDefinitions(t *testing.T) {
	number, limited, text := `{"type":"integer"}`, `{"type":"integer","maximum":10}`, `{"type":"string"}`
	unserved := func(version string) string { return strings.Replace(version, `"served":true`, `"served":false`, 1) }
	webhook := func(definition string) string {
		return strings.Replace(definition, `"scope"`, `"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],`+
			`"clientConfig":{"url":"https://convert.example"}}},"scope"`, 1)
	}
	v1, v2 := crdVersion("v1", number, true), crdVersion("v2", text, false)
	for _, tc := range []struct {
		name, there, definition string
		size                    int // of the object that is there
		warning                 string
	}{
		{"objects are valid", definition(v1, `["v1"]`), definition(crdVersion("v1", limited, true), ""), 1, ""},
		{"a version that was not served", definition(v1+","+unserved(crdVersion("v2", number, false)), `["v1"]`), definition(v1+","+v2, ""), 100, ""},
		{"a version that is no longer served", definition(v1+","+crdVersion("v2", number, false), `["v1"]`), definition(v1+","+unserved(v2), ""), 100, ""},
		{"a new version", definition(v1, `["v1"]`), definition(v1+","+v2, ""), 100, ""},
		{"a webhook converts", definition(v1, `["v1"]`), webhook(definition(crdVersion("v1", limited, true), "")), 100,
			`error validating existing CRs against new CRD's schema for "gadgets.example.com": error validating example.com/v1, Kind=Gadget "ops/g": ` +
				"updated validation is too restrictive: spec.size in body should be less than or equal to 10"},
		{"the webhook of the older one goes", webhook(definition(v1, `["v1"]`)), definition(v1, ""), 100, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := manage(t, contents("a.v1 X"), ptr(sub("a", "")))
			there := parseObject(t, tc.there)
			there.SetLabels(map[string]string{"mine": "kept"})
			w.put(there, parseObject(t, fmt.Sprintf(
				`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"namespace":"ops","name":"g"},"spec":{"size":%d}}`, tc.size)))
			w.options.Execute = true
			w.options.Unpacker = bundles(t, []string{"a.v1 X"}, map[string][]string{"a.v1": {tc.definition}})
			w.settle()
			expect(t, "plans", w.plans(), []string{"1 Automatic Complete [a.v1]"})
			u := checktest.Get(w.Get(t.Context(), definitionKind, clusterapi.Key("", "gadgets.example.com")))(t)
			checktest.Same(t, map[string]string{"mine": "kept", "olm.managed": "true"}, u.GetLabels())
			wanted := parseObject(t, tc.definition)
			for _, field := range []string{"versions", "conversion"} {
				want, _, _ := unstructured.NestedFieldNoCopy(wanted.Object, "spec", field)
				if got, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", field); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s: %v, want %v", field, got, want)
				}
			}
			var warnings []string
			for _, e := range w.events {
				if e.Type == install.EventCRDValidation {
					warnings = append(warnings, e.Message)
				}
			}
			checktest.Equal(t, tc.warning, strings.Join(warnings, "\n"), "warnings")
		})
	}
}

var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

func parseObject(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	checktest.OK(t, u.UnmarshalJSON([]byte(text)))
	return u
}

// restricted is an API that may not write ConfigMaps, and notes who writes.
type restricted struct {
	clusterapi.ReadWriter
	wrote []string
	err   error
}

func (r *restricted) Create(ctx context.Context, u *unstructured.Unstructured, o clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	r.wrote = append(r.wrote, u.GetKind())
	return r.ReadWriter.Create(ctx, u, o)
}

func (r *restricted) Apply(ctx context.Context, u *unstructured.Unstructured, o clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	r.wrote = append(r.wrote, u.GetKind())
	if r.err != nil {
		return nil, r.err
	}
	return r.ReadWriter.Apply(ctx, u, o)
}

// An OperatorGroup with a service account bounds the rights; without a hook
// that supplies them its plans wait.
func TestControllerIdentity(t *testing.T) {
	w := manage(t, contents("a.v1 X"), ptr(sub("a", "")))
	checktest.OK(t, change(w.Cluster, "og", func(g *olmapi.OperatorGroup) { g.Spec.ServiceAccountName = "scoped" }))
	w.options.Execute = true
	w.options.Unpacker = bundles(t, []string{"a.v1 X"}, map[string][]string{"a.v1": {
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`, definition(crdVersion("v1", `{"type":"integer"}`, true), "")}})
	waits := func(message string) {
		t.Helper()
		refusal := &install.Refusal{}
		if err := w.settleFailing(); !errors.As(err, &refusal) || refusal.Rule != "Identity" {
			t.Errorf("Sync: %v", err)
		}
		w.clock.Step(time.Hour)
		w.settleFailing()
		p := get[olmapi.InstallPlan](w, "install-1")
		if c := p.Status.Conditions; p.Status.Phase != olmapi.PlanPhaseInstalling || p.Status.Message != message || len(c) != 1 ||
			c[0].Status != "False" || c[0].Reason != "InstallCheckFailed" || c[0].Message != message {
			t.Errorf("status %+v", p.Status)
		}
		if e := w.events[len(w.events)-1]; e.Type != install.EventPlanRefused || e.Message != message {
			t.Errorf("event %+v", e)
		}
	}
	waits("attenuated service account query failed - operatorgroup ops/og names service account scoped, and no Options.Identity supplies its rights")

	scoped := &restricted{ReadWriter: w.Cluster}
	var identityErr error = errors.New("no token")
	w.options.Identity = func(_ context.Context, namespace, account string) (clusterapi.ReadWriter, error) {
		if namespace != ns || account != "scoped" {
			t.Errorf("asked for %s/%s", namespace, account)
		}
		return scoped, identityErr
	}
	waits("attenuated service account query failed - service account ops/scoped of operatorgroup og: no token")
	if len(scoped.wrote) > 0 || len(list[olmapi.ClusterServiceVersion](w)) > 0 {
		t.Errorf("written: %v", scoped.wrote)
	}

	identityErr = nil
	w.settle()
	expect(t, "plans", w.plans(), []string{"1 Automatic Complete [a.v1]"})
	expect(t, "written by the account", scoped.wrote, []string{"ClusterServiceVersion", "ConfigMap"}) // the definition is OLM's
}

// A plan that was approved, or is even being installed, is not carried out once
// another version is there: the older one never comes beside the newer.
func TestControllerRefusesStalePlans(t *testing.T) {
	lines := []string{"a.v1 X", "a.v2 X >a.v1", "a.v3 X >a.v2 ~a.v1"}
	for _, phase := range []olmapi.InstallPlanPhase{olmapi.PlanPhaseRequiresApproval, olmapi.PlanPhaseInstalling} {
		t.Run(string(phase), func(t *testing.T) {
			old := plan("old", 1, phase, "a.v2")
			old.Spec.Approval = olmapi.ApprovalManual
			old.Status.Plan[0].Resource.Manifest = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v2"},"spec":{"version":"2.0.0"}}`
			done := plan("done", 2, olmapi.PlanPhaseComplete, "a.v3")
			w := manage(t, contents(lines...), ptr(sub("a", "a.v3", manual, refersTo("done"))), ptr(installed(lines[2])[0]), &old, &done)
			w.options.Execute, w.options.Unpacker = true, bundles(t, lines, nil)
			w.settle()
			expect(t, "plans", w.plans(), []string{"1 Manual Failed [a.v2]", "2 Automatic Complete [a.v3]"})
			if c := get[olmapi.InstallPlan](w, "old").Status.Conditions; len(c) != 1 || c[0].Reason != "PlanSuperseded" || !strings.HasSuffix(c[0].Message, "but for nothing") {
				t.Errorf("conditions %+v", c)
			}
			if csvs := list[olmapi.ClusterServiceVersion](w); len(csvs) != 1 || csvs[0].Name != "a.v3" {
				t.Errorf("CSVs %v", csvs)
			}
			expect(t, "Subscriptions", w.states(), []string{"a AtLatestKnown a.v3/a.v3"})
		})
	}
}

// Every object of a bundle is the operator's: OLM's label is on it, it is in the
// namespace of the plan, and goes with its CSV; what has no namespace says by labels
// whose it is.
func TestControllerPreparesObjects(t *testing.T) {
	owner := map[string]string{"olm.managed": "true", "olm.owner": "a.v1", "olm.owner.namespace": ns, "olm.owner.kind": "ClusterServiceVersion"}
	managedOnly := map[string]string{"olm.managed": "true"}
	const rbac, console = "rbac.authorization.k8s.io/v1", "console.openshift.io/v1"
	type object struct {
		apiVersion, kind, rest string
		labels                 map[string]string
		owned                  bool
	}
	cases := []object{
		{"v1", "Secret", "", managedOnly, true},
		{"v1", "ConfigMap", "", managedOnly, true},
		{"v1", "Service", `,"spec":{"ports":[{"port":80}]}`, managedOnly, true},
		{"v1", "ServiceAccount", "", managedOnly, true},
		{rbac, "Role", `,"rules":[]`, owner, true},
		{rbac, "RoleBinding", `,"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"x"}`, owner, true},
		{"policy/v1", "PodDisruptionBudget", "", managedOnly, true},
		{"networking.k8s.io/v1", "NetworkPolicy", `,"spec":{"podSelector":{}}`, managedOnly, true},
		{"monitoring.coreos.com/v1", "PrometheusRule", "", managedOnly, true},
		{"monitoring.coreos.com/v1", "ServiceMonitor", "", managedOnly, true},
		{"autoscaling.k8s.io/v1", "VerticalPodAutoscaler", "", managedOnly, true},
		{rbac, "ClusterRole", `,"rules":[]`, owner, false},
		{rbac, "ClusterRoleBinding", `,"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"x"}`, owner, false},
		{"scheduling.k8s.io/v1", "PriorityClass", `,"value":1`, owner, false},
		{console, "ConsoleCLIDownload", `,"spec":{"displayName":"x","description":"x","links":[{"href":"https://x.example"}]}`, owner, false},
		{console, "ConsoleLink", `,"spec":{"text":"x","href":"https://x.example","location":"HelpMenu"}`, owner, false},
		{console, "ConsolePlugin", `,"spec":{"displayName":"x","backend":{"type":"Service","service":{"name":"x","namespace":"ops","port":80,"basePath":"/"}}}`, owner, false},
		{console, "ConsoleQuickStart", `,"spec":{"displayName":"x","durationMinutes":1,"introduction":"x","description":"x","tasks":[{"title":"x","description":"x"}]}`, owner, false},
		{console, "ConsoleYAMLSample", `,"spec":{"targetResource":{"apiVersion":"v1","kind":"x"},"title":"x","description":"x","yaml":"x"}`, owner, false},
	}
	var further []string
	w := manage(t, contents("a.v1 X"), ptr(sub("a", "")))
	for _, c := range cases {
		further = append(further, fmt.Sprintf(
			`{"apiVersion":%q,"kind":%q,"metadata":{"name":"x","namespace":"elsewhere","labels":{"mine":"kept"}}%s}`, c.apiVersion, c.kind, c.rest))
		_, err := w.List(t.Context(), schema.FromAPIVersionAndKind(c.apiVersion, c.kind), clusterapi.ListOptions{})
		if meta.IsNoMatchError(err) {
			group, version, _ := strings.Cut(c.apiVersion, "/")
			scope := map[bool]string{true: "Namespaced", false: "Cluster"}[c.owned]
			plural := strings.ToLower(c.kind) + "s"
			w.put(parseObject(t, fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%s.%s"},`+
				`"spec":{"group":%q,"scope":%q,"names":{"kind":%q,"plural":%q},"versions":[{"name":%q,"served":true,"storage":true,`+
				`"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, plural, group, group, scope, c.kind, plural, version)))
		}
	}
	w.options.Execute, w.options.Unpacker = true, bundles(t, []string{"a.v1 X"}, map[string][]string{"a.v1": further})
	w.settle()
	expect(t, "plans", w.plans(), []string{"1 Automatic Complete [a.v1]"})
	csv := get[olmapi.ClusterServiceVersion](w, "a.v1")
	checktest.Same(t, managedOnly, csv.Labels)
	for _, c := range cases {
		key := clusterapi.Key("", "x")
		if c.owned {
			key.Namespace = ns
		}
		u := checktest.Get(w.Get(t.Context(), schema.FromAPIVersionAndKind(c.apiVersion, c.kind), key))(t)
		labels := maps.Clone(c.labels)
		labels["mine"] = "kept"
		checktest.SameIn(t, c.kind, labels, u.GetLabels())
		refs := u.GetOwnerReferences()
		if !c.owned {
			checktest.Equal(t, 0, len(refs), "owners of %s", c.kind)
		} else if len(refs) != 1 || refs[0].UID != csv.UID || refs[0].Name != "a.v1" || csv.UID == "" {
			t.Errorf("owners of %s: %+v", c.kind, refs)
		}
	}
}

var configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
