package risk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestPrometheusResults(t *testing.T) {
	vector := func(result string) string {
		return `{"status":"success","warnings":["slow"],"data":{"resultType":"vector","result":[` + result + `]}}`
	}
	for name, test := range map[string]struct {
		status int
		body   string
		want   bool
		err    string
	}{
		"one":         {body: vector(`{"metric":{"a":"b"},"value":[1.5,"1"]}`), want: true},
		"zero":        {body: vector(`{"metric":{},"value":[1.5,"0"]}`)},
		"two":         {body: vector(`{"metric":{},"value":[1.5,"2"]}`), err: "invalid PromQL result (must be 0 or 1): 2"},
		"NaN":         {body: vector(`{"metric":{},"value":[1.5,"NaN"]}`), err: "invalid PromQL result (must be 0 or 1): NaN"},
		"Inf":         {body: vector(`{"metric":{},"value":[1.5,"+Inf"]}`), err: "invalid PromQL result (must be 0 or 1): +Inf"},
		"no series":   {body: vector(``), err: "invalid PromQL result length must be one, but is 0"},
		"two series":  {body: vector(`{"value":[1,"1"]},{"value":[1,"1"]}`), err: "invalid PromQL result length must be one, but is 2"},
		"scalar":      {body: `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`, err: "invalid PromQL result type is scalar, not vector"},
		"query error": {status: 400, body: `{"status":"error","errorType":"bad_data","error":"parse error"}`, err: "executing PromQL query: bad_data: parse error"},
		"status":      {status: 503, body: `later`, err: "executing PromQL query: unexpected HTTP status: 503 Service Unavailable"},
		"no JSON":     {body: `<html>`, err: "executing PromQL query: invalid answer: "},
		"no status":   {body: `{}`, err: `executing PromQL query: the answer's status is ""`},
		"bad value":   {body: vector(`{"value":[1,"x"]}`), err: "executing PromQL query: sample 0: "},
		"no vector":   {body: `{"status":"success","data":{"resultType":"vector","result":{}}}`, err: "executing PromQL query: invalid vector: "},
		"no data":     {body: `{"status":"success","data":[]}`, err: "executing PromQL query: invalid data: "},
		"no value":    {body: vector(`{"value":[1,1]}`), err: "executing PromQL query: sample 0: invalid value: "},
		"redirect":    {status: 302, body: ``, err: "executing PromQL query: "},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.URL.Path != "/base/api/v1/query" || r.URL.Query().Get("query") != `up{_id="c-1"}` || r.Header.Get("Authorization") != "Bearer secret" {
					t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
				}
				if test.status == 302 {
					w.Header().Set("Location", "http://elsewhere.invalid/")
				}
				if test.status != 0 {
					w.WriteHeader(test.status)
				}
				w.Write([]byte(test.body))
			}))
			defer server.Close()
			p := &risk.Prometheus{URL: server.URL + "/base", Token: "secret", ClusterID: "c-1"}
			defer p.CloseIdleConnections()
			got, err := p.Match(context.Background(), graphtest.PromQL(`up{_id=""}`))
			if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.HasPrefix(err.Error(), test.err) {
				t.Errorf("%v, %v, want %v, %s", got, err, test.want, test.err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Error("the token is in the error")
			}
		})
	}
}

