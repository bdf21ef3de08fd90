package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// Assumed lists what a fork lacked and [New] made up or changed, so that its behaviours
// have nothing to do before something happens; nil for a cluster that is not a fork.
func (c *Cluster) Assumed() []string { return slices.Clone(c.assumed) }

// settle brings a fork to rest: what its controllers would write at once, they find.
func (c *Cluster) settle(ctx context.Context, o Options) error {
	s := &settlement{cluster: c, p: newProcess(c, c), now: c.clock.Now()}
	releases := append([]Release{o.Release}, o.Expected...)
	for _, step := range []func(context.Context, []Release) error{
		s.readConfigs, s.releases, s.controllerConfig, s.configs, s.operators, s.pools, s.poolReport,
	} {
		if err := step(ctx, releases); err != nil {
			return err
		}
	}
	c.assumed = s.assumed
	return nil
}

// settlement is what brings a fork to rest.
type settlement struct {
	cluster *Cluster
	p       *process
	now     time.Time
	assumed []string
	pool    []mcfgv1.MachineConfigPool
	node    []corev1.Node
	config  map[string]*unstructured.Unstructured // MachineConfigs by name
	cc      *unstructured.Unstructured            // the ControllerConfig
}

func (s *settlement) assume(format string, args ...any) {
	s.assumed = append(s.assumed, fmt.Sprintf(format, args...))
}

func (s *settlement) readConfigs(ctx context.Context, _ []Release) (err error) {
	s.pool, err = clusterapi.List[mcfgv1.MachineConfigPool](ctx, s.cluster, clusterapi.ListOptions{})
	if err != nil && !clusterapi.IsAbsent(err) {
		return err
	}
	s.node, err = clusterapi.List[corev1.Node](ctx, s.cluster, clusterapi.ListOptions{})
	if err != nil && !clusterapi.IsAbsent(err) {
		return err
	}
	all, err := clusterapi.ListShared(ctx, s.cluster, kindMachineConfig, clusterapi.ListOptions{})
	if err != nil && !clusterapi.IsAbsent(err) {
		return err
	}
	s.config = make(map[string]*unstructured.Unstructured, len(all))
	for _, o := range all {
		s.config[o.Name()] = o.Unstructured()
	}
	cc, err := clusterapi.GetShared(ctx, s.cluster, kindControllerConfig, clusterapi.Key("", mcp.ControllerConfigName))
	if err != nil {
		if clusterapi.IsAbsent(err) {
			return nil
		}
		return err
	}
	s.cc = cc.Unstructured()
	return nil
}

// releases makes the releases known, each with what recorded configs show of it.
func (s *settlement) releases(ctx context.Context, releases []Release) error {
	for i, r := range releases {
		if r.KubeVersion == "" && i == 0 {
			r.KubeVersion = s.recordedKubeVersion(ctx)
		}
		if r.KubeVersion == "" {
			r.KubeVersion, _ = r.kubeVersion() // not known: nodes keep theirs
		}
		for _, p := range s.pool {
			u := s.config[p.Spec.Configuration.Name]
			if u == nil || u.GetAnnotations()[mcp.AnnotationReleaseImageVersion] != r.Version {
				continue
			}
			if r.Controller == "" {
				r.Controller = u.GetAnnotations()[mcp.AnnotationGeneratedByControllerVersion]
			}
			if image, _, _ := unstructured.NestedString(u.Object, "spec", "osImageURL"); r.OSImage == "" {
				r.OSImage = image
			}
		}
		if s.cc != nil && s.cc.GetAnnotations()[mcp.AnnotationReleaseImageVersion] == r.Version && r.OSImage == "" {
			r.OSImage, _, _ = unstructured.NestedString(s.cc.Object, "spec", "osImageURL")
		}
		s.cluster.expect(r)
	}
	return nil
}

