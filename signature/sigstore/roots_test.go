package sigstore_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/sigstore"
)

var (
	signedAt = time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	logKey   = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	rootKey  = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	midKey   = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	leafKey  = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
)

func pemOfCert(certs ...*x509.Certificate) []byte {
	var out []byte
	for _, c := range certs {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return out
}

// issue makes a certificate valid for ten minutes around signedAt, or as change
// says.
func issue(parent *x509.Certificate, by, of *ecdsa.PrivateKey, change func(*x509.Certificate)) *x509.Certificate {
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: signedAt.Add(-5 * time.Minute), NotAfter: signedAt.Add(5 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}, BasicConstraintsValid: true,
	}
	change(c)
	if parent == nil {
		parent = c
	}
	return must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, c, parent, of.Public(), by))))
}

func authority(name string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.Subject.CommonName, c.IsCA, c.KeyUsage, c.ExtKeyUsage = name, true, x509.KeyUsageCertSign, nil
		c.NotBefore, c.NotAfter = signedAt.AddDate(-1, 0, 0), signedAt.AddDate(10, 0, 0)
	}
}

const (
	bundleAnnotation      = "dev.sigstore.cosign/bundle"
	certificateAnnotation = "dev.sigstore.cosign/certificate"
	chainAnnotation       = "dev.sigstore.cosign/chain"

	issuer = "https://accounts.example.com"
	email  = "release@example.com"
)

func extension(id int, value []byte) pkix.Extension {
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, id}, Value: value}
}

var (
	rootCert = issue(nil, rootKey, rootKey, authority("root"))
	midCert  = issue(rootCert, rootKey, midKey, authority("mid"))
)

func fulcioLeaf(change func(*x509.Certificate)) *x509.Certificate {
	return issue(midCert, midKey, leafKey, func(c *x509.Certificate) {
		c.EmailAddresses = []string{"other@example.com", email}
		c.ExtraExtensions = []pkix.Extension{extension(1, []byte(issuer)), extension(8, must(asn1.Marshal(issuer)))}
		change(c)
	})
}

func keep(*x509.Certificate) {}

// entry is a log entry about a signature; its fields may be changed.
type entry struct {
	sig, der, payload []byte
	kind, version     string
	algorithm         string
	pemType           string
	index             any
	logID             string
	by                crypto.Signer
	rawPayload        func(map[string]any)
}

// bundle returns the annotation for e.
func bundle(e entry) string {
	def := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	def(&e.kind, "hashedrekord")
	def(&e.version, "0.0.1")
	def(&e.algorithm, "sha256")
	def(&e.pemType, "PUBLIC KEY")
	def(&e.logID, "c0d23d6ad406973f")
	if e.index == nil {
		e.index = 42
	}
	if e.by == nil {
		e.by = logKey
	}
	body := must(json.Marshal(map[string]any{
		"kind": e.kind, "apiVersion": e.version,
		"spec": map[string]any{
			"signature": map[string]any{"content": e.sig, "publicKey": map[string]any{"content": pem.EncodeToMemory(&pem.Block{Type: e.pemType, Bytes: e.der})}},
			"data":      map[string]any{"hash": map[string]any{"algorithm": e.algorithm, "value": fmt.Sprintf("%x", sha256.Sum256(e.payload))}},
		},
	}))
	// Marshal sorts the keys: the form is canonical.
	payload := map[string]any{"body": body, "integratedTime": signedAt.Unix(), "logIndex": e.index, "logID": e.logID}
	promise := sign(e.by, must(json.Marshal(payload)))
	if e.rawPayload != nil {
		e.rawPayload(payload)
	}
	// The order of the keys on the wire does not matter.
	return strings.Replace(string(must(json.MarshalIndent(map[string]any{"SignedEntryTimestamp": promise, "Payload": payload}, "", " "))), "\n", "\n\t", 1)
}

func annotated(a sigstore.Attachment, more map[string]string) sigstore.Attachment {
	a.Annotations = maps.Clone(a.Annotations)
	for k, v := range more {
		if v == "-" {
			delete(a.Annotations, k)
		} else {
			a.Annotations[k] = v
		}
	}
	return a
}

func sigOf(a sigstore.Attachment) []byte {
	return must(base64.StdEncoding.DecodeString(a.Annotations[sigstore.SignatureAnnotation]))
}

