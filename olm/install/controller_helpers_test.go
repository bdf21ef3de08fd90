package install_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/install"
)

func faultless(t testing.TB, text string) *olm.Contents {
	t.Helper()
	c := readCatalog(t, text)
	for _, p := range c.Problems() {
		t.Fatalf("the catalog has a problem: %v", p)
	}
	return c.Contents
}

// down is a catalog that cannot be read.
type down struct{ err error }

func (d down) Contents(context.Context) (*olm.Contents, error) { return nil, d.err }

var catalogKey = types.NamespacedName{Namespace: "olm", Name: "c"}

// managed is a cluster with one catalog, an OperatorGroup, and a controller.
type managed struct {
	*memory.Cluster
	t        testing.TB
	catalogs map[types.NamespacedName]olm.Catalog
	clock    *clocktesting.FakeClock
	events   []clusterapi.Event
	writes   atomic.Int64     // since the start
	fail     func(n int) bool // before the n-th write, counted from 1
	options  install.Options
}

var errCrash = errors.New("crash")

func manage(t testing.TB, c *olm.Contents, objects ...any) *managed {
	t.Helper()
	var w *managed
	w = manageWith(t, func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		switch call.Verb {
		case "Get", "List", "Watch":
			return do(ctx)
		}
		if n := w.writes.Add(1); w.fail != nil && w.fail(int(n)) {
			return errCrash
		}
		return do(ctx)
	}, c, objects...)
	return w
}

func manageWith(t testing.TB, intercept func(context.Context, memory.Call, func(context.Context) error) error, c *olm.Contents, objects ...any) *managed {
	t.Helper()
	w := &managed{t: t, clock: clocktesting.NewFakeClock(statusNow.Time)}
	w.Cluster = memory.NewOpenShift(memory.Options{Clock: w.clock, Intercept: intercept})
	w.catalogs = map[types.NamespacedName]olm.Catalog{catalogKey: c}
	w.put(surroundings()...)
	w.put(objects...)
	w.options = install.Options{Clock: w.clock, Observe: func(e clusterapi.Event) { w.events = append(w.events, e) }}
	return w
}

// surroundings are what a namespace needs: a group of operators, and a catalog.
func surroundings() []any {
	return []any{
		&olmapi.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "og"}},
		&olmapi.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "c"}},
	}
}

// put stores objects as they are, with their status.
func put(c *memory.Cluster, objects ...any) {
	for _, o := range objects {
		u, err := clusterapi.ToUnstructured(o)
		must(err)
		must(c.Load(u))
	}
}

func (w *managed) put(objects ...any) { put(w.Cluster, objects...) }

func (w *managed) controller() *install.Controller {
	w.t.Helper()
	o := w.options
	o.API = w.Cluster
	o.SnapshotOptions = install.SnapshotOptions{Catalogs: w.catalogs, GlobalNamespace: "olm"}
	c := checktest.Get(install.New(o))(w.t)
	return c
}

// sync makes one pass.
func (w *managed) sync() *install.SyncResult {
	w.t.Helper()
	r := checktest.Get(w.controller().Sync(context.Background(), ns))(w.t)
	return r
}

// settle makes passes until nothing changes.
func (w *managed) settle() *install.SyncResult {
	w.t.Helper()
	for range 30 {
		if r := w.sync(); !r.Changed {
			return r
		}
	}
	w.t.Fatal("does not settle")
	return nil
}

func (w *managed) subscription(name string) *olmapi.Subscription {
	w.t.Helper()
	return get[olmapi.Subscription](w, name)
}

func get[T any](w *managed, name string) *T {
	w.t.Helper()
	o := checktest.Get(clusterapi.Get[T](context.Background(), w.Cluster, clusterapi.Key(ns, name)))(w.t)
	return o
}

// list returns the objects of the namespace.
func list[T any](api clusterapi.Reader) []T {
	all, err := clusterapi.List[T](context.Background(), api, clusterapi.ListOptions{Namespace: ns})
	must(err)
	return all
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// plans lists InstallPlans by generation: CSVs, approval and phase.
func (w *managed) plans() []string {
	w.t.Helper()
	all := list[olmapi.InstallPlan](w)
	slices.SortFunc(all, func(a, b olmapi.InstallPlan) int { return int(a.Spec.Generation - b.Spec.Generation) })
	var out []string
	for _, p := range all {
		out = append(out, fmt.Sprintf("%d %s %s %v", p.Spec.Generation, p.Spec.Approval, p.Status.Phase, p.Spec.ClusterServiceVersionNames))
	}
	return out
}

// states lists Subscriptions by name.
func (w *managed) states() []string {
	w.t.Helper()
	var out []string
	for _, s := range list[olmapi.Subscription](w) {
		text := fmt.Sprintf("%s %s %s/%s", s.Name, s.Status.State, s.Status.InstalledCSV, s.Status.CurrentCSV)
		if c := conditionsText(&s.Status); c != "" {
			text += ": " + c
		}
		out = append(out, text)
	}
	return out
}

// inStatus changes the status of an object.
var inStatus = clusterapi.ModifyOptions{Status: true}

// change changes an object of the namespace, or one named NAMESPACE/NAME.
func change[T any](api clusterapi.ReadWriter, name string, set func(*T), o ...clusterapi.ModifyOptions) error {
	key := clusterapi.Key(ns, name)
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		key = clusterapi.Key(namespace, rest)
	}
	_, err := clusterapi.Modify(context.Background(), api, key, append(o, clusterapi.ModifyOptions{})[0], func(x *T) error {
		set(x)
		return nil
	})
	return err
}

func approve(p *olmapi.InstallPlan) { p.Spec.Approved = true }

// approve approves an InstallPlan.
func (w *managed) approve(name string) {
	w.t.Helper()
	checktest.OK(w.t, change(w.Cluster, name, approve))
}

// install plays the OLM that carries out a plan: its operators appear, what
// they replace goes.
func (w *managed) install(csvs ...string) {
	w.t.Helper()
	for _, line := range csvs {
		c := installed(line)[0]
		w.put(&c)
		if c.Spec.Replaces != "" {
			err := w.Delete(context.Background(), c.APIKind(), clusterapi.Key(ns, c.Spec.Replaces), clusterapi.DeleteOptions{})
			if !apierrors.IsNotFound(err) {
				must(err)
			}
		}
	}
	for _, p := range list[olmapi.InstallPlan](w) {
		if p.Status.Phase != olmapi.PlanPhaseInstalling {
			continue
		}
		checktest.OK(w.t, change(w.Cluster, p.Name, func(p *olmapi.InstallPlan) {
			p.Status.Phase = olmapi.PlanPhaseComplete
		}, inStatus))
	}
}
