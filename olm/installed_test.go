package olm_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

func ownsAndNeeds(c *olmapi.ClusterServiceVersion) {
	c.Spec.CustomResourceDefinitions = olmapi.APIs{
		Owned:    []olmapi.APIDescription{{Name: "foos.g.example.com", Version: "v1", Kind: "Foo"}},
		Required: []olmapi.APIDescription{{Name: "bars.g", Version: "v2", Kind: "Bar"}},
	}
	c.Spec.APIServiceDefinitions = olmapi.APIs{
		Owned:    []olmapi.APIDescription{{Name: "things", Group: "ag", Version: "v1", Kind: "Thing"}},
		Required: []olmapi.APIDescription{{Name: "others", Group: "ag", Version: "v1", Kind: "Other"}},
	}
}

// Properties of an installed operator: those of the annotation and no others,
// else what it owns and requires, and the package its Subscriptions agree on.
func TestInstalledProperties(t *testing.T) {
	const inferred = `olm.gvk={"group":"g.example.com","kind":"Foo","version":"v1"} ` +
		`olm.gvk={"group":"ag","kind":"Thing","version":"v1"} ` +
		`olm.gvk.required={"group":"g","kind":"Bar","version":"v2"} ` +
		`olm.gvk.required={"group":"ag","kind":"Other","version":"v1"}`
	other := sub("other", "a.v1", named("z"))
	for _, tc := range []struct {
		name string
		csv  olmapi.ClusterServiceVersion
		subs []olmapi.Subscription
		want string // properties, or "error: "...
	}{
		{"inferred, freestanding", newCSV("a.v1", atVersion("1.0.0"), ownsAndNeeds), nil, inferred},
		{"inferred, of a package", newCSV("a.v1", atVersion("1.0.0"), ownsAndNeeds), []olmapi.Subscription{sub("a", "a.v1")},
			inferred + ` olm.package={"packageName":"a","version":"1.0.0"}`},
		{"two Subscriptions to one package", newCSV("a.v1", atVersion("1.0.0")), []olmapi.Subscription{sub("a", "a.v1"), sub("a", "a.v1", named("b"))},
			`olm.package={"packageName":"a","version":"1.0.0"}`},
		{"one of two Subscriptions names none", newCSV("a.v1", atVersion("1.0.0")), []olmapi.Subscription{sub("a", "a.v1"), sub("", "a.v1", named("b"))},
			`olm.package={"packageName":"a","version":"1.0.0"}`},
		{"none names any", newCSV("a.v1", atVersion("1.0.0")), []olmapi.Subscription{sub("", "a.v1", named("b"))}, ""},
		{"two packages", newCSV("a.v1", atVersion("1.0.0")), []olmapi.Subscription{sub("a", "a.v1"), other}, ""},
		{"a Subscription with another operator", newCSV("a.v1", atVersion("1.0.0")), []olmapi.Subscription{sub("a", "a.v2")}, ""},
		{"no version", newCSV("a.v1"), []olmapi.Subscription{sub("a", "a.v1")}, `olm.package={"packageName":"a","version":""}`},
		{"version zero", newCSV("a.v1", atVersion("0.0.0")), []olmapi.Subscription{sub("a", "a.v1")}, `olm.package={"packageName":"a","version":""}`},
		{"pre-release of version zero", newCSV("a.v1", atVersion("0.0.0-rc.1")), []olmapi.Subscription{sub("a", "a.v1")}, `olm.package={"packageName":"a","version":"0.0.0-rc.1"}`},
		{"annotation", newCSV("a.v1", ownsAndNeeds, withAnnotation(olmapi.AnnotationProperties, `{"properties":[{"type":"olm.label","value":{"label":"l"}}]}`)),
			[]olmapi.Subscription{sub("a", "a.v1")}, `olm.label={"label":"l"}`},
		{"annotation without properties", newCSV("a.v1", ownsAndNeeds, withAnnotation(olmapi.AnnotationProperties, `{}`)), []olmapi.Subscription{sub("a", "a.v1")}, ""},
		{"malformed annotation", newCSV("a.v1", withAnnotation(olmapi.AnnotationProperties, `{`)), nil,
			`error: failed to retrieve properties of csv "a.v1": failed to unmarshal properties annotation: unexpected end of JSON input`},
		{"empty annotation", newCSV("a.v1", withAnnotation(olmapi.AnnotationProperties, ``)), nil,
			`error: failed to retrieve properties of csv "a.v1": failed to unmarshal properties annotation: unexpected end of JSON input`},
		{"definition without a dot", newCSV("a.v1", func(c *olmapi.ClusterServiceVersion) {
			c.Spec.CustomResourceDefinitions.Owned = []olmapi.APIDescription{{Name: "foos"}}
		}), nil, "error: error parsing crd name: foos"},
		{"required definition without a dot, with an annotation", newCSV("a.v1", withAnnotation(olmapi.AnnotationProperties, `{}`), func(c *olmapi.ClusterServiceVersion) {
			c.Spec.CustomResourceDefinitions.Required = []olmapi.APIDescription{{Name: "foos"}}
		}), nil, "error: error parsing crd name: foos"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			in, _, err := olm.ReadInstalled(ns, []olmapi.ClusterServiceVersion{tc.csv}, tc.subs, nil)
			if err != nil {
				got = "error: " + err.Error()
			} else {
				var texts []string
				for _, p := range in[0].Properties {
					texts = append(texts, p.Type+"="+string(p.Value))
				}
				got = strings.Join(texts, " ")
			}
			checktest.Same(t, tc.want, got)
		})
	}
}

