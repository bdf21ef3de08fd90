package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/install"
)

// plan says what becomes of the operators of a cluster that lies on disk.
func plan(ctx context.Context, o options) error {
	cluster := memory.NewOpenShift(memory.Options{})
	if err := loadObjects(cluster, o.cluster); err != nil {
		return err
	}
	catalogs := map[types.NamespacedName]olm.Catalog{}
	for _, text := range o.sources {
		source, file, _ := strings.Cut(text, "=")
		ns, name, _ := strings.Cut(source, "/")
		if ns == "" || name == "" || file == "" {
			return fmt.Errorf("%w: -source %q is not NAMESPACE/NAME=FILE", errUsage, text)
		}
		contents, err := load(ctx, file)
		if err != nil {
			return err
		}
		catalogs[types.NamespacedName{Namespace: ns, Name: name}] = olm.Loaded(contents.Contents)
	}
	snapshots, err := install.ReadSnapshots(ctx, cluster, install.SnapshotOptions{Catalogs: catalogs})
	if err != nil {
		return err
	}
	// Only what is subscribed to needs a catalog at hand.
	p, err := olm.Plan(ctx, snapshots, olm.PlanOptions{Resolve: olm.Options{TolerateUnusedCatalogs: true}, Target: o.openshift})
	if err != nil {
		return err
	}
	complete := true
	for i := range p.Namespaces {
		complete = printNamespace(o, &p.Namespaces[i]) && complete
	}
	if p.Target != nil {
		printTarget(o, p.Target)
		complete = complete && p.Target.Generations >= 0
	}
	if !complete {
		return errNoAnswer
	}
	return nil
}

// printNamespace reports whether there is a plan that holds nothing back.
func printNamespace(o options, n *olm.NamespacePlan) bool {
	fmt.Fprintf(o.stdout, "Namespace %s:\n", n.Namespace)
	for _, c := range n.Changes {
		fmt.Fprintf(o.stdout, "  %s\n", c)
	}
	if n.Err != nil {
		fmt.Fprintf(o.stdout, "  then: %v\n", n.Err)
		return false
	}
	if len(n.Changes) == 0 {
		fmt.Fprintln(o.stdout, "  nothing changes")
	}
	last := n.Generations[len(n.Generations)-1]
	printRemarks(o, last)
	return len(last.HeldBack) == 0
}

// loadObjects stores all objects of the YAML and JSON files below a folder.
// Files that hold none are passed over.
func loadObjects(cluster *memory.Cluster, dir string) error {
	return filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch filepath.Ext(file) {
		case ".yaml", ".yml", ".json":
		default:
			return nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			var u unstructured.Unstructured
			if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if u.GetKind() == "" || u.GetAPIVersion() == "" || !relevant(&u) {
				continue
			}
			if err := cluster.Load(&u); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	})
}

// relevant leaves out what has nothing to do with operators. Lists may hold
// anything.
func relevant(u *unstructured.Unstructured) bool {
	return u.IsList() || u.GroupVersionKind().Group == olm.Group
}
