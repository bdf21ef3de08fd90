package sigstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// OpenSource opens a source by its place: docker://host/path for a repository in
// a registry, or a directory with an OCI image layout. A directory that is not
// there and another scheme are errors, and so is what [NewRegistry] refuses.
func OpenSource(place string, o RegistryOptions) (Source, error) {
	if repository, ok := strings.CutPrefix(place, "docker://"); ok {
		return NewRegistry(repository, o)
	}
	if strings.Contains(place, "://") {
		return nil, fmt.Errorf("store %s: cosign signatures are read from a repository, docker://host/path, or from a directory with an OCI image layout", place)
	}
	if _, err := os.Stat(place); err != nil {
		if p := new(fs.PathError); errors.As(err, &p) {
			err = p.Err
		}
		return nil, fmt.Errorf("store %s: %w", place, err)
	}
	return DirLayout(place), nil
}
