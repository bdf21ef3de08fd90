package preconditions

import (
	"context"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

func cloudCredentialsCheck() Check {
	return documented{Rule{
		Name: "CloudCredentials", Scope: minorStep(), Severities: []Severity{Warning, Blocking},
		Source: "Preparing to update a cluster with manually maintained credentials", Link: docsPreparing,
		Reads: []schema.GroupVersionKind{
			gvkOf[configv1.Infrastructure](), gvkOf[operatorv1.CloudCredential](), gvkOf[configv1.Authentication](),
			gvkOf[corev1.ConfigMap](), gvkOf[corev1.Secret](), gvkOf[configv1.ClusterVersion](),
		},
	}, cloudCredentials}
}

// AnnotationUpgradeableTo on CloudCredential cluster says up to which version of
// OpenShift an administrator has prepared the credentials.
const AnnotationUpgradeableTo = "cloudcredential.openshift.io/upgradeable-to"

const (
	credentialOperator  = "openshift-cloud-credential-operator"
	credentialConfig    = "cloud-credential-operator-config"
	rootSecretNamespace = "kube-system"
)

// credentialState is how a cluster has its cloud credentials.
type credentialState struct {
	platform configv1.PlatformType
	stackHub bool // Azure Stack Hub
	manual   bool
	object   *operatorv1.CloudCredential
}

// applicable platforms are those with cloud credentials that an administrator may have
// to prepare. Others are [NotApplicableError]s.
func readCredentialState(ctx context.Context, in *Input) (*credentialState, error) {
	infrastructure, err := readInfrastructure(ctx, in)
	if err != nil {
		return nil, err
	}
	s := &credentialState{platform: platformOf(infrastructure)}
	if _, ok := rootSecret(s.platform); !ok && s.platform != configv1.IBMCloudPlatformType && s.platform != configv1.NutanixPlatformType {
		return nil, &NotApplicableError{Why: fmt.Sprintf("platform %q has no cloud credentials to prepare", string(s.platform))}
	}
	if p := infrastructure.Status.PlatformStatus; p != nil && p.Azure != nil {
		s.stackHub = p.Azure.CloudName == configv1.AzureStackCloud
	}
	s.object, err = clusterapi.Read[operatorv1.CloudCredential](ctx, in.Reader, clusterapi.Key("", "cluster"))
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, &NotApplicableError{Why: "the cluster has no CloudCredential"}
	}
	if err != nil {
		return nil, err
	}
	s.manual, err = ManualCredentials(ctx, in.Reader, s.object)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ManualCredentials reports whether an administrator maintains the credentials of a
// cluster in the cloud, given its CloudCredential: by its mode or, if that is not set, by
// the ConfigMap of older releases. Errors are those of reading the ConfigMap.
func ManualCredentials(ctx context.Context, r clusterapi.Reader, c *operatorv1.CloudCredential) (bool, error) {
	if c.Spec.CredentialsMode != operatorv1.CloudCredentialsModeDefault {
		return c.Spec.CredentialsMode == operatorv1.CloudCredentialsModeManual, nil
	}
	legacy, err := clusterapi.Read[corev1.ConfigMap](ctx, r, clusterapi.Key(credentialOperator, credentialConfig))
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return legacy.Data["disabled"] == "true", nil
}

// rootSecret is the name of the administrator's credentials on a platform.
func rootSecret(platform configv1.PlatformType) (string, bool) {
	switch platform {
	case configv1.AWSPlatformType:
		return "aws-creds", true
	case configv1.AzurePlatformType:
		return "azure-credentials", true
	case configv1.GCPPlatformType:
		return "gcp-credentials", true
	case configv1.OpenStackPlatformType:
		return "openstack-credentials", true
	case configv1.VSpherePlatformType:
		return "vsphere-creds", true
	}
	return "", false
}

// cloudCredentials: in manual mode the administrator has prepared the credentials for
// the target and said so; in the other modes the operator has what it takes to do it.
func cloudCredentials(ctx context.Context, in *Input) ([]Finding, error) {
	s, err := readCredentialState(ctx, in)
	if err != nil {
		return nil, err
	}
	completed, text, err := in.completedVersion(ctx)
	if err != nil {
		return nil, err
	}
	object := Object{GVK: gvkOf[operatorv1.CloudCredential](), Name: "cluster", FieldPath: "metadata.annotations[" + AnnotationUpgradeableTo + "]", Value: s.object.Annotations[AnnotationUpgradeableTo]}
	find := func(severity Severity, reason, message, remedy string) []Finding {
		f := newFinding(severity, reason, message, nil, remedy)
		f.Objects = []Object{object}
		return []Finding{f}
	}
	switch {
	case completed == nil && text != "":
		return find(Blocking, "ErrorDeterminingUpgradeable", fmt.Sprintf("The version that was completed last is not a semantic version: %q", text), "Repair status.history of the ClusterVersion"), nil
	case completed == nil:
		return nil, nil
	}
	upgradeable, ok := upgradeableTo(s.object)
	ok = ok && minorOf(upgradeable) > minorOf(completed)
	switch {
	case !s.manual && ok:
		return nil, nil
	case !s.manual:
		return missingRoot(ctx, in, s.platform)
	}
	remedy, remedyErr := s.remedy(ctx, in)
	switch {
	case !ok:
		return find(Blocking, "MissingUpgradeableAnnotation", "Upgradeable annotation "+AnnotationUpgradeableTo+
			" on cloudcredential.operator.openshift.io/cluster object needs updating before upgrade. See Manually Creating IAM documentation for instructions on preparing a cluster for upgrade.", remedy), remedyErr
	case in.Target != nil && minorOf(upgradeable) < minorOf(in.Target):
		return find(Blocking, "MissingUpgradeableAnnotation", fmt.Sprintf("The credentials are prepared up to %s, and the target is %s", object.Value, in.Target), remedy), remedyErr
	case farAhead(upgradeable, completed, in.Target):
		return find(Warning, "UpgradeableAnnotationAhead", fmt.Sprintf("The credentials are said to be prepared up to %s, more than one minor version ahead: what later releases need is not known yet", object.Value),
			"Set the annotation to the version of the next update"), nil
	}
	return nil, nil
}

// farAhead reports whether an annotation promises more than the next minor version,
// and more than the target.
func farAhead(upgradeable, completed, target *semver.Version) bool {
	next := minorOf(completed) + 1
	if target != nil {
		next = max(next, minorOf(target))
	}
	if target != nil && target.Major() == upgradeable.Major() && target.Major() != completed.Major() {
		return minorOf(upgradeable) > minorOf(target)
	}
	return minorOf(upgradeable) > next
}

// minorOf is major and minor as one number, which grows with them.
func minorOf(v *semver.Version) uint64 { return v.Major()<<32 | v.Minor()&(1<<32-1) }

// upgradeableTo reads the annotation. What cannot be read counts as absent.
func upgradeableTo(c *operatorv1.CloudCredential) (*semver.Version, bool) {
	text := strings.TrimPrefix(c.Annotations[AnnotationUpgradeableTo], "v")
	if strings.Count(text, ".") == 1 {
		text += ".0"
	}
	v, err := parseVersion(text)
	return v, err == nil
}

// completedVersion is the version that was completed last; nil with its text where
// that is not a semantic version, and with an empty one where there is none.
func (in *Input) completedVersion(ctx context.Context) (*semver.Version, string, error) {
	if in.Completed != nil {
		return in.Completed, in.Completed.String(), nil
	}
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return nil, "", err
	}
	text, ok := completedVersion(cv.Status.History)
	if !ok {
		return nil, "", nil
	}
	if v := versionOrNil(text); v != nil {
		return v, text, nil
	}
	if text == "" {
		text = "(none)"
	}
	return nil, text, nil
}

