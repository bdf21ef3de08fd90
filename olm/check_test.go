package olm_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
	"k8s.io/apimachinery/pkg/types"
)

// TestCheck: a generation that breaks a promise is found out. As olm.Resolve makes
// none, a good one is changed.
func TestCheck(t *testing.T) {
	const text = `{"schema":"olm.package","name":"a","defaultChannel":"c"}
{"schema":"olm.channel","package":"a","name":"c","entries":[{"name":"a.v2","replaces":"a.v1"},{"name":"a.v1"}]}
{"schema":"olm.bundle","package":"a","name":"a.v2","image":"registry.example/a:2","properties":[{"type":"olm.package","value":{"packageName":"a","version":"2.0.0"}},{"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"New"}}]}
{"schema":"olm.package","name":"n","defaultChannel":"c"}
{"schema":"olm.channel","package":"n","name":"c","entries":[{"name":"n.v1"}]}
{"schema":"olm.bundle","package":"n","name":"n.v1","image":"registry.example/n:1","properties":[{"type":"olm.package","value":{"packageName":"n","version":"1.0.0"}},{"type":"olm.gvk.required","value":{"group":"g","version":"v1","kind":"Missing"}}]}
{"schema":"olm.package","name":"d","defaultChannel":"c"}
{"schema":"olm.channel","package":"d","name":"c","entries":[{"name":"d.v1"}]}
{"schema":"olm.bundle","package":"d","name":"d.v1","image":"registry.example/d:1","properties":[{"type":"olm.package","value":{"packageName":"d","version":"1.0.0"}},{"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"Old"}},{"type":"olm.deprecated","value":{}}]}
`
	read, err := catalog.Read(context.Background(), strings.NewReader(text), "catalog.json", catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	csv := func(name, properties string) olm.ClusterServiceVersion {
		var c olm.ClusterServiceVersion
		c.Name, c.Annotations = name, map[string]string{olm.AnnotationProperties: `{"properties":[` + properties + `]}`}
		return c
	}
	s := olm.Snapshot{
		Namespace:      "ns",
		Installed:      []olm.ClusterServiceVersion{csv("a.v1", `{"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"Old"}}`), csv("z.v1", `{"type":"olm.gvk.required","value":{"group":"g","version":"v1","kind":"Old"}}`)},
		OperatorGroups: []olm.OperatorGroup{{}},
		Catalogs:       []olm.SnapshotCatalog{{Key: types.NamespacedName{Namespace: "ns", Name: "c"}, Contents: read.Contents}},
	}
	var sub olm.Subscription
	sub.Name = "a"
	sub.Spec = olm.SubscriptionSpec{Source: "c", SourceNamespace: "ns", Package: "a", Channel: "c"}
	sub.Status.InstalledCSV = "a.v1"
	s.Subscriptions = []olm.Subscription{sub}

	for _, tc := range []struct {
		name   string
		change func(g *olm.Generation, add func(pkg, name string) *olm.Slot)
		want   []string
	}{
		{"nothing", func(*olm.Generation, func(string, string) *olm.Slot) {}, nil},
		{"an unchanged operator loses an API", func(g *olm.Generation, add func(string, string) *olm.Slot) {
			s := add("a", "a.v2")
			s.Outcome, s.Previous = "Updated", g.Slots[0].Previous
			g.Slots = append(g.Slots[1:2], *s)
		}, []string{"z.v1 would lose an operator providing an API with group: g, version: v1, kind: Old"}},
		{"a new operator lacks an API", func(g *olm.Generation, add func(string, string) *olm.Slot) {
			g.Slots = append(g.Slots, *add("n", "n.v1"))
		}, []string{"n.v1 would lack an operator providing an API with group: g, version: v1, kind: Missing"}},
		{"a second provider, deprecated", func(g *olm.Generation, add func(string, string) *olm.Slot) {
			g.Slots = append(g.Slots, *add("d", "d.v1"))
		}, []string{"d.v1 is deprecated", "a.v1 and d.v1 provide Old (g/v1)"}},
		{"one package and one name twice", func(g *olm.Generation, add func(string, string) *olm.Slot) {
			g.Slots = append(g.Slots, *add("a", "a.v2"), *add("a", "a.v2"))
		}, []string{"a.v2 and a.v2 originate from package a", "a.v2 and a.v2 have the name a.v2"}},
		{"an update without an edge", func(g *olm.Generation, add func(string, string) *olm.Slot) {
			s := add("a", "a.v2")
			s.Outcome, s.Previous = "Updated", g.Slots[1].Previous
			s.AlsoReplaced = []*olm.Bundle{{Name: "y.v1"}}
			g.Slots[1] = *s
		}, []string{"a.v2 does not replace z.v1", "a.v2 does not replace y.v1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, err := olm.Resolve(context.Background(), s, olm.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(g.Operators) > 0 || len(g.Slots) != 2 {
				t.Fatalf("generation:\n%s", g)
			}
			tc.change(g, func(pkg, name string) *olm.Slot {
				e := read.Package(pkg).Channel("c").Entry(name)
				return &olm.Slot{Outcome: "AddedForRequirement", Current: e.Bundle, Operator: &olm.Operator{Name: name, Bundle: e.Bundle, Entry: e}}
			})
			err = olm.Check(g)
			if len(tc.want) == 0 && err == nil {
				return
			}
			if !errors.Is(err, olm.ErrInconsistent) {
				t.Fatalf("error %v", err)
			}
			for _, text := range tc.want {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q is not in: %v", text, err)
				}
			}
		})
	}
}
