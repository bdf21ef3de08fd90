// Package trial makes namespaces to try operator catalogs with, and says in lines
// what comes of them.
package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/internal/program"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

// Open opens a catalog to answer from. Errors are those of [catalog.Open], and a
// catalog whose problems leave no package.
func Open(ctx context.Context, place string, o catalog.Options) (*catalog.Catalog, error) {
	c, err := catalog.Open(ctx, place, o)
	if err != nil {
		return nil, err
	}
	if problems := c.Problems(); len(c.Packages()) == 0 && len(problems) > 0 {
		return nil, fmt.Errorf("no package can be read: %w", &problems[0])
	}
	return c, nil
}

// Sources opens catalogs that stand for CatalogSources, each written
// NAMESPACE/NAME=FILE. Errors name the flag -source, and are of usage or of
// [Open].
func Sources(ctx context.Context, texts []string, o catalog.Options) (map[types.NamespacedName]olm.Catalog, error) {
	catalogs := map[types.NamespacedName]olm.Catalog{}
	for _, text := range texts {
		source, file, _ := strings.Cut(text, "=")
		ns, name, _ := strings.Cut(source, "/")
		if ns == "" || name == "" || file == "" {
			return nil, program.Usagef("-source %q is not NAMESPACE/NAME=FILE", text)
		}
		c, err := Open(ctx, file, o)
		if err != nil {
			return nil, fmt.Errorf("-source: %w", err)
		}
		catalogs[types.NamespacedName{Namespace: ns, Name: name}] = c.Contents
	}
	return catalogs, nil
}

// Namespace returns one to try a catalog with. A subscription is written
// PACKAGE[=INSTALLED][@CHANNEL]: without INSTALLED nothing is installed yet,
// without CHANNEL any will do. installed names operators without a Subscription.
// Installed operators have the properties that the catalog gives them; one that
// it does not know provides and needs nothing. Errors name a text that is not a
// subscription, or is there twice.
func Namespace(c *catalog.Catalog, subscriptions, installed []string) (*olm.Snapshot, error) {
	const ns = "operators"
	source := types.NamespacedName{Namespace: "catalogs", Name: "catalog"}
	s := &olm.Snapshot{
		Namespace: ns, GlobalNamespace: source.Namespace,
		OperatorGroups: []olmapi.OperatorGroup{{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "group"}}},
		Catalogs:       []olm.SnapshotCatalog{{Key: source, Contents: c.Contents}},
	}
	install := func(pkg, name string) error {
		if slices.ContainsFunc(s.Installed, func(csv olmapi.ClusterServiceVersion) bool { return csv.Name == name }) {
			return nil
		}
		csv := olmapi.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		if b := bundle(c, pkg, name); b != nil {
			data, err := json.Marshal(map[string]any{"properties": b.Properties})
			if err != nil {
				return fmt.Errorf("bundle %s: %w", name, err)
			}
			csv.Annotations = map[string]string{olmapi.AnnotationProperties: string(data)}
			csv.Spec.Version = b.RawVersion
		}
		s.Installed = append(s.Installed, csv)
		return nil
	}
	for _, text := range subscriptions {
		rest, channel, _ := strings.Cut(text, "@")
		pkg, csv, _ := strings.Cut(rest, "=")
		if pkg == "" || strings.Contains(csv, "=") || strings.ContainsAny(channel, "=@") {
			return nil, fmt.Errorf("%q is not PACKAGE[=INSTALLED][@CHANNEL]", text)
		}
		if slices.ContainsFunc(s.Subscriptions, func(sub olmapi.Subscription) bool { return sub.Name == pkg }) {
			return nil, fmt.Errorf("%s is there twice", pkg)
		}
		sub := olmapi.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: pkg}}
		sub.Spec = olmapi.SubscriptionSpec{Source: source.Name, SourceNamespace: source.Namespace, Package: pkg, Channel: channel}
		sub.Status = olmapi.SubscriptionStatus{InstalledCSV: csv, CurrentCSV: csv}
		s.Subscriptions = append(s.Subscriptions, sub)
		if csv != "" {
			if err := install(pkg, csv); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range installed {
		if err := install("", name); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// bundle looks in one package, or in all, skipped operators included.
func bundle(c *catalog.Catalog, pkg, name string) *olm.Bundle {
	for _, p := range c.Packages() {
		if pkg != "" && p.Name != pkg {
			continue
		}
		for _, ch := range p.Channels {
			if e := ch.Entry(name); e != nil && e.Bundle != nil {
				return e.Bundle
			}
		}
	}
	return nil
}