// missingRoot looks for the administrator's credentials, which are not read.
func missingRoot(ctx context.Context, in *Input, platform configv1.PlatformType) ([]Finding, error) {
	name, ok := rootSecret(platform)
	if !ok {
		return nil, nil
	}
	there, err := in.hasSecret(ctx, rootSecretNamespace, name)
	if there || err != nil {
		return nil, err
	}
	f := newFinding(Blocking, "MissingRootCredential", fmt.Sprintf("Parent credentials secret must be restored prior to upgrade: %s/%s", rootSecretNamespace, name), nil,
		"Restore the administrator's credentials in this Secret")
	f.Objects = []Object{{GVK: gvkOf[corev1.Secret](), Namespace: rootSecretNamespace, Name: name}}
	return []Finding{f}, nil
}

// hasSecret reports whether a Secret exists. Its data is not looked at.
func (in *Input) hasSecret(ctx context.Context, namespace, name string) (bool, error) {
	_, err := clusterapi.GetShared(ctx, in.Reader, gvkOf[corev1.Secret](), clusterapi.Key(namespace, name))
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// remedy says how credentials are prepared in manual mode. With an error it says so for
// both ways.
func (s *credentialState) remedy(ctx context.Context, in *Input) (string, error) {
	const annotate = ", then annotate: oc annotate cloudcredential cluster " + AnnotationUpgradeableTo + "=VERSION --overwrite"
	const byHand = "Extract the CredentialsRequests of the target and update the cloud's permissions and the Secrets by hand" + annotate
	const byTool = "Extract the CredentialsRequests of the target and run ccoctl on them" + annotate
	switch {
	case s.stackHub:
		return byHand, nil
	case s.platform == configv1.IBMCloudPlatformType || s.platform == configv1.NutanixPlatformType:
		return byTool, nil
	}
	a, err := clusterapi.Read[configv1.Authentication](ctx, in.Reader, clusterapi.Key("", "cluster"))
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return byHand, nil
	case err != nil:
		return "Extract the CredentialsRequests of the target and run ccoctl on them, or update the Secrets by hand" + annotate, err
	case a.Spec.ServiceAccountIssuer != "":
		return byTool, nil
	}
	return byHand, nil
}
