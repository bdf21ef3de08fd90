package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/httpclient"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/redact"
)

const (
	// maxErrorBody bounds, in bytes, what is read of an answer other than success,
	// and maxMessage what errors quote of it.
	maxErrorBody = 32 << 10
	maxMessage   = 1 << 10
)

// accept are the types of indexes and manifests.
var accept = strings.Join([]string{oci.TypeIndex, oci.TypeManifest, oci.TypeDockerIndex, oci.TypeDockerManifest}, ", ")

// request is what a repository is asked for.
type request struct {
	what      string // manifests, blobs or referrers
	reference string // digest or tag
	accept    string // media types; empty: any
	offset    int64  // in bytes, of a blob that is read in part
}

// session asks one repository. Its requests start one after another, since the
// transport keeps what it has been authorized by; what they return is read at the
// same time.
type session struct {
	store      *Store
	repository name.Repository
	turn       chan struct{}
	client     *http.Client        // nil until it is known how the registry wants to be asked
	asked      bool                // for a login
	login      authn.Authenticator // nil until the registry has asked for it
}

func (s *session) get(ctx context.Context, r request) (io.ReadCloser, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	before := s.asked
	resp, err := s.send(ctx, r)
	if err == nil && resp.StatusCode == http.StatusUnauthorized && s.asked && !before {
		_ = resp.Body.Close()
		resp, err = s.send(ctx, r) // with the login that it has asked for
	}
	if err != nil {
		return nil, plainError(err)
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusPartialContent && r.offset > 0 {
		return r.continued(resp)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		s.client = nil // the credentials may be others by now
	}
	begin := *resp // of which no more is read than an error needs
	begin.Body = io.NopCloser(io.LimitReader(resp.Body, maxErrorBody))
	err = plainError(transport.CheckError(&begin, http.StatusOK))
	if refused, ok := errors.AsType[*StatusError](err); ok {
		refused.after, _ = httpclient.RetryAfter(resp.Header, time.Now())
	}
	return nil, err
}

// send sends a request. Before the first one, it finds out how the registry wants to be
// asked, and asks for a token if it wants one.
func (s *session) send(ctx context.Context, r request) (*http.Response, error) {
	if s.client == nil {
		s.asked = false
		s.login = nil
		registry := s.repository.Registry
		t, err := transport.NewWithContext(ctx, registry, s, asking{s}, []string{s.repository.Scope(transport.PullScope)})
		if err != nil {
			return nil, err
		}
		s.client = &http.Client{Transport: t, CheckRedirect: checkRedirect}
	}
	u := url.URL{Scheme: s.repository.Scheme(), Host: s.repository.RegistryStr()}
	u.Path = "/v2/" + s.repository.RepositoryStr() + "/" + r.what + "/" + r.reference
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	req.Header.Set("Accept-Encoding", "identity") // offsets and digests are those of the stored bytes
	if r.offset > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", r.offset))
	}
	return s.client.Do(req)
}

// Authorization implements authn.Authenticator. Nobody logs in before the registry asks.
func (s *session) Authorization() (*authn.AuthConfig, error) {
	return s.AuthorizationContext(context.Background())
}

// AuthorizationContext is Authorization with the context of a request.
func (s *session) AuthorizationContext(ctx context.Context) (*authn.AuthConfig, error) {
	if !s.asked {
		return &authn.AuthConfig{}, nil
	}
	if s.login == nil {
		login, err := authn.Resolve(ctx, s.store.keychain, s.repository)
		if err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
		s.login = login
	}
	return authn.Authorization(ctx, s.login)
}

// asking notes when the session's registry asks for a login.
type asking struct{ s *session }

func (a asking) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.s.store.transport.RoundTrip(req)
	own := strings.EqualFold(req.URL.Host, a.s.repository.RegistryStr())
	if err == nil && own && resp.StatusCode == http.StatusUnauthorized && resp.Header.Get("WWW-Authenticate") != "" {
		a.s.asked = true
	}
	return resp, err
}

// plainError makes an error of a client's error, without URLs, whose queries can
// hold secrets, and with bounded texts.
func plainError(err error) error {
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		var texts []string
		for _, d := range answer.Errors {
			texts = append(texts, strings.TrimSpace(string(d.Code)+" "+d.Message))
		}
		message := strings.Join(texts, "; ")
		message = cmp.Or(message, http.StatusText(answer.StatusCode))
		return &StatusError{Status: answer.StatusCode, Message: bounded.Text(message, maxMessage)}
	}
	if u, ok := err.(*url.Error); ok { // one of two, by https and http, stays as it is
		err = u.Err
	}
	text, _, _ := strings.Cut(err.Error(), "\n") // the answer of a token service may follow
	text = redact.Text(text)
	if text != err.Error() {
		return errors.New(bounded.Text(text, maxMessage))
	}
	return err
}
