package signaturetest

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing/fstest"
)

// CosignLayout returns an OCI image layout with cosign signatures of the image
// with this digest, one for each name that it is signed under. The key is
// ECDSA, RSA or Ed25519; another kind is an error.
func CosignLayout(key crypto.Signer, digest string, references ...string) (fstest.MapFS, error) {
	files := fstest.MapFS{"oci-layout": {Data: []byte(`{"imageLayoutVersion":"1.0.0"}`)}}
	type object = map[string]any
	blob := func(mediaType string, data []byte, annotations object) object {
		sum := fmt.Sprintf("%x", sha256.Sum256(data))
		files["blobs/sha256/"+sum] = &fstest.MapFile{Data: data}
		return object{"mediaType": mediaType, "digest": "sha256:" + sum, "size": len(data), "annotations": annotations}
	}
	config := blob("application/vnd.oci.image.config.v1+json", []byte("{}"), nil)
	var layers []object
	for _, reference := range references {
		payload, err := json.Marshal(object{"optional": nil, "critical": object{
			"type":     "cosign container image signature",
			"image":    object{"docker-manifest-digest": digest},
			"identity": object{"docker-reference": reference},
		}})
		if err != nil {
			return nil, err
		}
		signature, err := signBlob(key, payload)
		if err != nil {
			return nil, err
		}
		layers = append(layers, blob("application/vnd.dev.cosign.simplesigning.v1+json", payload, object{
			"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature),
		}))
	}
	const manifestType = "application/vnd.oci.image.manifest.v1+json"
	manifest, err := json.Marshal(object{"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": layers})
	if err != nil {
		return nil, err
	}
	tag := strings.Replace(digest, ":", "-", 1) + ".sig"
	index, err := json.Marshal(object{"schemaVersion": 2, "manifests": []object{
		blob(manifestType, manifest, object{"org.opencontainers.image.ref.name": tag}),
	}})
	files["index.json"] = &fstest.MapFile{Data: index}
	return files, err
}

func signBlob(key crypto.Signer, blob []byte) ([]byte, error) {
	if _, ok := key.Public().(ed25519.PublicKey); ok {
		return key.Sign(nil, blob, crypto.Hash(0))
	}
	sum := sha256.Sum256(blob)
	return key.Sign(rand.Reader, sum[:], crypto.SHA256)
}
