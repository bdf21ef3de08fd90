package kubernetes_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

var (
	configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	nodes      = schema.GroupVersionKind{Version: "v1", Kind: "Node"}
)

// TestFaults has a proxy between client and server that does to the requests
// what networks and busy servers do.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t)
	p := newProxy(t, s)
	direct := newAPI(t, s, kubernetes.Options{})
	api := checktest.Get(kubernetes.New(p.config(), kubernetes.Options{PageSize: 2, Logger: logTo(t)}))(t)
	t.Run("Throttled", func(t *testing.T) { testThrottled(t, p, api) })
	t.Run("Conflict", func(t *testing.T) { testConflict(t, p, api) })
	t.Run("Types", func(t *testing.T) { testTypes(t, p, api) })
	t.Run("Pages", func(t *testing.T) { testPages(t, p, api) })
	t.Run("Watch", func(t *testing.T) { testWatchResumes(t, p, api, direct) })
	t.Run("Context", func(t *testing.T) { testThrottledContext(t, p, api) })
	t.Run("Update", func(t *testing.T) { testUpdateWithFaults(t, p, direct) })
}

// firstTime gives the first n requests that match a fault.
func firstTime(n int, f fault, match func(*http.Request) bool) func(*http.Request) fault {
	left := new(atomic.Int64)
	left.Store(int64(n))
	return func(r *http.Request) fault {
		if match(r) && left.Add(-1) >= 0 {
			return f
		}
		return none
	}
}

func method(name string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == name }
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

// A server that names a time to wait is asked again after it.
func testThrottled(t *testing.T, p *proxy, api clusterapi.ClusterAPI) {
	p.inject(firstTime(2, throttled, method(http.MethodPatch)))
	u := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: throttled, namespace: default}, data: {a: "1"}}`)
	began := time.Now()
	checktest.OK(t, checktest.Err(api.Apply(t.Context(), u, clusterapi.ApplyOptions{FieldManager: "test"})))
	took := time.Since(began)
	checktest.FailIf(t, took < 2*time.Second, "it took %s, and the server asked twice to wait for a second", took)
}

// The wait ends with its context.
func testThrottledContext(t *testing.T, p *proxy, api clusterapi.ClusterAPI) {
	p.inject(func(*http.Request) fault { return throttled })
	defer p.inject(nil)
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	began := time.Now()
	checktest.Fails(t, checktest.Err(
		api.Get(ctx, configMaps, clusterapi.Key("default", "throttled"))), "no error from a server that only throttles")
	took := time.Since(began)
	checktest.FailIf(t, took > 5*time.Second, "it took %s after its context had ended at 1.5s", took)
}

// Modify starts again after a conflict.
func testConflict(t *testing.T, p *proxy, api clusterapi.ClusterAPI) {
	create(t, api, object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: conflict, namespace: default}, data: {a: "1"}}`))
	p.inject(firstTime(3, conflict, method(http.MethodPut)))
	calls := 0
	_, err := clusterapi.Modify(t.Context(), api, clusterapi.Key("default", "conflict"), clusterapi.ModifyOptions{}, func(cm *corev1.ConfigMap) error {
		calls++
		cm.Data["a"] = "2"
		return nil
	})
	checktest.FailIf(t, err != nil || calls != 4, "%d calls, error %v; want 4 and none", calls, err)
}

// Faults that are not retried keep their type.
func testTypes(t *testing.T, p *proxy, api clusterapi.ClusterAPI) {
	defer p.inject(nil)
	for _, tc := range []struct {
		fault fault
		is    func(error) bool
	}{
		{conflict, apierrors.IsConflict},
		{broken, apierrors.IsInternalError},
		{expired, apierrors.IsResourceExpired},
		{dropBefore, func(err error) bool { return apierrors.ReasonForError(err) == "" }},
	} {
		p.inject(firstTime(1, tc.fault, method(http.MethodPut)))
		u := checktest.Get(api.Get(t.Context(), configMaps, clusterapi.Key("default", "conflict")))(t)
		if _, err := api.Update(t.Context(), u, clusterapi.UpdateOptions{}); err == nil || !tc.is(err) {
			t.Errorf("%s became %v", tc.fault, err)
		}
	}
}

