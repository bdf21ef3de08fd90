package kubernetes_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
)

// responding answers all requests but that for resources by a function.
func responding(t *testing.T, o kubernetes.Options, answer func(r *http.Request) *http.Response) *kubernetes.Cluster {
	t.Helper()
	api := checktest.Get(kubernetes.New(&rest.Config{Host: "http://fake", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		resp := response(http.StatusOK, strings.NewReader(coreResources))
		if r.URL.Path != "/api/v1" {
			resp = answer(r)
		}
		resp.Request = r
		return resp, nil
	})}, o))(t)
	t.Cleanup(func() { _ = api.Close() })
	return api
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// response has no length, as one that was compressed.
func response(code int, body io.Reader) *http.Response {
	return &http.Response{
		StatusCode: code, Status: strconv.Itoa(code), ProtoMajor: 2, ContentLength: -1, Body: io.NopCloser(body),
		Header: http.Header{"Content-Type": {"application/json"}},
	}
}

// padded is JSON of so many bytes: an object, and spaces in it.
func padded(text string, size int) []byte {
	return append(append([]byte(text[:1]), bytes.Repeat([]byte(" "), size-len(text))...), text[1:]...)
}

// endless counts what is read of it.
type endless struct{ read atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read.Add(int64(len(p)))
	return len(p), nil
}

func TestLimits(t *testing.T) {
	const object, all, failure = 16 << 20, 1 << 30, 256 << 10
	key := clusterapi.Key("default", "a")
	large := padded(configMap("default", "a"), object+1)
	event := append([]byte(`{"type": "ADDED", "object": `), append(padded(configMap("default", "b"), object), '}')...)
	status := []byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409, "reason": "Conflict", "message": "` + strings.Repeat("x", failure) + `"}`)
	limittest.Walk(t, []limittest.Case{{
		Limit: "answer with one object", Default: object, Bytes: 8 * object,
		Run: func(t *testing.T) int64 {
			api := responding(t, kubernetes.Options{}, func(*http.Request) *http.Response { return response(200, bytes.NewReader(large)) })
			if _, err := api.Get(t.Context(), configMaps, key); !tooLarge(err, "Limits.Object") {
				t.Errorf("got %v", err)
			}
			return 0
		},
	}, {
		Limit: "event of a watch", Default: object, Bytes: 8 * object,
		Run: func(t *testing.T) int64 {
			api := responding(t, kubernetes.Options{}, func(r *http.Request) *http.Response {
				if isWatch(r) {
					return response(200, bytes.NewReader(event))
				}
				return response(200, strings.NewReader(list()))
			})
			var last error
			for _, err := range api.Watch(t.Context(), configMaps, clusterapi.ListOptions{}) {
				last = err
			}
			checktest.FailIf(t, !tooLarge(last, "Limits.Object"), "got %v", last)
			return 0
		},
	}, {
		Limit: "all pages of a list", Default: all, Bytes: 1 << 20,
		Run: func(t *testing.T) int64 {
			var body endless
			api := responding(t, kubernetes.Options{}, func(*http.Request) *http.Response {
				resp := response(200, &body)
				resp.ContentLength = all + 1
				return resp
			})
			if _, err := api.List(t.Context(), configMaps, clusterapi.ListOptions{}); !tooLarge(err, "Limits.List") {
				t.Errorf("got %v", err)
			}
			return body.read.Load()
		},
	}, {
		Limit: "body of an error", Default: failure, Bytes: 8 * failure,
		Run: func(t *testing.T) int64 {
			api := responding(t, kubernetes.Options{}, func(*http.Request) *http.Response { return response(409, bytes.NewReader(status)) })
			_, err := api.Get(t.Context(), configMaps, key)
			if !apierrors.IsConflict(err) || len(err.Error()) > 4096 {
				t.Errorf("got %T of %d bytes", err, len(fmt.Sprint(err)))
			}
			return 0
		},
	}, {
		Limit: "wait before a repetition", Default: int64(time.Minute), Bytes: 1 << 20, Steps: 1,
		Run: func(t *testing.T) (requests int64) {
			api := responding(t, kubernetes.Options{}, func(*http.Request) *http.Response {
				requests++
				resp := response(429, strings.NewReader(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 429, "reason": "TooManyRequests", "details": {"retryAfterSeconds": 61}}`))
				resp.Header.Set("Retry-After", "61")
				return resp
			})
			_, err := api.Get(t.Context(), configMaps, key)
			seconds, ok := apierrors.SuggestsClientDelay(err)
			checktest.FailIf(t, !ok || seconds != 61 || !apierrors.IsTooManyRequests(err), "got %v", err)
			return requests
		},
	}, {
		Limit: "redirects on one host", Default: 10, Bytes: 1 << 20, Steps: 10,
		Run: func(t *testing.T) (requests int64) {
			api := responding(t, kubernetes.Options{}, func(*http.Request) *http.Response {
				requests++
				resp := response(307, http.NoBody)
				resp.Header.Set("Location", "/elsewhere")
				return resp
			})
			checktest.ErrorIs(t, kubernetes.ErrAnswer, checktest.Err(api.Get(t.Context(), configMaps, key)))
			return requests
		},
	}})
}

