package rules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/httpclient"
	"github.com/clusterupdate/clusterupdate/internal/imageref"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
)

// networkPlugin: 4.17 has no OpenShiftSDN any more.
func networkPlugin(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	network, err := readCluster[configv1.Network](ctx, in, "Networks")
	if err != nil {
		return nil, err
	}
	if network == nil {
		return nil, &preconditions.NotApplicableError{Why: "the cluster has no Network"}
	}
	at := func(field, value string) []preconditions.Object {
		return []preconditions.Object{object[configv1.Network]("", "cluster", field, value, value)}
	}
	field, plugin := "status.networkType", network.Status.NetworkType
	if plugin == "" {
		field, plugin = "spec.networkType", network.Spec.NetworkType
	}
	var found findings
	if plugin == "OpenShiftSDN" {
		found.add(preconditions.Blocking, "OpenShiftSDN", "The network plugin is not in releases from 4.17 on", at(field, plugin), "Migrate to OVN-Kubernetes first")
	}
	if m := network.Status.Migration; m != nil {
		found.add(preconditions.Warning, "NetworkMigrationInProgress", "The network is being migrated", at("status.migration", cmp.Or(m.NetworkType, "of its settings")), "Finish the migration first")
	}
	return found, nil
}

const (
	gatewayGroup             = "gateway.networking.k8s.io"
	gatewayExperimentalGroup = "gateway.networking.x-k8s.io"
	gatewayAck               = "ack-4.18-gateway-api-management-in-4.19"
	gatewayBundle            = "v1.2.0"
	gatewayChannel           = "standard"
)

// gatewayAPI: from 4.19 on the ingress operator manages the definitions of the
// Gateway API. It takes over those that somebody else has installed, and does not
// support any others.
func gatewayAPI(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	crds, err := clusterapi.ListShared(ctx, in.Reader, crdKind, clusterapi.ListOptions{})
	err = optionalAPI(err, "CustomResourceDefinitions")
	var all, odd []preconditions.Object
	for _, crd := range crds {
		u := crd.Unstructured()
		group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
		if group != gatewayGroup && group != gatewayExperimentalGroup {
			continue
		}
		o := preconditions.Object{GVK: crdKind, Name: u.GetName()}
		all = append(all, o)
		o.Note = oddGateway(u.GetName(), u.GetAnnotations())
		if o.Note != "" {
			odd = append(odd, o)
		}
	}
	var found findings
	if len(all) > 0 {
		acks, ackErr := clusterapi.Read[corev1.ConfigMap](ctx, in.Reader, clusterapi.Key(facts.AcksNamespace, facts.AcksName))
		switch {
		case ackErr != nil && !apierrors.IsNotFound(ackErr):
			err = facts.JoinErrors(err, ackErr)
		case acks == nil || acks.Data[gatewayAck] != "true":
			found.add(preconditions.Blocking, "GatewayAPICRDs", "The cluster has definitions of the Gateway API, which the target manages itself", all,
				"Remove them, or acknowledge that they are taken over: "+preconditions.Gate{Key: gatewayAck}.Acknowledge())
		}
	}
	found.add(preconditions.Warning, "GatewayAPICRDsDiffer",
		fmt.Sprintf("Definitions of the Gateway API are not those of the %s channel of %s, which the target has", gatewayChannel, gatewayBundle), odd,
		"Bring them to that release, and remove what it does not have")
	return found, err
}

// oddGateway describes how a definition differs from the target's; empty: it is one
// of them.
func oddGateway(name string, annotations map[string]string) string {
	plural, standard := strings.CutSuffix(name, "."+gatewayGroup)
	if !standard || !slices.Contains([]string{"gatewayclasses", "gateways", "grpcroutes", "httproutes", "referencegrants"}, plural) {
		return "not of the standard set"
	}
	version, channel := annotations[gatewayGroup+"/bundle-version"], annotations[gatewayGroup+"/channel"]
	if version == gatewayBundle && channel == gatewayChannel {
		return ""
	}
	return fmt.Sprintf("bundle-version %q, channel %q", version, channel)
}

// disconnected: the target's signature and image are available to the cluster, even
// if only from ConfigMaps and mirrors. Whether an image can be pulled cannot be
// known from here: a configured mirror counts.
func disconnected(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	var found findings
	var errs []error
	if in.TargetImage == "" || in.TargetImage != in.CurrentImage { // what runs is there
		errs = append(errs, addRetrievable(ctx, in, &found))
	}
	err = addProxyFault(ctx, in, cv, &found)
	return found, facts.JoinErrors(append([]error{err}, errs...)...)
}