func TestPrometheusSetup(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	notPEM := filepath.Join(dir, "not.pem")
	token := filepath.Join(dir, "token")
	for name, text := range map[string]string{notPEM: "x", token: "from-file\n"} {
		checktest.OK(t, os.WriteFile(name, []byte(text), 0o600))
	}
	for name, test := range map[string]struct {
		p   *risk.Prometheus
		err string
	}{
		"no CA file":     {&risk.Prometheus{CAFile: dir + "/none"}, "creating PromQL round-tripper: unable to read the CA file: "},
		"no certificate": {&risk.Prometheus{CAFile: notPEM}, "creating PromQL round-tripper: unable to add certificates of "},
		"no token":       {&risk.Prometheus{SystemCAs: true, TokenFile: dir + "/none"}, "creating PromQL round-tripper: unable to read the bearer token: "},
		"bad URL":        {&risk.Prometheus{URL: "http://a b", NoToken: true}, "creating PromQL client: "},
		"no address": {&risk.Prometheus{URL: "http://thanos", NoToken: true, Address: func(context.Context) (string, error) { return "", errors.New("no service") }},
			"failure determine thanos IP: no service"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := test.p.Match(ctx, graphtest.PromQL("up")); err == nil || !strings.HasPrefix(err.Error(), test.err) {
				t.Errorf("%v, want %s", err, test.err)
			}
		})
	}
	// The connection goes to the address, the request to the host.
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "thanos.example.com" || r.Header.Get("Authorization") != "Bearer from-file" {
			t.Errorf("%s %v", r.Host, r.Header)
		}
		if r.URL.Query().Get("query") == "slow" {
			<-stop
		}
		w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[{"value":[1,"1"]}]}}`))
	}))
	defer server.Close()
	defer close(stop)
	p := &risk.Prometheus{URL: "http://thanos.example.com", TokenFile: token, Timeout: 50 * time.Millisecond,
		Address: func(context.Context) (string, error) { return server.Listener.Addr().String(), nil }}
	defer p.CloseIdleConnections()
	if _, err := p.Match(ctx, graphtest.PromQL("slow")); err == nil || !strings.HasPrefix(err.Error(), "executing PromQL query: ") {
		t.Error(err)
	}
	tls := httptest.NewUnstartedServer(server.Config.Handler)
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	defer tls.Close()
	trusted := &risk.Prometheus{URL: tls.URL, NoToken: true, SystemCAs: true}
	checktest.ErrorHas(t, "certificate", checktest.Err(trusted.Match(ctx, graphtest.PromQL("up"))))
}

func TestPrometheusAlerts(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		checktest.Equal(t, "/api/v1/alerts", r.URL.Path, "%v", r.URL)
		w.Write([]byte(`{"status":"success","data":{"alerts":[{"labels":{"alertname":"A"},"annotations":{"summary":"s"},"state":"firing","activeAt":"2026-03-01T12:00:00Z","value":"1e+00"}]}}`))
	}))
	defer server.Close()
	p := &risk.Prometheus{URL: server.URL, NoToken: true}
	defer p.CloseIdleConnections()
	got, err := p.Firing(context.Background())
	bad := &risk.Prometheus{URL: server.URL, NoToken: true, MaxBytes: 10}
	defer bad.CloseIdleConnections()
	if _, err := bad.Firing(context.Background()); err == nil || !strings.HasPrefix(err.Error(), "reading alerts: ") || !strings.Contains(err.Error(), "10") {
		t.Error(err)
	}
	if diff := cmp.Diff([]clusterapi.Alert{{Labels: map[string]string{"alertname": "A"}, Annotations: map[string]string{"summary": "s"}, State: "firing", ActiveAt: graphtest.Start}}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// No redirect is followed, not even one within the host.
func TestPrometheusRedirect(t *testing.T) {
	followed := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			followed = true
			return
		}
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	defer server.Close()
	p := &risk.Prometheus{URL: server.URL, Token: "secret"}
	defer p.CloseIdleConnections()
	if _, err := p.Match(context.Background(), graphtest.PromQL("up")); err == nil || followed {
		t.Errorf("error %v, followed %v", err, followed)
	}
}

// A server may repeat the token, in whatever it says.
func TestPrometheusRepeatsTheToken(t *testing.T) {
	const token = "sha256~hunter2hunter2"
	for _, body := range []string{
		`{"status":"error","errorType":"unauthorized","error":"bad token ` + token + `"}`, `{"status":"error","errorType":"` + token + `"}`,
		`{"status":"` + token + `"}`, token, `{"status":"success","data":"` + token + `"}`,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			checktest.Equal(t, "Bearer "+token, r.Header.Get("Authorization"), "no token")
			fmt.Fprint(w, body)
		}))
		defer server.Close()
		p := &risk.Prometheus{URL: server.URL, Token: token}
		if _, err := p.Query(t.Context(), "up"); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", body, err)
		}
		if _, err := p.Firing(t.Context()); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: alerts: %v", body, err)
		}
	}
}
