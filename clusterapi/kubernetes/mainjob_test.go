package kubernetes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// jobLimit is for one release on a busy machine.
const jobLimit = 6 * time.Minute

// TestMainJob installs one real release on a real API server and updates it to
// the next. In the middle of the update the updater's process is killed, and
// after it went on in another process, kube-apiserver.
func TestMainJob(t *testing.T) {
	t.Parallel()
	data := testdata.Dir(t)
	both, refused, err := realReleases(t.Context(), data)
	checktest.OK(t, err)
	from, to := both[0], both[1]
	checkOperandNamespaces(t, both)
	s := testserver.Start(t)
	api := newAPI(t, s, kubernetes.Options{})
	define(t, api, lacking(from.payload.Manifests))
	define(t, api, lacking(to.payload.Manifests))
	newClusterVersion(t, api)
	stop := play(t, actors{api, both})
	order := orders{Kubeconfig: s.Kubeconfig(t), Data: data}

	first := startUpdater(t, order)
	awaitCompleted(t, api, from.version())
	acknowledge(t, api)
	request(t, api, to)
	first.reach(to.version(), 0.3, jobLimit)
	first.kill()
	h := history(t, api)
	checktest.FatalIf(t, h != to.version()+" Partial, "+from.version()+" Completed", "history in the middle: %s", h)

	second := startUpdater(t, order)
	second.reach(to.version(), 0.6, jobLimit)
	s.StopAPIServer()
	time.Sleep(2 * time.Second) // the updater and the actors meet refusals
	checktest.OK(t, s.StartAPIServer(t.Context()))
	awaitCompleted(t, api, to.version())
	checktest.Equal(t, to.version()+" Completed, "+from.version()+" Completed", history(t, api), "history at the end")
	second.kill()
	stop()

	checkSecondPass(t, s.Config(), api, both)
	for _, m := range refused {
		_, err := api.Apply(t.Context(), m.Object(), clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload})
		if err == nil || !m.is(err) {
			t.Errorf("%s: %v, where the list says: %s", nameOf(m.Manifest), err, m.text)
		}
	}
	checkStored(t, api, to.payload)
}

// checkOperandNamespaces says whether the actors make exactly the namespaces
// that the payloads need and do not bring.
func checkOperandNamespaces(t testing.TB, both releases) {
	t.Helper()
	made := []string{"default", "kube-system"} // by the API server
	for _, list := range operandNamespaces {
		made = append(made, list...)
	}
	needed := map[string]bool{}
	for _, r := range both {
		brought := map[string]bool{}
		for _, m := range r.payload.Manifests {
			if m.GVK().Kind == "Namespace" {
				brought[m.Object().GetName()] = true
			}
		}
		for _, m := range r.payload.Manifests {
			if ns := m.Object().GetNamespace(); ns != "" && !brought[ns] {
				needed[ns] = true
			}
		}
	}
	for ns := range needed {
		checktest.FailIf(t, !slices.Contains(made, ns), "nobody makes the namespace %s", ns)
	}
	for _, ns := range made[2:] {
		checktest.FailIf(t, !needed[ns], "nobody needs the namespace %s", ns)
	}
}

// define installs definitions of kinds, and waits until they are served.
func define(t testing.TB, api clusterapi.ClusterAPI, kinds []schema.GroupVersionKind) {
	t.Helper()
	for _, crd := range definitions(t, kinds) {
		_, err := api.Create(t.Context(), crd, clusterapi.CreateOptions{})
		checktest.FatalIf(t, err != nil && !apierrors.IsAlreadyExists(err), "%v", err)
		for _, gvk := range served(crd) {
			err := poll(t.Context(), time.Minute, func(ctx context.Context) (bool, error) {
				_, err := api.List(ctx, gvk, clusterapi.ListOptions{})
				return err == nil, err
			})
			checktest.FatalIf(t, err != nil, "%s is not served: %v", gvk, err)
		}
	}
}

// newClusterVersion is what an installer leaves behind.
func newClusterVersion(t testing.TB, api clusterapi.ClusterAPI) {
	t.Helper()
	create(t, api, object(t, `
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
spec: {clusterID: 8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01}
`))
}

// acknowledge gives the answers that the gates of the release ask for.
func acknowledge(t testing.TB, api clusterapi.ClusterAPI) {
	t.Helper()
	gates := checktest.Get(clusterapi.Get[corev1.ConfigMap](t.Context(), api,
		clusterapi.Key("openshift-config-managed", "admin-gates")))(t)
	checktest.OK(t, checktest.Err(
		clusterapi.Modify(t.Context(), api, clusterapi.Key("openshift-config", "admin-acks"),
			clusterapi.ModifyOptions{}, func(cm *corev1.ConfigMap) error {
				for gate := range gates.Data {
					if cm.Data == nil {
						cm.Data = map[string]string{}
					}
					cm.Data[gate] = "true"
				}
				return nil
			})))
}

func request(t testing.TB, api clusterapi.ClusterAPI, r *release) {
	t.Helper()
	checktest.OK(t, checktest.Err(
		clusterapi.Modify(t.Context(), api, clusterapi.Key("", "version"), clusterapi.ModifyOptions{},
			func(cv *configv1.ClusterVersion) error {
				cv.Spec.DesiredUpdate = &configv1.Update{Version: r.version(), Image: r.image()}
				return nil
			})))
}

