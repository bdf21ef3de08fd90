package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/manifest/image"
	"github.com/clusterupdate/clusterupdate/signature/sigstore"
)

// Store is registries as an image.Store, and as a sigstore.Store. It is safe for
// concurrent use. Make one with [NewStore].
type Store struct {
	keychain  authn.Keychain
	mirrors   []name.Repository // instead of the pull specs'
	plain     bool
	retries   int
	transport http.RoundTripper
	own       *http.Transport // may be nil

	mu       sync.Mutex
	sessions map[string]*session // by repository, once asked
}

var (
	_ image.Store    = (*Store)(nil)
	_ sigstore.Store = (*Store)(nil)
)

// maxSessions is how many repositories a store stays logged in to.
const maxSessions = 64

// StatusError is an answer of a registry other than success. One of status 404 is
// recognised as [fs.ErrNotExist] by errors.Is. It is plain data: safe for
// concurrent use.
type StatusError struct {
	// Status is the code of the answer, such as 401.
	Status int
	// Message is what the registry says of it, bounded.
	Message string

	after time.Duration // wait that it asks for; 0 if it does not
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("response status %d: %s", e.Status, e.Message)
}

// Is reports that a missing blob does not exist.
func (e *StatusError) Is(target error) bool {
	return target == fs.ErrNotExist && e.Status == http.StatusNotFound
}

// Manifest implements image.Store: it opens the manifest with a digest or tag. Errors are
// [*StatusError] and those of the connection; with several mirrors, those of all.
func (s *Store) Manifest(ctx context.Context, repository, reference string) (io.ReadCloser, error) {
	return s.open(ctx, repository, request{what: "manifests", reference: reference, accept: accept})
}

// Blob implements image.Store. The errors are those of Manifest.
func (s *Store) Blob(ctx context.Context, repository, digest string) (io.ReadCloser, error) {
	r := request{what: "blobs", reference: digest}
	f, err := s.open(ctx, repository, r)
	if err != nil || s.retries == 0 {
		return f, err
	}
	return &body{ctx: ctx, store: s, repository: repository, request: r, from: f}, nil
}

// Referrers opens the index of the manifests that refer to the image with a digest,
// such as signatures. The errors are those of Manifest.
func (s *Store) Referrers(ctx context.Context, repository, digest string) (io.ReadCloser, error) {
	return s.open(ctx, repository, request{what: "referrers", reference: digest, accept: oci.TypeIndex})
}

// CloseIdleConnections closes connections that wait for a next request. Those of
// a Transport of the caller's are left to the caller.
func (s *Store) CloseIdleConnections() {
	if s.own != nil {
		s.own.CloseIdleConnections()
	}
}

// open sends a request to the mirrors, one after another, and again to those that failed
// for the moment.
func (s *Store) open(ctx context.Context, repository string, r request) (io.ReadCloser, error) {
	targets := s.mirrors
	if len(targets) == 0 {
		target, err := s.parse(repository)
		if err != nil {
			return nil, err
		}
		targets = []name.Repository{target}
	}
	var lasting []error
	for try := 0; ; try++ {
		var again []name.Repository
		var failed []error
		wait := maxWait + 1
		for _, target := range targets {
			f, err := s.session(target).get(ctx, r)
			if err == nil {
				return f, nil
			}
			named := fmt.Errorf("%s@%s: %w", target.Name(), r.reference, err)
			if after, ok := retryable(err, try); ok && ctx.Err() == nil {
				again = append(again, target)
				failed = append(failed, named)
				wait = min(wait, after)
			} else {
				lasting = append(lasting, named)
			}
		}
		if len(again) == 0 || try == s.retries || wait > maxWait {
			return nil, together(append(lasting, failed...))
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
		targets = again
	}
}

// together joins errors. That something does not exist is so if no mirror has it.
func together(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	var missing, others []error
	for _, err := range errs {
		if errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, err)
		} else {
			others = append(others, err)
		}
	}
	if len(missing) == 0 || len(others) == 0 {
		return errors.Join(errs...)
	}
	return fmt.Errorf("%w\n%v", errors.Join(others...), errors.Join(missing...))
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
