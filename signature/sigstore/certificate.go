package sigstore

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// Fulcio is a root of trust of short-lived certificates, each of which a
// certificate authority gave to an identity, and whose use is logged.
type Fulcio struct {
	// Roots are the certificate authority's.
	Roots *x509.CertPool
	// Log is the key of the transparency log; it must be ECDSA.
	Log *Key
	// Issuer is the OIDC issuer that vouched for the identity, and Email the
	// identity. Both must be equal to those of the certificate.
	Issuer, Email string
}

// PKI is a root of trust of ordinary certificates for signing code. Signatures
// end with their certificates.
type PKI struct {
	Roots         *x509.CertPool
	Intermediates *x509.CertPool // may be nil
	// Email and Hostname must each be among the certificate's names, if set. At
	// least one is.
	Email, Hostname string
}

// certificates reads PEM certificates, at least one and nothing else.
func certificates(data []byte) ([]*x509.Certificate, error) {
	if len(data) > maxBundle {
		return nil, fmt.Errorf("certificates of more than %d bytes", maxBundle)
	}
	var all []*x509.Certificate
	for len(data) > 0 {
		block, rest := pem.Decode(data)
		if block == nil {
			if len(all) > 0 && len(bytes.TrimSpace(data)) == 0 {
				break
			}
			return nil, errors.New("not a certificate in PEM")
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("PEM block of type %q is not a certificate", short(block.Type))
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		if len(all) == maxCertificates {
			return nil, &limit.LimitError{Max: maxCertificates, What: "certificates in PEM"}
		}
		all = append(all, c)
		data = rest
	}
	if len(all) == 0 {
		return nil, errors.New("not a certificate in PEM")
	}
	return all, nil
}

// pool reads authorities.
func pool(data []byte) (*x509.CertPool, error) {
	all, err := certificates(data)
	if err != nil {
		return nil, err
	}
	p := x509.NewCertPool()
	for _, c := range all {
		p.AddCert(c)
	}
	return p, nil
}

// leaf reads the certificate of an attachment, and checks its chain at a time.
func leaf(a Attachment) (*x509.Certificate, error) {
	text, ok := a.Annotations[certificateAnnotation]
	if !ok {
		return nil, fmt.Errorf("missing %s annotation", certificateAnnotation)
	}
	all, err := certificates([]byte(text))
	switch {
	case err != nil:
		return nil, fmt.Errorf("annotation %s: %w", certificateAnnotation, err)
	case len(all) != 1:
		return nil, fmt.Errorf("annotation %s holds %d certificates, not one", certificateAnnotation, len(all))
	}
	return all[0], nil
}

// chained reports whether roots vouched for a certificate, at a time, for
// signing code. The chain of the attachment may lend intermediates; its last
// certificate is the root, which does not count.
func chained(c *x509.Certificate, a Attachment, roots, intermediates *x509.CertPool, at time.Time) error {
	between := x509.NewCertPool()
	if intermediates != nil {
		between = intermediates.Clone()
	}
	if text := a.Annotations[chainAnnotation]; text != "" {
		chain, err := certificates([]byte(text))
		if err != nil {
			return fmt.Errorf("annotation %s: %w", chainAnnotation, err)
		}
		for _, c := range chain[:len(chain)-1] {
			between.AddCert(c)
		}
	}
	_, err := c.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	})
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	return nil
}

// check returns the key that made sig, and when the log took it in.
func (f *Fulcio) check(a Attachment, sig []byte) (*Key, time.Time, error) {
	c, err := leaf(a)
	if err != nil {
		return nil, time.Time{}, err
	}
	at, err := logged(f.Log, a, sig, c.Raw)
	if err != nil {
		return nil, at, err
	}
	if err := chained(c, a, f.Roots, nil, at); err != nil {
		return nil, at, err
	}
	issuer, err := issuerOf(c)
	switch {
	case err != nil:
		return nil, at, err
	case f.Issuer == "" || issuer != f.Issuer:
		return nil, at, fmt.Errorf("certificate: OIDC issuer is %q, not %q", short(issuer), f.Issuer)
	case f.Email == "" || !slices.Contains(c.EmailAddresses, f.Email):
		return nil, at, fmt.Errorf("certificate: required email %q is not among %s", f.Email, quoted(c.EmailAddresses))
	}
	key, err := signedBy(c, a, sig)
	return key, at, err
}

// check returns the key that made sig. The certificate must be valid at now.
func (p *PKI) check(a Attachment, sig []byte, now time.Time) (*Key, error) {
	c, err := leaf(a)
	if err != nil {
		return nil, err
	}
	if err := chained(c, a, p.Roots, p.Intermediates, now); err != nil {
		return nil, err
	}
	if p.Email == "" && p.Hostname == "" {
		return nil, errors.New("certificate: no name is required of it")
	}
	if p.Email != "" && !slices.Contains(c.EmailAddresses, p.Email) {
		return nil, fmt.Errorf("certificate: required email %q is not among %s", p.Email, quoted(c.EmailAddresses))
	}
	if p.Hostname != "" {
		if err := c.VerifyHostname(p.Hostname); err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
	}
	return signedBy(c, a, sig)
}

func signedBy(c *x509.Certificate, a Attachment, sig []byte) (*Key, error) {
	key, err := newKey(c.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	if !key.signed(a.Payload, sig) {
		return nil, errors.New("not made with the key of the certificate, or altered")
	}
	return key, nil
}

// Extensions that name the OIDC issuer: the older holds plain text, the newer a
// DER text.
var (
	oidIssuerRaw = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}
	oidIssuerDER = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 8}
)

// issuerOf reads the OIDC issuer. If a certificate names it twice, the two must
// agree.
func issuerOf(c *x509.Certificate) (string, error) {
	var found []string
	for _, e := range c.Extensions {
		switch {
		case e.Id.Equal(oidIssuerRaw):
			found = append(found, string(e.Value))
		case e.Id.Equal(oidIssuerDER):
			var s string
			if rest, err := asn1.Unmarshal(e.Value, &s); err != nil || len(rest) != 0 {
				return "", errors.New("certificate: malformed OIDC issuer")
			}
			found = append(found, s)
		}
	}
	switch {
	case len(found) == 0:
		return "", errors.New("certificate: no OIDC issuer")
	case len(found) > 1 && slices.ContainsFunc(found, func(s string) bool { return s != found[0] }):
		return "", fmt.Errorf("certificate: contradicting OIDC issuers %s", quoted(found))
	}
	return found[0], nil
}

// quoted shows names out of a certificate.
func quoted(names []string) string { return short(fmt.Sprintf("%q", names)) }