// check verifies one attachment, and compares the outcome with want: empty for
// success, else part of the reason.
func check(t *testing.T, name string, p *sigstore.Policy, a sigstore.Attachment, want string) *signature.Verification {
	t.Helper()
	v, err := p.Verify(t.Context(), repo+"@"+digestA, sigstore.MemorySource{digestA: {a}})
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: %v, want %s", name, err, want)
	}
	return v
}

func TestKeyWithLog(t *testing.T) {
	body := payload(digestA, named)
	plain := attach(ed(), body)
	der := must(x509.MarshalPKIXPublicKey(ed().Public()))
	p := policy(p256(), ed())
	p.Log = keyOf(logKey)
	good := entry{sig: sigOf(plain), der: der, payload: body}
	with := func(change func(*entry)) sigstore.Attachment {
		e := good
		change(&e)
		return annotated(plain, map[string]string{bundleAnnotation: bundle(e)})
	}
	v := check(t, "good", p, with(func(*entry) {}), "")
	if v == nil || !v.Signers[0].Created.Equal(signedAt) {
		t.Errorf("%+v", v)
	}
	if err := check(t, "a bundle that nobody wants", policy(ed()), annotated(plain, map[string]string{bundleAnnotation: "rubbish"}), ""); err == nil {
		t.Error("refused")
	}
	other := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	for name, c := range map[string]struct {
		a    sigstore.Attachment
		want string
	}{
		"no bundle":          {plain, "missing dev.sigstore.cosign/bundle annotation"},
		"not JSON":           {annotated(plain, map[string]string{bundleAnnotation: "x"}), "bundle: "},
		"too large":          {annotated(plain, map[string]string{bundleAnnotation: strings.Repeat(" ", 70000)}), "larger than"},
		"more keys":          {annotated(plain, map[string]string{bundleAnnotation: strings.Replace(bundle(good), "{", `{"x": 1,`, 1)}), `unknown key "x"`},
		"another log":        {with(func(e *entry) { e.by = other }), "the log's signature does not verify"},
		"altered time":       {with(func(e *entry) { e.rawPayload = func(m map[string]any) { m["integratedTime"] = signedAt.Unix() + 1 } }), "the log's signature does not verify"},
		"altered index":      {with(func(e *entry) { e.rawPayload = func(m map[string]any) { m["logIndex"] = 43 } }), "the log's signature does not verify"},
		"missing log id":     {with(func(e *entry) { e.rawPayload = func(m map[string]any) { delete(m, "logID") } }), `no key "logID"`},
		"log id of no kind":  {with(func(e *entry) { e.logID = "x" }), "logID: not a hexadecimal text"},
		"huge index":         {with(func(e *entry) { e.index = json.Number("9223372036854775807") }), "logIndex: too large"},
		"fraction":           {with(func(e *entry) { e.index = json.Number("1.5") }), "logIndex: not an integral"},
		"body of no kind":    {with(func(e *entry) { e.rawPayload = func(m map[string]any) { m["body"] = "!" } }), "body: not base64"},
		"other kind":         {with(func(e *entry) { e.kind = "rekord" }), `kind is not "hashedrekord"`},
		"other version":      {with(func(e *entry) { e.version = "0.0.2" }), `apiVersion is not "0.0.1"`},
		"another signature":  {with(func(e *entry) { e.sig = append([]byte{1}, e.sig...) }), "entry: another signature"},
		"another key":        {with(func(e *entry) { e.der = must(x509.MarshalPKIXPublicKey(p256().Public())) }), "another public key or certificate"},
		"another payload":    {with(func(e *entry) { e.payload = payload(digestB, named) }), "another payload"},
		"another hash":       {with(func(e *entry) { e.algorithm = "sha512" }), "hash algorithm is not sha256"},
		"signed by no key":   {annotated(attach(other, body), map[string]string{bundleAnnotation: bundle(good)}), "made with none of the keys"},
		"payload of another": {sigstore.Attachment{Payload: payload(digestB, named), Annotations: with(func(*entry) {}).Annotations}, "made with none of the keys"},
	} {
		check(t, name, p, c.a, c.want)
	}
	p.Log = keyOf(rsa2048())
	check(t, "log with an RSA key", p, with(func(*entry) {}), "must be ECDSA")
}

