// Package signaturetest makes keys and signed messages for tests of programs that
// verify releases, in every shape that has been published: with signature packets
// of version 3 and 4, compressed and not, over text and binary data, in one piece
// and in parts. Libraries no longer write some forms.
//
//	key, err := signaturetest.NewKey(signaturetest.KeyOptions{})
//	message, err := key.SignRelease("sha256:…", "quay.io/a/b:1", signaturetest.Shape{Version: 3, Compressed: true})
//	ring, err := signature.ParseKeyring("test", key.Public())
//	verifier := signature.NewVerifier([]*signature.Keyring{ring}, signature.MemoryStore{"sha256:…": {message}})
//
// [Shape] also makes what must be refused. [Server] serves messages as a store
// on the web does, with faults; [CosignLayout] makes signatures of the other
// system.
//
// The keys are for tests alone: nothing protects them.
//
// A type that holds a key or a cache reports whether it is safe for concurrent use.
// All others are plain data: safe for concurrent use as long as nobody
// changes them.
package signaturetest
