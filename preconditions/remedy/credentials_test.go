package remedy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/remedy"
)

const upgradeableTo = "cloudcredential.openshift.io/upgradeable-to"

const requestA = `apiVersion: cloudcredential.openshift.io/v1
kind: CredentialsRequest
metadata: {name: a, namespace: openshift-cloud-credential-operator, annotations: {include.release.openshift.io/self-managed-high-availability: "true"}}
spec:
  secretRef: {name: sec, namespace: ns-a}
  providerSpec: {kind: AWSProviderSpec, statementEntries: []}
`

func manualCluster(f *faults, t testing.TB, annotation string) *memory.Cluster {
	return clusterWith(f, t, operatorv1.CloudCredentialsModeManual, annotation)
}

func clusterWith(f *faults, t testing.TB, mode operatorv1.CloudCredentialsMode, annotation string) *memory.Cluster {
	cc := &operatorv1.CloudCredential{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	cc.Spec.CredentialsMode = mode
	if annotation != "" {
		cc.Annotations = map[string]string{upgradeableTo: annotation}
	}
	return forkOf(t, f, clusterVersion("4.18.5"), infrastructure("AWS"), cc,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns-b"}}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns-b", Name: "sec"}})
}

func credentials(t testing.TB) remedy.Credentials {
	requestB := strings.NewReplacer("name: a,", "name: b,", "ns-a", "ns-b").Replace(requestA)
	return remedy.Credentials{
		Target: payload(t, "4.19.1", requestA, requestB), Current: payload(t, "4.18.5", requestB),
		Data: func(r *manifest.CredentialsRequest) map[string][]byte {
			return map[string][]byte{"credentials": []byte("for " + r.Name)}
		},
	}
}

// prepare does all that there is to do.
func prepare(t *testing.T, c remedy.Credentials, api clusterapi.ClusterAPI) {
	t.Helper()
	for _, do := range []func() error{
		func() error { _, err := c.CreateNamespaces(t.Context(), api); return err },
		func() error { _, err := c.CreateRequests(t.Context(), api); return err },
		func() error { _, err := c.CreateSecrets(t.Context(), api); return err },
		func() error { return c.Annotate(t.Context(), api) },
	} {
		again(t, do)
	}
}

// The findings of both checks go, whatever fails on the way.
func TestCredentials(t *testing.T) {
	c := credentials(t)
	target := configv1.Release{Version: "4.19.1"}
	withPayloads := func(in *preconditions.Input) { in.TargetPayload, in.CurrentPayload = c.Target, c.Current }
	states := func(api clusterapi.Reader) string {
		return string(check(t, api, "CloudCredentials", target, withPayloads).State + " " + check(t, api, "CredentialsRequests", target, withPayloads).State)
	}
	eachFault(t, func(t *testing.T, f *faults) {
		api := manualCluster(f, t, "")
		checktest.Equal(t, "Failed Failed", states(api), "at first")
		prepare(t, c, api)
		checktest.Equal(t, "Passed Passed", states(api), "prepared")
	})
}

// Where the operator maintains the credentials, nothing is done: the annotation would
// hide that the administrator's credentials are missing.
func TestCredentialsNotManual(t *testing.T) {
	c := credentials(t)
	for _, mode := range []operatorv1.CloudCredentialsMode{operatorv1.CloudCredentialsModeMint, operatorv1.CloudCredentialsModePassthrough, operatorv1.CloudCredentialsModeDefault} {
		t.Run(string(mode), func(t *testing.T) {
			api := clusterWith(nil, t, mode, "")
			blocked := func() bool {
				got := check(t, api, "CloudCredentials", configv1.Release{Version: "4.19.1"}, func(*preconditions.Input) {})
				return len(got.Findings) == 1 && got.Findings[0].Severity == preconditions.Blocking && got.Findings[0].Reason == "MissingRootCredential"
			}
			if !blocked() {
				t.Fatal("nothing to hide")
			}
			for name, do := range map[string]func() error{
				"CreateNamespaces": func() error { _, err := c.CreateNamespaces(t.Context(), api); return err },
				"CreateRequests":   func() error { _, err := c.CreateRequests(t.Context(), api); return err },
				"CreateSecrets":    func() error { _, err := c.CreateSecrets(t.Context(), api); return err },
				"Annotate":         func() error { return c.Annotate(t.Context(), api) },
			} {
				if err := do(); !errors.Is(err, remedy.ErrNotManual) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if p, err := c.Plan(t.Context(), api); err != nil || p.Manual {
				t.Errorf("%+v, %v", p, err)
			}
			if !blocked() {
				t.Error("the finding is hidden")
			}
		})
	}
	t.Run("disabled by the ConfigMap", func(t *testing.T) {
		api := clusterWith(nil, t, operatorv1.CloudCredentialsModeDefault, "")
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-cloud-credential-operator", Name: "cloud-credential-operator-config"}, Data: map[string]string{"disabled": "true"}}
		checktest.OK(t, checktest.Err(clusterapi.Create(t.Context(), api, cm, clusterapi.CreateOptions{})))
		prepare(t, c, api)
	})
}

// A Secret that holds nothing would hide that the credentials are missing.
func TestCredentialsWithoutContent(t *testing.T) {
	c := credentials(t)
	c.Data = func(*manifest.CredentialsRequest) map[string][]byte { return map[string][]byte{"credentials": nil} }
	api := manualCluster(nil, t, "")
	checktest.OK(t, checktest.Err(c.CreateNamespaces(t.Context(), api)))
	if made, err := c.CreateSecrets(t.Context(), api); err != nil || len(made) > 0 {
		t.Errorf("Secrets %v: %v", made, err)
	}
}

func TestCredentialsPlan(t *testing.T) {
	c := credentials(t)
	api := manualCluster(nil, t, "4.18")
	p := checktest.Get(c.Plan(t.Context(), api))(t)
	if diff := cmp.Diff([]string{"ns-a"}, p.Namespaces); diff != "" || len(p.Requests) != 2 || len(p.NewRequests) != 2 || len(p.Secrets) != 1 || p.Complete() || p.Annotation != "4.19.1" || p.Annotated != "4.18" {
		t.Errorf("%s: %+v", diff, p)
	}
	incomplete := new(remedy.BlockedError)
	if err := c.Annotate(t.Context(), api); !errors.As(err, &incomplete) || err.Error() != "the cloud credentials are not complete: missing are the namespaces [ns-a] and the Secrets [ns-a/sec]" {
		t.Errorf("annotated: %v", err)
	}
	// Without data no Secret is made up.
	c.Data = nil
	if made, err := c.CreateSecrets(t.Context(), api); err != nil || len(made) > 0 {
		t.Errorf("Secrets %v: %v", made, err)
	}
	checktest.Fails(t, checktest.Err((remedy.Credentials{}).Plan(t.Context(), api)), "no release, no error")
	if _, err := c.Plan(t.Context(), memory.New(memory.Options{Lenient: true})); !apierrors.IsNotFound(err) {
		t.Errorf("%v", err)
	}
}
