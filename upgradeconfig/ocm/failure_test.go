package ocm_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm/ocmtest"
)

// badAnswers are those that are none. tries is how often they are asked for; 0
// means once.
func badAnswers() map[string]struct {
	fault ocmtest.Fault
	tries int
} {
	type bad = struct {
		fault ocmtest.Fault
		tries int
	}
	header := func(name, value string) http.Header { return http.Header{name: {value}} }
	out := map[string]bad{
		"broken off":          {ocmtest.Fault{Abort: true}, 6},
		"broken body":         {ocmtest.Fault{Cut: true}, 6},
		"no answer in time":   {ocmtest.Fault{Delay: time.Hour}, 0},
		"slow body":           {ocmtest.Fault{Stall: time.Hour}, 0},
		"moved elsewhere":     {ocmtest.Fault{Status: 302, Header: header("Location", "https://sso.example/login")}, 0},
		"moved to http":       {ocmtest.Fault{Status: 307, Header: header("Location", "http://api.openshift.com/")}, 0},
		"moved forever":       {ocmtest.Fault{Status: 302, Header: header("Location", "/moved")}, 0},
		"moved nowhere":       {ocmtest.Fault{Status: 301}, 0},
		"not modified":        {ocmtest.Fault{Status: 304, Empty: true}, 0},
		"gzip that is none":   {ocmtest.Fault{Body: `{"total":0}`, Header: header("Content-Encoding", "gzip")}, 0},
		"unknown encoding":    {ocmtest.Fault{Body: `{"total":0}`, Header: header("Content-Encoding", "br")}, 0},
		"too long":            {ocmtest.Fault{Body: `{"total":0,"x":"` + strings.Repeat("x", 4<<20) + `"}`}, 0},
		"too long when unzip": {ocmtest.Fault{Body: zipped(`{"total":0,"x":"` + strings.Repeat("x", 4<<20) + `"}`), Header: header("Content-Encoding", "gzip")}, 0},
	}
	for _, status := range []int{201, 202, 203, 204, 206, 400, 401, 403, 404, 405, 409, 418, 500, 501, 502, 504} {
		out[fmt.Sprint("status ", status)] = bad{ocmtest.Fault{Status: status}, 0}
		out[fmt.Sprint("status ", status, " without a body")] = bad{ocmtest.Fault{Status: status, Empty: true}, 0}
		if status != 204 {
			out[fmt.Sprint("status ", status, " with a list")] = bad{ocmtest.Fault{Status: status, Body: `{"total":0,"items":[]}`}, 0}
			out[fmt.Sprint("status ", status, " with a state")] = bad{ocmtest.Fault{Status: status, Body: `{"value":"pending"}`}, 0}
		}
	}
	for _, status := range []int{429, 503} {
		out[fmt.Sprint("status ", status)] = bad{ocmtest.Fault{Status: status}, 6}
		out[fmt.Sprint("status ", status, " with a list")] = bad{ocmtest.Fault{Status: status, Body: `{"total":0,"items":[]}`}, 6}
	}
	for i, body := range []string{
		"", " ", "null", "0", "true", `"x"`, "[]", "{}", `{"items":[]}`, `{"items":null}`, `{"kind":"UpgradePolicyList","page":1,"size":0}`,
		`{"total":null}`, `{"total":"0"}`, `{"total":0.0}`, `{"total":0e0}`, `{"total":false}`, `{"total":-1}`, `{"total":[]}`, `{"total":{}}`,
		`{"total":99999999999999999999}`, `{"Total":0}`, `{"TOTAL":0,"items":[]}`, `{"total":0,"items":{}}`, `{"total":0,"items":"none"}`,
		`{"total":0,"items":[{"id":"p-7"}]}`, `{"total":1}`, `{"total":1,"items":[]}`, `{"total":1,"items":null}`, `{"total":5,"total":0}`,
		`{"total":0`, `{"total":0}}`, `{"total":0} {"total":1}`, `{"total":0}x`, `{'total':0}`, "\xef\xbb\xbf{\"total\":0}", "<html>Please log in</html>",
		`{"kind":"Error","id":"401","reason":"no","total":0,"items":[],"value":"pending","id":"x"}`, `{"kind":"Error","total":0,"value":"pending"}`,
		`{"value":null}`, `{"value":1}`, `{"value":["pending"]}`, `{"Value":"pending"}`, `{"value":"pending","value":"scheduled"}`, `{"state":"pending"}`,
		`{"total":0}`, `{"total":0,"items":[]}`, "{\"total\":0,\"x\":\"\xff\"}", "{\"kind\":\"UpgradePolicyList\",\"total\":0,\"items\":[],\"x\":\"\xff\"}",
		"{\"kind\":\"UpgradePolicyList\",\"total\":0,\"items\":[],\"\xc3\":1}", `{"kind":"","total":0,"items":[]}`, `{"kind":"upgradePolicyList","total":0,"items":[]}`,
		`{"kind":"AddOnList","total":0,"items":[]}`, `{"kind":"ControlPlaneUpgradePolicyList","total":0,"items":[]}`, `{"kind":null,"total":0}`, `{"kind":["UpgradePolicyList"],"total":0}`,
		`{"kind":"UpgradePolicyList","total":1,"items":[{"kind":"NodePool","id":"n-1","upgrade_type":"ADDON"}]}`, `{"kind":"UpgradePolicy","value":"pending"}`, "{\"value\":\"pending\",\"x\":\"\xff\"}",
		strings.Repeat("[", 20000), `{"x":` + strings.Repeat("{\"x\":", 20000),
	} {
		out[fmt.Sprintf("body %d %.30q", i, body)] = bad{ocmtest.Fault{Body: body, Empty: body == ""}, 0}
	}
	return out
}

func zipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.String()
}

// TestNothingReadsAsNoPolicy: each bad answer to each request is an error, and
// leaves the cluster as it is.
func TestNothingReadsAsNoPolicy(t *testing.T) {
	for name, tt := range badAnswers() {
		for _, path := range []string{"/clusters", "/upgrade_policies", "/state"} {
			checktest.Bubble(t, name+" "+path, func(t *testing.T) {
				s := newServer(p7)
				fault := tt.fault
				fault.Path, fault.Always = path, true
				s.Fail(fault)
				cluster := newCluster(t)
				p := must(ocm.New(cluster, ocm.Options{Base: ocmtest.Transport(s)}))
				object := &upgradeconfig.UpgradeConfig{Spec: p7Spec}
				object.Namespace, object.Name = upgradeconfig.DefaultNamespace, upgradeconfig.Name
				stored, err := clusterapi.Create(t.Context(), cluster, object, clusterapi.CreateOptions{})
				checktest.OK(t, err)

				m := must(upgradeconfig.NewManager(upgradeconfig.ManagerOptions{API: cluster, Provider: p}))
				result, err := m.Sync(t.Context())
				if err == nil || !errors.Is(err, upgradeconfig.ErrRetrievePolicies) || result.Changed {
					t.Fatalf("%+v, %v", result, err)
				}
				after, err := clusterapi.Get[upgradeconfig.UpgradeConfig](t.Context(), cluster, clusterapi.Key(object.Namespace, object.Name))
				checktest.OK(t, err)
				checktest.Equal(t, stored.ResourceVersion, after.ResourceVersion, "the object was touched")
				tries := 0
				for _, r := range s.Requests() {
					if strings.HasSuffix(r.Path, path) {
						tries++
					}
				}
				checktest.Equal(t, max(tt.tries, 1), tries, "tries")
			})
		}
	}
}

// TestSlowAnswers: each try has its 30 seconds, the body included.
func TestSlowAnswers(t *testing.T) {
	for _, tt := range []struct {
		fault ocmtest.Fault
		wait  time.Duration
		ok    bool
	}{
		{ocmtest.Fault{Delay: 29 * time.Second}, 29 * time.Second, true},
		{ocmtest.Fault{Delay: 31 * time.Second}, 30 * time.Second, false},
		{ocmtest.Fault{Stall: 29 * time.Second}, 29 * time.Second, true},
		{ocmtest.Fault{Stall: 31 * time.Second}, 30 * time.Second, false},
		{ocmtest.Fault{Delay: 20 * time.Second, Stall: 20 * time.Second}, 30 * time.Second, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(p7)
			s.Fail(tt.fault)
			start := time.Now()
			got, err := newProvider(t, s, ocm.Options{}).Policies(t.Context())
			if (err == nil) != tt.ok || (len(got) == 1) != tt.ok || time.Since(start) != tt.wait {
				t.Errorf("%+v: %v, %v after %s", tt, got, err, time.Since(start))
			}
			if !tt.ok && (!errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no complete answer within the time-out of 30s")) {
				t.Error(err)
			}
		})
	}
}