func TestFulcio(t *testing.T) {
	roots := x509.NewCertPool()
	roots.AddCert(rootCert)
	p := &sigstore.Policy{Name: "p", Fulcio: &sigstore.Fulcio{Roots: roots, Log: keyOf(logKey), Issuer: issuer, Email: email}}
	body := payload(digestA, named)
	plain := attach(leafKey, body)
	// made attaches a signature with its certificate, chain and bundle.
	made := func(c *x509.Certificate, more map[string]string) sigstore.Attachment {
		a := annotated(plain, map[string]string{
			certificateAnnotation: string(pemOfCert(c)), chainAnnotation: string(pemOfCert(midCert, rootCert)),
			bundleAnnotation: bundle(entry{sig: sigOf(plain), der: c.Raw, payload: body, pemType: "CERTIFICATE"}),
		})
		return annotated(a, more)
	}
	good := fulcioLeaf(keep)
	v := check(t, "good", p, made(good, nil), "")
	if v == nil || v.Signers[0].UserID != email || !v.Signers[0].Created.Equal(signedAt) || v.Signers[0].Fingerprint != keyOf(leafKey).Fingerprint() {
		t.Errorf("%+v", v)
	}
	only := func(e ...pkix.Extension) *x509.Certificate {
		return fulcioLeaf(func(c *x509.Certificate) { c.ExtraExtensions = e })
	}
	check(t, "older issuer alone", p, made(only(extension(1, []byte(issuer))), nil), "")
	check(t, "newer issuer alone", p, made(only(extension(8, must(asn1.Marshal(issuer)))), nil), "")
	foreignRoot := issue(nil, logKey, logKey, authority("root"))
	foreign := issue(foreignRoot, logKey, leafKey, func(c *x509.Certificate) {
		c.EmailAddresses, c.ExtraExtensions = []string{email}, []pkix.Extension{extension(1, []byte(issuer))}
	})
	for name, c := range map[string]struct {
		a    sigstore.Attachment
		want string
	}{
		"no certificate":         {made(good, map[string]string{certificateAnnotation: "-"}), "missing dev.sigstore.cosign/certificate annotation"},
		"no bundle":              {made(good, map[string]string{bundleAnnotation: "-"}), "missing dev.sigstore.cosign/bundle annotation"},
		"no chain":               {made(good, map[string]string{chainAnnotation: "-"}), "certificate: x509"},
		"chain without the root": {made(good, map[string]string{chainAnnotation: string(pemOfCert(midCert))}), "certificate: x509"},
		"broken chain":           {made(good, map[string]string{chainAnnotation: "x"}), "not a certificate in PEM"},
		"two leaves":             {made(good, map[string]string{certificateAnnotation: string(pemOfCert(good, good))}), "holds 2 certificates, not one"},
		"key for a certificate":  {made(good, map[string]string{certificateAnnotation: string(pemOf(ed()))}), "is not a certificate"},
		"other root":             {made(foreign, map[string]string{chainAnnotation: string(pemOfCert(foreignRoot, foreignRoot))}), "certificate: x509"},
		"expired then":           {made(fulcioLeaf(func(c *x509.Certificate) { c.NotAfter = signedAt.Add(-time.Second) }), nil), "certificate: x509"},
		"not for code":           {made(fulcioLeaf(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), nil), "certificate: x509"},
		"other email":            {made(fulcioLeaf(func(c *x509.Certificate) { c.EmailAddresses = []string{"x@example.com"} }), nil), `required email "release@example.com"`},
		"other issuer":           {made(only(extension(1, []byte("https://evil"))), nil), "OIDC issuer"},
		"contradicting issuers":  {made(only(extension(1, []byte(issuer)), extension(8, must(asn1.Marshal("https://evil")))), nil), "contradicting OIDC issuers"},
		"malformed issuer":       {made(only(extension(8, []byte(issuer))), nil), "malformed OIDC issuer"},
		"no issuer":              {made(only(), nil), "no OIDC issuer"},
		"bundle of another":      {made(good, map[string]string{bundleAnnotation: bundle(entry{sig: sigOf(plain), der: fulcioLeaf(keep).Raw, payload: body, pemType: "CERTIFICATE"})}), "another public key or certificate"},
	} {
		check(t, name, p, c.a, c.want)
	}
	// A signature by another key than the certificate's, logged all the same.
	stolen := attach(ed(), body)
	check(t, "key of another", p, annotated(stolen, map[string]string{
		certificateAnnotation: string(pemOfCert(good)), chainAnnotation: string(pemOfCert(midCert, rootCert)),
		bundleAnnotation: bundle(entry{sig: sigOf(stolen), der: good.Raw, payload: body, pemType: "CERTIFICATE"}),
	}), "not made with the key of the certificate")
	p.Fulcio.Email = ""
	check(t, "no email required", p, made(good, nil), "required email")
}

