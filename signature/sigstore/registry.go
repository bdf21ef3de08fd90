package sigstore

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/httpclient"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/signature"
)

// RegistryOptions configure [NewRegistry]. The zero value works for registries
// that anybody may read.
type RegistryOptions struct {
	// Transport sends the requests. Nil means an own one with RootCAs and
	// Proxy; with a Transport those two are ignored.
	Transport http.RoundTripper
	// RootCAs are the authorities to trust; nil means those of the system.
	RootCAs *x509.CertPool
	// Proxy returns the proxy of a request; nil means none: the environment is
	// consulted only if this is http.ProxyFromEnvironment.
	Proxy func(*http.Request) (*url.URL, error)
	// Timeout bounds each request from the connection to the end of the body.
	// Zero means 30 s.
	Timeout time.Duration
	// MaxRedirects is how many redirects a request follows; zero means 3.
	// None may leave https, and credentials never follow one to another host.
	MaxRedirects int
	// DisableRedirects follows none.
	DisableRedirects bool
	// Username and Password are sent to the registry's own host, when it asks
	// for them; a token service on another host is asked without. Empty means
	// that nobody logs in.
	Username, Password string
	// PlainHTTP speaks http, for registries on a local network. What they serve
	// is verified all the same.
	PlainHTTP bool
	// Limits bound what one verification reads.
	Limits Limits
}

// Registry reads signatures from the repository of the image in its registry,
// by the API of the OCI distribution specification: the image with the tag
// [SignatureTag], and its layers. Signatures that newer versions of cosign
// attach as referrers are told of as [*OtherError]: container runtimes do not
// read them. It is safe for concurrent use. Make one with [NewRegistry].
type Registry struct {
	repository string // host/path
	path       string // within the registry
	base       url.URL
	login      string // Authorization header; may be empty
	limits     Limits
	manifests  *httpclient.Client
	blobs      *httpclient.Client
}

// NewRegistry returns the source for a repository, such as
// quay.io/openshift-release-dev/ocp-release, without tag and digest. That of an
// image in use may be a mirror; the policy compares the name that was signed. A
// repository that is not one, and negative options, are errors.
func NewRegistry(repository string, o RegistryOptions) (*Registry, error) {
	ref, err := parseReference(repository)
	if err == nil && (ref.tag != "" || ref.digest != "") {
		err = errors.New("a repository has neither tag nor digest")
	}
	if err != nil {
		return nil, fmt.Errorf("repository %q: %w", repository, err)
	}
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.MaxRedirects = cmp.Or(o.MaxRedirects, 3)
	host, path, _ := strings.Cut(ref.name, "/")
	r := &Registry{repository: ref.name, path: path, base: url.URL{Scheme: "https", Host: host}, limits: o.Limits.withDefaults()}
	if host == "docker.io" {
		r.base.Host = "registry-1.docker.io"
	}
	if o.PlainHTTP {
		r.base.Scheme = "http"
	}
	if o.Username != "" || o.Password != "" {
		r.login = "Basic " + base64.StdEncoding.EncodeToString([]byte(o.Username+":"+o.Password))
	}
	client := httpclient.Options{
		Transport: o.Transport, RootCAs: o.RootCAs, Proxy: o.Proxy, Timeout: o.Timeout,
		MaxBody: min(maxManifest, r.limits.Bytes), MaxRedirects: o.MaxRedirects, NoRedirects: o.DisableRedirects, NoDecompression: true,
	}
	r.manifests = httpclient.New(client)
	client.MaxBody = min(MaxPayload, r.limits.Bytes)
	r.blobs = httpclient.New(client)
	return r, nil
}

// String implements [Source].
func (r *Registry) String() string { return "registry " + r.repository }

// CloseIdleConnections closes connections that wait for a next request.
func (r *Registry) CloseIdleConnections() {
	r.manifests.CloseIdleConnections()
	r.blobs.CloseIdleConnections()
}

// Attachments implements [Source].
func (r *Registry) Attachments(ctx context.Context, digest string) iter.Seq2[Attachment, error] {
	return func(yield func(Attachment, error) bool) {
		tag, err := SignatureTag(digest)
		if err != nil {
			yield(Attachment{}, err)
			return
		}
		s := &session{Registry: r, budget: newBudget(r.String(), r.limits)}
		image := Attachment{Location: r.repository + ":" + tag}
		n := counter{source: r.String(), digest: digest, image: image.Location}
		m, err := s.manifest(ctx, tag, oci.TypeManifest)
		switch {
		case ctx.Err() != nil:
			yield(Attachment{}, ctx.Err())
			return
		case errors.Is(err, signature.ErrNotFound):
		case err != nil:
			// A registry that does not answer is not asked for more.
			if _, other := errors.AsType[*OtherError](err); !yield(image, err) || !other {
				return
			}
		default:
			blob := func(d oci.Descriptor, limit int64) ([]byte, error) { return s.blob(ctx, d, limit) }
			if !n.take(ctx, m.Layers, blob, yield) {
				return
			}
		}
		referrers, err := s.referrers(ctx, digest)
		if err != nil {
			yield(Attachment{}, err)
			return
		}
		for _, d := range referrers {
			if !isBundle(d) {
				continue
			}
			if err := s.candidate(); err != nil {
				yield(Attachment{}, err)
				return
			}
			if !yield(Attachment{}, &OtherError{Location: r.repository + "@" + short(d.Digest), MediaType: short(d.ArtifactType)}) {
				return
			}
		}
		if n.signatures == 0 {
			yield(Attachment{}, fmt.Errorf("%s has no signatures under %s: %w", r, tag, signature.ErrNotFound))
		}
	}
}

