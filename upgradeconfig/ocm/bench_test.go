package ocm_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm"
)

// BenchmarkPolicies: reading all policies of a hosted cluster, without a
// network and the requests for states, which are one per policy.
func BenchmarkPolicies(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newServer()
			c, _ := s.Cluster(clusterID)
			c.Hosted = true
			for i := range n {
				at := time.Date(2031, 1, 1, 0, 0, n-i, 0, time.UTC).Format(time.RFC3339)
				c.Policies = append(c.Policies, pol(fmt.Sprintf("p-%04d", i), "4.17.4", at, "scheduled"))
			}
			s.SetCluster(c)
			p := newProvider(b, recorded(b, s), ocm.Options{Kind: ocm.Auto})
			b.ReportAllocs()
			for b.Loop() {
				if got, err := p.Policies(b.Context()); err != nil || len(got) != n {
					b.Fatal(len(got), err)
				}
			}
		})
	}
}

// recorded answers each request as h did the first time, so that the server
// does not count.
func recorded(b *testing.B, h http.Handler) http.Handler {
	answers := map[string][]byte{}
	return handlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := answers[r.URL.String()]
		if !ok {
			recorder := httptest.NewRecorder()
			h.ServeHTTP(recorder, r)
			checktest.Equal(b, http.StatusOK, recorder.Code, "%v", recorder.Body)
			body = recorder.Body.Bytes()
			answers[r.URL.String()] = body
		}
		w.Write(body)
	})
}