// A list whose pages have expired is read again, and complete.
func testPages(t *testing.T, p *proxy, api clusterapi.ClusterAPI) {
	p.inject(nil)
	for i := range 7 {
		u := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: page-%d, namespace: default, labels: {faults: pages}}}`, i)
		create(t, api, u)
	}
	var pages atomic.Int64
	p.inject(func(r *http.Request) fault {
		if r.URL.Query().Get("limit") != "" && pages.Add(1) == 3 {
			return expired
		}
		return none
	})
	defer p.inject(nil)
	list := checktest.Get(api.List(t.Context(), configMaps,
		clusterapi.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"faults": "pages"})}))(t)
	for i := range list.Items {
		if want := fmt.Sprintf("page-%d", i); list.Items[i].GetName() != want {
			t.Errorf("item %d is %s", i, list.Items[i].GetName())
		}
	}
	if len(list.Items) != 7 || pages.Load() != 3 {
		t.Errorf("%d objects after %d pages", len(list.Items), pages.Load())
	}
	checktest.Equal(t, "", list.GetContinue(), "the list claims to go on")
}

// A watch goes on after its connection broke, and after the server has
// forgotten where it was: then it yields what has changed meanwhile.
func testWatchResumes(t *testing.T, p *proxy, api, direct clusterapi.ClusterAPI) {
	named := func(name string) *unstructured.Unstructured {
		return object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: default, labels: {faults: watch}}, data: {a: "1"}}`, name)
	}
	for _, name := range []string{"stays", "changes", "goes", "again"} {
		create(t, direct, named(name))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	events := make(chan string, 100)
	ended := make(chan error, 1)
	go func() {
		var last error
		for e, err := range api.(clusterapi.Watcher).Watch(ctx, configMaps, clusterapi.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"faults": "watch"})}) {
			last = err
			switch {
			case err != nil:
			case e.Object == nil:
				events <- string(e.Type)
			default:
				events <- string(e.Type) + " " + e.Object.GetName()
			}
		}
		ended <- last
	}()
	want := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			select {
			case got := <-events:
				checktest.FatalIf(t, got != text, "got %s, want %s", got, text)
			case err := <-ended:
				t.Fatalf("the watch ended: %v", err)
			case <-ctx.Done():
				t.Fatalf("waited in vain for %s", text)
			}
		}
	}
	change := func(name string) {
		t.Helper()
		checktest.OK(t, checktest.Err(
			clusterapi.Modify(ctx, direct, clusterapi.Key("default", name), clusterapi.ModifyOptions{},
				func(cm *corev1.ConfigMap) error {
					cm.Data["a"] += "+"
					return nil
				})))
	}
	remove := func(name string) {
		t.Helper()
		checktest.OK(t, direct.Delete(ctx, configMaps, clusterapi.Key("default", name), clusterapi.DeleteOptions{}))
	}
	want("Added again", "Added changes", "Added goes", "Added stays", "Synced")
	change("changes")
	want("Modified changes")

	// Watches are refused and fail for a while, and all that happened comes
	// afterwards.
	p.inject(firstTime(2, broken, isWatch))
	p.disconnect()
	change("changes")
	want("Modified changes")

	// The server has forgotten: by a new list.
	blocked := make(chan struct{})
	p.inject(func(r *http.Request) fault {
		if isWatch(r) {
			<-blocked
			return expired
		}
		return none
	})
	p.disconnect()
	change("changes")
	remove("goes")
	remove("again")
	create(t, direct, named("again"))
	create(t, direct, named("new"))
	close(blocked)
	want("Deleted again", "Deleted goes", "Added again", "Modified changes", "Added new")
	p.inject(nil)
	change("stays")
	want("Modified stays")

	cancel()
	select {
	case err := <-ended:
		checktest.Good(t, err)
	case <-time.After(10 * time.Second):
		t.Error("the watch goes on after its context has ended")
	}
}

// A whole update goes through a proxy at which every tenth request meets a
// fault of some sort, and another tenth of the writes a conflict. Most passes
// fail, so the time between two is short.
func testUpdateWithFaults(t *testing.T, p *proxy, direct clusterapi.ClusterAPI) {
	from := checktest.Get(openRelease(t.Context(), "from", sample.From()))(t)
	to := checktest.Get(openRelease(t.Context(), "to", sample.To()))(t)
	both := releases{from, to}
	for _, m := range from.payload.Manifests {
		if name := m.Object().GetName(); name == "clusterversions.config.openshift.io" || name == "clusteroperators.config.openshift.io" {
			create(t, direct, m.Object())
		}
	}
	checktest.OK(t, poll(t.Context(), time.Minute, func(ctx context.Context) (bool, error) {
		_, err := direct.List(ctx, schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ClusterVersion"}, clusterapi.ListOptions{})
		return err == nil, err
	}))
	newClusterVersion(t, direct)
	play(t, actors{direct, both})

	api := checktest.Get(kubernetes.New(p.config(), kubernetes.Options{}))(t)
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(4, 18))
	faults := []fault{conflict, throttled, broken, dropBefore, dropAfter}
	p.inject(func(r *http.Request) fault {
		mu.Lock()
		defer mu.Unlock()
		if r.Method != http.MethodGet && random.IntN(10) == 0 {
			return conflict // of which reads have none
		}
		f := faults[random.IntN(len(faults))]
		if random.IntN(10) > 0 || f == conflict && r.Method == http.MethodGet {
			return none
		}
		return f
	})
	defer p.inject(nil)
	before := map[fault]int{}
	for _, f := range faults {
		before[f] = p.count(f)
	}

	u := checktest.Get(newUpdater(api, both, 20, 4*time.Minute, nil, func(e clusterapi.Event) {
		l := line(e)
		if l.Step == "" || l.Step == string(runlevel.EventTaskRetry) || l.Step == string(runlevel.EventTaskFailed) {
			t.Logf("%s %s %s %s %s %s", l.Type, l.Step, l.Version, l.Task, l.Message, l.Error)
		}
	}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- u.Run(ctx) }()
	defer func() {
		cancel()
		checktest.Good(t, <-ended)
	}()
	awaitCompleted(t, direct, from.version())
	acknowledge(t, direct)
	request(t, direct, to)
	awaitCompleted(t, direct, to.version())
	checktest.Equal(t, to.version()+" Completed, "+from.version()+" Completed", history(t, direct), "history")
	for _, f := range faults {
		if n := p.count(f) - before[f]; n < 5 {
			t.Errorf("only %d times: %s", n, f)
		} else {
			t.Logf("%3d times: %s", n, f)
		}
	}
}
