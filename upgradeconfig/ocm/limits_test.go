package ocm_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm/ocmtest"
)

func TestLimits(t *testing.T) {
	long := zipped(`{"kind":"UpgradePolicyList","total":0,"x":"` + strings.Repeat("x", 4<<20) + `"}`)
	many := `{"kind":"UpgradePolicyList","total":1001,"items":[{"id":"a"}]}`
	var b strings.Builder
	for i := range 1001 {
		fmt.Fprintf(&b, `,{"id":"p-%d"}`, i)
	}
	crowded := `{"kind":"UpgradePolicyList","total":2,"items":[` + b.String()[1:] + `]}`
	secret := `{"auths":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`

	// policies asks a server that answers with a body for the policies.
	policies := func(t *testing.T, body string, gzip bool) (requests int64, err error) {
		s := newServer(p7)
		fault := ocmtest.Fault{Path: "/upgrade_policies", Body: body, Always: true}
		if gzip {
			fault.Header = map[string][]string{"Content-Encoding": {"gzip"}}
		}
		s.Fail(fault)
		p := newProvider(t, s, ocm.Options{Base: ocmtest.Transport(s)})
		_, err = p.Policies(t.Context())
		return int64(len(s.Requests())), err
	}
	limittest.Walk(t, []limittest.Case{
		{Limit: "body of an answer", Default: ocm.DefaultMaxBody, Bytes: 24 << 20, Steps: 2, Run: func(t *testing.T) int64 {
			n, err := policies(t, long, true)
			if !errors.As(err, new(*limit.LimitError)) {
				t.Errorf("%.200v", err)
			}
			return n
		}},
		{Limit: "policies of a cluster", Default: ocm.DefaultMaxPolicies, Bytes: 8 << 20, Steps: 4, Run: func(t *testing.T) int64 {
			n, err := policies(t, many, false)
			m, crowdedErr := policies(t, crowded, false)
			for _, err := range []error{err, crowdedErr} {
				if !errors.As(err, new(*clusterapi.LimitError)) {
					t.Errorf("%.200v", err)
				}
			}
			return n + m
		}},
		{Limit: "pull secret", Default: 1 << 20, Bytes: 24 << 20, Run: func(t *testing.T) int64 {
			p := must(ocm.New(store(t, ocmtest.PullSecret([]byte(secret)), ocmtest.Objects(uuid, token)[1]), ocm.Options{Base: ocmtest.Transport(newServer())}))
			if _, err := p.Policies(t.Context()); !errors.Is(err, ocm.ErrAccessToken) || !strings.Contains(err.Error(), "larger than a secret can be") {
				t.Errorf("%.200v", err)
			}
			return 0
		}},
	})
}
