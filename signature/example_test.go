package signature_test

import (
	"bytes"
	"context"
	"fmt"
	"testing/fstest"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	pgppacket "github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/signaturetest"
)

// A publisher signs a release, and a cluster that trusts its key verifies it.
func Example() {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	signed := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)

	// The publisher.
	publisher, err := openpgp.NewEntity("Example", "", "release@example.com", &pgppacket.Config{
		Algorithm: pgppacket.PubKeyAlgoEdDSA, Time: func() time.Time { return signed },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	body, err := signature.Body(digest, "registry.example/release:4.18.15", "example", signed)
	if err != nil {
		fmt.Println(err)
		return
	}
	message, err := signaturetest.Sign(publisher, body, signed)
	if err != nil {
		fmt.Println(err)
		return
	}
	var public bytes.Buffer
	if err := publisher.Serialize(&public); err != nil {
		fmt.Println(err)
		return
	}

	// The cluster.
	keyring, err := signature.ParseKeyring("verifier-public-key-example", public.Bytes())
	if err != nil {
		fmt.Println(err)
		return
	}
	files := fstest.MapFS{
		"sha256=" + digest[len("sha256:"):] + "/signature-1": {Data: message},
	}
	verifier := signature.NewVerifier([]*signature.Keyring{keyring}, &signature.FileStore{FS: files, Name: "mirror"})

	verified, err := verifier.Verify(context.Background(), signature.Digest("mirror.example/release@"+digest))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range verified.Signers {
		fmt.Println(s.UserID, "signed", s.Reference, "on", s.Created.Format(time.DateOnly))
	}

	_, err = verifier.Verify(context.Background(), "sha256:ffff")
	fmt.Println(err)
	// Output:
	// Example <release@example.com> signed registry.example/release:4.18.15 on 2024-05-01
	// unable to verify sha256:ffff against keyrings: verifier-public-key-example: no signature found
}

func ExampleError_Summary() {
	err := &signature.Error{
		Digest: "sha256:ffff", Keyrings: []string{"verifier-public-key-example"},
		Attempts: []signature.Attempt{{Err: fmt.Errorf("mirror: %w", signature.ErrNotFound)}},
	}
	fmt.Println(err.Summary())
	// Output: unable to verify sha256:ffff against keyrings: verifier-public-key-example: no signature found
}

func ExampleDigest() {
	fmt.Println(signature.Digest("quay.io/openshift-release-dev/ocp-release@sha256:ffff"))
	// Output: sha256:ffff
}