func TestRetries(t *testing.T) {
	low, high := func(int64) int64 { return 0 }, func(n int64) int64 { return n - 1 }
	seconds := func(list ...float64) []time.Duration {
		var out []time.Duration
		for _, s := range list {
			out = append(out, time.Duration(s*float64(time.Second)))
		}
		return out
	}
	after := func(v string, more ...string) http.Header {
		h := http.Header{"Retry-After": {v}}
		for i := 0; i+1 < len(more); i += 2 {
			h.Set(more[i], more[i+1])
		}
		return h
	}
	const agent = "http://ocm-agent.openshift-ocm-agent-operator.svc.cluster.local:8081"
	for _, tt := range []struct {
		name  string
		fault ocmtest.Fault
		o     ocm.Options
		waits []time.Duration
		ok    bool
	}{
		{"503 twice", ocmtest.Fault{Status: 503, Times: 2}, ocm.Options{}, seconds(4, 8), true},
		{"429 five times", ocmtest.Fault{Status: 429, Times: 5}, ocm.Options{}, seconds(4, 8, 16, 32, 64), true},
		{"forever", ocmtest.Fault{Status: 503, Always: true}, ocm.Options{}, seconds(4, 8, 16, 32, 64), false},
		{"shortest", ocmtest.Fault{Status: 503, Always: true}, ocm.Options{Rand: low}, seconds(2.8, 5.6, 11.2, 22.4, 44.8), false},
		{"longest", ocmtest.Fault{Abort: true, Always: true}, ocm.Options{Rand: high}, seconds(5.2, 10.4, 20.8, 41.6, 83.2), false},
		{"agent", ocmtest.Fault{Status: 503, Always: true}, ocm.Options{URL: agent}, seconds(2, 4), false},
		{"agent, other retries", ocmtest.Fault{Status: 503, Always: true}, ocm.Options{URL: agent, Retries: 1, RetryWait: time.Minute}, seconds(120), false},
		{"never", ocmtest.Fault{Status: 503, Always: true}, ocm.Options{NoRetry: true}, nil, false},
		{"at most an hour", ocmtest.Fault{Status: 503, Always: true}, ocm.Options{Retries: 2, RetryWait: 1 << 62}, seconds(3600, 3600), false},
		{"Retry-After", ocmtest.Fault{Status: 429, Header: after("7"), Times: 1}, ocm.Options{Rand: high}, seconds(7), true},
		{"Retry-After, long", ocmtest.Fault{Status: 503, Header: after("100000"), Times: 1}, ocm.Options{}, seconds(60), true},
		{"Retry-After, none", ocmtest.Fault{Status: 503, Header: after("0"), Times: 1}, ocm.Options{}, seconds(0), true},
		{"Retry-After, rubbish", ocmtest.Fault{Status: 503, Header: after("in a while"), Times: 1}, ocm.Options{}, seconds(4), true},
		// Time in a bubble starts in the year 2000.
		{"Retry-After, a date", ocmtest.Fault{Status: 503, Header: after("Sat, 01 Jan 2000 00:00:09 GMT"), Times: 1}, ocm.Options{}, seconds(9), true},
		{"Retry-After, of a server in the future", ocmtest.Fault{Status: 503, Header: after("Thu, 01 Jan 2032 00:00:09 GMT", "Date", "Thu, 01 Jan 2032 00:00:00 GMT"), Times: 1}, ocm.Options{}, seconds(9), true},
		{"Retry-After, of a server in the past", ocmtest.Fault{Status: 503, Header: after("Thu, 01 Jan 1998 00:00:09 GMT", "Date", "Thu, 01 Jan 1998 00:00:00 GMT"), Times: 1}, ocm.Options{}, seconds(9), true},
		{"500", ocmtest.Fault{Status: 500}, ocm.Options{}, nil, false},
		{"401", ocmtest.Fault{Status: 401}, ocm.Options{}, nil, false},
	} {
		for _, path := range []string{"/clusters", "/upgrade_policies", "/state"} {
			if tt.o.URL == agent && path == "/clusters" {
				path = "/"
			}
			synctest.Test(t, func(t *testing.T) {
				s := newServer(p7)
				var times []time.Time
				h := handlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if strings.HasSuffix(r.URL.Path, path) {
						times = append(times, time.Now())
					}
					s.ServeHTTP(w, r)
				})
				tt.fault.Path = path
				s.Fail(tt.fault)
				got, err := newProvider(t, h, tt.o).Policies(t.Context())
				if (err == nil) != tt.ok || (len(got) == 1) != tt.ok {
					t.Errorf("%s, %s: %v, %v", tt.name, path, got, err)
				}
				if len(times) != len(tt.waits)+1 {
					t.Fatalf("%s, %s: asked at %v", tt.name, path, times)
				}
				for i, want := range tt.waits {
					if wait := times[i+1].Sub(times[i]); (wait - want).Abs() > time.Nanosecond {
						t.Errorf("%s, %s: wait %d of %s, want %s", tt.name, path, i+1, wait, want)
					}
				}
			})
		}
	}
}

