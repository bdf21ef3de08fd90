package preconditions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/httpclient"
	"github.com/clusterupdate/clusterupdate/internal/imageref"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
)

func disconnectedCheck() Check {
	return documented{Rule{
		Name: "Disconnected", Severities: []Severity{Warning, Blocking},
		Source: "Performing a cluster update in a disconnected environment", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{
			gvkOf[configv1.ClusterVersion](), gvkOf[configv1.Proxy](), gvkOf[corev1.ConfigMap](),
			gvkOf[configv1.ImageDigestMirrorSet](), gvkOf[configv1.ImageTagMirrorSet](), gvkOf[operatorv1alpha1.ImageContentSourcePolicy](),
		},
		Needs: []string{"Signatures"},
	}, disconnected}
}

// disconnected: the target's signature and image can be had where the cluster is, be
// that from ConfigMaps and mirrors. Whether an image can be pulled nobody can tell
// from here: a mirror that is configured counts.
func disconnected(ctx context.Context, in *Input) ([]Finding, error) {
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	findings, err := proxyFault(ctx, in, cv)
	errs := []error{err}
	if in.TargetImage == "" || in.TargetImage != in.CurrentImage { // what runs is there
		more, err := retrievable(ctx, in)
		findings, errs = append(more, findings...), append(errs, err)
	}
	return findings, joinErrors(errs...)
}

// retrievable looks for the signature of the target, and for a mirror of its image.
func retrievable(ctx context.Context, in *Input) ([]Finding, error) {
	image, err := imageref.Parse(in.TargetImage)
	if err != nil || image.Digest == "" {
		return nil, &UnknownError{Reason: "TargetImageUnknown", Why: fmt.Sprintf("the image of the target is not known by its digest: %q", in.TargetImage)}
	}
	kept, keptErr := anySignature(ctx, &cluster.ConfigMapStore{Reader: in.Reader}, image.Digest)
	var outside bool
	var outsideErr error
	if in.Signatures != nil {
		outside, outsideErr = anySignature(ctx, in.Signatures, image.Digest)
	}
	var findings []Finding
	var errs []error
	switch {
	case kept || outside:
	case keptErr != nil:
		errs = append(errs, keptErr)
	case in.Signatures == nil:
		errs = append(errs, &NoSourceError{Source: "Signatures"})
	default:
		meaning := "No signature of the target is in the cluster or in a store that can be reached, so the release will not verify: " + image.Digest
		if outsideErr != nil {
			meaning += fmt.Sprintf(" (%v)", outsideErr)
		}
		f := newFinding(Blocking, "SignatureNotAvailable", meaning, nil,
			"Create a ConfigMap with the signature in "+cluster.ConfigMapNamespace+", as oc adm release mirror does")
		f.Objects = []Object{{GVK: gvkOf[corev1.ConfigMap](), Namespace: cluster.ConfigMapNamespace, Note: "label " + cluster.ConfigMapLabel}}
		findings = append(findings, f)
	}
	if outside || in.Signatures != nil && outsideErr == nil {
		return findings, joinErrors(errs...) // connected: no mirror is needed
	}
	mirrored, err := hasMirror(ctx, in, image.Name)
	switch {
	case mirrored:
	case err != nil:
		errs = append(errs, err)
	case in.Signatures == nil:
		errs = append(errs, &NoSourceError{Source: "Signatures"})
	default:
		f := newFinding(Warning, "NoMirror", "No mirror is configured for the repository of the target, and no signature store can be reached: "+image.Name, nil,
			"Mirror the release, and create an ImageDigestMirrorSet for its repository")
		f.Objects = []Object{{GVK: gvkOf[configv1.ImageDigestMirrorSet](), Note: image.Name}}
		findings = append(findings, f)
	}
	return findings, joinErrors(errs...)
}

