package sigstore

import (
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/imageref"
)

// Identity determines which signed name counts for the name under which an image is
// used. The zero value is MatchRepoDigestOrExact.
type Identity struct {
	// Match is one of the policies of config.openshift.io; empty means
	// MatchRepoDigestOrExact.
	Match configv1.IdentityMatchPolicy
	// Repository is the one accepted repository, for ExactRepository.
	Repository string
	// Prefix of the name used is replaced by SignedPrefix before the
	// comparison, for RemapIdentity.
	Prefix, SignedPrefix string
}

// Matches reports whether signed, a name out of a signature, counts for image,
// the name in use. Names that cannot be parsed match nothing.
//
//   - MatchRepoDigestOrExact: an image used by digest alone needs the same
//     repository; one with a tag, the very same name; one with neither is
//     refused. The signed name must have a tag or a digest.
//   - MatchRepository: the repositories are the same.
//   - ExactRepository: the signed repository is Repository.
//   - RemapIdentity: as MatchRepoDigestOrExact, after a Prefix of whole parts
//     of the image's name has been replaced once.
func (i Identity) Matches(image, signed string) bool {
	use, err := parseReference(image)
	if err != nil {
		return false
	}
	s, err := parseReference(signed)
	if err != nil {
		return false
	}
	switch i.Match {
	case "", configv1.IdentityMatchPolicyMatchRepoDigestOrExact:
		return repoDigestOrExact(use, s)
	case configv1.IdentityMatchPolicyMatchRepository:
		return use.name == s.name
	case configv1.IdentityMatchPolicyExactRepository:
		want, err := parseReference(i.Repository)
		return err == nil && want.name == s.name
	case configv1.IdentityMatchPolicyRemapIdentity:
		if use.name == i.Prefix || strings.HasPrefix(use.name, i.Prefix+"/") {
			remapped := use
			remapped.name = i.SignedPrefix + use.name[len(i.Prefix):]
			use, err = parseReference(remapped.String())
			if err != nil {
				return false
			}
		}
		return repoDigestOrExact(use, s)
	}
	return false
}

func repoDigestOrExact(use, signed reference) bool {
	switch {
	case signed.tag == "" && signed.digest == "":
		return false
	case use.tag != "":
		return use.String() == signed.String()
	case use.digest != "":
		return use.name == signed.name
	}
	return false
}

// validate reports what is wrong with the fields.
func (i Identity) validate() error {
	switch i.Match {
	case "", configv1.IdentityMatchPolicyMatchRepoDigestOrExact, configv1.IdentityMatchPolicyMatchRepository:
		return nil
	case configv1.IdentityMatchPolicyExactRepository:
		r, err := parseReference(i.Repository)
		if err == nil && (r.tag != "" || r.digest != "") {
			err = fmt.Errorf("a repository has neither tag nor digest")
		}
		if err != nil {
			return fmt.Errorf("exactRepository.repository %q: %w", i.Repository, err)
		}
		return nil
	case configv1.IdentityMatchPolicyRemapIdentity:
		for _, p := range []struct{ field, value string }{{"prefix", i.Prefix}, {"signedPrefix", i.SignedPrefix}} {
			if err := validName(p.value); err != nil {
				return fmt.Errorf("remapIdentity.%s %q: %w", p.field, p.value, err)
			}
		}
		return nil
	}
	return fmt.Errorf("matchPolicy %q is unknown", i.Match)
}

// validName accepts a host, or a host with a path.
func validName(s string) error {
	host, path, ok := strings.Cut(s, "/")
	name, _, _ := strings.Cut(host, ":")
	if !imageref.IsHost(host) || !strings.Contains(host, ".") && name != "localhost" {
		return fmt.Errorf("must begin with a host: a name with a dot, or localhost")
	}
	if ok && !imageref.IsPath(path) {
		return fmt.Errorf("invalid path %q", path)
	}
	return nil
}