// TestCancel: a client that goes gets an answer at once, wherever it is.
func TestCancel(t *testing.T) {
	for name, fault := range map[string]ocmtest.Fault{
		"in a retry's wait": {Status: 503, Always: true},
		"before the answer": {Delay: time.Hour},
		"in a body":         {Stall: time.Hour},
	} {
		for _, path := range []string{"/clusters", "/upgrade_policies", "/state"} {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(p7)
				fault.Path = path
				s.Fail(fault)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(3*time.Second, cancel)
				start := time.Now()
				got, err := newProvider(t, s, ocm.Options{}).Policies(ctx)
				if got != nil || !errors.Is(err, context.Canceled) || time.Since(start) != 3*time.Second {
					t.Errorf("%s of %s: %v, %v after %s", name, path, got, err, time.Since(start))
				}
			})
		}
	}
}

func TestPullSecret(t *testing.T) {
	config := func(auths any) string {
		return fmt.Sprintf(`{"auths":%v}`, auths)
	}
	clusterVersion := ocmtest.Objects(uuid, token)[1]
	secret := func(data map[string]any) *unstructured.Unstructured {
		s := ocmtest.PullSecret(nil)
		s.Object["data"] = data
		return s
	}
	of := func(config string) []*unstructured.Unstructured {
		return []*unstructured.Unstructured{ocmtest.PullSecret([]byte(config)), clusterVersion}
	}
	auth := func(value string) string {
		return config(`{"cloud.openshift.com":{"auth":` + value + `,"email":"a@example.com"}}`)
	}
	for _, tt := range []struct {
		name    string
		objects []*unstructured.Unstructured
		want    string
	}{
		{"nothing", nil, "cannot fetch pull secret: "},
		{"nothing at all", nil, "can't get clusterversion: "},
		{"no secret", []*unstructured.Unstructured{clusterVersion}, "cannot fetch pull secret: "},
		{"no data", []*unstructured.Unstructured{secret(nil), clusterVersion}, "pull secret missing required key .dockerconfigjson"},
		{"other key", []*unstructured.Unstructured{secret(map[string]any{"config.json": "e30="}), clusterVersion}, "pull secret missing required key .dockerconfigjson"},
		{"empty", of(""), "unable to interpret decoded pull secret as json: "},
		{"not JSON", of("very-secret"), "unable to interpret decoded pull secret as json: syntax error at byte 1"},
		{"a list", of(`["very-secret"]`), "unable to interpret decoded pull secret as json: it is not an object"},
		{"null", of("null"), "unable to find auths section in pull secret"},
		{"no auths", of("{}"), "unable to find auths section in pull secret"},
		{"auths null", of(config("null")), "unable to find auths section in pull secret"},
		{"auths a text", of(config(`"very-secret"`)), "unable to find auths section in pull secret"},
		{"Auths", of(`{"Auths":{"cloud.openshift.com":{"auth":"dmVyeS1zZWNyZXQ="}}}`), "unable to find auths section in pull secret"},
		{"no entry", of(config(`{"quay.io":{"auth":"dmVyeS1zZWNyZXQ="}}`)), "unable to find pull secret auth key 'cloud.openshift.com' in pull secret"},
		{"entry null", of(config(`{"cloud.openshift.com":null}`)), "unable to find pull secret auth key 'cloud.openshift.com' in pull secret"},
		{"entry a text", of(config(`{"cloud.openshift.com":"very-secret"}`)), "unable to find pull secret auth key 'cloud.openshift.com' in pull secret"},
		{"no auth", of(config(`{"cloud.openshift.com":{}}`)), "unable to find access auth token in pull secret"},
		{"auth empty", of(auth(`""`)), "unable to find access auth token in pull secret"},
		{"auth null", of(auth(`null`)), "unable to find access auth token in pull secret"},
		{"auth a number", of(auth(`5`)), "unable to find access auth token in pull secret"},
		{"auth a list", of(auth(`["very-secret"]`)), "unable to find access auth token in pull secret"},
		{"not base64", of(auth(`"very-secret"`)), "the access token in the pull secret is not standard base64"},
		{"URL base64", of(auth(`"-__-"`)), "the access token in the pull secret is not standard base64"},
		{"a colon", of(auth(`"dmVyeQ==:c2VjcmV0"`)), "the access token in the pull secret is not standard base64"},
		{"a line break", of(auth(`"dmVyeS1z\nZWNyZXQ="`)), "the access token in the pull secret is not standard base64"},
		{"no padding", of(auth(`"dmVyeS1zZWNyZXQ"`)), "the access token in the pull secret is not standard base64"},
		{"no ClusterVersion", ocmtest.Objects(uuid, token)[:1], "can't get clusterversion: "},
		{"odd cluster ID", ocmtest.Objects("' or id like '%", token), "is not a UUID"},
		{"no cluster ID", ocmtest.Objects("", token), "is not a UUID"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(p7)
			cluster := serving(memory.NewOpenShift(memory.Options{Validate: func(_, _ *unstructured.Unstructured) error { return nil }}))
			for _, o := range tt.objects {
				if err := cluster.Load(o); err != nil { // as it is
					t.Fatal(err)
				}
			}
			p, err := ocm.New(cluster, ocm.Options{Base: ocmtest.Transport(s)})
			checktest.OK(t, err)
			_, err = p.Policies(t.Context())
			_, connectErr := connect(t, cluster, ocm.Options{Base: ocmtest.Transport(s)})
			for _, err := range []error{err, connectErr} {
				if !errors.Is(err, ocm.ErrAccessToken) || !strings.HasPrefix(err.Error(), "failed to retrieve cluster access token: ") || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
				if err != nil && (strings.Contains(err.Error(), "secret-") || strings.Contains(err.Error(), "dmVyeS1")) {
					t.Errorf("a secret is told: %v", err)
				}
			}
			checktest.Equal(t, 0, len(s.Requests()), "requests")
		})
	}
}

