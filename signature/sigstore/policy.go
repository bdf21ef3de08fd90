package sigstore

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
	"unicode"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/signature"
)

// Policy says who must have signed an image, and under which name. It is
// immutable once made, and safe for concurrent use.
type Policy struct {
	// Name is what errors and results call the policy.
	Name string
	// Namespace is the ImagePolicy's; empty for a ClusterImagePolicy.
	Namespace string
	// Scopes are the images that it governs: see [Policies]. They play no part
	// in Verify.
	Scopes []string
	// Keys may each vouch for an image.
	Keys []*Key
	// Log is the key of a transparency log that must have taken in what Keys
	// signed; nil: none. It must be ECDSA.
	Log *Key
	// Fulcio and PKI are roots of trust in place of Keys. Exactly one of the
	// three must be set.
	Fulcio *Fulcio
	PKI    *PKI
	// Identity compares names.
	Identity Identity
	// Release says, beside Identity, under which names a release must have been
	// signed; zero means that any will do. Version wants a verifier that takes the
	// release's version: see [signature.ReleaseVerifier].
	Release signature.Identity
	// Clock is the source of the time, for PKI and for each attempt; nil means the
	// real one.
	Clock clock.PassiveClock
}

// decodePolicy reads a ClusterImagePolicy or ImagePolicy of config.openshift.io. The
// error has every fault, with its field.
func decodePolicy(u *unstructured.Unstructured) (*Policy, error) {
	gvk := u.GroupVersionKind()
	// The specs of both kinds and versions are alike.
	like := u.DeepCopy()
	like.SetAPIVersion(configv1.GroupVersion.String())
	like.SetKind("ImagePolicy")
	typed, err := clusterapi.FromUnstructured[configv1.ImagePolicy](like)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", gvk.Kind, u.GetName(), err)
	}
	p := &Policy{Name: gvk.Kind + " " + u.GetName()}
	if gvk.Kind == "ImagePolicy" {
		p.Namespace = u.GetNamespace()
		p.Name = gvk.Kind + " " + u.GetNamespace() + "/" + u.GetName()
	}
	if err := p.fill(&typed.Spec); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	return p, nil
}

const (
	maxScopes   = 256
	maxData     = 8192 // characters of base64
	maxIssuer   = 2048
	maxAddress  = 320
	maxHostname = 253
)

func (p *Policy) fill(spec *configv1.ImagePolicySpec) error {
	var errs []error
	bad := func(path string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("spec.%s: %w", path, err))
		}
	}
	switch n := len(spec.Scopes); {
	case n == 0:
		bad("scopes", errors.New("at least one is required"))
	case n > maxScopes:
		bad("scopes", fmt.Errorf("%d items, more than the limit of %d", n, maxScopes))
	}
	for i, s := range spec.Scopes {
		bad(fmt.Sprintf("scopes[%d]", i), validScope(string(s)))
		p.Scopes = append(p.Scopes, string(s))
	}

	root := &spec.Policy.RootOfTrust
	const at = "policy.rootOfTrust."
	for _, m := range []struct {
		field string
		typ   configv1.PolicyType
		set   bool
	}{
		{"publicKey", configv1.PublicKeyRootOfTrust, root.PublicKey != nil},
		{"fulcioCAWithRekor", configv1.FulcioCAWithRekorRootOfTrust, root.FulcioCAWithRekor != nil},
		{"pki", configv1.PKIRootOfTrust, root.PKI != nil},
	} {
		if m.set != (m.typ == root.PolicyType) {
			bad(at+m.field, fmt.Errorf("must be set if, and only if, policyType is %s; it is %q", m.typ, root.PolicyType))
		}
	}
	switch root.PolicyType {
	case configv1.PublicKeyRootOfTrust:
		if root.PublicKey == nil {
			break
		}
		key, err := keyData(root.PublicKey.KeyData)
		bad(at+"publicKey.keyData", err)
		p.Keys = append(p.Keys, key)
		if len(root.PublicKey.RekorKeyData) > 0 {
			p.Log, err = logKey(root.PublicKey.RekorKeyData)
			bad(at+"publicKey.rekorKeyData", err)
		}
	case configv1.FulcioCAWithRekorRootOfTrust:
		if f := root.FulcioCAWithRekor; f != nil {
			p.Fulcio = &Fulcio{Issuer: f.FulcioSubject.OIDCIssuer, Email: f.FulcioSubject.SignedEmail}
			var err error
			p.Fulcio.Roots, err = authorities(f.FulcioCAData)
			bad(at+"fulcioCAWithRekor.fulcioCAData", err)
			p.Fulcio.Log, err = logKey(f.RekorKeyData)
			bad(at+"fulcioCAWithRekor.rekorKeyData", err)
			bad(at+"fulcioCAWithRekor.fulcioSubject.oidcIssuer", validIssuer(f.FulcioSubject.OIDCIssuer))
			bad(at+"fulcioCAWithRekor.fulcioSubject.signedEmail", validEmail(f.FulcioSubject.SignedEmail))
		}
	case configv1.PKIRootOfTrust:
		if k := root.PKI; k != nil {
			p.PKI = &PKI{Email: k.PKICertificateSubject.Email, Hostname: k.PKICertificateSubject.Hostname}
			var err error
			p.PKI.Roots, err = authorities(k.CertificateAuthorityRootsData)
			bad(at+"pki.caRootsData", err)
			if len(k.CertificateAuthorityIntermediatesData) > 0 {
				p.PKI.Intermediates, err = authorities(k.CertificateAuthorityIntermediatesData)
				bad(at+"pki.caIntermediatesData", err)
			}
			if p.PKI.Email == "" && p.PKI.Hostname == "" {
				bad(at+"pki.pkiCertificateSubject", errors.New("email or hostname is required"))
			}
			if p.PKI.Email != "" {
				bad(at+"pki.pkiCertificateSubject.email", validEmail(p.PKI.Email))
			}
			if p.PKI.Hostname != "" {
				bad(at+"pki.pkiCertificateSubject.hostname", validHostname(p.PKI.Hostname))
			}
		}
	default:
		bad(at+"policyType", fmt.Errorf("%q is none of PublicKey, FulcioCAWithRekor, PKI", root.PolicyType))
	}

	if id := spec.Policy.SignedIdentity; id != nil {
		p.Identity.Match = id.MatchPolicy
		if e := id.PolicyMatchExactRepository; e != nil {
			p.Identity.Repository = string(e.Repository)
		}
		if r := id.PolicyMatchRemapIdentity; r != nil {
			p.Identity.Prefix, p.Identity.SignedPrefix = string(r.Prefix), string(r.SignedPrefix)
		}
		const at = "policy.signedIdentity."
		if set := id.PolicyMatchExactRepository != nil; set != (id.MatchPolicy == configv1.IdentityMatchPolicyExactRepository) {
			bad(at+"exactRepository", errors.New("must be set if, and only if, matchPolicy is ExactRepository"))
		} else if set := id.PolicyMatchRemapIdentity != nil; set != (id.MatchPolicy == configv1.IdentityMatchPolicyRemapIdentity) {
			bad(at+"remapIdentity", errors.New("must be set if, and only if, matchPolicy is RemapIdentity"))
		} else if id.MatchPolicy == "" {
			bad(at+"matchPolicy", errors.New("is required"))
		} else {
			bad("policy.signedIdentity", p.Identity.validate())
		}
	}
	return bounded.Errors(errs...)
}

