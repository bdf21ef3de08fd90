package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

//go:embed catalog.yaml
var builtIn []byte

// load reads a catalog: a folder, a file, or the one that is built in.
func load(ctx context.Context, name string) (*catalog.Catalog, error) {
	o := catalog.Options{DropContent: true}
	if name == "" {
		return catalog.Read(ctx, bytes.NewReader(builtIn), "catalog.yaml", o)
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return catalog.Load(ctx, os.DirFS(name), o)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return catalog.Read(ctx, f, name, o)
}

// namespace is where the operators are, catalogKey the CatalogSource.
const namespace = "operators"

var catalogKey = types.NamespacedName{Namespace: "catalogs", Name: "catalog"}

// newSnapshot is a namespace with the Subscriptions and operators of the command
// line.
func newSnapshot(c *catalog.Catalog, o options) (*olm.Snapshot, error) {
	s := &olm.Snapshot{
		Namespace: namespace, GlobalNamespace: catalogKey.Namespace,
		OperatorGroups: []olm.OperatorGroup{{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"}}},
		Catalogs:       []olm.SnapshotCatalog{{Key: catalogKey, Contents: c.Contents}},
	}
	present := map[string]bool{}
	install := func(pkg, name string) error {
		if present[name] {
			return nil
		}
		present[name] = true
		csv, err := installed(c, pkg, name)
		s.Installed = append(s.Installed, csv)
		return err
	}
	for _, text := range o.subscribe {
		sub, err := parseSubscription(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUsage, err)
		}
		for i := range s.Subscriptions {
			if s.Subscriptions[i].Name == sub.Name {
				return nil, fmt.Errorf("%w: -subscribe %s is there twice", errUsage, sub.Name)
			}
		}
		s.Subscriptions = append(s.Subscriptions, sub)
		if name := sub.Status.InstalledCSV; name != "" {
			if err := install(sub.Spec.Package, name); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range o.installed {
		if err := install("", name); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func parseSubscription(text string) (olm.Subscription, error) {
	rest, channel, _ := strings.Cut(text, "@")
	pkg, csv, _ := strings.Cut(rest, "=")
	if pkg == "" {
		return olm.Subscription{}, fmt.Errorf("-subscribe %q names no package", text)
	}
	sub := olm.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pkg}}
	sub.Spec = olm.SubscriptionSpec{Source: catalogKey.Name, SourceNamespace: catalogKey.Namespace, Package: pkg, Channel: channel}
	sub.Status = olm.SubscriptionStatus{InstalledCSV: csv, CurrentCSV: csv}
	return sub, nil
}

// installed is an operator as the catalog's bundle of that name leaves it.
func installed(c *catalog.Catalog, pkg, name string) (olm.ClusterServiceVersion, error) {
	csv := olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	b := findBundle(c, pkg, name)
	if b == nil {
		return csv, nil
	}
	data, err := json.Marshal(map[string]any{"properties": b.Properties})
	if err != nil {
		return csv, fmt.Errorf("bundle %s: %w", name, err)
	}
	csv.Annotations = map[string]string{olm.AnnotationProperties: string(data)}
	csv.Spec.Version = b.RawVersion
	return csv, nil
}

// findBundle looks in one package, or in all, skipped operators included.
func findBundle(c *catalog.Catalog, pkg, name string) *olm.Bundle {
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
