package sigstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/imageref"
	"github.com/clusterupdate/clusterupdate/signature"
)

// Policies are those of a cluster, in any order.
type Policies []*Policy

// ReadPolicies reads all ClusterImagePolicies and ImagePolicies of a cluster. A
// cluster that does not serve these kinds has none. Errors are those of r, and
// name the policy that cannot be used.
func ReadPolicies(ctx context.Context, r clusterapi.Reader) (Policies, error) {
	var all Policies
	var errs []error
	for _, kind := range []string{"ClusterImagePolicy", "ImagePolicy"} {
		for _, version := range []string{"v1", "v1alpha1"} {
			gvk := schema.GroupVersionKind{Group: configv1.GroupName, Version: version, Kind: kind}
			list, err := r.List(ctx, gvk, clusterapi.ListOptions{})
			if meta.IsNoMatchError(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				p, err := decodePolicy(&list.Items[i])
				if err != nil {
					errs = append(errs, err)
					continue
				}
				all = append(all, p)
			}
			if len(list.Items) > 0 {
				break // the older version shows the same objects
			}
		}
	}
	if err := bounded.Errors(errs...); err != nil {
		return nil, err
	}
	return all, nil
}

// For returns the policies that govern an image when a pod of this namespace
// pulls it: those with the most specific scope that matches. Several with the
// same scope must all be satisfied; none means that the image is not governed.
//
// Scopes are, from the most to the least specific: the whole name with tag or
// digest, the repository, each of its parents up to the host, and wildcards
// *.example.com. The scope of an ImagePolicy that equals one of a
// ClusterImagePolicy, or lies within one, does not count. A name that cannot be
// parsed is an error.
func (p Policies) For(image, namespace string) (Policies, error) {
	r, err := parseReference(image)
	if err != nil {
		return nil, fmt.Errorf("image %q: %w", image, err)
	}
	for _, scope := range scopesOf(r) {
		var found Policies
		for _, policy := range p {
			if policy.Namespace != "" && (policy.Namespace != namespace || p.covered(scope)) {
				continue
			}
			if slices.Contains(policy.Scopes, scope) {
				found = append(found, policy)
			}
		}
		if len(found) > 0 {
			slices.SortStableFunc(found, func(a, b *Policy) int { return strings.Compare(a.Name, b.Name) })
			return found, nil
		}
	}
	return nil, nil
}

// Verify reports who vouches for an image by every policy that governs it. An
// image that none governs gives a Verification without signers: nothing is
// required of it. Errors are those of [Policies.For] and [Policy.Verify].
func (p Policies) Verify(ctx context.Context, image, namespace string, src Source) (*signature.Verification, error) {
	governing, err := p.For(image, namespace)
	if err != nil {
		return nil, &signature.Error{Digest: signature.Digest(image), Err: err}
	}
	all := &signature.Verification{Digest: signature.Digest(image)}
	for _, policy := range governing {
		v, err := policy.Verify(ctx, image, src)
		if err != nil {
			return nil, err
		}
		all.Signers = append(all.Signers, v.Signers...)
	}
	return all, nil
}

// covered reports whether a scope equals one of a cluster's policies, or lies
// within one.
func (p Policies) covered(scope string) bool {
	for _, policy := range p {
		if policy.Namespace != "" {
			continue
		}
		for _, s := range policy.Scopes {
			if within(scope, s) {
				return true
			}
		}
	}
	return false
}

// within reports whether scope is outer, or nested in it.
func within(scope, outer string) bool {
	if scope == outer {
		return true
	}
	if domain, ok := strings.CutPrefix(outer, "*"); ok { // ".example.com"
		host, _, _ := strings.Cut(strings.TrimPrefix(scope, "*"), "/")
		return strings.HasSuffix(host, domain)
	}
	rest, ok := strings.CutPrefix(scope, outer)
	if !ok {
		return false
	}
	switch rest[0] {
	case '/', '@':
		return true
	case ':': // a tag, but not the port of a host
		return strings.Contains(outer, "/")
	}
	return false
}

// scopesOf lists the scopes that match an image, the most specific first.
func scopesOf(r reference) []string {
	var out []string
	if r.tag != "" && r.digest != "" {
		out = append(out, r.String())
	}
	if r.digest != "" {
		out = append(out, r.name+"@"+r.digest)
	}
	if r.tag != "" {
		out = append(out, r.name+":"+r.tag)
	}
	name := r.name
	for {
		out = append(out, name)
		i := strings.LastIndexByte(name, '/')
		if i < 0 {
			break
		}
		name = name[:i]
	}
	host := name
	for {
		_, parent, ok := strings.Cut(host, ".")
		if !ok {
			return out
		}
		out = append(out, "*."+parent)
		host = parent
	}
}

const maxScope = 512

// validScope reports what is wrong with a scope.
func validScope(s string) error {
	if len(s) > maxScope {
		return fmt.Errorf("%d characters, more than the limit of %d", len(s), maxScope)
	}
	if domain, ok := strings.CutPrefix(s, "*."); ok {
		if strings.Contains(domain, "/") || !imageref.IsHost(domain) {
			return fmt.Errorf("%q: a wildcard stands for hosts, as in *.example.com", s)
		}
		return nil
	}
	host, _, ok := strings.Cut(s, "/")
	if !ok {
		return validName(host)
	}
	if err := validName(host); err != nil {
		return fmt.Errorf("%q: %w", s, err)
	}
	if _, err := parseReference(s); err != nil {
		return fmt.Errorf("%q: %w", s, err)
	}
	return nil
}
