package olm_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// exampleCatalog has a database and an application that needs it. The second
// version of the database drops the API that the first version of the
// application uses.
const exampleCatalog = `
schema: olm.package
name: app
defaultChannel: stable
---
schema: olm.channel
package: app
name: stable
entries:
- name: app.v1.0.0
---
schema: olm.bundle
package: app
name: app.v1.0.0
image: registry.example/app:1.0.0
properties:
- type: olm.package
  value: {packageName: app, version: 1.0.0}
- type: olm.gvk.required
  value: {group: db.example, version: v1, kind: Database}
---
schema: olm.package
name: db
defaultChannel: stable
---
schema: olm.channel
package: db
name: stable
entries:
- name: db.v1.0.0
- name: db.v2.0.0
  replaces: db.v1.0.0
---
schema: olm.bundle
package: db
name: db.v1.0.0
image: registry.example/db:1.0.0
properties:
- type: olm.package
  value: {packageName: db, version: 1.0.0}
- type: olm.gvk
  value: {group: db.example, version: v1, kind: Database}
---
schema: olm.bundle
package: db
name: db.v2.0.0
image: registry.example/db:2.0.0
properties:
- type: olm.package
  value: {packageName: db, version: 2.0.0}
- type: olm.gvk
  value: {group: db.example, version: v2, kind: Database}
`

// exampleSnapshot is a namespace with one Subscription, and nothing installed.
func exampleSnapshot() olm.Snapshot {
	catalog, err := catalog.Read(context.Background(), strings.NewReader(exampleCatalog), "catalog.yaml", catalog.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return olm.Snapshot{
		Namespace: "shop",
		Subscriptions: []olmapi.Subscription{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"},
			Spec:       olmapi.SubscriptionSpec{Source: "example", SourceNamespace: "shop", Package: "app", Channel: "stable"},
		}},
		OperatorGroups: make([]olmapi.OperatorGroup, 1),
		Catalogs:       []olm.SnapshotCatalog{{Key: types.NamespacedName{Namespace: "shop", Name: "example"}, Contents: catalog.Contents}},
	}
}

// What an operator requires comes with it, in the version that fits, and gets a
// Subscription.
func ExampleResolve() {
	g, err := olm.Resolve(context.Background(), exampleSnapshot(), olm.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, op := range g.Operators {
		fmt.Println("install", op.Name)
	}
	for _, sub := range g.NewSubscriptions {
		fmt.Println("subscribe to", sub.Spec.Package, "as", sub.Name)
	}
	// Output:
	// install app.v1.0.0
	// install db.v1.0.0
	// subscribe to db as db-stable-example-shop
}

// An update that would take away what another operator needs is held back, and
// the generation can say why.
func ExampleGeneration_Explain() {
	ctx := context.Background()
	generations, err := olm.Sequence(ctx, exampleSnapshot(), olm.Options{})
	if err != nil {
		log.Fatal(err)
	}
	last := generations[len(generations)-1]
	why, err := last.Explain(ctx, "db")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(why)
	// Output:
	// kept db.v1.0.0 for subscription db-stable-example-shop
	//   db.v2.0.0 not taken
	//     app.v1.0.0 requires Database (db.example/v1), which only db.v1.0.0 provides
	//       subscription app can have nothing but app.v1.0.0
	// way out: remove subscription app and its operator app.v1.0.0
}

// OLM's own way fails the whole namespace. The error is a minimal set of facts.
func ExampleNotSatisfiable() {
	s := exampleSnapshot()
	s.Subscriptions = append(s.Subscriptions, olmapi.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "wiki"},
		Spec:       olmapi.SubscriptionSpec{Source: "example", SourceNamespace: "shop", Package: "wiki", Channel: "stable"},
	})
	_, err := olm.Resolve(context.Background(), s, olm.Options{AllOrNothing: true})
	var unsatisfiable *olm.NotSatisfiable
	if errors.As(err, &unsatisfiable) {
		for _, fact := range unsatisfiable.Facts {
			fmt.Println(fact.Message)
		}
	}
	// Output:
	// no operators found in package wiki in the catalog referenced by subscription wiki
	// subscription wiki exists
}