// session is a search with the authorization that the registry gave it.
type session struct {
	*Registry
	*budget
	authorization string
}

// statusError is an answer other than 200.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("response status %d", int(e)) }

// manifest reads the image, or index, under a tag.
func (s *session) manifest(ctx context.Context, tag, mediaType string) (oci.Manifest, error) {
	fail := func(err error) (oci.Manifest, error) {
		return oci.Manifest{}, fmt.Errorf("unable to read %s:%s: %w", s.repository, tag, err)
	}
	resp, err := s.get(ctx, s.manifests, "manifests/"+tag, mediaType)
	if errors.Is(err, statusError(http.StatusNotFound)) {
		err = signature.ErrNotFound
	}
	if err != nil {
		return fail(err)
	}
	m, err := parseManifest(resp.Body)
	if err != nil {
		return fail(err)
	}
	// What a manifest calls itself counts before what the server calls it.
	got := m.MediaType
	if got == "" {
		got, _, _ = strings.Cut(resp.Header.Get("Content-Type"), ";")
	}
	if got = strings.TrimSpace(got); got != mediaType {
		return oci.Manifest{}, &OtherError{Location: s.repository + ":" + tag, MediaType: short(got)}
	}
	return m, nil
}

// blob reads a blob, whose size and digest must be those of its descriptor.
func (s *session) blob(ctx context.Context, d oci.Descriptor, limit int64) ([]byte, error) {
	if err := validate(d, limit); err != nil {
		return nil, err
	}
	if err := s.afford(d.Size); err != nil {
		return nil, err
	}
	resp, err := s.get(ctx, s.blobs, "blobs/"+d.Digest, "*/*")
	if err != nil {
		return nil, err
	}
	return resp.Body, check(d, resp.Body)
}

// referrers lists what has been attached to the image: by the API, or under the
// tag that takes its place in older registries. That is only told of, so that
// failures do not matter. The error says that nothing more may be read.
func (s *session) referrers(ctx context.Context, digest string) ([]oci.Descriptor, error) {
	resp, err := s.get(ctx, s.manifests, "referrers/"+digest, oci.TypeIndex)
	if err == nil {
		if i, err := parseManifest(resp.Body); err == nil {
			return i.Manifests, nil
		}
	}
	if spent(err) {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, nil
	}
	i, err := s.manifest(ctx, strings.Replace(digest, ":", "-", 1), oci.TypeIndex)
	if err != nil {
		if !spent(err) {
			err = nil
		}
		return nil, err
	}
	return i.Manifests, nil
}

// fetch gets what is at a URL, within the budget.
func (s *session) fetch(ctx context.Context, client *httpclient.Client, url string, header http.Header) (*httpclient.Response, error) {
	resp, err := client.Get(ctx, url, header)
	if err != nil {
		// What was read of a body that is too large counts.
		if limit, ok := errors.AsType[*httpclient.LimitError](err); ok && limit.Limit == httpclient.LimitBody {
			if over := s.spend(limit.Max + 1); over != nil {
				return nil, over
			}
		}
		return nil, err
	}
	if err := s.spend(int64(len(resp.Body))); err != nil {
		return nil, err
	}
	return resp, nil
}

// get asks the registry, and once more with authorization when it wants that.
func (s *session) get(ctx context.Context, client *httpclient.Client, what, accept string) (*httpclient.Response, error) {
	u := s.base
	u.Path = "/v2/" + s.path + "/" + what
	for {
		header := http.Header{"Accept": {accept}}
		if s.authorization != "" {
			header.Set("Authorization", s.authorization)
		}
		resp, err := s.fetch(ctx, client, u.String(), header)
		switch {
		case err != nil:
			return nil, err
		case resp.StatusCode == http.StatusOK:
			return resp, nil
		case resp.StatusCode != http.StatusUnauthorized || s.authorization != "" || !strings.EqualFold(resp.URL.Host, s.base.Host):
			return nil, statusError(resp.StatusCode)
		}
		if s.authorization, err = s.authorize(ctx, resp.Header.Values("WWW-Authenticate")); err != nil {
			return nil, fmt.Errorf("%w: %w", statusError(resp.StatusCode), err)
		}
	}
}