// TestPullSecretIsReadAgain: New takes what is there when it is needed, FromConfig
// what was there.
func TestPullSecretIsReadAgain(t *testing.T) {
	s := newServer(p7)
	cluster := newCluster(t)
	fresh := must(ocm.New(cluster, ocm.Options{Base: ocmtest.Transport(s)}))
	kept := must(connect(t, cluster, ocm.Options{Base: ocmtest.Transport(s)}))
	s.Token = base64.StdEncoding.EncodeToString([]byte("another token"))
	secret := checktest.Get(cluster.Get(t.Context(), ocmtest.PullSecret(nil).GroupVersionKind(),
		clusterapi.Key("openshift-config", "pull-secret")))(t)
	secret.Object["data"] = ocmtest.PullSecret([]byte(`{"auths":{"cloud.openshift.com":{"auth":"` + s.Token + `"}}}`)).Object["data"]
	must(cluster.Update(t.Context(), secret, clusterapi.UpdateOptions{}))
	checktest.Good(t, checktest.Err(fresh.Policies(t.Context())))
	checktest.Fails(t, checktest.Err(kept.Policies(t.Context())), "the token was read again")
}

// TestTokenIsNeverTold, though the server repeats it wherever it can.
func TestTokenIsNeverTold(t *testing.T) {
	shapes := map[string]string{
		"as it is":       token,
		"unpadded":       strings.TrimRight(token, "="),
		"escaped":        url.QueryEscape(token),
		"lower escaped":  strings.ToLower(url.QueryEscape(token)),
		"decoded":        "ocm-user:pass-word+9?/=very-secret-indeed",
		"password":       "pass-word+9?/=very-secret-indeed",
		"whole header":   "AccessToken " + uuid + ":" + token,
		"another scheme": "Bearer eyJhbGciOiJub25lIn0.very-secret-indeed.x",
	}
	quote := func(s string) string { return strings.Trim(fmt.Sprintf("%q", s), `"`) }
	raw := func(text string) ocmtest.Fault {
		return ocmtest.Fault{Handler: handlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			io.WriteString(conn, text)
			conn.Close()
		})}
	}
	for shape, secret := range shapes {
		q := quote(secret)
		faults := map[string]ocmtest.Fault{
			"reason":            {Status: 401, Body: `{"kind":"Error","code":"C","reason":"not ` + q + `","operation_id":"` + q + `"}`, Header: http.Header{"X-Operation-Id": nil}},
			"code":              {Status: 401, Body: `{"kind":"Error","code":"` + q + `"}`},
			"unicode escapes":   {Status: 401, Body: `{"kind":"Error","reason":"` + escapes(secret) + `"}`},
			"header":            {Status: 500, Header: http.Header{"X-Operation-Id": {secret}}},
			"location":          {Status: 302, Header: http.Header{"Location": {"https://sso.example/?" + url.QueryEscape(secret) + "#" + secret}}},
			"bad location":      {Status: 302, Header: http.Header{"Location": {"://" + secret + "\x7f"}}},
			"own location":      {Status: 302, Header: http.Header{"Location": {"/x?t=" + url.QueryEscape(secret)}}},
			"encoding":          {Body: "{}", Header: http.Header{"Content-Encoding": {secret}}},
			"key":               {Body: `{"total":1,"` + q + `":1,"` + q + `":2}`},
			"type":              {Body: `{"total":"` + q + `"}`},
			"no JSON":           {Body: secret},
			"group":             {Path: "/clusters", Body: `{"total":1,"items":[{"id":"1a2b","version":{"channel_group":"` + q + `"},"node_drain_grace_period":{"unit":"` + q + `"}}]}`},
			"cluster id":        {Path: "/clusters", Body: `{"total":1,"items":[{"id":"` + q + `"}]}`},
			"policy":            {Path: "/upgrade_policies", Body: `{"total":1,"items":[{"id":"` + q + `","version":"` + q + `","next_run":"` + q + `"}]}`},
			"version":           {Path: "/upgrade_policies", Body: `{"total":1,"items":[{"id":"p-7","version":"` + q + `","next_run":"` + q + `"}]}`},
			"twice":             {Path: "/upgrade_policies", Times: 9, Body: `{"total":3,"items":[{"id":"` + q + `"},{"id":"` + q + `"}]}`},
			"state":             {Path: "/state", Body: `{"value":"` + q + `","description":"` + q + `"}`},
			"bad status":        raw("HTTP/1.1 2" + secret + "\r\n\r\n"),
			"status text":       raw("HTTP/1.1 500 " + secret + "\r\nContent-Length: 0\r\n\r\n"),
			"no HTTP":           raw(secret + "\r\n\r\n"),
			"bad header":        raw("HTTP/1.1 200 OK\r\n" + secret + "\r\n\r\n"),
			"bad length":        raw("HTTP/1.1 200 OK\r\nContent-Length: " + secret + "\r\n\r\n"),
			"bad chunk":         raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + secret + "\r\n"),
			"transfer encoding": raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: " + secret + "\r\n\r\n"),
			"after the answer":  raw("HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\n{}" + secret),
			"busy":              {Status: 503, Body: `{"kind":"Error","reason":"` + q + `"}`, Times: 2, Header: http.Header{"X-Operation-Id": {secret}, "Retry-After": {"0"}}},
		}
		for name, fault := range faults {
			t.Run(shape+" "+name, func(t *testing.T) {
				s := newServer(p7)
				if fault.Times == 0 {
					fault.Always = true
				}
				s.Fail(fault)
				var logged bytes.Buffer
				log.SetOutput(&logged)
				defer log.SetOutput(os.Stderr)
				server := httptest.NewServer(s)
				defer server.Close()
				told := &logged
				o := ocm.Options{
					URL: server.URL, Logger: slog.New(slog.NewTextHandler(told, &slog.HandlerOptions{Level: slog.LevelDebug})),
					Observe: func(e clusterapi.Event) { fmt.Fprintf(told, "%+v\n%s\n", e, chain(e.Err)) },
					Retries: 1, RetryWait: time.Nanosecond,
				}
				p := must(ocm.New(newCluster(t), o))
				got, err := p.Policies(t.Context())
				fmt.Fprintf(told, "%v\n%+v\n%s\n", got, got, chain(err))
				err = p.Notify(t.Context(), notification(upgradeconfig.StateStarted))
				fmt.Fprintf(told, "%s\n%s\n", p, chain(err))
				for _, secret := range []string{secret, token, strings.TrimRight(token, "="), "very-secret-indeed", url.QueryEscape(token)} {
					if strings.Contains(told.String(), secret) {
						t.Errorf("%q is told: %.2000s", secret, told)
					}
				}
			})
		}
	}
}

