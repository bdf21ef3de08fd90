package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/operators"
)

const rootSecretNamespace = "kube-system"

// credentialState is how a cluster has its cloud credentials.
type credentialState struct {
	platform configv1.PlatformType
	stackHub bool // Azure Stack Hub
	manual   bool
	object   *operatorv1.CloudCredential
}

// readCredentialState reads it. Applicable platforms are those with cloud credentials that an administrator may have
// to prepare. Others are a [preconditions.NotApplicableError].
func readCredentialState(ctx context.Context, in *preconditions.Input) (*credentialState, error) {
	infrastructure, err := facts.Infrastructure(ctx, in.Reader)
	if err != nil {
		return nil, err
	}
	s := &credentialState{platform: facts.Platform(infrastructure)}
	if rootSecret(s.platform) == "" && s.platform != configv1.IBMCloudPlatformType && s.platform != configv1.NutanixPlatformType {
		return nil, &preconditions.NotApplicableError{Why: fmt.Sprintf("platform %q has no cloud credentials to prepare", string(s.platform))}
	}
	if p := infrastructure.Status.PlatformStatus; p != nil && p.Azure != nil {
		s.stackHub = p.Azure.CloudName == configv1.AzureStackCloud
	}
	s.object, err = facts.ReadOrNil[operatorv1.CloudCredential](ctx, in.Reader, "", "cluster")
	if err != nil {
		return nil, err
	}
	if s.object == nil {
		return nil, &preconditions.NotApplicableError{Why: "the cluster has no CloudCredential"}
	}
	s.manual, err = operators.ManualCredentials(ctx, in.Reader, s.object)
	return s, err
}

// rootSecret is the name of the administrator's credentials on a platform; empty: it has
// none.
func rootSecret(platform configv1.PlatformType) string {
	return map[configv1.PlatformType]string{
		configv1.AWSPlatformType:       "aws-creds",
		configv1.AzurePlatformType:     "azure-credentials",
		configv1.GCPPlatformType:       "gcp-credentials",
		configv1.OpenStackPlatformType: "openstack-credentials",
		configv1.VSpherePlatformType:   "vsphere-creds",
	}[platform]
}

// cloudCredentials: in manual mode the administrator has prepared the credentials for
// the target and said so; in the other modes the operator has what it takes to do it.
func cloudCredentials(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	s, err := readCredentialState(ctx, in)
	if err != nil {
		return nil, err
	}
	text, ok, err := completedVersion(ctx, in)
	if err != nil || !ok {
		return nil, err // an installation is not held up
	}
	value := s.object.Annotations[operators.AnnotationUpgradeableTo]
	find := func(severity preconditions.Severity, reason, message, remedy string) []preconditions.Finding {
		return []preconditions.Finding{findingAt(severity, reason, message, remedy,
			object[operatorv1.CloudCredential]("", "cluster", "metadata.annotations["+operators.AnnotationUpgradeableTo+"]", value, ""))}
	}
	completed := facts.VersionOrNil(text)
	if completed == nil {
		return find(preconditions.Blocking, "ErrorDeterminingUpgradeable",
			fmt.Sprintf("The version that was completed last is not a semantic version: %q", text), "Repair status.history of the ClusterVersion"), nil
	}
	last := openshift.MinorOf(completed)
	prepared, ok := upgradeableTo(s.object)
	ok = ok && prepared.Above(last)
	switch {
	case !s.manual && ok:
		return nil, nil
	case !s.manual:
		return missingRoot(ctx, in, s.platform)
	}
	remedy, remedyErr := s.remedy(ctx, in)
	switch {
	case !ok:
		return find(preconditions.Blocking, "MissingUpgradeableAnnotation", "Upgradeable annotation "+operators.AnnotationUpgradeableTo+
			" on cloudcredential.operator.openshift.io/cluster object needs updating before upgrade."+
			" See Manually Creating IAM documentation for instructions on preparing a cluster for upgrade.", remedy), remedyErr
	case in.Target != nil && openshift.MinorOf(in.Target).Above(prepared):
		return find(preconditions.Blocking, "MissingUpgradeableAnnotation",
			fmt.Sprintf("The credentials are prepared up to %s, and the target is %s", value, in.Target), remedy), remedyErr
	case !prepared.Follows(last) && (in.Target == nil || prepared.Above(openshift.MinorOf(in.Target))):
		return find(preconditions.Warning, "UpgradeableAnnotationAhead", "The credentials are said to be prepared up to "+value+
			", more than one minor version ahead: what later releases need is not known yet",
			"Set the annotation to the version of the next update"), nil
	}
	return nil, nil
}

