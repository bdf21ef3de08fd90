package registry

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/clusterupdate/clusterupdate/manifest/image"
)

// Store is registries as an image.Store. It is safe for concurrent use. Make one
// with [NewStore].
type Store struct {
	keychain   authn.Keychain
	repository *name.Repository // instead of that of pull specs; may be nil
	plain      bool
	transport  http.RoundTripper
	own        *http.Transport // may be nil

	mu       sync.Mutex
	sessions map[string]*session // by repository, of those that have been asked
}

var _ image.Store = (*Store)(nil)

// maxSessions is how many repositories a store stays logged in to.
const maxSessions = 64

// StatusError is an answer of a registry that is none of success. One of status
// 404 is recognised as [fs.ErrNotExist] by errors.Is. It is plain data: safe for
// concurrent use.
type StatusError struct {
	// Status is the code of the answer, such as 401.
	Status int
	// Message is what the registry says of it, bounded.
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("response status %d: %s", e.Status, e.Message)
}

// Is says that a missing blob does not exist.
func (e *StatusError) Is(target error) bool {
	return target == fs.ErrNotExist && e.Status == http.StatusNotFound
}

// Manifest implements image.Store. Errors are [*StatusError] and those of the
// connection.
func (s *Store) Manifest(ctx context.Context, repository, digest string) (io.ReadCloser, error) {
	return s.get(ctx, repository, "manifests", digest)
}

// Blob implements image.Store. The errors are those of Manifest.
func (s *Store) Blob(ctx context.Context, repository, digest string) (io.ReadCloser, error) {
	return s.get(ctx, repository, "blobs", digest)
}

// CloseIdleConnections closes connections that wait for a next request. Those of
// a Transport of the caller's are left to the caller.
func (s *Store) CloseIdleConnections() {
	if s.own != nil {
		s.own.CloseIdleConnections()
	}
}

func (s *Store) get(ctx context.Context, repository, what, digest string) (io.ReadCloser, error) {
	r, err := s.target(repository)
	if err != nil {
		return nil, err
	}
	body, err := s.session(r).get(ctx, what, digest)
	if err != nil {
		return nil, fmt.Errorf("%s@%s: %w", r.Name(), digest, err)
	}
	return body, nil
}

// target returns the repository to ask for images of another.
func (s *Store) target(repository string) (name.Repository, error) {
	if s.repository != nil {
		return *s.repository, nil
	}
	return s.parse(repository)
}

func (s *Store) session(r name.Repository) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.sessions[r.Name()]
	if one == nil {
		if len(s.sessions) == maxSessions {
			clear(s.sessions) // they log in again
		}
		one = &session{store: s, repository: r, turn: make(chan struct{}, 1)}
		s.sessions[r.Name()] = one
	}
	return one
}