func escapes(s string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

// chain prints an error with all that it wraps, in every way.
func chain(err error) string {
	if err == nil {
		return ""
	}
	text := fmt.Sprintf("%v %+v %q %#v\n", err, err, err, err)
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		text += chain(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			text += chain(err)
		}
	}
	return text
}

// TestRedirects: the token goes nowhere else, and no other server's answer
// counts.
func TestRedirects(t *testing.T) {
	asked := 0
	other := httptest.NewServer(handlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		fmt.Fprint(w, `{"total":0,"items":[]}`)
	}))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := newServer(p7)
		server := httptest.NewServer(s)
		defer server.Close()
		p := must(ocm.New(newCluster(t), ocm.Options{URL: server.URL}))
		s.Fail(ocmtest.Fault{Status: status, Path: "/upgrade_policies", Header: http.Header{"Location": {other.URL + "/api"}}})
		got, err := p.Policies(t.Context())
		if err == nil || !strings.Contains(err.Error(), "redirect to another scheme, host or port refused") || asked != 0 {
			t.Errorf("%d: %v, %v, %d requests elsewhere", status, got, err, asked)
		}
		// On the same server it is followed.
		s.Fail(ocmtest.Fault{Status: status, Path: "/upgrade_policies", Header: http.Header{"Location": {policies + "?page=1"}}})
		checktest.Equal(t, 1, len(checktest.Get(p.Policies(t.Context()))(t)), "%d", status)
	}
}

