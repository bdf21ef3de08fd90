package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// Fork makes a cluster that begins as a recording. What is pending in its pools is
// what is rehearsed; where nothing is, all pools get a new configuration. Errors are
// those of reading the recording.
func Fork(ctx context.Context, o Options, recording *dump.Recording) (*Rehearsal, error) {
	base := &assumed{recording: recording}
	clock := reconcile.NewClock(recording.Time())
	cluster, err := simulation.New(simulation.Options{
		Clock: clock, Objects: []*unstructured.Unstructured{}, Release: simulation.Release{Version: version(ctx, recording)},
		Memory: memory.Options{Base: base, Lenient: true},
	})
	if err != nil {
		return nil, err
	}
	// Its configurations are as recorded, and its operators do not move.
	o.only = func(r reconcile.Reconciler) bool {
		return !slices.Contains([]string{"operators", "rendering of machine configs", "deployments", "daemon sets", "jobs", "catalogs", "installations"}, r.Name())
	}
	r, err := begin(o, cluster, clock)
	if err != nil {
		return nil, err
	}
	return r, r.assume(ctx, base)
}

// version is the release that a recorded cluster runs.
func version(ctx context.Context, r clusterapi.Reader) string {
	cv, err := clusterapi.Get[configv1.ClusterVersion](ctx, r, clusterapi.Key("", "version"))
	if err != nil {
		return "0.0.0"
	}
	return cmp.Or(cv.Status.Desired.Version, "0.0.0")
}

// assume makes up what the recording lacks, and says so.
func (r *Rehearsal) assume(ctx context.Context, base *assumed) error {
	state, err := r.state(ctx)
	if err != nil {
		return err
	}
	pools := state.Pools()
	if len(pools) == 0 {
		r.Missing = []string{"the recording has no machine config pools"}
		return nil
	}
	if err := r.pending(ctx, state); err != nil {
		return err
	}
	state, err = r.state(ctx)
	if err != nil {
		return err
	}
	if err := r.configs(ctx, state); err != nil {
		return err
	}
	for _, pool := range pools {
		have, want := len(state.Nodes(pool)), int(state.Pool(pool).Status.MachineCount)
		switch text := fmt.Sprintf("pool %s counts %d nodes, the recording has %d", pool, want, have); {
		case have < want && (have == 0 || base.lacks("Node")):
			r.Missing = append(r.Missing, text)
		case have != want:
			r.Assumed = append(r.Assumed, text)
		}
	}
	if base.hollow > 0 {
		r.Assumed = append(r.Assumed, fmt.Sprintf("%d MachineConfigs were recorded without content: going from one to another takes a reboot", base.hollow))
	}
	pods, err := clusterapi.List[corev1.Pod](ctx, r.Cluster, clusterapi.ListOptions{})
	if err != nil && !absent(err) {
		return err
	}
	switch {
	case len(pods) == 0:
		r.Assumed = append(r.Assumed, "pods were not recorded: all drains succeed at once")
	case base.lacks("Pod"):
		r.Assumed = append(r.Assumed, fmt.Sprintf("not all pods were recorded: drains evict the %d that were", len(pods)))
	}
	if len(pods) > 0 && base.lacks("PodDisruptionBudget") {
		r.Assumed = append(r.Assumed, "not all PodDisruptionBudgets were recorded: others allow every eviction")
	}
	if state.HasControllerConfig() {
		return nil
	}
	return r.controllerConfig(ctx)
}

// controllerConfig makes up the ControllerConfig, without which nothing is decided.
func (r *Rehearsal) controllerConfig(ctx context.Context) error {
	c := &mcfgv1.ControllerConfig{}
	c.Name = mcp.ControllerConfigName
	c.Spec.Infra = &configv1.Infrastructure{}
	text := ", as the Infrastructure says"
	if infra, err := clusterapi.Get[configv1.Infrastructure](ctx, r.Cluster, clusterapi.Key("", "cluster")); err == nil {
		c.Spec.Infra.Status.ControlPlaneTopology = infra.Status.ControlPlaneTopology
	} else if !absent(err) {
		return err
	}
	topology := &c.Spec.Infra.Status.ControlPlaneTopology
	if *topology == "" {
		*topology, text = configv1.HighlyAvailableTopologyMode, ""
	}
	r.Assumed = append(r.Assumed, fmt.Sprintf("the ControllerConfig was not recorded: the control plane is %s%s", *topology, text))
	_, err := clusterapi.Create(ctx, r.Cluster, c, clusterapi.CreateOptions{})
	return err
}

