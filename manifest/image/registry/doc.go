// Package registry reads release payloads and cosign signatures from image registries,
// over the authentication and transport of github.com/google/go-containerregistry. It is
// a separate module, so that programs which need no registry do not depend on that.
//
//	src, err := registry.New(registry.Options{
//		Keychain: authn.DefaultKeychain, // the login of docker and podman
//		Mirrors:  []string{"mirror.example/ocp/release", "quay.io/openshift-release-dev/ocp-release"},
//		Retries:  3,
//		Image:    image.Options{Platform: image.Platform{Architecture: "amd64"}},
//	})
//	...
//	fsys, err := src.Payload(ctx, configv1.Release{Image: "quay.io/openshift-release-dev/ocp-release@sha256:..."})
//
// All that package image says of verification and limits holds: the digest in the
// pull spec is believed, the registry is not. [OpenSource] makes a source of cosign
// signatures of a registry, for package signature/sigstore.
//
// Requests go by https, unless [Options.PlainHTTP] allows http, and by no proxy unless
// one is given. Credentials are sent when the registry asks for them, to its own host
// and to the token service that it names; they follow no redirect. A redirect that leaves
// https is refused, and so is one to an address that only this machine or its network
// has, unless it is the registry's own or [Options.PrivateRedirects] allows it.
//
// The protocol is
// https://github.com/opencontainers/distribution-spec/blob/main/spec.md.
package registry
