package signature

import (
	"errors"
	"fmt"
	"strings"
)

// validDigest reports whether digest matches what the cluster-version operator
// accepts, ^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$ as a whole. That
// admits neither a slash nor "..", so that a digest cannot leave the directory,
// URL or key that a store derives from it. It runs for every store: the
// expression itself would cost more than the rest of a store's work.
func validDigest(digest string) bool {
	algo, hash, ok := strings.Cut(digest, ":")
	if !ok || hash == "" {
		return false
	}
	word := false // whether the last octet was of a word
	for i := range len(algo) {
		switch c := algo[i]; {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			word = true
		case word && (c == '.' || c == '+' || c == '_' || c == '-'):
			word = false
		default:
			return false
		}
	}
	for i := range len(hash) {
		switch c := hash[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '=', c == '_', c == '-':
		default:
			return false
		}
	}
	return word
}

// Digest returns the digest of a pull spec: the text after the last "@", or "" if
// absent (an image named by tag). It does not check the digest's syntax.
func Digest(pullSpec string) string {
	i := strings.LastIndexByte(pullSpec, '@')
	if i < 0 {
		return ""
	}
	return pullSpec[i+1:]
}

// validateDigest reports whether digest has the form that the cluster-version
// operator accepts, ALGO:HASH, with an error that quotes it. Neither the
// algorithm nor the length of the hash are checked: see
// [ValidateDigestStrict].
func validateDigest(digest string) error {
	if !validDigest(digest) {
		return fmt.Errorf("the provided release image digest has an invalid format: %q", digest)
	}
	return nil
}

// ErrUnsupportedDigest is wrapped by [ValidateDigestStrict].
var ErrUnsupportedDigest = errors.New("unsupported digest")

// ValidateDigestStrict reports whether digest is ALGO:HASH with one of sha256,
// sha384 and sha512 and its exact number of lower-case hexadecimal digits, else
// the error is [ErrUnsupportedDigest].
func ValidateDigestStrict(digest string) error {
	if err := validateDigest(digest); err != nil {
		return err
	}
	algo, hash, _ := strings.Cut(digest, ":")
	want := map[string]int{"sha256": 64, "sha384": 96, "sha512": 128}[algo]
	if want == 0 {
		return fmt.Errorf("%w: algorithm of %q is none of sha256, sha384, sha512", ErrUnsupportedDigest, digest)
	}
	if len(hash) != want || strings.Trim(hash, "0123456789abcdef") != "" {
		return fmt.Errorf("%w: %q does not have %d lower-case hexadecimal digits", ErrUnsupportedDigest, digest, want)
	}
	return nil
}

// DigestKey joins algorithm and hash of a digest by sep, for use as a path
// element or key. It checks the digest again, since a store may be called by
// anyone: the errors say what is wrong with its form.
func DigestKey(digest, sep string) (string, error) {
	if err := checkDigest(digest); err != nil {
		return "", err
	}
	algo, hash, _ := strings.Cut(digest, ":")
	return algo + sep + hash, nil
}

// checkDigest is what stores ask of a digest.
func checkDigest(digest string) error {
	algo, hash, _ := strings.Cut(digest, ":")
	if algo == "" || hash == "" || strings.Contains(hash, ":") {
		return errors.New("the provided digest must be of the form ALGO:HASH")
	}
	return validateDigest(digest)
}