// recordedKubeVersion is kubeVersionOf what the operator of the API server reports, "" if it
// was not recorded.
func (s *settlement) recordedKubeVersion(ctx context.Context) string {
	o, err := clusterapi.Get[configv1.ClusterOperator](ctx, s.cluster, clusterapi.Key("", "kube-apiserver"))
	if err != nil {
		return ""
	}
	return kubeVersionOf(o.Name, o.Status.Versions)
}

// rendered returns the release that a pool's recorded config is of: the one in Options
// if none is known.
func (s *settlement) rendered(releases []Release) *release {
	for _, p := range s.pool {
		u := s.config[p.Spec.Configuration.Name]
		if u == nil {
			continue
		}
		if r := s.cluster.releaseByVersion(u.GetAnnotations()[mcp.AnnotationReleaseImageVersion]); r != nil {
			return r
		}
	}
	return s.cluster.releaseByVersion(releases[0].Version)
}

// readTopology returns the topology of the control plane: highly available if that is
// not known.
func readTopology(ctx context.Context, r clusterapi.Reader) (string, error) {
	infra, err := clusterapi.Get[configv1.Infrastructure](ctx, r, clusterapi.Key("", "cluster"))
	if err != nil && !clusterapi.IsAbsent(err) {
		return "", err
	}
	if err != nil || infra.Status.ControlPlaneTopology == "" {
		return string(configv1.HighlyAvailableTopologyMode), nil
	}
	return string(infra.Status.ControlPlaneTopology), nil
}

// controllerConfig makes up the ControllerConfig.
func (s *settlement) controllerConfig(ctx context.Context, releases []Release) error {
	if s.cc != nil || len(s.pool) == 0 {
		return nil
	}
	topology, err := readTopology(ctx, s.cluster)
	if err != nil {
		return err
	}
	s.cc = controllerConfig(s.rendered(releases), topology)
	s.assume("the ControllerConfig was not recorded: the control plane is %s", topology)
	return s.store(ctx, s.cc)
}

// store creates an object, or replaces one. Kinds that the fork does not serve are
// loaded, as their definition was not recorded.
func (s *settlement) store(ctx context.Context, u *unstructured.Unstructured) error {
	if u.GetResourceVersion() != "" {
		_, err := s.cluster.Cluster.Update(ctx, u, update)
		return err
	}
	_, err := s.cluster.Cluster.Create(ctx, u, create)
	if meta.IsNoMatchError(err) {
		return s.cluster.Load(u)
	}
	return err
}

// configs gives content to rendered configs that have none, makes up those that are
// named and not there, and remembers of each pool what its present config stands for.
func (s *settlement) configs(ctx context.Context, releases []Release) error {
	var hollow int
	var missing []string
	ensure := func(name string, content *unstructured.Unstructured) error {
		u := s.config[name]
		if name == "" || u != nil && u.Object["spec"] != nil {
			return nil
		}
		if u == nil {
			missing = append(missing, name)
			u = content.DeepCopy()
			u.SetName(name)
		} else {
			hollow++
			u = u.DeepCopy()
			u.Object["spec"] = content.DeepCopy().Object["spec"]
		}
		s.config[name] = u
		return s.store(ctx, u)
	}
	for i := range s.pool {
		p := &s.pool[i]
		rendered, err := s.render(ctx, p)
		if err != nil {
			return err
		}
		name := p.Spec.Configuration.Name
		if name == "" || !s.current(name) {
			continue // the renderer's next
		}
		if err := ensure(name, rendered); err != nil {
			return err
		}
		p.Annotations = withLabel(p.Annotations, annotationRecorded, name+" "+rendered.GetName())
	}
	names := make(map[string]bool)
	for i := range s.pool {
		names[s.pool[i].Spec.Configuration.Name] = true
		names[s.pool[i].Status.Configuration.Name] = true
	}
	for i := range s.node {
		a := s.node[i].Annotations
		names[a[mcp.AnnotationCurrentConfig]] = true
		names[a[mcp.AnnotationDesiredConfig]] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		other := object(kindMachineConfig, "", name, map[string]any{"spec": map[string]any{
			"kernelArguments": []any{"recorded=" + name}}})
		if err := ensure(name, other); err != nil {
			return err
		}
	}
	if hollow > 0 {
		s.assume("%d rendered MachineConfigs were recorded without content: to go from one to another takes a reboot", hollow)
	}
	if len(missing) > 0 {
		s.assume("these MachineConfigs were not recorded, and to go from one to another takes a reboot: %s", strings.Join(missing, ", "))
	}
	return nil
}

