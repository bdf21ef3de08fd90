package kubernetes_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// handled answers requests by a handler, without a network, so that a bubble's
// time passes while a request hangs.
type handled struct{ http.HandlerFunc }

func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	type result struct{ *httptest.ResponseRecorder }
	done := make(chan result, 1)
	go func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		done <- result{w}
	}()
	select {
	case out := <-done:
		return out.Result(), nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// discover is a cluster whose n-th request for resources (from 1) is answered
// when a function returns true, and hangs otherwise until its context ends.
func discover(t *testing.T, answered func(n int64, ctx context.Context) bool) (*kubernetes.Cluster, *atomic.Int64) {
	var n atomic.Int64
	api := checktest.Get(kubernetes.New(&rest.Config{Host: "http://fake", Transport: handled{func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/api/v1" {
			answers(configMap("default", "a"))(w, r)
			return
		}
		if answered(n.Add(1), r.Context()) {
			answers(coreResources)(w, r)
		} else {
			<-r.Context().Done()
		}
	}}}, kubernetes.Options{}))(t)
	return api, &n
}

// A caller waits for another one's request for resources no longer than its
// own context lasts, and those that stay get the answer also when the one that
// asked has left.
func TestDiscoveryIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		ended := make(chan struct{})
		api, n := discover(t, func(n int64, ctx context.Context) bool {
			select {
			case <-release:
				return true
			case <-ctx.Done():
				close(ended)
				return false
			}
		})
		defer api.Close()
		get := func(ctx context.Context) <-chan error {
			out := make(chan error, 1)
			go func() {
				_, err := api.Get(ctx, configMaps, clusterapi.Key("default", "a"))
				out <- err
			}()
			synctest.Wait()
			return out
		}
		first, leave := context.WithCancel(t.Context())
		began := get(first)
		stays := get(t.Context())
		start := time.Now()
		short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := <-get(short); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		leave()
		checktest.ErrorIs(t, context.Canceled, <-began)
		select {
		case <-ended:
			t.Error("the request has ended, and somebody waits for it")
		default:
		}
		close(release)
		checktest.Good(t, <-stays)
		checktest.Equal(t, 1, n.Load(), "requests")
	})
}

// A request that nobody waits for ends, and is in nobody's way.
func TestDiscoveryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		api, n := discover(t, func(n int64, ctx context.Context) bool {
			if n > 1 {
				return true
			}
			<-ctx.Done()
			close(ended)
			return false
		})
		defer api.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		checktest.ErrorIs(t, context.DeadlineExceeded, checktest.Err(
			api.Get(ctx, configMaps, clusterapi.Key("default", "a"))))
		<-ended
		if _, err := api.Get(t.Context(), configMaps, clusterapi.Key("default", "a")); err != nil || n.Load() != 2 {
			t.Errorf("got %v after %d requests", err, n.Load())
		}
	})
}

// A request that began before a call may have been answered before what the
// caller knows to be there was there: the call asks again.
func TestDiscoveryIsNotOlderThanTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var n atomic.Int64
		api := checktest.Get(kubernetes.New(&rest.Config{Host: "http://fake", Transport: handled{func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.URL.Path != "/api/v1":
				answers(configMap("default", "a"))(w, r)
			case n.Add(1) == 1:
				<-release
				answers(`{"kind": "APIResourceList", "groupVersion": "v1", "resources": []}`)(w, r)
			default:
				answers(coreResources)(w, r)
			}
		}}}, kubernetes.Options{}))(t)
		defer api.Close()
		errs := [2]chan error{make(chan error, 1), make(chan error, 1)}
		for i := range errs {
			go func() {
				_, err := api.Get(t.Context(), configMaps, clusterapi.Key("default", "a"))
				errs[i] <- err
			}()
			synctest.Wait()
		}
		close(release)
		checktest.ErrorBy(t, meta.IsNoMatchError, <-errs[0])
		checktest.Good(t, <-errs[1])
	})
}
