package dump

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// ClustersError is the error for a tree with recordings of several clusters. It is
// plain data.
type ClustersError struct {
	// Roots are the folders of each cluster, by the clusterID of its ClusterVersion,
	// or else by the UID of its namespace kube-system. Each can be [Options].Root.
	Roots map[string][]string
}

// Error names each cluster and its folders.
func (e *ClustersError) Error() string {
	var clusters []string
	for _, id := range slices.Sorted(maps.Keys(e.Roots)) {
		clusters = append(clusters, fmt.Sprintf("cluster %s in %s", bounded.Quote(id), bounded.Join(e.Roots[id], ", ", 1<<10)))
	}
	return fmt.Sprintf("recordings of %d clusters (open the folder of one, or set Options.Root): %s", len(clusters), bounded.Join(clusters, "; ", 4<<10))
}

// oneCluster returns an error if the objects are those of several clusters.
func (c *collection) oneCluster() error {
	ids, uids := make(map[string][]string), make(map[string][]string)
	add := func(to map[string][]string, id, root string) {
		if id != "" && !slices.Contains(to[id], root) {
			to[id] = append(to[id], root)
		}
	}
	for _, f := range c.files {
		for _, o := range f.objects {
			switch gk := o.gvk.GroupKind(); {
			case gk == schema.GroupKind{Group: configGroup, Kind: "ClusterVersion"}:
				id, _ := textOf(field(o.text, "spec", "clusterID"))
				add(ids, id, f.place.root)
			case gk == namespaceKind && o.key.Name == "kube-system":
				add(uids, o.uid, f.place.root)
			}
		}
	}
	for _, found := range []map[string][]string{ids, uids} {
		if len(found) < 2 {
			continue
		}
		for _, roots := range found {
			slices.Sort(roots)
		}
		return &ClustersError{Roots: found}
	}
	return nil
}

// only leaves out what is not of the recordings at or below a folder.
func (c *collection) only(root string) error {
	root = path.Clean(root)
	inside := func(name string) bool {
		_, ok := below(root, name)
		return ok
	}
	c.files = slices.DeleteFunc(c.files, func(f *file) bool {
		_, above := below(f.place.root, root)
		return !inside(f.place.root) && !(f.place.role == roleTime && above)
	})
	maps.DeleteFunc(c.roots, func(name string, _ bool) bool { return !inside(name) })
	maps.DeleteFunc(c.incomplete, func(name string, _ bool) bool { return name != "." && !inside(name) })
	c.ignored = slices.DeleteFunc(c.ignored, func(p Problem) bool { return p.Path != "" && !inside(p.Path) })
	clear(c.spaces)
	found := false
	for _, f := range c.files {
		found = found || f.place.role.holdsObjects()
		if rel, ok := below(f.place.root, f.path); ok {
			c.noteSpace(rel)
		}
	}
	if !found {
		return fmt.Errorf("no recording at %s", bounded.Quote(strings.Clone(root)))
	}
	return nil
}