func TestPKI(t *testing.T) {
	pool := func(c *x509.Certificate) *x509.CertPool {
		p := x509.NewCertPool()
		p.AddCert(c)
		return p
	}
	clock := clocktesting.NewFakePassiveClock(signedAt)
	p := &sigstore.Policy{Name: "p", Clock: clock, PKI: &sigstore.PKI{Roots: pool(rootCert), Intermediates: pool(midCert), Email: email, Hostname: "release.example.com"}}
	c := issue(midCert, midKey, leafKey, func(c *x509.Certificate) {
		c.EmailAddresses, c.DNSNames = []string{email}, []string{"release.example.com", "*.wild.example.com"}
	})
	a := annotated(attach(leafKey, payload(digestA, named)), map[string]string{certificateAnnotation: string(pemOfCert(c))})
	if v := check(t, "good", p, a, ""); v == nil || v.Signers[0].UserID != email+" release.example.com" {
		t.Errorf("%+v", v)
	}
	check(t, "no certificate", p, attach(leafKey, payload(digestA, named)), "missing dev.sigstore.cosign/certificate annotation")
	check(t, "altered", p, sigstore.Attachment{Payload: payload(digestB, named), Annotations: a.Annotations}, "not made with the key of the certificate")
	for _, tt := range []struct{ email, hostname, want string }{
		{email, "", ""}, {"", "release.example.com", ""}, {"", "*.wild.example.com", ""}, {"", "a.wild.example.com", ""},
		{"x@example.com", "", "required email"}, {email, "x.example.com", "x509"}, {"x@example.com", "release.example.com", "required email"}, {"", "", "no name is required"},
	} {
		p.PKI.Email, p.PKI.Hostname = tt.email, tt.hostname
		check(t, fmt.Sprintf("%q %q", tt.email, tt.hostname), p, a, tt.want)
	}
	p.PKI.Email, p.PKI.Hostname = email, ""
	p.PKI.Intermediates = nil
	check(t, "intermediate missing", p, a, "x509")
	check(t, "intermediate from the chain", p, annotated(a, map[string]string{chainAnnotation: string(pemOfCert(midCert, rootCert))}), "")
	p.PKI.Intermediates = pool(midCert)
	clock.SetTime(signedAt.Add(time.Hour))
	check(t, "the certificate has ended since", p, a, "x509")
}