// validIssuer wants the URL of an OIDC issuer.
func validIssuer(s string) error {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return errors.New("is required")
	case len(s) > maxIssuer:
		return fmt.Errorf("%d characters, more than the limit of %d", len(s), maxIssuer)
	case err != nil || u.Scheme == "" || u.Host == "":
		return fmt.Errorf("%q is not a URL", s)
	}
	return nil
}

func validEmail(s string) error {
	at := strings.IndexByte(s, '@')
	switch {
	case s == "":
		return errors.New("is required")
	case len(s) > maxAddress:
		return fmt.Errorf("%d characters, more than the limit of %d", len(s), maxAddress)
	case at < 1 || at == len(s)-1 || strings.ContainsFunc(s, unicode.IsSpace):
		return fmt.Errorf("%q is not an e-mail address", s)
	}
	return nil
}

// validHostname wants the name of a host, or a wildcard for those below one.
func validHostname(s string) error {
	if len(s) > maxHostname {
		return fmt.Errorf("%d characters, more than the limit of %d", len(s), maxHostname)
	}
	if faults := validation.IsDNS1123Subdomain(strings.TrimPrefix(s, "*.")); len(faults) > 0 {
		return fmt.Errorf("%q: %s", s, strings.Join(faults, "; "))
	}
	return nil
}

// validPEM wants what the API does of a PEM text: at most one newline behind
// it, and a size that counts in base64.
func validPEM(data []byte, kind string) error {
	begin, end := "-----BEGIN "+kind+"-----", "-----END "+kind+"-----"
	least := base64.StdEncoding.EncodedLen(len(begin) + len(end))
	switch n := base64.StdEncoding.EncodedLen(len(data)); {
	case n < least || n > maxData:
		return fmt.Errorf("%d characters of base64: %d to %d are accepted", n, least, maxData)
	case !bytes.HasPrefix(data, []byte(begin)) || !bytes.HasSuffix(bytes.TrimSuffix(data, []byte("\n")), []byte(end)):
		return fmt.Errorf("must begin with %s and end with %s", begin, end)
	}
	return nil
}

// keyData reads a key.
func keyData(data []byte) (*Key, error) {
	if err := validPEM(data, "PUBLIC KEY"); err != nil {
		return nil, err
	}
	return ParseKey(data)
}

