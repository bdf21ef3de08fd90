package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade/upgradetest"
)

// call is what RBAC decides about.
type call struct {
	Group, Resource, Verb string
	Namespace, Name       string // "" means all
}

func (c call) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s.%s %s/%s", c.Verb, c.Resource, c.Group, c.Namespace, c.Name))
}

// recorder notes the calls that a feature makes, as the requests that this
// package makes of them.
type recorder struct {
	clusterapi.ClusterAPI
	mu    sync.Mutex
	calls map[call]bool
}

func record(api clusterapi.ClusterAPI) *recorder {
	return &recorder{ClusterAPI: api, calls: map[call]bool{}}
}

func (r *recorder) note(gvk schema.GroupVersionKind, sub, namespace, name string, verbs ...string) {
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, verb := range verbs {
		r.calls[call{gvk.Group, resource.Resource + sub, verb, namespace, name}] = true
	}
}

func (r *recorder) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	r.note(gvk, "", key.Namespace, key.Name, "get")
	return r.ClusterAPI.Get(ctx, gvk, key)
}

func (r *recorder) List(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	r.note(gvk, "", opts.Namespace, "", "list")
	return r.ClusterAPI.List(ctx, gvk, opts)
}

func (r *recorder) Watch(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) iter.Seq2[clusterapi.WatchEvent, error] {
	r.note(gvk, "", opts.Namespace, "", "list", "watch")
	return r.ClusterAPI.(clusterapi.Watcher).Watch(ctx, gvk, opts)
}

func (r *recorder) Create(ctx context.Context, u *unstructured.Unstructured, opts clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	r.note(u.GroupVersionKind(), "", u.GetNamespace(), "", "create")
	return r.ClusterAPI.Create(ctx, u, opts)
}

func (r *recorder) Apply(ctx context.Context, u *unstructured.Unstructured, opts clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	r.note(u.GroupVersionKind(), "", u.GetNamespace(), u.GetName(), "patch")
	r.note(u.GroupVersionKind(), "", u.GetNamespace(), "", "create")
	return r.ClusterAPI.Apply(ctx, u, opts)
}

func (r *recorder) Update(ctx context.Context, u *unstructured.Unstructured, opts clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	r.note(u.GroupVersionKind(), "", u.GetNamespace(), u.GetName(), "update")
	return r.ClusterAPI.Update(ctx, u, opts)
}

func (r *recorder) UpdateStatus(ctx context.Context, u *unstructured.Unstructured, opts clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	r.note(u.GroupVersionKind(), "/status", u.GetNamespace(), u.GetName(), "patch")
	return r.ClusterAPI.UpdateStatus(ctx, u, opts)
}

func (r *recorder) Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, opts clusterapi.DeleteOptions) error {
	r.note(gvk, "", key.Namespace, key.Name, "delete")
	return r.ClusterAPI.Delete(ctx, gvk, key, opts)
}

func (r *recorder) Evict(ctx context.Context, pod types.NamespacedName, opts clusterapi.EvictOptions) error {
	r.note(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "/eviction", pod.Namespace, "", "create")
	return r.ClusterAPI.Evict(ctx, pod, opts)
}

// grant is a rule and where it holds.
type grant struct {
	rule      rbacv1.PolicyRule
	namespace string // "" means everywhere
	used      map[string]bool
}

func (g *grant) allows(c call) bool {
	r := g.rule
	ok := (g.namespace == "" || g.namespace == c.Namespace) &&
		slices.Contains(r.APIGroups, c.Group) && slices.Contains(r.Resources, c.Resource) && slices.Contains(r.Verbs, c.Verb) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, c.Name))
	if ok {
		verb := c.Verb
		if verb == "get" || verb == "list" || verb == "watch" {
			verb = "read" // who may list may get
		}
		g.used[c.Resource+" "+verb] = true
	}
	return ok
}

// unused are the parts of a rule that no call needed.
func (g *grant) unused() []string {
	var out []string
	for _, resource := range g.rule.Resources {
		for _, verb := range g.rule.Verbs {
			if verb == "get" || verb == "list" || verb == "watch" {
				verb = "read"
			}
			if what := resource + " " + verb; !g.used[what] && !slices.Contains(out, what) {
				out = append(out, what)
			}
		}
	}
	return out
}

// grants reads the rules of a manifest.
func grants(t *testing.T, file string) []*grant {
	t.Helper()
	data := checktest.Get(os.ReadFile(file))(t)
	objects := checktest.Get(manifest.Parse(file, data, manifest.Limits{}))(t)
	var out []*grant
	for _, m := range objects {
		var rules []rbacv1.PolicyRule
		switch m.GVK().Kind {
		case "ClusterRole":
			role := checktest.Get(clusterapi.FromUnstructured[rbacv1.ClusterRole](m.Object()))(t)
			rules = role.Rules
		case "Role":
			role := checktest.Get(clusterapi.FromUnstructured[rbacv1.Role](m.Object()))(t)
			rules = role.Rules
		}
		for _, r := range rules {
			out = append(out, &grant{r, m.Object().GetNamespace(), map[string]bool{}})
		}
	}
	return out
}