// anySignature reports whether a store has a signature, which nobody verifies here.
// The error is for what the store could not look at.
func anySignature(ctx context.Context, s signature.Store, digest string) (bool, error) {
	var errs []error
	for c, err := range s.Candidates(ctx, digest) {
		switch {
		case err == nil && len(c.Signature) > 0:
			return true, nil
		case err != nil && !errors.Is(err, signature.ErrNotFound):
			errs = append(errs, err)
		}
	}
	return false, joinErrors(errs...)
}

// hasMirror reports whether the cluster has a mirror for a repository.
func hasMirror(ctx context.Context, in *Input, repository string) (bool, error) {
	var errs []error
	note := func(err error) {
		if !meta.IsNoMatchError(err) {
			errs = append(errs, err)
		}
	}
	found := false
	look := func(source string, mirrors int) { found = found || mirrors > 0 && covers(source, repository) }
	digests, err := list[configv1.ImageDigestMirrorSet](ctx, in, clusterapi.ListOptions{})
	note(err)
	for _, set := range digests {
		for _, m := range set.Spec.ImageDigestMirrors {
			look(m.Source, len(m.Mirrors))
		}
	}
	tags, err := list[configv1.ImageTagMirrorSet](ctx, in, clusterapi.ListOptions{})
	note(err)
	for _, set := range tags {
		for _, m := range set.Spec.ImageTagMirrors {
			look(m.Source, len(m.Mirrors))
		}
	}
	policies, err := list[operatorv1alpha1.ImageContentSourcePolicy](ctx, in, clusterapi.ListOptions{})
	note(err)
	for _, p := range policies {
		for _, m := range p.Spec.RepositoryDigestMirrors {
			look(m.Source, len(m.Mirrors))
		}
	}
	if found {
		return true, nil
	}
	return false, joinErrors(errs...)
}

// covers reports whether a source of mirrors is for a repository: the same, a parent
// of it, its host, or *. and a parent domain of its host.
func covers(source, repository string) bool {
	if domain, ok := strings.CutPrefix(source, "*"); ok {
		host, _, _ := strings.Cut(repository, "/")
		host, _, _ = strings.Cut(host, ":")
		return strings.HasPrefix(domain, ".") && strings.HasSuffix(host, domain)
	}
	return source != "" && (repository == source || strings.HasPrefix(repository, source+"/"))
}

// proxyFault: the update service did not answer, and a proxy is between.
func proxyFault(ctx context.Context, in *Input, cv *configv1.ClusterVersion) ([]Finding, error) {
	c := condition(cv.Status.Conditions, configv1.RetrievedUpdates)
	if c == nil || c.Status != configv1.ConditionFalse || c.Reason != "RemoteFailed" {
		return nil, nil
	}
	proxy, err := clusterapi.Read[configv1.Proxy](ctx, in.Reader, clusterapi.Key("", "cluster"))
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	service, err := url.Parse(cmp.Or(string(cv.Spec.Upstream), graph.DefaultUpstream))
	if err != nil {
		return nil, nil // the service is not asked
	}
	by, err := httpclient.Proxy(proxy.Status.HTTPProxy, proxy.Status.HTTPSProxy, proxy.Status.NoProxy)
	if err != nil {
		return nil, errors.New("the cluster's proxy is not a valid URL") // which may have a password
	}
	if by == nil {
		return nil, nil
	}
	through, err := by(&http.Request{URL: service})
	if err != nil || through == nil {
		return nil, nil
	}
	f := newFinding(Warning, "UpdateServiceNotReached", fmt.Sprintf("The update service at %s does not answer, which is asked through the proxy %s", service.Host, through.Host), nil,
		"Let the proxy through to the update service, or set noProxy for it")
	f.Objects = append(clusterVersionObject("status.conditions", "RetrievedUpdates="+string(c.Status)+" "+c.Reason), Object{GVK: gvkOf[configv1.Proxy](), Name: "cluster", FieldPath: "status"})
	return []Finding{f}, nil
}
