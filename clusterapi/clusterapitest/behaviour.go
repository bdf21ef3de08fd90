package clusterapitest

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/internal/probe"
)

// testOwnership: objects returned belong to the caller, and objects passed in
// are neither kept nor changed.
func testOwnership(t *testing.T, s *suite) {
	mutate := func(u *unstructured.Unstructured) {
		data, _ := u.Object["data"].(map[string]any)
		data["a"] = "spoilt"
	}
	t.Run("Returned", func(t *testing.T) {
		in := s.configMap(t, "own-returned")
		u := s.make(t, in)
		mutate(u)
		got := s.get(t, in)
		wantAt(t, got, "1", "data", "a")
		mutate(got)
		wantAt(t, s.get(t, in), "1", "data", "a")
		list := s.list(t, configMaps, clusterapi.ListOptions{Namespace: s.ns})
		for i := range list.Items {
			if list.Items[i].Object["data"] != nil {
				mutate(&list.Items[i])
			}
		}
		wantAt(t, s.get(t, in), "1", "data", "a")
	})
	if s.recorded {
		return
	}
	t.Run("PassedIn", func(t *testing.T) {
		unchanged := func(verb string, u *unstructured.Unstructured) {
			t.Helper()
			before := text(u.Object)
			s.must(t, probe.By("first", verb, u))
			if after := text(u.Object); after != before {
				t.Errorf("%s changed the object that it was passed:\n%s\nto\n%s", verb, before, after)
			}
		}
		in := s.configMap(t, "own-passed")
		unchanged("Create", in)
		mutate(in)
		wantAt(t, s.get(t, in), "1", "data", "a")
		u := s.get(t, in)
		set(t, u, "2", "data", "a")
		unchanged("Update", u)
		mutate(u)
		wantAt(t, s.get(t, in), "2", "data", "a")
		d := s.create(t, s.deployment(t, "own-passed"))
		set(t, d, int64(1), "status", "replicas")
		unchanged("UpdateStatus", d)
		set(t, d, int64(9), "status", "replicas")
		wantAt(t, s.get(t, d), int64(1), "status", "replicas")
		u = s.configMap(t, "own-passed")
		unchanged("Apply", u)
		mutate(u)
		wantAt(t, s.get(t, in), "1", "data", "a")
	})
}

// testConcurrency: writers at the same time lose nothing.
func testConcurrency(t *testing.T, s *suite) {
	u := s.create(t, s.configMap(t, "concurrent"))
	set(t, u, "0", "data", "n")
	s.update(t, u)
	const writers, each = 4, 5
	errs := make(chan error, writers)
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for range each {
				_, err := clusterapi.Modify(s.ctx, s.api, clusterapi.KeyOf(u), clusterapi.ModifyOptions{Retries: 100}, func(cm *corev1.ConfigMap) error {
					n, err := strconv.Atoi(cm.Data["n"])
					cm.Data["n"] = strconv.Itoa(n + 1)
					return err
				})
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	wantAt(t, s.get(t, u), fmt.Sprint(writers*each), "data", "n")
}
