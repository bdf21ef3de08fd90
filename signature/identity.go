package signature

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// Identity determines which signed names count: a key that vouches for releases may
// vouch for other images too, and for releases of other versions. The zero value
// refuses nothing, since releases are used from mirrors, and none of this is what
// the cluster-version operator does.
type Identity struct {
	// Repositories are patterns of the repositories (host/path, without tag and
	// digest) under which a release must have been published, one of which must
	// match, in the syntax of path.Match: "*" stands for any part of a name up
	// to the next "/". Empty: any.
	Repositories []string
	// Version wants the signed name's tag to fit the version of the release: see
	// [Fit]. If that version is not known, nothing fits, so that Verify without a
	// version fails: see [ReleaseVerifier].
	Version bool
}

// Check returns why a release of this version must not have been signed under
// reference; nil if it may. The error is a [*Rejection].
func (i Identity) Check(reference, version string) error {
	repository, _ := splitReference(reference)
	if len(i.Repositories) > 0 {
		matches := func(pattern string) bool { ok, err := path.Match(pattern, repository); return ok && err == nil }
		if !slices.ContainsFunc(i.Repositories, matches) {
			return rejectf(WrongIdentity, "%q: its repository is none of %s", bounded.Text(reference, maxReference), bounded.Join(i.Repositories, ", ", maxReference))
		}
	}
	if !i.Version {
		return nil
	}
	switch fit := fitOf(reference, version); fit {
	case FitSame:
		return nil
	case FitUnknown:
		return rejectf(WrongIdentity, "%q: the version of the release is not known, and must fit", bounded.Text(reference, maxReference))
	default:
		return rejectf(WrongIdentity, "%q: its tag does not fit version %s", bounded.Text(reference, maxReference), bounded.Text(version, maxReference))
	}
}

// CheckAll is Check for the name of every signer of a verification. Where i
// refuses anything, a verification that names no signer is refused.
func (i Identity) CheckAll(v *Verification, version string) error {
	if len(v.Signers) == 0 && (i.Version || len(i.Repositories) > 0) {
		return rejectf(WrongIdentity, "the verification does not say who signed")
	}
	var errs []error
	for _, s := range v.Signers {
		if err := i.Check(s.Reference, version); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Keyring, err))
		}
	}
	return bounded.Errors(errs...)
}

// validate reports a pattern that cannot match anything.
func (i Identity) validate() error {
	for _, pattern := range i.Repositories {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("%w: Identity.Repositories: %q: %w", ErrMisconfigured, bounded.Text(pattern, maxReference), err)
		}
	}
	return nil
}

// maxReference bounds, in bytes, each signed name in a text.
const maxReference = 256

// Fit reports whether the name under which a release was signed fits the version of
// the release: whether its tag is that version, in which "_" takes the place of
// "+", and an architecture that may follow (4.18.15-x86_64, 4.18.15-multi,
// 4.18.15-multi-aarch64).
type Fit string

// The values of [Fit].
const (
	FitUnknown Fit = ""      // the release's version was not given
	FitSame    Fit = "Same"  // the tag is of that version
	FitOther   Fit = "Other" // the tag is of another version, or there is none
)

func fitOf(reference, version string) Fit {
	if version == "" {
		return FitUnknown
	}
	_, tag := splitReference(reference)
	rest, ok := strings.CutPrefix(tag, strings.ReplaceAll(version, "+", "_"))
	if !ok {
		return FitOther
	}
	if after, multi := strings.CutPrefix(rest, "-multi"); multi {
		rest = after
	}
	if rest == "" || slices.Contains(architectures, rest) {
		return FitSame
	}
	return FitOther
}

// architectures are the ends of tags, in the words of both Linux and Go.
var architectures = []string{"-x86_64", "-amd64", "-aarch64", "-arm64", "-ppc64le", "-s390x"}

// splitReference splits the name of an image. A digest is dropped.
func splitReference(reference string) (repository, tag string) {
	name, _, _ := strings.Cut(reference, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[:i], name[i+1:]
	}
	return name, ""
}