// upgradeableTo reads the annotation. What cannot be read counts as absent.
func upgradeableTo(c *operatorv1.CloudCredential) (minor openshift.Minor, ok bool) {
	text := strings.TrimPrefix(c.Annotations[operators.AnnotationUpgradeableTo], "v")
	if strings.Count(text, ".") == 1 {
		text += ".0"
	}
	v, err := facts.ParseVersion(text)
	if err != nil {
		return openshift.Minor{}, false
	}
	return openshift.MinorOf(v), true
}

// completedVersion is the text of the version that was completed last; ok is false if none
// was.
func completedVersion(ctx context.Context, in *preconditions.Input) (text string, ok bool, err error) {
	if in.Completed != nil {
		return in.Completed.String(), true, nil
	}
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return "", false, err
	}
	text, ok = facts.CompletedVersion(cv.Status.History)
	return text, ok, nil
}

// missingRoot looks for the administrator's credentials, which are not read.
func missingRoot(ctx context.Context, in *preconditions.Input, platform configv1.PlatformType) ([]preconditions.Finding, error) {
	name := rootSecret(platform)
	if name == "" {
		return nil, nil
	}
	_, err := clusterapi.GetShared(ctx, in.Reader, gvkOf[corev1.Secret](), clusterapi.Key(rootSecretNamespace, name))
	if !apierrors.IsNotFound(err) {
		return nil, err
	}
	return []preconditions.Finding{findingAt(preconditions.Blocking, "MissingRootCredential", fmt.Sprintf("Parent credentials secret must be restored prior to upgrade: %s/%s", rootSecretNamespace, name),
		"Restore the administrator's credentials in this Secret", object[corev1.Secret](rootSecretNamespace, name, "", "", ""))}, nil
}

// remedy describes how credentials are prepared in manual mode. With an error it says
// so for both ways.
func (s *credentialState) remedy(ctx context.Context, in *preconditions.Input) (string, error) {
	const annotate = ", then annotate: oc annotate cloudcredential cluster " + operators.AnnotationUpgradeableTo + "=VERSION --overwrite"
	const byHand = "Extract the CredentialsRequests of the target and update the cloud's permissions and the Secrets by hand" + annotate
	const byTool = "Extract the CredentialsRequests of the target and run ccoctl on them" + annotate
	switch {
	case s.stackHub:
		return byHand, nil
	case s.platform == configv1.IBMCloudPlatformType || s.platform == configv1.NutanixPlatformType:
		return byTool, nil
	}
	a, err := facts.ReadOrNil[configv1.Authentication](ctx, in.Reader, "", "cluster")
	switch {
	case err != nil:
		return "Extract the CredentialsRequests of the target and run ccoctl on them, or update the Secrets by hand" + annotate, err
	case a != nil && a.Spec.ServiceAccountIssuer != "":
		return byTool, nil
	}
	return byHand, nil
}