// awaitCompleted waits until the newest history entry is a completed one of
// that version. Faults of the API are waited out.
func awaitCompleted(t testing.TB, api clusterapi.ClusterAPI, version string) {
	t.Helper()
	var cv *configv1.ClusterVersion
	err := poll(t.Context(), jobLimit, func(ctx context.Context) (done bool, err error) {
		if cv, err = clusterapi.Get[configv1.ClusterVersion](ctx, api, clusterapi.Key("", "version")); err != nil {
			return false, err
		}
		h := cv.Status.History
		return len(h) > 0 && h[0].Version == version && h[0].State == configv1.CompletedUpdate, nil
	})
	if err != nil {
		status, _ := json.MarshalIndent(cv, "", " ")
		t.Fatalf("%s is not completed: %v\n%s", version, err, status)
	}
}

func history(t testing.TB, api clusterapi.ClusterAPI) string {
	t.Helper()
	cv := checktest.Get(clusterapi.Get[configv1.ClusterVersion](t.Context(), api, clusterapi.Key("", "version")))(t)
	var out []string
	for _, h := range cv.Status.History {
		out = append(out, h.Version+" "+string(h.State))
	}
	return strings.Join(out, ", ")
}

// checkSecondPass lets one more updater, new to the cluster, do two passes over
// it. An update is completed without touching the metadata of ClusterOperators,
// which their operators made; the first pass that only keeps a release gives
// them the labels, annotations and owner of the release, and changes nothing
// else that the release has. From then on nothing at all moves.
func checkSecondPass(t testing.TB, config *rest.Config, api clusterapi.ClusterAPI, payloads releases) {
	t.Helper()
	u := checktest.Get(newUpdater(api, payloads, 5, 5*time.Minute, logTo(t), nil))(t)
	pass := func() map[string]*unstructured.Unstructured {
		t.Helper()
		r, err := u.Sync(t.Context())
		checktest.FatalIf(t, err != nil || !r.Done || r.Failure != nil,
			"a pass over the updated cluster: done %t, failure %v, error %v", r.Done, r.Failure, err)
		time.Sleep(1100 * time.Millisecond) // times in objects have seconds
		return snapshot(t, config)
	}
	before := snapshot(t, config)
	checktest.FailIf(t, len(before) < 800, "only %d objects are looked at", len(before))
	first := pass()
	for name := range moved(before, first) {
		if kind, _, _ := strings.Cut(name, " "); kind != "clusteroperators.config.openshift.io" && kind != "clusterversions.config.openshift.io" {
			t.Errorf("the first pass over the updated cluster moved %s", name)
		}
	}
	for name, diff := range moved(first, pass()) {
		t.Errorf("the second pass over the updated cluster moved %s:\n%s", name, diff)
	}
}

// moved returns the objects whose resourceVersion differs, and what else does.
func moved(before, after map[string]*unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	for name, now := range after {
		old, ok := before[name]
		switch {
		case !ok:
			out[name] = "it is new"
		case old.GetResourceVersion() != now.GetResourceVersion():
			out[name] = cmp.Diff(old.Object, now.Object)
		}
	}
	for name := range before {
		if after[name] == nil {
			out[name] = "it is gone"
		}
	}
	return out
}

// snapshot returns every object on the server, but what the server itself
// writes all the time: its lease, and events.
func snapshot(t testing.TB, config *rest.Config) map[string]*unstructured.Unstructured {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	found := checktest.Get(discovery.NewDiscoveryClientForConfigOrDie(config).ServerPreferredResources())(t)
	client := dynamic.NewForConfigOrDie(config)
	out := map[string]*unstructured.Unstructured{}
	resources := checktest.Get(discovery.GroupVersionResources(discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "get"}}, found)))(t)
	for gvr := range resources {
		list, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{})
		checktest.FatalIf(t, err != nil, "%s: %v", gvr, err)
		for i := range list.Items {
			u := &list.Items[i]
			if gvr.Resource == "events" || gvr.Resource == "leases" && strings.HasPrefix(u.GetName(), "apiserver-") {
				continue
			}
			out[fmt.Sprintf("%s %s/%s", gvr.GroupResource(), u.GetNamespace(), u.GetName())] = u
		}
	}
	return out
}

// checkStored looks for every object of a payload on the server.
func checkStored(t testing.TB, api clusterapi.ClusterAPI, p *manifest.Payload) {
	t.Helper()
	n := 0
	for _, m := range p.Manifests {
		_, deleted := m.Annotations()["release.openshift.io/delete"]
		u, err := api.Get(t.Context(), m.GVK(), clusterapi.KeyOf(m.Object()))
		checktest.FailIf(t, (err == nil) == deleted, "%s: to be deleted: %t, but: %v", m, deleted, err)
		if err == nil && managedBy(u, clusterapi.ManagerPayload) {
			n++
		}
	}
	checktest.FailIf(t, n < 700, "only %d of %d objects have fields of the payload's manager", n, len(p.Manifests))
}

func managedBy(u *unstructured.Unstructured, manager string) bool {
	return slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return strings.HasPrefix(e.Manager, manager)
	})
}