// checkGrants compares what a feature may do with what it did.
func checkGrants(t *testing.T, file string, r *recorder) {
	t.Helper()
	all := grants(t, file)
	checktest.FatalIf(t, len(all) == 0, "%s grants nothing", file)
	byText := func(a, b call) int { return strings.Compare(a.String(), b.String()) }
	for _, c := range slices.SortedFunc(maps.Keys(r.calls), byText) {
		allowed := false
		for _, g := range all {
			allowed = g.allows(c) || allowed
		}
		checktest.FailIf(t, !allowed, "%s does not allow: %s", file, c)
	}
	for _, g := range all {
		if unused := g.unused(); len(unused) > 0 {
			t.Errorf("%s: in %q of %q nobody needs %s", file, g.namespace, g.rule.APIGroups, strings.Join(unused, ", "))
		}
	}
}

// TestLeastPrivilege carries out a policy in a simulated cluster: an update of
// operators and nodes, with a drain that has to be forced. What each feature
// asks of the API is what its manifest grants, and nothing that it grants is
// idle. The Updater and what installs operators are cluster-admins: see there.
func TestLeastPrivilege(t *testing.T) {
	load := func(fsys fs.FS, image string) simulation.Release {
		p := checktest.Get(manifest.Load(t.Context(), fsys,
			manifest.LoadOptions{Image: image, Filter: manifest.DefaultFilter()}))(t)
		return payload.Release(p)
	}
	from, to := load(sample.From(), sample.FromImage), load(sample.To(), sample.ToImage)
	g := checktest.Get(graph.DecodeBytes(sample.Graph(), graph.DecodeOptions{}))(t)
	var rolling, policies, reader *recorder
	synctest.Test(t, func(t *testing.T) {
		two, three := intstr.FromInt32(2), intstr.FromInt32(3)
		cluster := checktest.Get(simulation.New(simulation.Options{
			Release: from, Pools: []simulation.Pool{{Name: "worker", Nodes: 3}},
			ClusterVersion: simulation.ClusterVersion{Channel: "stable-4.20"},
			Workloads: []simulation.Workload{
				{Namespace: "shop", Name: "web", Replicas: 3, MinAvailable: &two},
				{Namespace: "shop", Name: "stubborn", Replicas: 3, MinAvailable: &three},
			},
		}))(t)
		cluster.Expect(to)
		checktest.OK(t, checktest.Err(cluster.Create(t.Context(), upgradeconfig.Definition(), clusterapi.CreateOptions{})))
		node := &mcfgv1.MachineConfigNode{ObjectMeta: metav1.ObjectMeta{Name: "worker-0"}}
		node.Spec.Node.Name, node.Spec.Pool.Name, node.Spec.ConfigVersion.Desired = "worker-0", "worker", "NotYetSet"
		checktest.OK(t, checktest.Err(clusterapi.Create(t.Context(), cluster, node, clusterapi.CreateOptions{})))
		rolling, policies, reader = record(cluster), record(cluster), record(cluster)
		// Image mode, which is not simulated: the mark of a stale build.
		rolling.note(mcfgv1.GroupVersion.WithKind("MachineOSConfig"), "", "", "worker", "update")
		updater := checktest.Get(clusterupdate.New(clusterupdate.Options{
			API: cluster, Graph: graph.Static(g), Verifier: signature.Insecure(),
			Payloads: manifest.PayloadSourceFunc(func(_ context.Context, r configv1.Release) (fs.FS, error) { return sample.Payload(r.Image) }),
		}))(t)
		check(t, reader, to)
		start := time.Now()
		policy := upgradeconfig.Policy{ID: "p", State: "scheduled", NextRun: start.Add(3 * time.Hour), Spec: upgradeconfig.Spec{
			Desired:   upgradeconfig.Update{Version: sample.ToVersion, Channel: "stable-4.21"},
			UpgradeAt: start.Add(3 * time.Hour).Format(time.RFC3339), PDBForceDrainTimeout: 20,
			Type: upgradeconfig.OSD, CapacityReservation: true,
		}}
		gone := false // the policy, once it is carried out
		manager, err := upgradeconfig.NewManager(upgradeconfig.ManagerOptions{API: policies, KeepWhileUpgrading: true, Update: true,
			Provider: policySource(func(context.Context) ([]upgradeconfig.Policy, error) {
				if gone {
					return nil, nil
				}
				p := policy
				if time.Since(start) < time.Hour { // then it is changed
					p.Spec.PDBForceDrainTimeout = 60
				}
				return []upgradeconfig.Policy{p}, nil
			})})
		checktest.OK(t, err)
		controller := checktest.Get(upgrade.New(upgrade.Options{
			API: policies, Validate: upgradeconfig.ValidateOptions{Cincinnati: true, Graph: graph.Static(g)},
			Refresh: func(ctx context.Context) (bool, error) {
				r, err := manager.Sync(ctx)
				return r.Differs(), err
			},
			Capacity: &upgradetest.Capacity{Ready: 10 * time.Minute}, Maintenance: &upgradetest.Maintenance{},
			Health: upgrade.OperatorHealth(policies), Drain: (&upgrade.ForcedDrain{API: policies}).ForceDrain,
		}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return cluster.Run(ctx) })
		group.Go(func() error { return updater.Run(ctx) })
		run := func(o rollout.Options) {
			nodes := checktest.Get(rollout.New(o))(t)
			group.Go(func() error { return nodes.Run(ctx) })
		}
		run(rollout.Options{API: rolling, Mode: rollout.Drive})
		run(rollout.Options{API: reader, Mode: rollout.ReadOnly})
		group.Go(func() error { return controller.Run(ctx) })
		group.Go(func() error { return manager.Run(ctx) })
		phase := func() upgradeconfig.Phase {
			c, err := clusterapi.Get[upgradeconfig.UpgradeConfig](ctx, cluster, clusterapi.Key(upgradeconfig.DefaultNamespace, upgradeconfig.Name))
			if err != nil {
				return upgradeconfig.PhaseUnknown
			}
			return c.Status.Phase(sample.ToVersion)
		}
		for phase() != upgradeconfig.PhaseUpgraded && time.Since(start) < 20*time.Hour {
			time.Sleep(time.Minute)
		}
		if p := phase(); p != upgradeconfig.PhaseUpgraded {
			t.Fatalf("the policy is %s", p)
		}
		cancel()
		if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		gone = true
		checktest.Good(t, checktest.Err(manager.Sync(t.Context())))
	})
	// Simulated pods have no finalizers, and there is no configuration of drains.
	policies.note(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "", "", "", "get", "update")
	policies.note(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "", upgradeconfig.DefaultNamespace, "managed-upgrade-operator-config", "get")
	t.Run("Reader", func(t *testing.T) { checkGrants(t, "rbac/reader.yaml", reader) })
	t.Run("Rollout", func(t *testing.T) { checkGrants(t, "rbac/rollout.yaml", rolling) })
	t.Run("UpgradeConfig", func(t *testing.T) { checkGrants(t, "rbac/upgradeconfig.yaml", policies) })
}