// The other roots of trust, from policy objects.
func TestDecodeRoots(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	object := func(root string) (*sigstore.Policy, error) {
		return decode(t, policyObject(t, "ClusterImagePolicy", "v1", "p", "", "[quay.io]", "{rootOfTrust: "+root+"}"))
	}
	ca, log, notECDSA := b64(pemOfCert(rootCert)), b64(pemOf(logKey)), b64(pemOf(rsa2048()))
	subject := "fulcioSubject: {oidcIssuer: '" + issuer + "', signedEmail: " + email + "}"
	fulcio := func(issuer, email string) string {
		return "{policyType: FulcioCAWithRekor, fulcioCAWithRekor: {fulcioCAData: " + ca + ", rekorKeyData: " + log + ", fulcioSubject: {oidcIssuer: '" + issuer + "', signedEmail: '" + email + "'}}}"
	}
	pki := func(subject string) string {
		return "{policyType: PKI, pki: {caRootsData: " + ca + ", pkiCertificateSubject: {" + subject + "}}}"
	}
	for root, want := range map[string]string{
		"{policyType: FulcioCAWithRekor, fulcioCAWithRekor: {fulcioCAData: " + ca + ", rekorKeyData: " + log + ", " + subject + "}}":      "",
		"{policyType: FulcioCAWithRekor, fulcioCAWithRekor: {fulcioCAData: QQ==, rekorKeyData: " + log + ", " + subject + "}}":            "fulcioCAData: 4 characters of base64: 72 to 8192",
		"{policyType: FulcioCAWithRekor, fulcioCAWithRekor: {fulcioCAData: " + ca + ", rekorKeyData: " + notECDSA + ", " + subject + "}}": "must be ECDSA",
		"{policyType: PKI, pki: {caRootsData: " + ca + ", caIntermediatesData: " + ca + ", pkiCertificateSubject: {email: a@b.c}}}":       "",
		"{policyType: PKI, pki: {caRootsData: " + ca + ", caIntermediatesData: QQ==, pkiCertificateSubject: {hostname: a.b}}}":            "caIntermediatesData: 4 characters",
		"{policyType: PKI, pki: {caRootsData: QQ==, pkiCertificateSubject: {email: a@b.c}}}":                                              "caRootsData: 4 characters",
		"{policyType: FulcioCAWithRekor, fulcioCAWithRekor: {fulcioCAData: " + log + ", rekorKeyData: " + log + ", " + subject + "}}":     "fulcioCAData: must begin with -----BEGIN CERTIFICATE-----",
		fulcio("accounts.example.com", email):               `oidcIssuer: "accounts.example.com" is not a URL`,
		fulcio("", email):                                   "oidcIssuer: is required",
		fulcio("https://"+strings.Repeat("a", 2041), email): "oidcIssuer: 2049 characters, more than the limit of 2048",
		fulcio(issuer, "nobody"):                            `signedEmail: "nobody" is not an e-mail address`,
		fulcio(issuer, "a b@c"):                             "is not an e-mail address",
		fulcio(issuer, strings.Repeat("a", 320)+"@b"):       "signedEmail: 322 characters",
		pki("hostname: '*.example.com', email: a@b"):        "",
		pki("hostname: 'a.*.com'"):                          "pkiCertificateSubject.hostname: \"a.*.com\"",
		pki("hostname: Example.com"):                        "pkiCertificateSubject.hostname: \"Example.com\"",
		pki("hostname: " + strings.Repeat("a.", 127)):       "hostname: 254 characters",
		pki("email: '@b'"):                                  "pkiCertificateSubject.email: \"@b\" is not",
		pki("email: ''"):                                    "email or hostname is required",
		"{policyType: PublicKey, publicKey: {keyData: " + log + ", rekorKeyData: " + log + "}}":      "",
		"{policyType: PublicKey, publicKey: {keyData: " + log + ", rekorKeyData: " + notECDSA + "}}": "must be ECDSA, not RSA 2048",
	} {
		p, err := object(root)
		if want == "" && (err != nil || p.Fulcio == nil && p.PKI == nil && p.Log == nil) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60s: %v, want %s", root, err, want)
		}
		if err == nil {
			checktest.Fails(t, checktest.Err(
				p.Verify(t.Context(), repo+"@"+digestA,
					sigstore.MemorySource{digestA: {attach(logKey, payload(digestA, named))}})), "%.60s: a bare signature verified", root)
		}
	}
}

// No bundle and no certificate verifies by chance, or makes the verifier panic.
func FuzzAnnotations(f *testing.F) {
	body := payload(digestA, named)
	plain := attach(leafKey, body)
	roots := x509.NewCertPool()
	roots.AddCert(rootCert)
	log := keyOf(logKey)
	policies := []*sigstore.Policy{
		{Fulcio: &sigstore.Fulcio{Roots: roots, Log: log, Issuer: issuer, Email: email}},
		{PKI: &sigstore.PKI{Roots: roots, Email: email}},
		{Keys: []*sigstore.Key{keyOf(leafKey)}, Log: log},
	}
	c := fulcioLeaf(keep)
	f.Add(byte(0), bundle(entry{sig: sigOf(plain), der: []byte("x"), payload: body}), string(pemOfCert(c)), string(pemOfCert(midCert)))
	f.Add(byte(2), `{"SignedEntryTimestamp":"","Payload":{"body":"","integratedTime":1,"logIndex":1,"logID":""}}`, "", "")
	f.Fuzz(func(t *testing.T, which byte, bundle, certificate, chain string) {
		a := annotated(plain, map[string]string{bundleAnnotation: bundle, certificateAnnotation: certificate, chainAnnotation: chain})
		if v, err := policies[int(which)%3].Verify(t.Context(), repo+"@"+digestA, sigstore.MemorySource{digestA: {a}}); err == nil {
			t.Error(v)
		}
	})
}