// credentialsRequests: in manual mode every Secret that the target's components read
// their cloud credentials from is there. Whether it allows what they need cannot be
// seen; a finding names what has changed since the current release.
func credentialsRequests(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	s, err := readCredentialState(ctx, in)
	if err != nil {
		return nil, err
	}
	if !s.manual {
		return nil, &preconditions.NotApplicableError{Why: "cloud credentials are not maintained by hand"}
	}
	if in.TargetPayload == nil {
		return nil, &preconditions.NoSourceError{Source: "TargetPayload"}
	}
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	requests, err := operators.RequestsOf(cv, in.CurrentPayload, in.TargetPayload, s.platform)
	errs := []error{err}
	var found findings
	for _, kind := range []struct {
		gvk                     schema.GroupVersionKind
		reason, meaning, remedy string
	}{
		{operators.NamespaceKind, "CredentialsNamespaceMissing", "Namespaces of cloud credentials that the target needs are missing", "Create each: oc create namespace NAME"},
		{operators.SecretKind, "CredentialsSecretMissing", "Secrets with cloud credentials that the target needs are missing", "Create each with ccoctl, or by hand as its CredentialsRequest asks"},
	} {
		missing, readErrs := requests.Missing(ctx, in.Reader, kind.gvk)
		errs = append(errs, readErrs...)
		var objects []preconditions.Object
		for _, r := range missing {
			key := operators.ObjectOf(r, kind.gvk)
			objects = append(objects, preconditions.Object{GVK: kind.gvk, Namespace: key.Namespace, Name: key.Name, Note: "for CredentialsRequest " + r.Namespace + "/" + r.Name})
		}
		found.add(preconditions.Blocking, kind.reason, kind.meaning, objects, kind.remedy)
	}
	if in.CurrentPayload == nil {
		return found, facts.JoinErrors(append(errs, &preconditions.NoSourceError{Source: "CurrentPayload"})...)
	}
	changed, err := changedRequests(in.CurrentPayload, s.platform, requests)
	found.add(preconditions.Warning, "CredentialsPermissionsChanged", "Components of the target need other permissions than those of the current release", changed,
		"Bring the permissions in the cloud up to date")
	return found, facts.JoinErrors(append(errs, err)...)
}

// changedRequests compares requests with those of the same name in the current
// release. A new one is not a change.
func changedRequests(current *manifest.Payload, platform configv1.PlatformType, requests operators.Requests) ([]preconditions.Object, error) {
	before, err := current.CredentialsRequests(platform, requests.Filter)
	byName := make(map[string]*manifest.CredentialsRequest, len(before))
	for _, r := range before {
		byName[r.Namespace+"/"+r.Name] = r
	}
	var changed []preconditions.Object
	for _, r := range requests.All {
		was := byName[r.Namespace+"/"+r.Name]
		if was == nil {
			continue
		}
		if lines := diffLines("", was.Spec.ProviderSpec, r.Spec.ProviderSpec); len(lines) > 0 {
			changed = append(changed, object[manifest.CredentialsRequest](r.Namespace, r.Name, "spec.providerSpec", "", bounded.Join(lines, "; ", 4<<10)))
		}
	}
	return changed, err
}

// diffLines lists what was removed from a JSON value and what was added. The order of
// lists does not matter.
func diffLines(path string, before, after any) []string {
	if a, ok := before.(map[string]any); ok {
		if b, ok := after.(map[string]any); ok {
			keys := maps.Clone(a)
			maps.Copy(keys, b)
			var lines []string
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				lines = append(lines, diffLines(strings.TrimPrefix(path+"."+key, "."), a[key], b[key])...)
			}
			return lines
		}
	}
	a, listA := before.([]any)
	b, listB := after.([]any)
	if !listA || !listB {
		a, b = single(before), single(after)
	}
	var lines []string
	for _, text := range without(a, b) {
		lines = append(lines, "- "+path+": "+text)
	}
	for _, text := range without(b, a) {
		lines = append(lines, "+ "+path+": "+text)
	}
	return lines
}

func single(v any) []any {
	if v == nil {
		return nil
	}
	return []any{v}
}

// without returns the elements of a that are not in b, as JSON.
func without(a, b []any) []string {
	count := map[string]int{}
	for _, v := range b {
		count[jsonText(v)]++
	}
	var out []string
	for _, v := range a {
		text := jsonText(v)
		if count[text]--; count[text] < 0 {
			out = append(out, text)
		}
	}
	return out
}

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
