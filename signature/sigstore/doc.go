// Package sigstore verifies images by cosign signatures: signatures that lie next to
// an image in its registry, checked against a public key and a policy about names. In
// a cluster the container runtime does that on every pull, by ClusterImagePolicy and
// ImagePolicy objects; this package gives the same answer without a cluster, before
// a pull, for a mirror or a must-gather.
//
// A signature covers a short JSON payload:
//
//	{"critical": {"type": "cosign container image signature",
//	    "image": {"docker-manifest-digest": "sha256:…"},
//	    "identity": {"docker-reference": "quay.io/openshift-release-dev/ocp-release:4.21.1-x86_64"}},
//	 "optional": null}
//
// Payloads are the layers of an OCI image with the tag sha256-<hash>.sig in the image's
// repository; the annotation of each layer has the signature. A [Source] finds them:
// [OpenSource] in an OCI image layout or a mirror on disk, [FromStore] in a registry,
// [MemorySource] in memory. The index of a multi-architecture image and each of its
// images have their own.
//
// [Policy.Verify] requires one [Attachment] that passes all of: base64, the arithmetic
// over the payload's bytes, the strict form of the JSON, the digest of the image, the
// name. An [Identity] compares names; by default an image used by digest must have been
// signed under its own repository. [Policies] finds the policies that govern an image,
// the most specific scope alone.
//
// Instead of keys a policy may name certificate authorities: [Fulcio], whose
// certificates live for minutes and whose signatures must be in a transparency log, or
// [PKI]. A policy with keys may demand a log, too. The log's own signature in the
// attachment proves that; nothing is asked on a network.
//
// [Policy.Verifier] makes a [signature.Verifier] of a policy and a source. The two
// systems are independent: what forces an update past a missing OpenPGP signature does
// not reach the container runtime. Neither proves that an image is recent.
//
// Sources: https://github.com/containers/image/blob/main/docs/containers-signature.5.md,
// https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md,
// https://github.com/containers/image/blob/main/docs/containers-policy.json.5.md, and
// OpenShift's config.openshift.io/v1.
//
// A type that holds a key or a cache documents whether it is safe for concurrent use;
// all others are plain data. docs/limits.md lists the limits.
package sigstore