// authorities reads certificates.
func authorities(data []byte) (*x509.CertPool, error) {
	if err := validPEM(data, "CERTIFICATE"); err != nil {
		return nil, err
	}
	return pool(data)
}

// logKey reads the key of a transparency log.
func logKey(data []byte) (*Key, error) {
	k, err := keyData(data)
	if err == nil && !strings.HasPrefix(k.algorithm, "ECDSA") {
		err = fmt.Errorf("the key of a transparency log must be ECDSA, not %s", k.algorithm)
	}
	return k, err
}

// roots is how many roots of trust the policy has; one is right.
func (p *Policy) roots() int {
	n := 0
	fulcio := p.Fulcio != nil && p.Fulcio.Log != nil && p.Fulcio.Roots != nil
	for _, set := range []bool{len(p.Keys) > 0, fulcio, p.PKI != nil && p.PKI.Roots != nil} {
		if set {
			n++
		}
	}
	return n
}

// Verify reports who vouches for an image, named by digest; its name is
// compared as Identity says. The error is a [*signature.Error] with every
// attempt.
func (p *Policy) Verify(ctx context.Context, image string, src Source) (*signature.Verification, error) {
	return p.VerifyAs(ctx, image, signature.Digest(image), src)
}

// VerifyAs is Verify for an image whose digest is known apart from its name, as
// of one that is used by tag. Its errors are those of Verify.
func (p *Policy) VerifyAs(ctx context.Context, image, digest string, src Source) (*signature.Verification, error) {
	return p.verify(ctx, image, digest, "", src)
}

func (p *Policy) verify(ctx context.Context, image, digest, version string, src Source) (*signature.Verification, error) {
	fail := func(err error) (*signature.Verification, error) {
		return nil, &signature.Error{Digest: digest, Keyrings: []string{p.Name}, Err: err}
	}
	switch {
	case p.roots() != 1 || src == nil:
		return fail(signature.ErrMisconfigured)
	case digest == "":
		return fail(signature.ErrNoDigest)
	}
	if err := signature.ValidateDigestStrict(digest); err != nil {
		return fail(err)
	}
	if r, err := parseReference(image); err != nil {
		return fail(fmt.Errorf("image %q: %w", image, err))
	} else if r.digest != "" && r.digest != digest {
		return fail(fmt.Errorf("image %q does not have the digest %s", image, digest))
	}

	for _, pattern := range p.Release.Repositories {
		if _, err := path.Match(pattern, ""); err != nil {
			return fail(fmt.Errorf("%w: Release.Repositories: %q: %w", signature.ErrMisconfigured, short(pattern), err))
		}
	}

	v := &visit{policy: p, image: image, digest: digest, version: version}
	var signer *signature.Signer
	err := panics.Catch(func() (err error) {
		signer, err = v.run(ctx, src)
		return err
	})
	switch {
	case err != nil:
		v.attempt(Attachment{}, err)
		return nil, v.err()
	case signer == nil:
		return nil, v.err()
	}
	return (&signature.Verification{Digest: digest, Signers: []signature.Signer{*signer}}).For(version), nil
}

// Verifier returns a [signature.Verifier] for the images of one repository
// (host/path), e.g. quay.io/openshift-release-dev/ocp-release. It is a
// [signature.ReleaseVerifier], too.
func (p *Policy) Verifier(repository string, src Source) signature.Verifier {
	return &verifier{p, repository, src}
}

type verifier struct {
	policy     *Policy
	repository string
	source     Source
}

func (v *verifier) Verify(ctx context.Context, digest string) (*signature.Verification, error) {
	return v.policy.VerifyAs(ctx, v.repository+"@"+digest, digest, v.source)
}

// VerifyRelease implements [signature.ReleaseVerifier].
func (v *verifier) VerifyRelease(ctx context.Context, digest, version string) (*signature.Verification, error) {
	return v.policy.verify(ctx, v.repository+"@"+digest, digest, version, v.source)
}

// String says, for people, what is required.
func (v *verifier) String() string {
	var who []string
	for _, k := range v.policy.Keys {
		who = append(who, k.String())
	}
	if f := v.policy.Fulcio; f != nil {
		who = append(who, fmt.Sprintf("%s by the word of %s", f.Email, f.Issuer))
	}
	if k := v.policy.PKI; k != nil {
		who = append(who, strings.TrimSpace("a certificate of "+k.Email+" "+k.Hostname))
	}
	return fmt.Sprintf("%s wants sigstore signatures of images in %s by one of %s - will check %s",
		v.policy.Name, v.repository, strings.Join(who, ", "), v.source)
}

// decodeBase64 reads the annotation.
func decodeBase64(a Attachment) ([]byte, error) {
	text, ok := a.Annotations[SignatureAnnotation]
	if !ok {
		return nil, errMissing
	}
	if len(text) > maxSignature {
		return nil, &limit.LimitError{Max: maxSignature, What: "bytes in the annotation " + SignatureAnnotation}
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", SignatureAnnotation, err)
	}
	return raw, nil
}
