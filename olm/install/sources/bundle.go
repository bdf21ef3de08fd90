package sources

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/yamljson"
	"github.com/clusterupdate/clusterupdate/olm/internal/objects"
)

// The labels of a bundle's image, which are the annotations of its metadata, too.
const (
	labelMediaType = "operators.operatorframework.io.bundle.mediatype.v1"
	labelManifests = "operators.operatorframework.io.bundle.manifests.v1"
	labelMetadata  = "operators.operatorframework.io.bundle.metadata.v1"
)

const (
	mediaType       = "registry+v1"
	annotationsFile = "annotations.yaml"
	kindCSV         = "ClusterServiceVersion"
)

// layout is where a bundle has its parts, as directories of its image.
type layout struct {
	manifests, metadata string
	mediaType           string // empty if only annotations have it
}

// layoutOf reads the labels of an image.
func layoutOf(labels map[string]string) (layout, error) {
	l := layout{mediaType: labels[labelMediaType]}
	var manifestsErr, metadataErr error
	l.manifests, manifestsErr = directory(cmp.Or(labels[labelManifests], "manifests/"))
	l.metadata, metadataErr = directory(cmp.Or(labels[labelMetadata], "metadata/"))
	if manifestsErr != nil {
		return l, fmt.Errorf("label %s: %w", labelManifests, manifestsErr)
	}
	if metadataErr != nil {
		return l, fmt.Errorf("label %s: %w", labelMetadata, metadataErr)
	}
	return l, nil
}

// readBundle reads the objects of the bundle of an operator out of the files of its image.
// l is what labels say, which is compared with the annotations. most is how many files
// there may be. size is the total of the files, in bytes. The error is a
// [*limit.LimitError], or reports which file is not as it has to be.
func readBundle(fsys fs.FS, l layout, name string, most int) (all []*unstructured.Unstructured, size int64, err error) {
	if err := checkAnnotations(fsys, l); err != nil {
		return nil, 0, err
	}
	entries, err := fs.ReadDir(fsys, l.manifests)
	if err != nil {
		return nil, 0, err
	}
	files := limit.Limit{Max: int64(most), Name: "MaxFiles", What: "files of a bundle"}
	if err := files.Check(int64(len(entries))); err != nil {
		return nil, 0, err
	}
	heap := limit.Meter{Budget: limit.Budget{Bytes: limit.Limit{Max: limit.Heap, What: "bytes of memory for a bundle"}}}
	for _, entry := range entries {
		file := path.Join(l.manifests, entry.Name())
		data, err := fs.ReadFile(fsys, file)
		if err != nil {
			return nil, 0, err
		}
		size += int64(len(data))
		u, err := readObject(data, &heap)
		if errors.As(err, new(*limit.LimitError)) {
			return nil, 0, fmt.Errorf("%s: %w", file, err)
		}
		if err == nil {
			all = append(all, u)
		} else if slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(file)) {
			return nil, 0, fmt.Errorf("%s: %s", file, bounded.Text(err.Error(), maxMessage))
		}
	}
	return all, size, checkOperator(all, name)
}

// readObject reads the first document of a file. meter counts the memory that it takes.
func readObject(data []byte, meter *limit.Meter) (*unstructured.Unstructured, error) {
	document, err := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))).Read()
	if err == io.EOF {
		return nil, errors.New("holds no object")
	}
	if err != nil {
		return nil, err
	}
	measured, err := yamljson.Measure(document, limit.Heap)
	if spent := meter.Spend(limit.Usage{Bytes: measured.Heap}); spent != nil {
		return nil, spent
	}
	if err != nil {
		return nil, err
	}
	u, err := objects.Decode(document)
	if err == nil && (u.GetAPIVersion() == "" || u.GetKind() == "") {
		err = errors.New("holds no object with apiVersion and kind")
	}
	return u, err
}

// checkAnnotations compares what the annotations of a bundle say with its labels, and
// refuses another format than registry+v1. A bundle with labels needs no annotations.
func checkAnnotations(fsys fs.FS, l layout) error {
	file := path.Join(l.metadata, annotationsFile)
	var read struct {
		Annotations map[string]string `json:"annotations"`
	}
	data, err := fs.ReadFile(fsys, file)
	if err == nil {
		data, err = objects.ToJSON(data)
		if err == nil {
			err = json.Unmarshal(data, &read)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	format := cmp.Or(l.mediaType, read.Annotations[labelMediaType])
	if format != mediaType {
		return fmt.Errorf("the bundle has format %s, and not %s", bounded.Quote(format), mediaType)
	}
	manifests := read.Annotations[labelManifests]
	metadata := read.Annotations[labelMetadata]
	for _, have := range []struct{ annotation, value, label string }{
		{labelMediaType, read.Annotations[labelMediaType], format},
		{labelManifests, clean(manifests), l.manifests},
		{labelMetadata, clean(metadata), l.metadata},
	} {
		if have.value != "" && have.value != have.label {
			return fmt.Errorf("%s: annotation %s is %s, but the image has %s",
				file, have.annotation, bounded.Quote(have.value), bounded.Quote(have.label))
		}
	}
	return nil
}

// clean returns a directory as one of package fs, "" for none.
func clean(label string) string {
	if label == "" {
		return ""
	}
	dir, err := directory(label)
	if err != nil {
		return label
	}
	return dir
}

// checkOperator refuses objects unless they contain exactly one ClusterServiceVersion,
// with this name.
func checkOperator(all []*unstructured.Unstructured, name string) error {
	var found []string
	for _, u := range all {
		if u.GetKind() == kindCSV {
			found = append(found, bounded.Quote(u.GetName()))
		}
	}
	if len(found) != 1 {
		return fmt.Errorf("the bundle has %d ClusterServiceVersions, and not one", len(found))
	}
	if found[0] != bounded.Quote(name) {
		return fmt.Errorf("the bundle is that of %s, and not of %s", found[0], bounded.Quote(name))
	}
	return nil
}