// check runs all checks of an update on what a reader may read.
func check(t *testing.T, api clusterapi.Reader, to simulation.Release) {
	t.Helper()
	cv := checktest.Get(clusterapi.Get[configv1.ClusterVersion](t.Context(), api, clusterapi.Key("", "version")))(t)
	checktest.OK(t, checktest.Err(
		preconditions.Run(t.Context(), slices.Concat(preconditions.Operator(), rules.Documented(rules.Options{})),
			&preconditions.Input{
				Reader: api, Now: time.Now(),
				Transition: preconditions.NewTransition(cv, configv1.Release{Version: to.Version, Image: to.Image}, false,
					preconditions.Full),
			}, preconditions.Options{})))
	// What a simulated cluster gives no reason to read, checks say of themselves.
	reader := api.(*recorder)
	for _, c := range rules.Documented(rules.Options{}) {
		for _, gvk := range c.(preconditions.Described).Rule().Reads {
			switch gvk.Kind {
			case "ConfigMap", "Secret":
			case "OSImageStream":
				reader.note(gvk, "", "", "cluster", "get")
			default:
				reader.note(gvk, "", "", "", "list")
			}
		}
	}
	get := func(kind, namespace, name string) {
		reader.note(schema.GroupVersionKind{Version: "v1", Kind: kind}, "", namespace, name, "get")
	}
	for _, name := range []string{"aws-creds", "azure-credentials", "gcp-credentials", "openstack-credentials", "vsphere-creds"} {
		get("Secret", "kube-system", name)
	}
	get("ConfigMap", "openshift-cloud-credential-operator", "cloud-credential-operator-config")
	reader.note(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "", "openshift-config-managed", "", "list")
	for c := range reader.calls { // its resource is not what its kind suggests
		if c.Resource == "preflightvalidationocps" {
			delete(reader.calls, c)
			reader.calls[call{c.Group, "preflightvalidationsocp", c.Verb, c.Namespace, c.Name}] = true
		}
	}
}

// policySource makes a function a provider of policies.
type policySource func(context.Context) ([]upgradeconfig.Policy, error)

func (f policySource) Policies(ctx context.Context) ([]upgradeconfig.Policy, error) { return f(ctx) }

func (f policySource) String() string { return "function" }