func TestInstalledVersion(t *testing.T) {
	for _, tc := range []struct{ version, want string }{
		{"", "0.0.0"}, {"1.2.3-rc.1", "1.2.3-rc.1"}, {"v1.2", "1.2.0"}, {"none", "<nil>"},
	} {
		in, _, err := olm.ReadInstalled(ns, []olmapi.ClusterServiceVersion{newCSV("a.v1", atVersion(tc.version))}, nil, nil)
		checktest.OK(t, err)
		got := "<nil>"
		if v := in[0].Version; v != nil {
			got = v.String()
		}
		if got != tc.want {
			t.Errorf("version %q: got %s, want %s", tc.version, got, tc.want)
		}
	}
}

// Copies and operators of other namespaces are not installed.
func TestInstalledSet(t *testing.T) {
	labelled := func(c *olmapi.ClusterServiceVersion) { c.Labels = map[string]string{"olm.copiedFrom": ""} }
	copied := func(c *olmapi.ClusterServiceVersion) { c.Status.Reason = "Copied" }
	elsewhere := func(c *olmapi.ClusterServiceVersion) { c.Namespace = "other" }
	nowhere := func(c *olmapi.ClusterServiceVersion) { c.Namespace = "" } // means the one that is read
	in, _, err := olm.ReadInstalled(ns, []olmapi.ClusterServiceVersion{
		newCSV("own.v1", withAnnotation("olm.operatorNamespace", ns)),
		newCSV("a.v1"),
		newCSV("label.v1", labelled),
		newCSV("reason.v1", copied),
		newCSV("annotation.v1", withAnnotation("olm.operatorNamespace", "other")),
		newCSV("nowhere.v1", withAnnotation("olm.operatorNamespace", "other"), nowhere),
		newCSV("elsewhere.v1", elsewhere),
	}, nil, nil)
	checktest.OK(t, err)
	checktest.Same(t, []string{"a.v1", "own.v1"}, bundleNames(in))
}

func bundleNames(bundles []*olm.Bundle) (names []string) {
	for _, b := range bundles {
		names = append(names, b.Name)
	}
	return names
}

