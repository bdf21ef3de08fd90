package sigstore_test

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"

	"github.com/clusterupdate/clusterupdate/signature/sigstore"
)

func Example() {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

	// The publisher signs a payload and attaches it to the image.
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	payload, err := sigstore.MarshalPayload(digest, "quay.io/openshift-release-dev/ocp-release:4.21.1-x86_64")
	if err != nil {
		panic(err)
	}
	attached := sigstore.MemorySource{digest: {{Payload: payload, Annotations: map[string]string{
		sigstore.SignatureAnnotation: base64.StdEncoding.EncodeToString(ed25519.Sign(private, payload)),
	}}}}

	// Who uses the image has the public key.
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		panic(err)
	}
	key, err := sigstore.ParseKey(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	if err != nil {
		panic(err)
	}
	policy := &sigstore.Policy{Name: "openshift", Keys: []*sigstore.Key{key}}

	for _, image := range []string{"quay.io/openshift-release-dev/ocp-release@" + digest, "mirror.example.com/release@" + digest} {
		v, err := policy.Verify(context.Background(), image, attached)
		if err != nil {
			fmt.Println("refused:", err)
			continue
		}
		fmt.Println("signed as", v.Signers[0].Reference)
	}
	// Output:
	// signed as quay.io/openshift-release-dev/ocp-release:4.21.1-x86_64
	// refused: Signature for identity "quay.io/openshift-release-dev/ocp-release:4.21.1-x86_64" is not accepted
}
