package signature

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"

	"github.com/clusterupdate/clusterupdate/internal/regular"
)

// FileStore reads signatures from files <algo>=<hash>/signature-<N>, N counting
// from 1 to 9. The first that is missing ends the search. Only regular files of
// at most MaxSignature bytes are read. It is safe for concurrent use if its FS
// is.
type FileStore struct {
	// FS holds the files.
	FS fs.FS
	// Name tells people where that is: a directory, or any other text.
	Name string
	// MaxSignatures and MaxSignature are limits as in [HTTPOptions].
	MaxSignatures int
	MaxSignature  int
}

// DirStore returns a store of the files in a directory.
func DirStore(dir string) *FileStore { return &FileStore{FS: os.DirFS(dir), Name: dir} }

// String describes the store.
func (s *FileStore) String() string { return "file://" + s.Name }

// Candidates implements [Store].
func (s *FileStore) Candidates(ctx context.Context, digest string) iter.Seq2[Candidate, error] {
	return func(yield func(Candidate, error) bool) {
		own := Candidate{Store: s.String()}
		prefix, err := DigestKey(digest, "=")
		if err != nil {
			yield(own, &StoreError{Store: own.Store, Err: err})
			return
		}
		last := orDefault(s.MaxSignatures, MaxSignatures)
		for n := 1; n <= last; n++ {
			if err := ctx.Err(); err != nil {
				yield(own, &StoreError{Store: own.Store, Err: err})
				return
			}
			name := path.Join(prefix, fmt.Sprintf("signature-%d", n))
			c := Candidate{Store: own.Store, Location: own.Store + "/" + name, Number: n}
			data, err := readSignature(s.FS, name, orDefault(s.MaxSignature, MaxSignature))
			switch {
			case errors.Is(err, fs.ErrNotExist):
				yield(c, fmt.Errorf("unable to retrieve signature from %s: %w", c.Location, ErrNotFound))
				return
			case err != nil:
				if !yield(c, fmt.Errorf("unable to retrieve signature from %s: %w", c.Location, err)) {
					return
				}
			case len(data) > 0:
				c.Signature = data
				if !yield(c, nil) {
					return
				}
			}
		}
		yield(own, fmt.Errorf("%s has been asked for %d signatures: %w", own.Store, last, ErrNotFound))
	}
}

// readSignature reads one file.
func readSignature(fsys fs.FS, name string, limit int) ([]byte, error) {
	f, err := regular.Open(fsys, name)
	if errors.Is(err, regular.ErrNotRegular) {
		return nil, regular.ErrNotRegular // the store's error names the file
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(data) > limit {
		return nil, errTooLarge(limit)
	}
	return data, nil
}
