package clusterupdate_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
	"github.com/clusterupdate/clusterupdate/signature/signaturetest"
)

// signedBy serves the sample, whose first release trusts a key.
func signedBy(t *testing.T, key *signaturetest.Key, store string) func(*clusterupdate.Options) {
	t.Helper()
	public := checktest.Get(key.Armored())(t)
	text := fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata:
  name: release-verification
  namespace: openshift-config-managed
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
    release.openshift.io/verification-config-map: ""
data:
  store-files: file://%s
  verifier-public-key-test: |
    %s
`, store, strings.ReplaceAll(strings.TrimSpace(string(public)), "\n", "\n    "))
	payloads := changed(sample.FromImage, func(fsys fstest.MapFS) {
		fsys["release-manifests/0000_90_cluster-update-keys_configmap.yaml"] = &fstest.MapFile{Data: []byte(text)}
	})
	return func(o *clusterupdate.Options) { o.Payloads, o.Verifier = payloads, nil }
}

// TestSignaturesAreKept: a signature that verified a release is kept in the
// cluster, and counts there when it is found nowhere else.
func TestSignaturesAreKept(t *testing.T) {
	key := checktest.Get(signaturetest.NewKey(signaturetest.KeyOptions{}))(t)
	digest := signature.Digest(sample.ToImage)
	message := checktest.Get(key.SignRelease(digest, "quay.example/release:1", signaturetest.Shape{}))(t)
	signed := signedBy(t, key, t.TempDir())
	prepare := func(o *clusterupdate.Options) {
		signed(o)
		o.Interval = 3 * time.Minute
	}
	withSample(t, prepare, func(s *sampleTest) {
		t := s.T
		ctx := context.Background()
		found := checktest.Get(cluster.ConfigMap(digest, [][]byte{message}))(t)
		checktest.Get(clusterapi.Create(ctx, s.Cluster, found, clusterapi.CreateOptions{}))(t)
		remove := func(name string) {
			t.Helper()
			checktest.OK(t, s.Delete(ctx, corev1.SchemeGroupVersion.WithKind("ConfigMap"), clusterapi.Key(cluster.ConfigMapNamespace, name), clusterapi.DeleteOptions{}))
		}
		kept := func() bool {
			t.Helper()
			cm, err := clusterapi.Get[corev1.ConfigMap](ctx, s.Cluster, clusterapi.Key(cluster.ConfigMapNamespace, cluster.PersistedName))
			if apierrors.IsNotFound(err) {
				return false
			}
			checktest.OK(t, err)
			return string(cm.BinaryData[strings.Replace(digest, ":", "-", 1)+"-0"]) == string(message)
		}
		// An update that is verified, and refused for another reason.
		attempt := func(want clusterupdate.Step) {
			t.Helper()
			time.Sleep(4 * time.Minute) // less than between two writes of what is remembered
			r := s.sync()
			var load *clusterupdate.LoadError
			if !errors.As(r.Failure, &load) || load.Step != want {
				t.Fatalf("failure is %v, want one of %s", r.Failure, want)
			}
		}
		s.block()
		s.sync()
		if kept() {
			t.Error("a signature is kept before there was any")
		}
		s.request(t, configv1.Update{Version: sample.ToVersion})
		attempt(clusterupdate.PreconditionChecks)
		if !kept() {
			t.Error("the signature is not kept")
		}

		// It goes from where it was found.
		remove(found.Name)
		s.restart(prepare)
		attempt(clusterupdate.PreconditionChecks)

		// What was verified is remembered, and kept again.
		remove(cluster.PersistedName)
		attempt(clusterupdate.PreconditionChecks)
		if !kept() {
			t.Error("the signature is not kept again")
		}

		// Other ways out of the cluster are another verifier, which remembers
		// nothing.
		remove(cluster.PersistedName)
		bundle := &corev1.ConfigMap{}
		bundle.Namespace, bundle.Name = cluster.ConfigMapNamespace, "trusted-ca-bundle"
		checktest.Get(clusterapi.Create(ctx, s.Cluster, bundle, clusterapi.CreateOptions{}))(t)
		attempt(clusterupdate.RetrievePayload)
	})
}

// TestRunKeepsSignatures: Run keeps what it verified at its end at the latest.
func TestRunKeepsSignatures(t *testing.T) {
	key := checktest.Get(signaturetest.NewKey(signaturetest.KeyOptions{}))(t)
	digest := signature.Digest(sample.ToImage)
	message := checktest.Get(key.SignRelease(digest, "quay.example/release:1", signaturetest.Shape{}))(t)
	withSample(t, signedBy(t, key, t.TempDir()), func(s *sampleTest) {
		t := s.T
		found, err := cluster.ConfigMap(digest, [][]byte{message})
		checktest.OK(t, err)
		checktest.Get(clusterapi.Create(context.Background(), s.Cluster, found, clusterapi.CreateOptions{}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.u.Run(ctx) }()
		time.Sleep(time.Second)
		s.request(t, configv1.Update{Version: sample.ToVersion})
		time.Sleep(time.Minute)
		cancel()
		checktest.Good(t, <-done)
		if !s.version(t).Status.History[0].Verified {
			t.Error("the update was not verified")
		}
		_, err = clusterapi.Get[corev1.ConfigMap](context.Background(), s.Cluster, clusterapi.Key(cluster.ConfigMapNamespace, cluster.PersistedName))
		checktest.Good(t, err)
	})
}

// verifierFunc is a verifier of the embedder's.
type verifierFunc func(ctx context.Context, digest string) (*signature.Verification, error)

func (f verifierFunc) Verify(ctx context.Context, digest string) (*signature.Verification, error) {
	return f(ctx, digest)
}

// TestFaultyVerifiers: one that panics, proves nothing or vouches for something
// else refuses the release, and says so in the condition.
func TestFaultyVerifiers(t *testing.T) {
	for want, f := range map[string]verifierFunc{
		"panic: no keys":                        func(context.Context, string) (*signature.Verification, error) { panic("no keys") },
		"the goroutine was ended":               func(context.Context, string) (*signature.Verification, error) { runtime.Goexit(); return nil, nil },
		"returned neither a proof nor an error": func(context.Context, string) (*signature.Verification, error) { return nil, nil },
		"vouches for sha256:other instead": func(context.Context, string) (*signature.Verification, error) {
			return &signature.Verification{Digest: "sha256:other"}, nil
		},
	} {
		t.Run(want, func(t *testing.T) {
			withSample(t, func(o *clusterupdate.Options) { o.Verifier = f }, func(s *sampleTest) {
				s.sync()
				s.request(s.T, configv1.Update{Version: sample.ToVersion})
				time.Sleep(10 * time.Minute)
				r := s.sync()
				var load *clusterupdate.LoadError
				if !errors.As(r.Failure, &load) || load.Reason != clusterupdate.ReasonVerificationFailed || !strings.Contains(load.Message, want) {
					s.T.Errorf("failure is %v", r.Failure)
				}
			})
		})
	}
}