// addRetrievable looks for the signature of the target, and for a mirror of its image.
func addRetrievable(ctx context.Context, in *preconditions.Input, found *findings) error {
	image, err := imageref.Parse(in.TargetImage)
	if err != nil || image.Digest == "" {
		why := "the image of the target is not known"
		if in.TargetImage != "" {
			why = fmt.Sprintf("the image of the target is not known by its digest: %q", in.TargetImage)
		}
		return &preconditions.UnknownError{Reason: "TargetImageUnknown", Why: why}
	}
	kept, keptErr := anySignature(ctx, &cluster.ConfigMapStore{Reader: in.Reader}, image.Digest)
	var outside bool
	var outsideErr error
	if in.Signatures != nil {
		outside, outsideErr = anySignature(ctx, in.Signatures, image.Digest)
	}
	var errs []error
	switch {
	case kept || outside:
	case keptErr != nil:
		errs = append(errs, keptErr)
	case in.Signatures == nil:
		errs = append(errs, &preconditions.NoSourceError{Source: "Signatures"})
	default:
		meaning := "No signature of the target is in the cluster or in a store that can be reached, so the release will not verify: " + image.Digest
		if outsideErr != nil {
			meaning += fmt.Sprintf(" (%v)", outsideErr)
		}
		found.addAt(preconditions.Blocking, "SignatureNotAvailable", meaning, "Create a ConfigMap with the signature in "+cluster.ConfigMapNamespace+", as oc adm release mirror does",
			object[corev1.ConfigMap](cluster.ConfigMapNamespace, "", "", "", "label "+cluster.ConfigMapLabel))
	}
	if outside || in.Signatures != nil && outsideErr == nil {
		return facts.JoinErrors(errs...) // connected: no mirror is needed
	}
	mirrored, err := hasMirror(ctx, in, image.Name)
	switch {
	case mirrored:
	case err != nil:
		errs = append(errs, err)
	case in.Signatures == nil:
		errs = append(errs, &preconditions.NoSourceError{Source: "Signatures"})
	default:
		found.addAt(preconditions.Warning, "NoMirror", "No mirror is configured for the repository of the target, and no signature store can be reached: "+image.Name,
			"Mirror the release, and create an ImageDigestMirrorSet for its repository", object[configv1.ImageDigestMirrorSet]("", "", "", "", image.Name))
	}
	return facts.JoinErrors(errs...)
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
	return false, facts.JoinErrors(errs...)
}

// hasMirror reports whether the cluster has a mirror for a repository.
func hasMirror(ctx context.Context, in *preconditions.Input, repository string) (bool, error) {
	found := false
	look := func(source string, mirrors int) { found = found || mirrors > 0 && covers(source, repository) }
	digests, digestsErr := facts.List[configv1.ImageDigestMirrorSet](ctx, in.Reader, clusterapi.ListOptions{})
	for _, set := range digests {
		for _, m := range set.Spec.ImageDigestMirrors {
			look(m.Source, len(m.Mirrors))
		}
	}
	tags, tagsErr := facts.List[configv1.ImageTagMirrorSet](ctx, in.Reader, clusterapi.ListOptions{})
	for _, set := range tags {
		for _, m := range set.Spec.ImageTagMirrors {
			look(m.Source, len(m.Mirrors))
		}
	}
	policies, policiesErr := facts.List[operatorv1alpha1.ImageContentSourcePolicy](ctx, in.Reader, clusterapi.ListOptions{})
	for _, p := range policies {
		for _, m := range p.Spec.RepositoryDigestMirrors {
			look(m.Source, len(m.Mirrors))
		}
	}
	if found {
		return true, nil
	}
	return false, facts.JoinErrors(slices.DeleteFunc([]error{digestsErr, tagsErr, policiesErr}, meta.IsNoMatchError)...)
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

// addProxyFault: the update service did not answer, and a proxy is between.
func addProxyFault(ctx context.Context, in *preconditions.Input, cv *configv1.ClusterVersion, found *findings) error {
	c := openshift.FindCondition(cv.Status.Conditions, configv1.RetrievedUpdates)
	if c == nil || c.Status != configv1.ConditionFalse || c.Reason != "RemoteFailed" {
		return nil
	}
	proxy, err := facts.ReadOrNil[configv1.Proxy](ctx, in.Reader, "", "cluster")
	if proxy == nil {
		return err
	}
	service, err := url.Parse(cmp.Or(string(cv.Spec.Upstream), graph.DefaultUpstream))
	if err != nil {
		return nil // the service is not asked
	}
	by, err := httpclient.Proxy(proxy.Status.HTTPProxy, proxy.Status.HTTPSProxy, proxy.Status.NoProxy)
	if err != nil {
		return errors.New("the cluster's proxy is not a valid URL") // which may have a password
	}
	if by == nil {
		return nil
	}
	through, err := by(&http.Request{URL: service})
	if err != nil || through == nil {
		return nil
	}
	found.addAt(preconditions.Warning, "UpdateServiceNotReached", fmt.Sprintf("The update service at %s does not answer, which is asked through the proxy %s", service.Host, through.Host),
		"Let the proxy through to the update service, or set noProxy for it",
		clusterVersionObject("status.conditions", "RetrievedUpdates="+string(c.Status)+" "+c.Reason), object[configv1.Proxy]("", "cluster", "status", "", ""))
	return nil
}
