package signature

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
)

// mirrorStore reads signatures from the files that mirror tools leave with the images:
//
//   - signature-<algo>-<start of hash>.json, there or in config/, ConfigMaps of oc adm
//     release mirror and oc-mirror,
//   - working-dir/signatures/<tag>-<algo>-<hash>, of oc-mirror.
type mirrorStore struct {
	fsys fs.FS
	name string
}

// mirrorConfigMaps are the folders of ConfigMaps.
var mirrorConfigMaps = []string{".", "config"}

const (
	mirrorSignatures = "working-dir/signatures"

	// The limits are those of the stores of files and ConfigMaps.
	maxMirrored          = 64
	maxMirroredSignature = 50 << 10
	maxMirroredConfigMap = 2 << 20
)

// isMirror reports whether mirror tools have left signatures in a folder.
func isMirror(fsys fs.FS) bool {
	for _, dir := range mirrorConfigMaps {
		maps, _ := fs.Glob(fsys, path.Join(dir, "signature-*.json"))
		if len(maps) > 0 {
			return true
		}
	}
	_, err := fs.Stat(fsys, mirrorSignatures)
	return err == nil
}

// String describes the store.
func (s *mirrorStore) String() string { return "file://" + s.name }

// Candidates implements [Store].
func (s *mirrorStore) Candidates(ctx context.Context, digest string) iter.Seq2[Candidate, error] {
	return func(yield func(Candidate, error) bool) {
		own := Candidate{Store: s.String()}
		key, err := DigestKey(digest, "-")
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			yield(own, &StoreError{Store: own.Store, Err: err})
			return
		}
		n := 0
		for found, err := range s.signatures(key) {
			n++
			c := Candidate{Store: own.Store, Location: own.Store + "/" + found.place, Number: n, Signature: found.signature}
			if err != nil {
				err = fmt.Errorf("unable to retrieve signature from %s: %w", c.Location, err)
			}
			if n > maxMirrored {
				err = fmt.Errorf("%s holds more signatures for %s than the limit of %d", own.Store, digest, maxMirrored)
				c = own
			}
			switch {
			case ctx.Err() != nil:
				yield(own, &StoreError{Store: own.Store, Err: ctx.Err()})
				return
			case err == nil && len(c.Signature) == 0:
			case !yield(c, err) || n > maxMirrored:
				return
			}
		}
		yield(own, fmt.Errorf("%s: %w", own.Store, ErrNotFound))
	}
}

// mirrored is a signature in a file of a mirror.
type mirrored struct {
	place     string // of the file, and key in it
	signature []byte
}

// signatures yields the signatures of the digest with a key, such as sha256-<hash>.
func (s *mirrorStore) signatures(key string) iter.Seq2[mirrored, error] {
	return func(yield func(mirrored, error) bool) {
		for _, place := range s.configMaps(key) {
			data, err := s.configMap(place)
			if err != nil && !yield(mirrored{place: place}, err) {
				return
			}
			for _, k := range MapKeys(data, key) {
				if !yield(mirrored{place + " key " + k, data[k]}, nil) {
					return
				}
			}
		}
		for _, name := range s.names(mirrorSignatures) {
			if name != key && !strings.HasSuffix(name, "-"+key) {
				continue
			}
			place := path.Join(mirrorSignatures, name)
			data, err := readSignature(s.fsys, place, maxMirroredSignature)
			if !yield(mirrored{place, data}, err) {
				return
			}
		}
	}
}

// configMaps returns the files that may have signatures of the digest with a key.
func (s *mirrorStore) configMaps(key string) []string {
	var places []string
	for _, dir := range mirrorConfigMaps {
		for _, name := range s.names(dir) {
			begin, ok := strings.CutPrefix(strings.TrimSuffix(name, ".json"), "signature-")
			if ok && begin != "" && strings.HasPrefix(key, begin) {
				places = append(places, path.Join(dir, name))
			}
		}
	}
	return places
}

// names returns the files in a folder; none if it is not there.
func (s *mirrorStore) names(dir string) []string {
	entries, _ := fs.ReadDir(s.fsys, dir) // what cannot be read holds nothing
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// configMap returns the binary data of a ConfigMap in a file.
func (s *mirrorStore) configMap(name string) (map[string][]byte, error) {
	text, err := readSignature(s.fsys, name, maxMirroredConfigMap)
	if err != nil {
		return nil, err
	}
	var cm struct {
		Kind       string            `json:"kind"`
		BinaryData map[string][]byte `json:"binaryData"`
	}
	if err := json.Unmarshal(text, &cm); err != nil {
		return nil, err
	}
	if cm.Kind != "ConfigMap" {
		return nil, errors.New("no ConfigMap")
	}
	return cm.BinaryData, nil
}

// MapKeys returns the keys <prefix>-<decimal number> of a ConfigMap's data, in the order of
// their numbers, which may have zeros in front; nil for none. For the signatures of a
// digest, the prefix is what [DigestKey] joins by a hyphen.
func MapKeys[T any](data map[string]T, prefix string) []string {
	number := func(key string) string { return strings.TrimLeft(key[len(prefix)+1:], "0") }
	var keys []string
	for key := range data {
		digits, ok := strings.CutPrefix(key, prefix+"-")
		if ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		x, y := number(a), number(b)
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y), cmp.Compare(a, b))
	})
	return keys
}
