package clusterupdate_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
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

// TestIdentity: a signature counts for the release that it was made for, if
// the Updater is told to look, and its event says what it was made for.
func TestIdentity(t *testing.T) {
	key := checktest.Get(signaturetest.NewKey(signaturetest.KeyOptions{}))(t)
	digest := signature.Digest(sample.ToImage)
	byVersion, byImage := configv1.Update{Version: sample.ToVersion}, configv1.Update{Image: sample.ToImage}
	forced := byImage
	forced.Force = true
	for _, tt := range []struct {
		name      string
		reference string
		identity  signature.Identity
		request   configv1.Update
		failure   string // in ReleaseAccepted; empty: the update goes on
		event     string // of the verified signature; empty: there is none
	}{
		{"nothing is asked of the name", "quay.example/other:1", signature.Identity{}, byVersion, "", "signed as quay.example/other:1 (which does not fit version 4.21.1)"},
		{"the name is shown though the version comes late", "quay.example/other:1", signature.Identity{}, byImage, "", "(which does not fit version 4.21.1)"},
		{"the repository", "quay.example/release:4.21.1-x86_64", signature.Identity{Repositories: []string{"quay.example/release"}}, byVersion, "", "as quay.example/release:4.21.1-x86_64, found"},
		{"another repository", "quay.example/other:4.21.1-x86_64", signature.Identity{Repositories: []string{"quay.example/release"}}, byVersion, "its repository is none of quay.example/release", ""},
		{"the version", "quay.example/release:4.21.1", signature.Identity{Version: true}, byVersion, "", "as quay.example/release:4.21.1, found"},
		{"another version", "quay.example/release:4.21.10", signature.Identity{Version: true}, byVersion, "its tag does not fit version 4.21.1", ""},
		{"the version of an image", "quay.example/release:4.21.1", signature.Identity{Version: true}, byImage, "", "as quay.example/release:4.21.1, found"},
		{"another version of an image", "quay.example/release:4.20.9", signature.Identity{Version: true}, byImage, "its tag does not fit version 4.21.1", "as quay.example/release:4.20.9"},
		{"another version of an image that is forced", "quay.example/release:4.20.9", signature.Identity{Version: true}, forced, "", "as quay.example/release:4.20.9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			message := checktest.Get(key.SignRelease(digest, tt.reference, signaturetest.Shape{}))(t)
			prepare := signedBy(t, key, t.TempDir())
			withSample(t, func(o *clusterupdate.Options) {
				prepare(o)
				o.Identity = tt.identity
				if tt.request.Image != "" {
					o.Graph = nil // which knows the version
				}
			}, func(s *sampleTest) {
				found := checktest.Get(cluster.ConfigMap(digest, [][]byte{message}))(s)
				checktest.Get(clusterapi.Create(context.Background(), s.Cluster, found, clusterapi.CreateOptions{}))(s)
				s.sync()
				s.request(s, tt.request)
				r := s.sync()
				accepted := condition(s.version(s), clusterversion.ConditionReleaseAccepted)
				if tt.failure == "" {
					if !strings.HasPrefix(accepted, "True ") || r.Failure != nil && errors.As(r.Failure, new(*clusterupdate.LoadError)) {
						s.Errorf("ReleaseAccepted is %q, failure %v", accepted, r.Failure)
					}
				} else if !strings.HasPrefix(accepted, "False RetrievePayload: ") || !strings.Contains(accepted, "The update cannot be verified: ") || !strings.Contains(accepted, tt.failure) {
					s.Errorf("ReleaseAccepted is %q", accepted)
				}
				var events []string
				for _, e := range s.events {
					if e.Type != clusterupdate.EventSignatureVerified {
						continue
					}
					events = append(events, e.Message)
					v := dataOf(e).Verification
					want := (&signature.Verification{Signers: []signature.Signer{{Reference: tt.reference}}}).For(dataOf(e).Release.Version).Signers[0].Fit
					if v == nil || v.Signers[0].Reference != tt.reference || v.Signers[0].Fit != want {
						s.Errorf("verification %+v, want %s that is %s", v, tt.reference, want)
					}
				}
				if tt.event == "" && len(events) > 0 || tt.event != "" && !slices.ContainsFunc(events, func(text string) bool { return strings.Contains(text, strings.TrimPrefix(tt.event, "signed ")) }) {
					s.Errorf("events: %q", events)
				}
				if tt.request.Force {
					if h := s.version(s).Status.History[0]; h.Verified || !strings.Contains(h.AcceptedRisks, "cannot be verified, but continuing anyway because the update was forced") {
						s.Errorf("history %+v", h)
					}
				}
			})
		})
	}
}

// signedOnly finds signatures of these images alone.
type signedOnly []string

func (v signedOnly) Verify(_ context.Context, digest string) (*signature.Verification, error) {
	for _, image := range v {
		if signature.Digest(image) == digest {
			return &signature.Verification{}, nil
		}
	}
	return nil, &signature.Error{Digest: digest}
}

// TestReleaseComesBack: a release that the cluster has been at is verified like any
// other when it is requested again: one that was forced needs force again, and one
// that was signed is on record as verified.
func TestReleaseComesBack(t *testing.T) {
	const from, to = sample.FromImage, sample.ToImage
	force := func(image string) configv1.Update { return configv1.Update{Image: image, Force: true} }
	plain := func(image string) configv1.Update { return configv1.Update{Image: image} }
	for name, tt := range map[string]struct {
		signed   signedOnly
		requests []configv1.Update
		history  string // newest first: version, state, verified, whether risks were accepted
		accepted string
	}{
		"what it was installed with is not signed": {signedOnly{to}, []configv1.Update{plain(to), plain(from)},
			"4.21.1 Partial true false, 4.20.3 Completed false false", "False RetrievePayload"},
		"what it was installed with is forced": {signedOnly{to}, []configv1.Update{plain(to), force(from)},
			"4.20.3 Partial false true, 4.21.1 Partial true false, 4.20.3 Completed false false", "True PayloadLoaded"},
		"what it was installed with is signed": {signedOnly{from, to}, []configv1.Update{plain(to), plain(from)},
			"4.20.3 Partial true false, 4.21.1 Partial true false, 4.20.3 Completed false false", "True PayloadLoaded"},
		"an update that was forced": {signedOnly{from}, []configv1.Update{force(to), plain(from), plain(to)},
			"4.20.3 Partial true false, 4.21.1 Partial false true, 4.20.3 Completed false false", "False RetrievePayload"},
	} {
		t.Run(name, func(t *testing.T) {
			withSample(t, func(o *clusterupdate.Options) { o.Verifier, o.Checks = tt.signed, []preconditions.Check{} }, func(s *sampleTest) {
				s.hold["dns"] = true
				reportVersion(s, s.Cluster, "dns", "4.20.2") // nothing gets done
				for _, r := range tt.requests {
					s.request(s.T, r)
					s.syncs(2)
				}
				var got []string
				for _, h := range s.version(s).Status.History {
					got = append(got, fmt.Sprint(h.Version, " ", h.State, " ", h.Verified, " ", strings.Contains(h.AcceptedRisks, "forced")))
				}
				checktest.Same(s, tt.history, strings.Join(got, ", "))
				if got := condition(s.version(s), clusterversion.ConditionReleaseAccepted); !strings.HasPrefix(got, tt.accepted) {
					s.Errorf("ReleaseAccepted is %s", got)
				}
			})
		})
	}
}
