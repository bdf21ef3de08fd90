package signature

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"github.com/clusterupdate/clusterupdate/internal/regular"
)

// FileStore reads signatures from files <algo>=<hash>/signature-<N>, N counting
// from 1 to 9. The first that is missing ends the search. Only regular files of
// at most MaxSignature bytes are read. It is safe for concurrent use if its FS
// is.
type FileStore struct {
	// FS holds the files.
	FS fs.FS
	// Name names that place for people: a directory, or any text.
	Name string
	// MaxSignatures and MaxSignature are limits as in [HTTPOptions].
	MaxSignatures int
	MaxSignature  int
}

// String describes the store.
func (s *FileStore) String() string { return "file://" + s.Name }

// Candidates implements [Store].
func (s *FileStore) Candidates(ctx context.Context, digest string) iter.Seq2[Candidate, error] {
	limit := orDefault(s.MaxSignature, largestSignature)
	return probe{
		store: s.String(),
		last:  orDefault(s.MaxSignatures, lastSignature),
		read: func(_ context.Context, name string) (string, []byte, error) {
			location := s.String() + "/" + name
			data, err := readSignature(s.FS, name, limit)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				err = fmt.Errorf("unable to retrieve signature from %s: %w", location, ErrNotFound)
			case err != nil:
				err = fmt.Errorf("unable to retrieve signature from %s: %w", location, err)
			}
			return location, data, err
		},
	}.candidates(ctx, digest)
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
