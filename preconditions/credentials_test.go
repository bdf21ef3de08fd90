package preconditions_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

func cloud(p configv1.PlatformType) *configv1.Infrastructure {
	return infrastructure(func(i *configv1.Infrastructure) { i.Status.PlatformStatus.Type = p })
}

func cloudCredential(mode operatorv1.CloudCredentialsMode, upgradeableTo string) *operatorv1.CloudCredential {
	c := &operatorv1.CloudCredential{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	c.Spec.CredentialsMode = mode
	if upgradeableTo != "" {
		c.Annotations = map[string]string{"cloudcredential.openshift.io/upgradeable-to": upgradeableTo}
	}
	return c
}

func secret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func issuer(text string) *configv1.Authentication {
	a := &configv1.Authentication{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	a.Spec.ServiceAccountIssuer = text
	return a
}

func TestCloudCredentials(t *testing.T) {
	const manual, mint, passthrough, unset = operatorv1.CloudCredentialsModeManual, operatorv1.CloudCredentialsModeMint, operatorv1.CloudCredentialsModePassthrough, operatorv1.CloudCredentialsModeDefault
	const missing = "Failed\nBlocking MissingUpgradeableAnnotation: Upgradeable annotation cloudcredential.openshift.io/upgradeable-to on cloudcredential.operator.openshift.io/cluster object needs updating before upgrade. See Manually Creating IAM documentation for instructions on preparing a cluster for upgrade"
	const root = "Failed\nBlocking MissingRootCredential: Parent credentials secret must be restored prior to upgrade: kube-system/"
	stackHub := cloud("Azure")
	stackHub.Status.PlatformStatus.Azure = &configv1.AzurePlatformStatus{CloudName: configv1.AzureStackCloud}
	legacy := configMap("openshift-cloud-credential-operator", "cloud-credential-operator-config", map[string]string{"disabled": "true"})
	notApplicable := func(p string) string {
		return fmt.Sprintf("NotApplicable\nInfo NotApplicable: platform %q has no cloud credentials to prepare", p)
	}
	done := []cvEdit{history("4.18.5@A C")}
	runCases(t, checkNamed(t, "CloudCredentials"), []checkCase{
		{name: "mint with root secret", edits: done, objects: []any{cloud("AWS"), cloudCredential(mint, ""), secret("kube-system", "aws-creds")}, want: "Passed"},
		{name: "mint without", edits: done, objects: []any{cloud("AWS"), cloudCredential(mint, "")}, want: root + "aws-creds"},
		{name: "passthrough without, Azure", edits: done, objects: []any{cloud("Azure"), cloudCredential(passthrough, "")}, want: root + "azure-credentials"},
		{name: "default without, GCP", edits: done, objects: []any{cloud("GCP"), cloudCredential(unset, "")}, want: root + "gcp-credentials"},
		{name: "OpenStack", edits: done, objects: []any{cloud("OpenStack"), cloudCredential(unset, "")}, want: root + "openstack-credentials"},
		{name: "vSphere", edits: done, objects: []any{cloud("VSphere"), cloudCredential(unset, ""), secret("kube-system", "vsphere-creds")}, want: "Passed"},
		{name: "the annotation overrides the root secret", edits: done, objects: []any{cloud("AWS"), cloudCredential(mint, "4.19")}, want: "Passed"},
		{name: "unless it is old", edits: done, objects: []any{cloud("AWS"), cloudCredential(mint, "4.18.9")}, want: root + "aws-creds"},
		{name: "manual", edits: done, objects: []any{cloud("AWS"), cloudCredential(manual, "")}, want: missing, remedy: "by hand"},
		{name: "manual with ccoctl", edits: done, objects: []any{cloud("GCP"), cloudCredential(manual, ""), issuer("https://a.example")}, want: missing, remedy: "run ccoctl"},
		{name: "manual by hand", edits: done, objects: []any{cloud("GCP"), cloudCredential(manual, ""), issuer("")}, want: missing, remedy: "by hand"},
		{name: "manual, tool not known", edits: done, objects: []any{cloud("GCP"), cloudCredential(manual, "")}, fail: map[string]error{"Authentication": errors.New("boom")}, want: missing + "\nWarning UnknownError: boom", remedy: "or update the Secrets by hand"},
		{name: "manual on IBM Cloud", edits: done, objects: []any{cloud("IBMCloud"), cloudCredential(manual, "")}, want: missing, remedy: "run ccoctl"},
		{name: "manual on Nutanix", edits: done, objects: []any{cloud("Nutanix"), cloudCredential(manual, "4.19.0")}, want: "Passed"},
		{name: "manual on vSphere all the same", edits: done, objects: []any{cloud("VSphere"), cloudCredential(manual, "")}, want: missing},
		{name: "IBM Cloud in another mode", edits: done, objects: []any{cloud("IBMCloud"), cloudCredential(unset, "")}, want: "Passed"},
		{name: "Azure Stack Hub", edits: done, objects: []any{stackHub, cloudCredential(manual, ""), issuer("https://a.example")}, want: missing, remedy: "by hand"},
		{name: "legacy", edits: done, objects: []any{cloud("AWS"), cloudCredential(unset, ""), legacy}, want: missing},
		{name: "legacy does not overrule a mode", edits: done, objects: []any{cloud("AWS"), cloudCredential(mint, ""), legacy, secret("kube-system", "aws-creds")}, want: "Passed"},
		{name: "x.y.z", edits: done, objects: []any{cloud("AWS"), cloudCredential(manual, "4.19.1")}, want: "Passed"},
		{name: "x.y", edits: done, objects: []any{cloud("AWS"), cloudCredential(manual, "4.19")}, want: "Passed"},
		{name: "v", edits: done, objects: []any{cloud("AWS"), cloudCredential(manual, "v4.19.7")}, want: "Passed"},
		{name: "the completed version's own minor", edits: done, objects: []any{cloud("AWS"), cloudCredential(manual, "4.18.99")}, want: missing},
		{name: "not a version", edits: done, objects: []any{cloud("AWS"), cloudCredential(manual, "next")}, want: missing},
		{name: "compared as numbers", current: "4.9.5@A", edits: []cvEdit{history("4.9.5@A C")}, target: "4.10.1", objects: []any{cloud("AWS"), cloudCredential(manual, "4.10")}, want: "Passed"},
		{name: "below the target", edits: done, target: "4.20.1", objects: []any{cloud("AWS"), cloudCredential(manual, "4.19")}, want: "Failed\nBlocking MissingUpgradeableAnnotation: The credentials are prepared up to 4.19, and the target is 4.20.1"},
		{name: "far ahead", edits: done, objects: []any{cloud("AWS"), cloudCredential(manual, "4.99")}, want: "Failed\nWarning UpgradeableAnnotationAhead: The credentials are said to be prepared up to 4.99, more than one minor version ahead: what later releases need is not known yet"},
		{name: "to the next major", current: "4.22.5@A", edits: []cvEdit{history("4.22.5@A C")}, target: "5.0.1", objects: []any{cloud("AWS"), cloudCredential(manual, "5.0")}, want: "Passed"},
		{name: "beyond the next major", current: "4.22.5@A", edits: []cvEdit{history("4.22.5@A C")}, target: "5.0.1", objects: []any{cloud("AWS"), cloudCredential(manual, "5.3")}, want: "Failed\nWarning UpgradeableAnnotationAhead: The credentials are said to be prepared up to 5.3, more than one minor version ahead: what later releases need is not known yet"},
		{name: "to 4.23, beside the next major", current: "4.22.5@A", edits: []cvEdit{history("4.22.5@A C")}, target: "4.23.1", objects: []any{cloud("AWS"), cloudCredential(manual, "5.0")}, want: "Passed"},
		{name: "target not known", current: "4.22.5@A", edits: []cvEdit{history("4.22.5@A C")}, target: "@T", objects: []any{cloud("AWS"), cloudCredential(manual, "5.0")}, want: "Passed"},
		{name: "nothing completed", current: "4.18.5@A", edits: []cvEdit{history("4.18.5@A P")}, objects: []any{cloud("AWS"), cloudCredential(manual, "")}, want: "Passed"},
		{name: "completed is not a version", current: "x@A", edits: []cvEdit{history("x@A C")}, objects: []any{cloud("AWS"), cloudCredential(manual, "")}, want: "Failed\nBlocking ErrorDeterminingUpgradeable: The version that was completed last is not a semantic version: \"x\""},
		{name: "other platforms", edits: done, objects: []any{cloud("BareMetal"), cloudCredential(manual, "")}, want: notApplicable("BareMetal")},
		{name: "none", edits: done, objects: []any{cloud("None"), cloudCredential(manual, "")}, want: notApplicable("None")},
		{name: "no Infrastructure", edits: done, want: notApplicable("")},
		{name: "no CloudCredential", edits: done, objects: []any{cloud("AWS")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no CloudCredential"},
		{name: "capability off", edits: done, objects: []any{cloud("AWS")}, fail: map[string]error{"CloudCredential": noKind("CloudCredential")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no CloudCredential"},
		{name: "Infrastructure not known", edits: done, fail: map[string]error{"Infrastructure": forbidden("infrastructures")}, want: "Unknown\nWarning NotAllowed: not allowed to get infrastructures.config.openshift.io: infrastructures is forbidden: no"},
		{name: "legacy not known", edits: done, objects: []any{cloud("AWS"), cloudCredential(unset, "")}, fail: map[string]error{"ConfigMap": errors.New("boom")}, want: "Unknown\nWarning UnknownError: boom"},
		{name: "Secrets not known", edits: done, objects: []any{cloud("AWS"), cloudCredential(mint, "")}, fail: map[string]error{"Secret": forbidden("secrets")}, want: "Unknown\nWarning NotAllowed: not allowed to get secrets: secrets is forbidden: no"},
		{name: "malformed", edits: done, objects: []any{cloud("AWS"), malformed("operator.openshift.io/v1", "CloudCredential", "cluster")}, want: "Unknown\nWarning UnknownError: CloudCredential cluster: spec: got a JSON string, want v1.CloudCredentialSpec"},
		{name: "patch", edits: done, target: "4.18.6", objects: []any{cloud("AWS"), cloudCredential(manual, "")}, want: "NotApplicable"},
	})
}

// requestsPayload is a release with manifests in files.
func requestsPayload(t testing.TB, version string, manifests ...string) *manifest.Payload {
	t.Helper()
	p := checktest.Get(manifest.Load(t.Context(), testdata.Release(version, manifests...),
		manifest.LoadOptions{Image: "T", Filter: manifest.DefaultFilter()}))(t)
	return p
}

// credentialsRequest is the manifest of one for AWS: "name namespace/secret actions".
func credentialsRequest(name, namespace, secret string, actions ...string) string {
	var list strings.Builder
	for _, a := range actions {
		fmt.Fprintf(&list, "\n    - %s", a)
	}
	return fmt.Sprintf(`apiVersion: cloudcredential.openshift.io/v1
kind: CredentialsRequest
metadata:
  name: %s
  namespace: openshift-cloud-credential-operator
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
spec:
  secretRef:
    name: %s
    namespace: %s
  providerSpec:
    kind: AWSProviderSpec
    statementEntries:%s
`, name, secret, namespace, list.String())
}

func TestCredentialsRequests(t *testing.T) {
	target := requestsPayload(t, "4.19.1", credentialsRequest("a", "ns-a", "sec", "x:Get", "x:Put"), credentialsRequest("b", "ns-b", "sec", "y:Get"),
		credentialsRequest("c", "ns-made", "sec", "z:Get"), `apiVersion: v1
kind: Namespace
metadata: {name: ns-made, annotations: {include.release.openshift.io/self-managed-high-availability: "true"}}
`, strings.Replace(credentialsRequest("gone", "ns-gone", "sec"), "annotations:", "annotations:\n    release.openshift.io/delete: \"true\"", 1),
		strings.Replace(credentialsRequest("gcp", "ns-gcp", "sec"), "AWS", "GCP", 1),
		strings.Replace(credentialsRequest("build", "ns-build", "sec"), "annotations:", "annotations:\n    capability.openshift.io/name: Build", 1))
	current := requestsPayload(t, "4.18.5", credentialsRequest("a", "ns-a", "sec", "x:Put", "x:Delete"), credentialsRequest("b", "ns-b", "sec", "y:Get"))
	namespace := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	none := func(cv *configv1.ClusterVersion) {
		cv.Spec.Capabilities = &configv1.ClusterVersionCapabilitiesSpec{BaselineCapabilitySet: configv1.ClusterVersionCapabilitySetNone}
	}
	manual := cloudCredential(operatorv1.CloudCredentialsModeManual, "4.19")
	all := []any{cloud("AWS"), manual, namespace("ns-a"), namespace("ns-b"), secret("ns-a", "sec"), secret("ns-b", "sec"), secret("ns-made", "sec")}
	const in = "openshift-cloud-credential-operator/"
	const changed = "Warning CredentialsPermissionsChanged: Components of the target need other permissions than those of the current release: " + in + `a (- statementEntries: "x:Delete"; + statementEntries: "x:Get")`
	const noNamespace = "Blocking CredentialsNamespaceMissing: Namespaces of cloud credentials that the target needs are missing: "
	const noSecret = "Blocking CredentialsSecretMissing: Secrets with cloud credentials that the target needs are missing: "
	runCases(t, checkNamed(t, "CredentialsRequests"), []checkCase{
		{name: "all there", objects: all, edits: []cvEdit{none}, payload: target, running: target, want: "Passed"},
		{name: "changed", objects: all, edits: []cvEdit{none}, payload: target, running: current, want: "Failed\n" + changed},
		{name: "missing", objects: []any{cloud("AWS"), manual, namespace("ns-a"), secret("ns-b", "sec")}, edits: []cvEdit{none}, payload: target, running: target,
			want: "Failed\n" + noNamespace + "ns-b (for CredentialsRequest " + in + "b)\n" +
				noSecret + "ns-a/sec (for CredentialsRequest " + in + "a), ns-made/sec (for CredentialsRequest " + in + "c)"},
		{name: "by capability", objects: all, payload: target, running: target, want: "Failed\n" + noNamespace + "ns-build (for CredentialsRequest " + in + "build)\n" + noSecret + "ns-build/sec (for CredentialsRequest " + in + "build)"},
		{name: "current release not given", objects: all, edits: []cvEdit{none}, payload: target, want: "Unknown\nWarning NoSource: no source given for CurrentPayload"},
		{name: "target not given", objects: all, want: "Unknown\nWarning NoSource: no source given for TargetPayload"},
		{name: "legacy mode", objects: append([]any{cloud("AWS"), cloudCredential(operatorv1.CloudCredentialsModeDefault, ""), configMap("openshift-cloud-credential-operator", "cloud-credential-operator-config", map[string]string{"disabled": "true"})}, all[2:]...), edits: []cvEdit{none}, payload: target, running: target, want: "Passed"},
		{name: "another mode", objects: []any{cloud("AWS"), cloudCredential(operatorv1.CloudCredentialsModeMint, "")}, payload: target, want: "NotApplicable\nInfo NotApplicable: cloud credentials are not maintained by hand"},
		{name: "another platform", objects: []any{cloud("None"), manual}, payload: target, want: "NotApplicable\nInfo NotApplicable: platform \"None\" has no cloud credentials to prepare"},
		{name: "Secrets not known", objects: []any{cloud("AWS"), manual, namespace("ns-a")}, edits: []cvEdit{none}, fail: map[string]error{"Secret": errors.New("boom")}, payload: target, running: target,
			want: "Failed\n" + noNamespace + "ns-b (for CredentialsRequest " + in + "b)\nWarning UnknownError: boom"},
		{name: "Namespaces not known", objects: []any{cloud("AWS"), manual, secret("ns-a", "sec"), secret("ns-b", "sec"), secret("ns-made", "sec")}, edits: []cvEdit{none}, fail: map[string]error{"Namespace": clusterapi.ErrNotCollected}, payload: target, running: target,
			want: "Unknown\nWarning NotCollected: Namespace: not collected in this recording"},
		{name: "a request is malformed", objects: all, edits: []cvEdit{none}, payload: requestsPayload(t, "4.19.1", strings.Replace(credentialsRequest("a", "ns-a", "sec"), "    name: sec", "    name: \"\"", 1)), running: target,
			want: `Unknown
Warning UnknownError: 0000_50_x_00.yaml: CredentialsRequest openshift-cloud-credential-operator/a: spec.secretRef.name is missing`},
	})
}
