package memory

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// LoadFS stores the objects of the YAML and JSON files of a file system, such as
// a must-gather, as Load does. keep chooses among them; nil means all. Files of
// other names, and documents that are not objects, are passed over. Errors name
// the file, or are those of Load; after one of a file nothing has been stored. It
// is safe for concurrent use.
func (c *Cluster) LoadFS(fsys fs.FS, keep func(*unstructured.Unstructured) bool) error {
	var all []*unstructured.Unstructured
	err := fs.WalkDir(fsys, ".", func(file string, d fs.DirEntry, err error) error {
		if ext := path.Ext(file); err != nil || d.IsDir() || ext != ".yaml" && ext != ".yml" && ext != ".json" {
			return err
		}
		data, err := fs.ReadFile(fsys, file)
		if err != nil {
			return err
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			u := &unstructured.Unstructured{}
			if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			found := []*unstructured.Unstructured{u}
			switch {
			case u.GetKind() == "" || u.GetAPIVersion() == "":
				continue
			case u.IsList():
				list, err := u.ToList()
				if err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
				found = nil
				for i := range list.Items {
					item := &list.Items[i]
					if item.GetKind() == "" { // a typed list says it once
						item.SetAPIVersion(u.GetAPIVersion())
						item.SetKind(strings.TrimSuffix(u.GetKind(), "List"))
					}
					found = append(found, item)
				}
			}
			for _, u := range found {
				if keep == nil || keep(u) {
					all = append(all, u)
				}
			}
		}
	})
	if err != nil {
		return err
	}
	return c.Load(all...)
}
