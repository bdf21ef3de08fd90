// Package sigstore verifies images by cosign signatures: signatures that lie
// beside an image in its registry, checked against a public key and a policy
// about names. In a cluster the container runtime does that on every pull, as
// ClusterImagePolicy and ImagePolicy objects say; this package gives the same
// answer without a cluster, before a pull, for a mirror or a must-gather.
//
// # What is signed
//
// A signature covers a short JSON payload:
//
//	{"critical": {"type": "cosign container image signature",
//	    "image": {"docker-manifest-digest": "sha256:…"},
//	    "identity": {"docker-reference": "quay.io/openshift-release-dev/ocp-release:4.21.1-x86_64"}},
//	 "optional": null}
//
// Payloads are the layers of an OCI image with the tag sha256-<hash>.sig in the
// image's repository; each layer's annotation holds the signature. A [Source] finds
// them: [OpenSource] in an OCI image layout or a mirror on disk, [FromStore] in a
// registry, [MemorySource] in memory. The index of a multi-architecture image and each
// of its images have their own.
//
// # What counts
//
// [Policy.Verify] wants one [Attachment] that passes all of: base64, the
// arithmetic over the payload's bytes, the strict form of the JSON, the digest
// of the image, the name. Names are compared as an [Identity] says; by default
// an image used by digest must have been signed under its own repository.
// [Policies] finds the policies that govern an image, the most specific scope
// alone.
//
// [Policy.Verifier] makes a [signature.Verifier] of a policy and a source, for
// use wherever an OpenPGP verifier is. The two systems are independent: what
// forces an update past a missing OpenPGP signature does not reach the
// container runtime.
//
// Neither system proves that an image is recent.
//
// Instead of keys a policy may name certificate authorities: [Fulcio], whose
// certificates live for minutes and whose signatures a transparency log must
// have taken in, or [PKI]. With keys, too, a log may be demanded. A log's word
// is its signature in the attachment; nothing is asked on a network.
//
// # Limits
//
// What comes from stores and files is bounded, the total by [Limits]. The error of
// a limit names its field, if it has one.
//
// docs/limits.md lists the limits of this package.
//
// # Formats
//
// The container signature format of
// https://github.com/containers/image/blob/main/docs/containers-signature.5.md,
// the layout of https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md,
// policies of https://github.com/containers/image/blob/main/docs/containers-policy.json.5.md
// and of OpenShift's config.openshift.io/v1.
//
// A type that holds a key or a cache reports whether it is safe for concurrent use.
// All others are plain data: safe to read from many goroutines at a time, not to
// change while others read.
package sigstore