// current reports whether a rendered config is of the release that the ControllerConfig
// describes; one that was not recorded is.
func (s *settlement) current(name string) bool {
	u := s.config[name]
	return u == nil || u.GetAnnotations()[mcp.AnnotationReleaseImageVersion] == s.cc.GetAnnotations()[mcp.AnnotationReleaseImageVersion]
}

// render renders the present config of a pool from its parts.
func (s *settlement) render(ctx context.Context, p *mcfgv1.MachineConfigPool) (*unstructured.Unstructured, error) {
	recorded := p.DeepCopy()
	recorded.Annotations = withLabel(p.Annotations, annotationRecorded, "")
	parts, _, err := s.p.poolConfigs(ctx, recorded)
	if err != nil {
		return nil, err
	}
	return render(s.cc, p, parts), nil
}

// operators gives ClusterOperators of a known release its operand versions, and makes up
// those that the recording lacks of its own release.
func (s *settlement) operators(ctx context.Context, releases []Release) error {
	var changed, missing []string
	own := s.cluster.releaseByVersion(releases[0].Version)
	for _, o := range own.Operators {
		stored, err := clusterapi.GetShared(ctx, s.cluster, kindClusterOperator, clusterapi.Key("", o.Name))
		if err != nil && !clusterapi.IsAbsent(err) {
			return err
		}
		if err != nil || saysNothing(stored) {
			missing = append(missing, o.Name)
			if err := s.operatorAtRest(ctx, own, o.Name, stored); err != nil {
				return err
			}
			continue
		}
		wanted := s.recordedVersions(stored)
		_, err = change(ctx, s.p, stored, true, func(co *configv1.ClusterOperator) {
			if wanted == nil || reports(co.Status.Versions, wanted) {
				return
			}
			changed = append(changed, o.Name)
			co.Status.Versions = slices.Clone(wanted)
		})
		if err != nil {
			return err
		}
	}
	if len(changed) > 0 {
		s.assume("these operators report the operand versions of their release: %s", strings.Join(changed, ", "))
	}
	if len(missing) > 0 {
		s.assume("these ClusterOperators were not recorded, and are well at %s: %s", own.Version, strings.Join(missing, ", "))
	}
	return nil
}

// recordedVersions are the versions that an operator reports at the release that it was
// recorded at; nil if that is not known.
func (s *settlement) recordedVersions(stored *clusterapi.Object) []configv1.OperandVersion {
	co, err := clusterapi.As[configv1.ClusterOperator](stored)
	if err != nil {
		return nil
	}
	for _, v := range co.Status.Versions {
		if v.Name != "operator" {
			continue
		}
		if r := s.cluster.releaseByVersion(v.Version); r != nil && r.operators[co.Name] != nil {
			return r.operators[co.Name].Versions
		}
	}
	return nil
}

// saysNothing reports whether a ClusterOperator has no status: a release has made it,
// and no operator.
func saysNothing(o *clusterapi.Object) bool {
	co, err := clusterapi.As[configv1.ClusterOperator](o)
	return err == nil && len(co.Status.Conditions) == 0 && len(co.Status.Versions) == 0
}