// TestProxy: the one that was asked for, and never the environment's.
func TestProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	s := newServer(p7)
	server := httptest.NewServer(s)
	defer server.Close()
	u := must(url.Parse(server.URL))
	for base, proxied := range map[string]bool{
		"http://ocm.invalid": true,
		"http://ocm-agent.openshift-ocm-agent-operator.svc.cluster.local:8081": false,
	} {
		asked := 0
		p, err := ocm.New(newCluster(t), ocm.Options{URL: base, NoRetry: true, Timeout: 5 * time.Second, Proxy: func(*http.Request) (*url.URL, error) { asked++; return u, nil }})
		checktest.OK(t, err)
		_, err = p.Policies(t.Context())
		if proxied != (err == nil) || proxied != (asked > 0) || err != nil && strings.Contains(err.Error(), "127.0.0.1:1") {
			t.Errorf("%s: %v, the proxy was asked for %d times", base, err, asked)
		}
	}
}

// TestNoConnectionStays: nothing is left open between two syncs.
func TestNoConnectionStays(t *testing.T) {
	s := newServer(p7)
	open := map[net.Conn]http.ConnState{}
	changes := make(chan struct{}, 100)
	server := httptest.NewUnstartedServer(s)
	lock := make(chan struct{}, 1)
	server.Config.ConnState = func(c net.Conn, state http.ConnState) {
		lock <- struct{}{}
		if open[c] = state; state == http.StateClosed {
			delete(open, c)
		}
		<-lock
		changes <- struct{}{}
	}
	server.Start()
	defer server.Close()
	p := must(ocm.New(newCluster(t), ocm.Options{URL: server.URL}))
	must(p.Policies(t.Context()))
	for {
		lock <- struct{}{}
		n := len(open)
		<-lock
		if n == 0 {
			return
		}
		select {
		case <-changes:
		case <-time.After(10 * time.Second):
			t.Fatal("connections are still open")
		}
	}
}
