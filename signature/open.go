package signature

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// OpenStore opens a store by its place: a URL with scheme http or https, or a
// directory, with or without file:// before it. A directory is laid out as [FileStore]
// says, or is what oc adm release mirror or oc-mirror has written: signatures are read
// from signature-*.json, config/signature-*.json or working-dir/signatures there. A
// directory that is not there and another scheme are errors, and so is what
// [NewHTTPStore] refuses.
func OpenStore(place string, o HTTPOptions) (Store, error) {
	scheme, dir, ok := strings.Cut(place, "://")
	switch scheme = strings.ToLower(scheme); {
	case !ok:
		dir = place
	case scheme == "http" || scheme == "https":
		return NewHTTPStore(place, o)
	case scheme != "file":
		return nil, fmt.Errorf("store %s: a store is a URL with scheme http, https or file, or a directory", scheme+"://…")
	}
	info, err := os.Stat(dir)
	if p := new(fs.PathError); errors.As(err, &p) {
		return nil, fmt.Errorf("store %s: %w", dir, p.Err)
	} else if err != nil {
		return nil, fmt.Errorf("store %s: %w", dir, err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("store %s is not a directory", dir)
	}
	if files := os.DirFS(dir); isMirror(files) {
		return &mirrorStore{files, dir}, nil
	}
	return &FileStore{FS: os.DirFS(dir), Name: dir}, nil
}

// ReadKeyring reads a keyring from a file, or a pipe, and names it like the file. Errors
// are those of reading, and of [ParseKeyring] with the file's path.
func ReadKeyring(file string) (*Keyring, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	data, err := io.ReadAll(io.LimitReader(f, maxKeyring+1))
	if err != nil {
		return nil, err
	}
	ring, err := ParseKeyring(filepath.Base(file), data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return ring, nil
}
