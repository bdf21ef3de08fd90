// Package signature decides whether a release image may be trusted, before
// anything of it is downloaded.
//
// A release is named by digest. Its publisher signs a short JSON statement: the image
// with this digest was published under this name. Statement and signature form one
// OpenPGP message, in the "simple signing" format of containers/image:
//
//	{"critical": {"type": "atomic container signature",
//	    "image": {"docker-manifest-digest": "sha256:…"},
//	    "identity": {"docker-reference": "quay.io/openshift-release-dev/ocp-release:4.18.15-x86_64"}},
//	 "optional": {"creator": "…", "timestamp": 1700000000}}
//
// Messages are published as files <store>/sha256=<hash>/signature-1, signature-2, and
// so on. A [Store] finds them: [HTTPStore], [FileStore], [MemoryStore], and those of
// package signature/cluster; [Serial] and [Parallel] combine them. Stores are not
// trusted.
//
// Trust comes from the payload that runs: a ConfigMap in it has keyrings and the
// addresses of stores (cluster.FromManifests). [OpenPGP.Verify] requires a valid
// signature for every [Keyring], made by any of its keys, found in any store. The
// digest must be equal byte for byte. The name may be any, since releases are used
// from mirrors, unless [Options] have an [Identity]. A signature does not prove that a
// release is recent: an old one that was signed stays signed.
//
// One shape of message is accepted: an optional compression, a one-pass signature,
// literal data, a signature of version 3 or 4, and the end. Most release signatures
// have version 3, which OpenPGP libraries no longer read; this package reads packets
// itself and leaves the arithmetic to the standard library. It refuses what the
// cluster-version operator accepts and nobody publishes, and unlike the operator it
// requires that a key was valid when it signed. docs/signatures.md has the details,
// and those of keyrings.
//
// Every failure is an [*Error]: the operator's one-line text, with every attempt as
// data, and [Error.Summary] for the most telling one. A refused signature has a
// [*Rejection] with a [Reason].
//
// Package signature/cluster has the stores of a cluster, what a payload trusts, and
// keeps what was verified. The verifiers of package signature/sigstore, for cosign
// signatures, are a [Verifier] too. [Insecure] verifies nothing. Package
// signature/signaturetest signs.
//
// An [OpenPGP], a [Keyring] and the stores are safe for concurrent use; other types
// are plain data. docs/limits.md lists the limits.
//
// Sources: RFC 9580 and RFC 4880 (OpenPGP),
// https://github.com/containers/image/blob/main/docs/containers-signature.5.md, and
// https://github.com/openshift/library-go/tree/master/pkg/verify.
package signature