func TestFailForward(t *testing.T) {
	group := func(strategy string) []olmapi.OperatorGroup {
		return []olmapi.OperatorGroup{{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "og"}, Spec: olmapi.OperatorGroupSpec{UpgradeStrategy: strategy}}}
	}
	v1, v2, v3 := "a.v1", "a.v2", "a.v3"
	for _, tc := range []struct {
		name   string
		groups []olmapi.OperatorGroup
		csvs   []olmapi.ClusterServiceVersion
		want   string // installed names, or the error
	}{
		{"not asked for", group(""), []olmapi.ClusterServiceVersion{newCSV(v1, inPhase("Replacing")), newCSV(v2, withReplaces(v1), inPhase("Failed"))}, "a.v1 a.v2"},
		{"default", group("Default"), []olmapi.ClusterServiceVersion{newCSV(v1, inPhase("Replacing")), newCSV(v2, withReplaces(v1), inPhase("Failed"))}, "a.v1 a.v2"},
		{"unknown strategy", group("Brave"), []olmapi.ClusterServiceVersion{newCSV(v1, inPhase("Replacing")), newCSV(v2, withReplaces(v1), inPhase("Failed"))}, "a.v1 a.v2"},
		{"no group", nil, []olmapi.ClusterServiceVersion{newCSV(v1, inPhase("Replacing")), newCSV(v2, withReplaces(v1), inPhase("Failed"))}, "a.v1 a.v2"},
		{"failed", group("TechPreviewUnsafeFailForward"), []olmapi.ClusterServiceVersion{newCSV(v1, inPhase("Replacing")), newCSV(v2, withReplaces(v1), inPhase("Failed"))}, "a.v2"},
		{"not failed", group("TechPreviewUnsafeFailForward"), []olmapi.ClusterServiceVersion{newCSV(v1, inPhase("Replacing")), newCSV(v2, withReplaces(v1), inPhase("Installing"))}, "a.v1 a.v2"},
		{"long chain", group("TechPreviewUnsafeFailForward"), []olmapi.ClusterServiceVersion{newCSV(v3, withReplaces(v2), inPhase("Failed")), newCSV(v1, inPhase("Replacing")), newCSV(v2, withReplaces(v1), inPhase("Replacing"))}, "a.v3"},
		{"failed alone", group("TechPreviewUnsafeFailForward"), []olmapi.ClusterServiceVersion{newCSV(v1, inPhase("Failed"))}, "a.v1"},
		{"wrong phase", group("TechPreviewUnsafeFailForward"), []olmapi.ClusterServiceVersion{newCSV(v1), newCSV(v2, withReplaces(v1), inPhase("Failed"))}, "csv ops/a.v1 in phase Succeeded instead of Replacing"},
		{"wrong phase, not asked for", group(""), []olmapi.ClusterServiceVersion{newCSV(v1), newCSV(v2, withReplaces(v1), inPhase("Failed"))}, "a.v1 a.v2"},
		{"loop", group("TechPreviewUnsafeFailForward"), []olmapi.ClusterServiceVersion{newCSV(v1, withReplaces(v2), inPhase("Replacing")), newCSV(v2, withReplaces(v1), inPhase("Replacing"))}, "csv ops/a.v1 has already been seen"},
		{"two groups", append(group(""), group("")...), nil, "found 2 operatorGroups, expected 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in, _, err := olm.ReadInstalled(ns, tc.csvs, nil, tc.groups)
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = strings.Join(bundleNames(in), " ")
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// An operator on its way out whose successor is there makes the Subscriptions
// of the whole chain wait.
func TestUpdateInProgress(t *testing.T) {
	csvs := []olmapi.ClusterServiceVersion{
		newCSV("a.v1", inPhase("Deleting")),
		newCSV("a.v2", withReplaces("a.v1"), inPhase("Replacing")),
		newCSV("a.v3", withReplaces("a.v2"), inPhase("Installing")),
		newCSV("b.v1"), // not going
		newCSV("b.v2", withReplaces("b.v1")),
		newCSV("c.v1", inPhase("Replacing")), // no successor
	}
	_, updates, err := olm.ReadInstalled(ns, csvs, []olmapi.Subscription{sub("a", "a.v3"), sub("b", "b.v2"), sub("c", "c.v1")}, nil)
	checktest.OK(t, err)
	want := []olm.InProgressUpdate{
		{Old: "a.v1", New: "a.v2", Last: "a.v3", Subscriptions: []string{"a"}},
		{Old: "a.v2", New: "a.v3", Last: "a.v3", Subscriptions: []string{"a"}},
	}
	checktest.Same(t, want, updates)
}
