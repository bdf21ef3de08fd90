package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// defaultGlobalNamespace is the namespace whose catalogs all namespaces of
// OpenShift see.
const defaultGlobalNamespace = "openshift-marketplace"

// SnapshotOptions say where the content of catalogs comes from.
type SnapshotOptions struct {
	// Catalogs are the contents of CatalogSources, by namespace and name. A
	// visible CatalogSource without one counts as unreadable, as in OLM. One
	// without a CatalogSource counts as there, with priority 0: that is how a
	// recording of a cluster is planned against a catalog on disk. The map must
	// not change while it is in use; a Catalog may come to have other contents.
	Catalogs map[types.NamespacedName]olm.Catalog

	// GlobalNamespace is the namespace whose catalogs are visible everywhere.
	// Empty means openshift-marketplace.
	GlobalNamespace string
}

func (o *SnapshotOptions) global() string { return cmp.Or(o.GlobalNamespace, defaultGlobalNamespace) }

// ReadSnapshot reads what a resolution of a namespace looks at. A catalog that
// cannot be read is part of the snapshot, with its error; an error of ReadSnapshot
// means that the cluster could not be read. What the objects lead to (conditions,
// annotations, lists) is shared with the cluster if that is [clusterapi.Shared],
// and must not be changed.
func ReadSnapshot(ctx context.Context, r clusterapi.Reader, namespace string, o SnapshotOptions) (*olm.Snapshot, error) {
	if namespace == "" {
		return nil, errors.New("olm: no namespace is given")
	}
	c, err := readCluster(ctx, r, namespace, o)
	if err != nil {
		return nil, err
	}
	return c.snapshot(ctx, namespace)
}

// ReadSnapshots reads a snapshot of every namespace that has a Subscription or
// an installed operator, by name. Each catalog is asked for its contents once.
// The error is the reader's or the context's.
func ReadSnapshots(ctx context.Context, r clusterapi.Reader, o SnapshotOptions) ([]*olm.Snapshot, error) {
	c, err := readCluster(ctx, r, "", o)
	if err != nil {
		return nil, err
	}
	namespaces := map[string]bool{}
	for i := range c.subs {
		namespaces[c.subs[i].Namespace] = true
	}
	for i := range c.csvs {
		if !c.csvs[i].IsCopied() {
			namespaces[c.csvs[i].Namespace] = true
		}
	}
	var out []*olm.Snapshot
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		s, err := c.snapshot(ctx, namespace)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// cluster is what was read of one namespace, or of all.
type cluster struct {
	o        SnapshotOptions
	global   string
	subs     []olmapi.Subscription
	csvs     []olmapi.ClusterServiceVersion
	groups   []olmapi.OperatorGroup
	sources  []olmapi.CatalogSource
	contents map[types.NamespacedName]olm.SnapshotCatalog
}

// originals leaves out the copies that OLM makes of CSVs, of which a large
// cluster has thousands.
func originals() labels.Selector {
	requirement, err := labels.NewRequirement(olmapi.LabelCopiedFrom, selection.DoesNotExist, nil)
	if err != nil {
		panic(err) // the label is a constant
	}
	return labels.NewSelector().Add(*requirement)
}

// readAll reads objects as values that belong to the caller; what they lead to
// is shared. plural is the kind in the error.
func readAll[T any](ctx context.Context, r clusterapi.Reader, plural string, o clusterapi.ListOptions) ([]T, error) {
	shared, err := clusterapi.ReadAll[T](ctx, r, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", plural, err)
	}
	out := make([]T, len(shared))
	for i, t := range shared {
		out[i] = *t
	}
	return out, nil
}

func readCluster(ctx context.Context, r clusterapi.Reader, namespace string, o SnapshotOptions) (*cluster, error) {
	c := &cluster{o: o, global: o.global(), contents: map[types.NamespacedName]olm.SnapshotCatalog{}}
	in := clusterapi.ListOptions{Namespace: namespace}
	var err error
	c.subs, err = readAll[olmapi.Subscription](ctx, r, "subscriptions", in)
	if err != nil {
		return nil, err
	}
	originals := clusterapi.ListOptions{Namespace: namespace, Labels: originals()}
	c.csvs, err = readAll[olmapi.ClusterServiceVersion](ctx, r, "clusterserviceversions", originals)
	if err != nil {
		return nil, err
	}
	c.groups, err = readAll[olmapi.OperatorGroup](ctx, r, "operatorgroups", in)
	if err != nil {
		return nil, err
	}
	c.sources, err = readAll[olmapi.CatalogSource](ctx, r, "catalogsources", in)
	if err == nil && namespace != "" && namespace != c.global {
		var global []olmapi.CatalogSource
		global, err = readAll[olmapi.CatalogSource](ctx, r, "catalogsources", clusterapi.ListOptions{Namespace: c.global})
		c.sources = append(c.sources, global...)
	}
	if err != nil && !(errors.Is(err, clusterapi.ErrNotCollected) && len(o.Catalogs) > 0) {
		return nil, err
	}
	return c, nil
}

// within returns the objects of a namespace.
func within[T any, P interface {
	*T
	metav1.Object
}](namespace string, all []T) []T {
	var out []T
	for i := range all {
		if P(&all[i]).GetNamespace() == namespace {
			out = append(out, all[i])
		}
	}
	return out
}

func (c *cluster) snapshot(ctx context.Context, namespace string) (*olm.Snapshot, error) {
	s := &olm.Snapshot{
		Namespace: namespace, GlobalNamespace: c.global,
		Subscriptions: within(namespace, c.subs), Installed: within(namespace, c.csvs),
		OperatorGroups: within(namespace, c.groups),
	}
	priorities := map[types.NamespacedName]int{}
	for key := range c.o.Catalogs {
		priorities[key] = 0
	}
	for i := range c.sources {
		priorities[clusterapi.Key(c.sources[i].Namespace, c.sources[i].Name)] = c.sources[i].Spec.Priority
	}
	keys := slices.SortedFunc(maps.Keys(priorities), compareKeys)
	excluded := slices.ContainsFunc(s.OperatorGroups, func(g olmapi.OperatorGroup) bool {
		return g.Annotations[olmapi.AnnotationExcludeGlobal] == "true"
	})
	for _, key := range keys {
		if key.Namespace != namespace && (key.Namespace != c.global || excluded) {
			continue
		}
		catalog, err := c.read(ctx, key)
		if err != nil {
			return nil, err
		}
		catalog.Priority = priorities[key]
		s.Catalogs = append(s.Catalogs, catalog)
	}
	return s, nil
}

// read asks a catalog for its contents, once. The error is the context's.
func (c *cluster) read(ctx context.Context, key types.NamespacedName) (olm.SnapshotCatalog, error) {
	if known, ok := c.contents[key]; ok {
		return known, nil
	}
	out := olm.SnapshotCatalog{Key: key}
	if catalog := c.o.Catalogs[key]; catalog == nil {
		out.Err = fmt.Errorf("no registry client established for catalogsource %s", key)
	} else {
		out.Contents, out.Err = catalog.Contents(ctx)
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if out.Err == nil && out.Contents == nil {
			out.Err = errors.New("the catalog has no contents")
		}
	}
	c.contents[key] = out
	return out, nil
}

func compareKeys(a, b types.NamespacedName) int {
	return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
}