func tooLarge(err error, limit string) bool {
	return errors.Is(err, kubernetes.ErrTooLarge) && strings.Contains(err.Error(), limit)
}

// Limits of the options: what has just that size passes, one byte more does
// not, of all pages of a list together, of an event, and of all that a watch
// keeps.
func TestOwnLimits(t *testing.T) {
	key := clusterapi.Key("default", "a")
	one := []byte(configMap("default", "a"))
	get := func(limit int64) error {
		api := responding(t, kubernetes.Options{Limits: kubernetes.Limits{Object: limit}}, func(r *http.Request) *http.Response {
			return response(200, bytes.NewReader(one))
		})
		_, err := api.Get(t.Context(), configMaps, key)
		return err
	}
	size := int64(max(len(one), len(coreResources)))
	one = padded(string(one), int(size))
	checktest.Good(t, get(size))
	if err := get(size - 1); !tooLarge(err, "Limits.Object") {
		t.Errorf("a larger one: %v", err)
	}

	pages := [2]string{
		strings.Replace(list(configMap("default", "a")), `"9"`, `"9", "continue": "x"`, 1),
		list(configMap("default", "b")),
	}
	get = func(limit int64) error {
		api := responding(t, kubernetes.Options{Limits: kubernetes.Limits{List: limit}}, func(r *http.Request) *http.Response {
			page := pages[0]
			if r.URL.Query().Get("continue") != "" {
				page = pages[1]
			}
			return response(200, strings.NewReader(page))
		})
		got, err := api.List(t.Context(), configMaps, clusterapi.ListOptions{})
		checktest.FailIf(t, err == nil && len(got.Items) != 2, "got %v", got)
		return err
	}
	size = int64(len(pages[0]) + len(pages[1]))
	checktest.Good(t, get(size))
	if err := get(size - 1); !tooLarge(err, "Limits.List") {
		t.Errorf("a larger one: %v", err)
	}
	// A server whose list never ends.
	n := 0
	api := responding(t, kubernetes.Options{Limits: kubernetes.Limits{List: 100_000}}, func(*http.Request) *http.Response {
		n++
		return response(200, strings.NewReader(fmt.Sprintf(`{"kind": "ConfigMapList", "apiVersion": "v1", "items": [], "metadata": {"continue": "%d"}}`, n)))
	})
	if _, err := api.List(t.Context(), configMaps, clusterapi.ListOptions{}); !tooLarge(err, "Limits.List") || n > 2000 {
		t.Errorf("after %d pages: %v", n, err)
	}

	// Events that are small, and objects that become more and more; those that
	// go make room.
	var sent int
	events := func(types ...string) io.Reader {
		var readers []io.Reader
		for i := range 1000 {
			for _, kind := range types {
				readers = append(readers, strings.NewReader(fmt.Sprintf(`{"type": %q, "object": %s}`, kind, configMap("default", fmt.Sprint("n", i)))))
			}
		}
		return io.MultiReader(readers...)
	}
	watch := func(limits kubernetes.Limits, body io.Reader) error {
		sent = 0
		api := responding(t, kubernetes.Options{Limits: limits}, func(r *http.Request) *http.Response {
			if isWatch(r) {
				return response(200, body)
			}
			return response(200, strings.NewReader(list()))
		})
		for e, err := range api.Watch(t.Context(), configMaps, clusterapi.ListOptions{}) {
			if err != nil {
				return err
			}
			if e.Object != nil {
				if sent++; sent == 2000 {
					break
				}
			}
		}
		return nil
	}
	if err := watch(kubernetes.Limits{List: 50_000}, events("ADDED")); !errors.Is(err, kubernetes.ErrTooLarge) || sent < 100 || sent > 500 {
		t.Errorf("objects that become more: %v after %d", err, sent)
	}
	if err := watch(kubernetes.Limits{List: 50_000}, events("ADDED", "DELETED")); err != nil || sent != 2000 {
		t.Errorf("objects that come and go: %v after %d", err, sent)
	}
	if err := watch(kubernetes.Limits{Object: 1000}, events("ADDED", "MODIFIED")); err != nil || sent != 2000 {
		t.Errorf("events below the limit: %v after %d", err, sent)
	}
	if err := watch(kubernetes.Limits{Object: 1000}, io.MultiReader(strings.NewReader(`{"type": "ADDED", "object": `), &endless{})); !tooLarge(err, "Limits.Object") {
		t.Errorf("an event without end: %v", err)
	}
	for _, l := range []kubernetes.Limits{{Object: -1}, {List: -1}, {Error: -1}} {
		if _, err := kubernetes.New(&rest.Config{Host: "http://fake"}, kubernetes.Options{Limits: l}); err == nil || !strings.Contains(err.Error(), "negative") {
			t.Errorf("%+v: %v", l, err)
		}
	}
}
