// Package signature decides whether a release image may be trusted, before
// anything of it is downloaded.
//
// # What is signed
//
// A release is named by digest. Its publisher signs a short JSON statement: the
// image with this digest was published under this name. The statement and its
// signature form one OpenPGP message, in the "simple signing" format of
// containers/image:
//
//	{"critical": {"type": "atomic container signature",
//	    "image": {"docker-manifest-digest": "sha256:…"},
//	    "identity": {"docker-reference": "quay.io/openshift-release-dev/ocp-release:4.18.15-x86_64"}},
//	 "optional": {"creator": "…", "timestamp": 1700000000}}
//
// Messages are published as files <store>/sha256=<hash>/signature-1,
// signature-2, and so on. A [Store] finds them: [HTTPStore], [FileStore],
// [MemoryStore], and those of package signature/cluster; [Serial] and [Parallel]
// combine them. Stores are not trusted.
//
// # Who must have signed
//
// Trust comes from the payload that runs: a ConfigMap in it holds keyrings and
// the addresses of stores (cluster.FromManifests). [OpenPGP.Verify] wants a valid
// signature for every [Keyring], made by any of its keys, found in any store.
// The digest must be equal byte for byte; the name is not compared with
// anything, since releases are used from mirrors. What a success does not say is
// that a release is recent: an old one that was signed stays signed.
//
// # What is accepted
//
// Exactly one shape of message: an optional compression, a one-pass signature,
// literal data, a signature of version 3 or 4, and the end. Most published
// release signatures have version 3, which OpenPGP libraries have stopped
// reading; this package reads packets on its own and leaves the arithmetic to
// the standard library. The cluster-version operator accepts more, which nobody
// publishes: data after the message, several layers of compression, MD5 and
// SHA-1, RSA keys below 2048 bits, DSA, JSON keys in other case or twice. It
// also ignores when keys expire; here a key must have been valid when it signed,
// unless [Options] say otherwise. Ed25519 keys work in addition.
//
// In a keyring, a signature belongs to what it verifies over, wherever it stands:
// behind a subkey, behind another key, in an armored block of its own. A key's
// use and its end each come from the newest self-signature that states them, of
// the newest over the key and over each user id; one that states a time twice
// makes its key unusable. A revocation by the owner, or by a key of the ring that
// the owner has named as its revoker, makes a key unusable for good. One that
// matches nothing in the keyring refuses the keyring: it may be about a key that
// is in use. Certifications of keys outside of the keyring, and their
// revocations, count for nothing. Where a system allows FIPS 140-3 alone,
// fingerprints are still computed, but self-signatures over SHA-1 do not count
// and revocations over SHA-1 refuse the keyring; the error says so. Elsewhere,
// [Keyring.Skipped] warns of keys that rest on SHA-1 or MD5.
//
// # Clusters
//
// Package signature/cluster has the stores of a cluster, what a payload trusts,
// and keeps what was verified. Package signature/sigstore verifies images by the
// other system, cosign signatures; its verifiers are a [Verifier], too.
// [Insecure] verifies nothing. Package signature/signaturetest signs.
//
// An [OpenPGP], [Keyring] and the stores are safe for concurrent use. Types
// without hidden fields are plain data: safe to read from many goroutines at a
// time, not to change while others read.
//
// Every failure is an [*Error]: the operator's one-line text, with every
// attempt as data, and [Error.Summary] for the most telling one. Signatures that
// were refused carry a [*Rejection] with a [Reason].
//
// docs/limits.md lists the limits of this package.
//
// Formats: RFC 9580 and RFC 4880 (OpenPGP), the signature format of
// https://github.com/containers/image/blob/main/docs/containers-signature.5.md,
// and the verification of https://github.com/openshift/library-go/tree/master/pkg/verify.
package signature
