package clusterupdate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/signature"
)

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