// pending gives pools a new configuration where none has one to go to.
func (r *Rehearsal) pending(ctx context.Context, state *mcp.State) error {
	for _, pool := range state.Pools() {
		p := state.Pool(pool)
		if p.Spec.Configuration.Name != p.Status.Configuration.Name {
			return nil
		}
		for _, node := range state.Nodes(pool) {
			if n, _, _ := state.Node(node); n.CurrentConfig != p.Spec.Configuration.Name {
				return nil
			}
		}
	}
	for _, pool := range state.Pools() {
		name := "rendered-" + pool + "-rehearsal"
		_, err := clusterapi.Modify(ctx, r.Cluster, clusterapi.Key("", pool), clusterapi.ModifyOptions{}, func(p *mcfgv1.MachineConfigPool) error {
			p.Spec.Configuration.Name = name
			return nil
		})
		if err != nil {
			return err
		}
	}
	r.Assumed = append(r.Assumed, "no pool has anything to roll out: each gets a new configuration")
	return nil
}

// content stands for what is in a MachineConfig, different in each.
func content(name string) string { return "rehearsal=" + name }

// configs makes up the rendered configs that pools and nodes name and the recording
// lacks, each with content of its own.
func (r *Rehearsal) configs(ctx context.Context, state *mcp.State) error {
	names := map[string]bool{}
	for _, pool := range state.Pools() {
		names[state.Pool(pool).Spec.Configuration.Name] = true
	}
	for _, node := range state.Nodes("") {
		n, _, _ := state.Node(node)
		names[n.CurrentConfig], names[n.DesiredConfig] = true, true
	}
	delete(names, "")
	var made []string
	for name := range names {
		_, err := clusterapi.Get[mcfgv1.MachineConfig](ctx, r.Cluster, clusterapi.Key("", name))
		if err == nil {
			continue
		}
		if !absent(err) {
			return err
		}
		c := &mcfgv1.MachineConfig{}
		c.Name = name
		c.Spec.KernelArguments = []string{content(name)}
		if _, err := clusterapi.Create(ctx, r.Cluster, c, clusterapi.CreateOptions{}); err != nil {
			return err
		}
		if !strings.HasSuffix(name, "-rehearsal") {
			made = append(made, name)
		}
	}
	if slices.Sort(made); len(made) > 0 {
		r.Assumed = append(r.Assumed, "these MachineConfigs were not recorded, and going from or to them takes a reboot: "+strings.Join(made, ", "))
	}
	return nil
}

// assumed is a recording as the fork reads it: what was not collected is not there,
// and neither is what would stand beside the library's machine-config controller or
// is played by nobody.
type assumed struct {
	recording *dump.Recording
	lacking   []string // kinds, as they are read
	hollow    int      // MachineConfigs without content
}

// lacks says that not all objects of a kind were recorded.
func (a *assumed) lacks(kind string) bool { return slices.Contains(a.lacking, kind) }

// Get is not called by forks: they list.
func (a *assumed) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	return a.recording.Get(ctx, gvk, key)
}

// List returns what was recorded.
func (a *assumed) List(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := a.recording.List(ctx, gvk, o)
	if errors.Is(err, clusterapi.ErrNotCollected) {
		a.lacking = append(a.lacking, gvk.Kind)
		err = nil
	}
	if err != nil {
		return nil, err
	}
	if list == nil {
		list = &unstructured.UnstructuredList{}
	}
	if gvk.GroupKind() == mcfgv1.SchemeGroupVersion.WithKind("MachineConfig").GroupKind() {
		a.hollow = 0
		for i := range list.Items {
			if u := &list.Items[i]; u.Object["spec"] == nil { // some recordings leave it out
				u.Object["spec"] = map[string]any{"kernelArguments": []any{content(u.GetName())}}
				a.hollow++
			}
		}
	}
	list.Items = slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool {
		switch gvk.GroupKind() {
		case corev1.SchemeGroupVersion.WithKind("Pod").GroupKind():
			return u.GetNamespace() == mcp.OperatorNamespace && u.GetLabels()[mcp.LabelApp] == mcp.AppController
		case coordinationv1.SchemeGroupVersion.WithKind("Lease").GroupKind():
			return u.GetNamespace() == mcp.OperatorNamespace
		case mcfgv1.SchemeGroupVersion.WithKind("MachineConfigNode").GroupKind():
			return true
		}
		return false
	})
	return list, nil
}

// absent says that an object or its kind is not there, or not known.
func absent(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || errors.Is(err, clusterapi.ErrNotCollected)
}
