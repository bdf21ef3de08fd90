package clusterupdate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
	"github.com/clusterupdate/clusterupdate/signature/signaturetest"
)

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