// operatorAtRest stores an operator that is well, in place of one that says nothing; nil
// means that there is none.
func (s *settlement) operatorAtRest(ctx context.Context, r *release, name string, stored *clusterapi.Object) error {
	b := &builder{cluster: s.cluster, release: r, now: s.now}
	u, err := b.operatorAtRest(r.operators[name])
	if err != nil {
		return err
	}
	if stored == nil {
		return s.cluster.Load(u)
	}
	well, err := clusterapi.FromUnstructured[configv1.ClusterOperator](u)
	if err != nil {
		return err
	}
	_, err = change(ctx, s.p, stored, true, func(co *configv1.ClusterOperator) { co.Status = well.Status })
	return err
}

// pools stores the pools with the status that the machine-config controller writes.
func (s *settlement) pools(ctx context.Context, _ []Release) error {
	objects := mcp.Objects{Pools: s.pool, Nodes: s.node}
	if s.cc != nil {
		cc, err := clusterapi.FromUnstructured[mcfgv1.ControllerConfig](s.cc)
		if err != nil {
			return err
		}
		objects.ControllerConfig = cc
	}
	state := mcp.NewState(objects, mcp.Options{})
	var changed []string
	for i := range s.pool {
		p := &s.pool[i]
		status := state.Status(p.Name, p.Status, s.now)
		if differs(&p.Status, &status) {
			changed = append(changed, p.Name)
		}
		p.Status = status
		if err := s.storePool(ctx, p); err != nil {
			return err
		}
	}
	if len(changed) > 0 {
		s.assume("the status of these pools follows from their nodes, not from what was recorded: %s", strings.Join(changed, ", "))
	}
	return nil
}

// storePool stores what settling changes of a pool: its annotation and its status.
func (s *settlement) storePool(ctx context.Context, p *mcfgv1.MachineConfigPool) error {
	stored, err := clusterapi.GetShared(ctx, s.cluster, kindMachineConfigPool, clusterapi.Key("", p.Name))
	if err != nil {
		return err
	}
	stored, err = change(
		ctx, s.p, stored, false, func(now *mcfgv1.MachineConfigPool) { now.Annotations = p.Annotations },
	)
	if err != nil {
		return err
	}
	_, err = change(ctx, s.p, stored, true, func(now *mcfgv1.MachineConfigPool) { now.Status = p.Status })
	return err
}

// poolReport makes the machine-config operator report its pools as they are.
func (s *settlement) poolReport(ctx context.Context, _ []Release) error {
	stored, co, err := read[configv1.ClusterOperator](
		ctx, s.p, kindClusterOperator, clusterapi.Key("", machineConfigOperator),
	)
	if stored == nil || err != nil {
		return err
	}
	for _, r := range s.cluster.newestFirst() {
		op := r.operators[machineConfigOperator]
		if op == nil || !reports(co.Status.Versions, op.Versions) {
			continue
		}
		found, err := s.p.machineConfigWork(ctx, r, &co.Status, false, 0, s.now)
		if err != nil {
			return err
		}
		_, err = change(ctx, s.p, stored, true, func(co *configv1.ClusterOperator) { found.report(&co.Status, metav1.NewTime(s.now)) })
		return err
	}
	return nil
}

// differs reports whether two states of a pool differ in more than form.
func differs(a, b *mcfgv1.MachineConfigPoolStatus) bool {
	if a.Configuration.Name != b.Configuration.Name || a.MachineCount != b.MachineCount ||
		a.UpdatedMachineCount != b.UpdatedMachineCount || a.ReadyMachineCount != b.ReadyMachineCount ||
		a.UnavailableMachineCount != b.UnavailableMachineCount || a.DegradedMachineCount != b.DegradedMachineCount {
		return true
	}
	was := (*pool)(&mcfgv1.MachineConfigPool{Status: *a})
	return slices.ContainsFunc(b.Conditions, func(c mcfgv1.MachineConfigPoolCondition) bool {
		old := was.condition(c.Type)
		return old != nil && old.Status != c.Status
	})
}
