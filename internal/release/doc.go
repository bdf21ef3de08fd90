// Package release decodes what a release image says about itself: the file
// release-manifests/release-metadata.
//
// The file is a JSON object of kind cincinnati-metadata-v0 with the release's
// version, the versions that may update to it (previous), those that it may
// update to (next), and a free-form map of metadata.
//
// # Limits
//
// What is above a limit is not read; a real file has some 10 KB.
//
//	limit                    default  field  past it
//	size of the file         256 KiB  -      error
//	nesting of the metadata  100      -      error
//	text of a warning        1 KiB    -      cut, saying how much is missing
package release
