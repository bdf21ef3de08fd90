package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/redact"
)

const (
	// maxErrorBody bounds, in bytes, what is read of an answer that is none of
	// success, and maxMessage what errors say of it.
	maxErrorBody = 32 << 10
	maxMessage   = 1 << 10
)

// accept are the types of indexes and manifests.
var accept = strings.Join([]string{
	"application/vnd.oci.image.index.v1+json",
	"application/vnd.oci.image.manifest.v1+json",
	"application/vnd.docker.distribution.manifest.list.v2+json",
	"application/vnd.docker.distribution.manifest.v2+json",
}, ", ")

// session asks one repository. Its requests begin one after another, since the
// transport keeps what it has been authorized by; what they return is read at the
// same time.
type session struct {
	store      *Store
	repository name.Repository
	turn       chan struct{}
	client     *http.Client // nil until it has logged in
}

func (s *session) get(ctx context.Context, what, digest string) (io.ReadCloser, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := s.login(ctx); err != nil {
		return nil, plainError(err)
	}
	u := url.URL{Scheme: s.repository.Scheme(), Host: s.repository.RegistryStr(), Path: "/v2/" + s.repository.RepositoryStr() + "/" + what + "/" + digest}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if what == "manifests" {
		req.Header.Set("Accept", accept)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, plainError(err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		s.client = nil // the credentials may be others by now
	}
	begin := *resp // of which no more is read than an error needs
	begin.Body = io.NopCloser(io.LimitReader(resp.Body, maxErrorBody))
	return nil, plainError(transport.CheckError(&begin, http.StatusOK))
}

// login finds out how the registry wants to be asked, and asks for a token if it
// wants one.
func (s *session) login(ctx context.Context) error {
	if s.client != nil {
		return nil
	}
	auth, err := authn.Resolve(ctx, s.store.keychain, s.repository)
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	t, err := transport.NewWithContext(ctx, s.repository.Registry, auth, s.store.transport, []string{s.repository.Scope(transport.PullScope)})
	if err != nil {
		return err
	}
	s.client = &http.Client{Transport: t, CheckRedirect: checkRedirect}
	return nil
}

// plainError makes an error of what a client returns, without URLs, whose queries
// can hold secrets, and with bounded texts.
func plainError(err error) error {
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		var texts []string
		for _, d := range answer.Errors {
			texts = append(texts, strings.TrimSpace(string(d.Code)+" "+d.Message))
		}
		message := strings.Join(texts, "; ")
		if message == "" {
			message = http.StatusText(answer.StatusCode)
		}
		return &StatusError{Status: answer.StatusCode, Message: bounded.Text(message, maxMessage)}
	}
	if u, ok := err.(*url.Error); ok { // one of two, by https and http, stays as it is
		err = u.Err
	}
	text, _, _ := strings.Cut(err.Error(), "\n") // the answer of a token service may follow
	if text = redact.Text(text); text != err.Error() {
		return errors.New(bounded.Text(text, maxMessage))
	}
	return err
}
