package forecast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/disruption"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

var (
	budgetKind    = policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")
	namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")
)

// scene is what all runs of a rehearsal start from. It is not changed once it is set.
type scene struct {
	o       RehearseOptions
	now     time.Time
	base    *memory.Cluster
	gaps    *gaps
	assumed *assumptions

	from, to configv1.Release // as the cluster names them
	updating bool             // an update is under way
	underway bool             // it is the one to To, or nodes are left of that
	// images are the releases at hand, named as the cluster names them; the first is
	// From.
	images   payload.Images
	releases []simulation.Release // of images
	graph    graph.Source
	broken   []broken
	poolOf   map[string]string // by node
	podless  bool              // no pods are known
	// namespaces reports that all of them are known.
	namespaces bool
	// refused is why the update cannot be rehearsed, nil if it can.
	refused *Cause
}

// broken is a part of the cluster that was recorded as broken.
type broken struct {
	part  string // as in RehearseOptions.Heal
	fault simulation.Fault
}

// startOf is when a rehearsal starts: the time of a recording, the present if that is not
// known.
func startOf(r clusterapi.Reader) time.Time {
	if at := clusterapi.TimeOf(r); !at.IsZero() {
		return at.UTC()
	}
	return clock.RealClock{}.Now().UTC().Truncate(time.Second)
}

// newScene forks the cluster and brings what is made up to if it would be.
func newScene(ctx context.Context, o RehearseOptions) (*scene, error) {
	s := &scene{o: o, now: startOf(o.Reader), assumed: &assumptions{}, gaps: newGaps(o.Reader)}
	_, err := s.gaps.List(ctx, namespaceKind, clusterapi.ListOptions{})
	if err != nil && !clusterapi.IsAbsent(err) {
		return nil, err
	}
	s.namespaces = err == nil && !s.gaps.lacks(namespaceKind.GroupKind())
	if !s.namespaces {
		s.assumed.add("not all namespaces were recorded: each one that the update needs exists")
	}
	s.base = memory.NewOpenShift(s.fork(s.gaps))
	cv, err := clusterapi.Get[configv1.ClusterVersion](ctx, s.base, clusterapi.Key("", "version"))
	if err != nil {
		return nil, err
	}
	if err := s.name(cv); err != nil || s.refused != nil {
		return s, err
	}
	for _, step := range []func(context.Context, *configv1.ClusterVersion) error{
		s.makeNamespaces, s.applyReleases, s.acknowledge, s.changePools, s.changeNodes, s.findNamed, s.findBroken, s.findPods,
	} {
		if err := step(ctx, cv); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// fork are the options of a fork. If all namespaces are known, it refuses objects that
// are in none of them, as an API server does.
func (s *scene) fork(base clusterapi.Reader) memory.Options {
	return memory.Options{Base: base, Clock: reconcile.NewClock(s.now), CheckNamespaces: s.namespaces}
}

// name finds out under which images the cluster knows the releases.
func (s *scene) name(cv *configv1.ClusterVersion) error {
	i := slices.IndexFunc(
		cv.Status.History, func(h configv1.UpdateHistory) bool { return h.State == configv1.CompletedUpdate },
	)
	if i < 0 {
		return errors.New("the cluster has not completed an update or its installation")
	}
	own, desired := cv.Status.History[i], cv.Status.Desired
	if own.Version != s.o.From.Version() {
		return fmt.Errorf(
			"the cluster has last completed %s, RehearseOptions.From is %s", own.Version, s.o.From.Version(),
		)
	}
	s.from = configv1.Release{Version: own.Version, Image: own.Image}
	s.to = configv1.Release{Version: s.o.To.Version(), Image: s.o.To.PullSpec}
	s.images = payload.Images{renamed(s.o.From, own.Image)}
	s.updating = i > 0
	if !s.updating && own.Version == s.to.Version {
		s.to.Image = own.Image
		s.underway = true
		return nil
	}
	if s.updating {
		s.underway = desired.Version == s.o.To.Version()
		if !s.underway && s.o.Desired == nil {
			progressing := openshift.FindCondition(cv.Status.Conditions, configv1.OperatorProgressing)
			s.refused = &Cause{Chain: versionChain(progressing, "the update to "+desired.Version+
				" is under way, and RehearseOptions.Desired does not have its release"), Assumed: true}
			return nil
		}
		if s.underway {
			s.to.Image = desired.Image
		} else {
			s.images = append(s.images, renamed(s.o.Desired, desired.Image))
		}
	}
	s.images = append(s.images, renamed(s.o.To, s.to.Image))
	channel := cmp.Or(cv.Spec.Channel, "rehearsal")
	if cv.Spec.Channel == "" {
		s.assumed.add("the cluster has no channel: it is given one named " + channel + ", which recommends the update")
	}
	updates, err := graph.DecodeBytes(s.images.Graph(channel), graph.DecodeOptions{})
	s.graph = graph.Static(updates)
	return err
}

// renamed is an image under another pull spec.
func renamed(i *payload.Image, pullSpec string) *payload.Image {
	return &payload.Image{FS: i.FS, PullSpec: pullSpec, Payload: i.Payload}
}

// Payload implements [manifest.PayloadSource].
func (s *scene) Payload(_ context.Context, want configv1.Release) (fs.FS, error) {
	for _, i := range s.images {
		if i.PullSpec == want.Image {
			return i.FS, nil
		}
	}
	return nil, fmt.Errorf("the rehearsal has no release %s", want.Image)
}

// makeNamespaces makes the namespaces that operators of To make once they run.
func (s *scene) makeNamespaces(ctx context.Context, _ *configv1.ClusterVersion) error {
	for _, name := range manifest.NewNamespaces(s.o.From.Payload, s.o.To.Payload) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := clusterapi.Create(ctx, s.base, ns, clusterapi.CreateOptions{})
		switch {
		case err == nil:
			s.assumed.add("an operator of " + s.o.To.Version() + " makes the namespace " + name)
		case !apierrors.IsAlreadyExists(err):
			return err
		}
	}
	return nil
}

// applyReleases brings the objects of From into being as a pass over a cluster at rest
// does. In mid-update objects that were recorded stay as they are, and operators that
// report a later release have its objects.
func (s *scene) applyReleases(ctx context.Context, cv *configv1.ClusterVersion) error {
	_, gates, err := manifest.ReadGates(ctx, s.base, s.from.Version)
	if err != nil && !clusterapi.IsAbsent(err) {
		return err
	}
	at, err := s.operatorVersions(ctx)
	if err != nil {
		return err
	}
	before, err := s.count(ctx)
	if err != nil {
		return err
	}
	var unknown []string // versions that operators report and no image has
	for i, image := range s.images {
		running := s.images[max(i-1, 0)].Payload
		filter := manifest.ClusterFilter(cv, gates, running, image.Payload)
		included, _ := image.Payload.Included(filter)
		p := *image.Payload
		p.Release.Image = image.PullSpec
		p.Manifests = included
		s.releases = append(s.releases, payload.Release(&p))
		ahead := make(map[string]bool) // components with an operator at this release
		for _, op := range p.Operators() {
			if v := at[op.Name]; v == image.Version() && op.Component != "" {
				ahead[op.Component] = true
			}
			if v := at[op.Name]; v != "" && !slices.ContainsFunc(s.images, func(i *payload.Image) bool { return i.Version() == v }) {
				unknown = append(unknown, v)
			}
		}
		apply := slices.DeleteFunc(slices.Clone(included), func(m *manifest.Manifest) bool {
			_, component, _ := manifest.ParseName(m.Filename)
			return i > 0 && !ahead[component] || s.updating && s.exists(ctx, m)
		})
		if err := s.apply(ctx, apply, filter, cv); err != nil {
			return err
		}
	}
	slices.Sort(unknown)
	for _, v := range slices.Compact(unknown) {
		s.releases = slices.Insert(s.releases, 1, named(s.releases[0], v))
		s.assumed.add(fmt.Sprintf("operators at %s have the objects of %s", v, s.from.Version))
	}
	after, err := s.count(ctx)
	if n := after - before; n > 0 {
		s.assumed.add(fmt.Sprintf("%d workloads of %s were not recorded: they are as it has them", n, s.from.Version))
	}
	return err
}

// exists reports whether the object of a manifest is known to exist.
func (s *scene) exists(ctx context.Context, m *manifest.Manifest) bool {
	_, err := clusterapi.GetShared(ctx, s.base, m.GVK(), clusterapi.KeyOf(m.Object()))
	return err == nil
}

// count counts the Deployments and DaemonSets.
func (s *scene) count(ctx context.Context) (n int, err error) {
	for _, kind := range []string{"Deployment", "DaemonSet"} {
		all, err := clusterapi.ListShared(
			ctx, s.base, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}, clusterapi.ListOptions{},
		)
		if err != nil && !clusterapi.IsAbsent(err) {
			return 0, err
		}
		n += len(all)
	}
	return n, nil
}

// named is a release under another version, with operators that report it.
func named(r simulation.Release, version string) simulation.Release {
	own := r.Version
	r.Version = version
	r.Image = ""
	r.Operators = slices.Clone(r.Operators)
	for i := range r.Operators {
		o := &r.Operators[i]
		o.Versions = slices.Clone(o.Versions)
		for j := range o.Versions {
			if o.Versions[j].Version == own {
				o.Versions[j].Version = version
			}
		}
	}
	return r
}

// operatorVersions returns the version that each ClusterOperator reports for itself.
func (s *scene) operatorVersions(ctx context.Context) (map[string]string, error) {
	all, err := clusterapi.ReadAll[configv1.ClusterOperator](ctx, s.base, clusterapi.ListOptions{})
	if err != nil && !clusterapi.IsAbsent(err) {
		return nil, err
	}
	at := make(map[string]string, len(all))
	for _, co := range all {
		for _, v := range co.Status.Versions {
			if v.Name == "operator" {
				at[co.Name] = v.Version
			}
		}
	}
	return at, nil
}

// apply applies manifests and takes what was written as done. Those that are refused
// are tried again until a round brings no success.
func (s *scene) apply(
	ctx context.Context, manifests []*manifest.Manifest, filter manifest.Filter, cv *configv1.ClusterVersion,
) error {
	var failed []*manifest.Manifest
	var last error
	noting := func(inner runlevel.Applier) runlevel.Applier {
		return func(ctx context.Context, t *manifest.Task, state runlevel.State) error {
			if err := inner(ctx, t, state); err != nil {
				failed = append(failed, t.Manifest)
				last = err
			}
			return ctx.Err()
		}
	}
	for left := -1; len(manifests) > 0 && len(manifests) != left; {
		left = len(manifests)
		pass, err := runlevel.NewPass(manifest.NewTasks(manifests), runlevel.Options{
			API: s.base, State: runlevel.Reconciling, Workers: 1, Filter: filter, Clock: reconcile.NewClock(s.now),
			Owner:   &metav1.OwnerReference{Name: cv.Name, UID: cv.UID},
			Backoff: &runlevel.Backoff{Steps: 1}, SkipChecks: true, Wrap: noting,
		})
		if err != nil {
			return err
		}
		for keys := pass.Keys(); len(keys) > 0; keys = keys[1:] {
			step, err := pass.Reconcile(ctx, reconcile.Request{Key: keys[0], Now: s.now})
			if err := errors.Join(err, ctx.Err()); err != nil {
				return err
			}
			for _, ready := range step.Wake {
				keys = append(keys, ready.Key)
			}
		}
		manifests = failed
		failed = nil
	}
	if n := len(manifests); n > 0 {
		s.assumed.add(
			fmt.Sprintf("%d objects of %s are left out, which the cluster refuses: %v", n, s.from.Version, last),
		)
	}
	return nil
}

// acknowledge acknowledges all gates if it is not known which ones the administrator
// has.
func (s *scene) acknowledge(ctx context.Context, _ *configv1.ClusterVersion) error {
	configMap := corev1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind()
	_, err := clusterapi.Get[corev1.ConfigMap](ctx, s.base, clusterapi.Key("openshift-config", "admin-acks"))
	if err == nil || !s.gaps.lacks(configMap) {
		return nil
	}
	if !clusterapi.IsAbsent(err) {
		return err
	}
	gates, err := clusterapi.Get[corev1.ConfigMap](
		ctx, s.base, clusterapi.Key("openshift-config-managed", "admin-gates"),
	)
	if err != nil {
		if clusterapi.IsAbsent(err) {
			return nil
		}
		return err
	}
	acks := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config", Name: "admin-acks"}, Data: map[string]string{}}
	for gate := range gates.Data {
		acks.Data[gate] = "true"
	}
	if len(acks.Data) > 0 {
		s.assumed.add("what the administrator acknowledges was not recorded: all gates are")
	}
	_, err = clusterapi.Create(ctx, s.base, acks, clusterapi.CreateOptions{})
	return err
}

// changePools carries out RehearseOptions.Pools.
func (s *scene) changePools(ctx context.Context, _ *configv1.ClusterVersion) error {
	for _, name := range slices.Sorted(maps.Keys(s.o.Pools)) {
		change := s.o.Pools[name]
		_, err := clusterapi.Modify(ctx, s.base, clusterapi.Key("", name), clusterapi.ModifyOptions{}, func(p *mcfgv1.MachineConfigPool) error {
			change.apply(p)
			return nil
		})
		if err != nil {
			return fmt.Errorf("RehearseOptions.Pools[%s]: %w", name, err)
		}
	}
	return nil
}

// changeNodes carries out RehearseOptions.Nodes.
func (s *scene) changeNodes(ctx context.Context, _ *configv1.ClusterVersion) error {
	state, err := s.state(ctx)
	if err != nil {
		return err
	}
	for _, pool := range slices.Sorted(maps.Keys(s.o.Nodes)) {
		want, nodes := s.o.Nodes[pool], state.Nodes(pool)
		if want < 0 || len(nodes) == 0 {
			return fmt.Errorf(
				"RehearseOptions.Nodes[%s]: %d nodes wanted, the cluster has %d there", pool, want, len(nodes),
			)
		}
		for _, name := range nodes[min(want, len(nodes)):] {
			err := s.base.Delete(
				ctx, corev1.SchemeGroupVersion.WithKind("Node"), clusterapi.Key("", name), clusterapi.DeleteOptions{},
			)
			if err != nil {
				return err
			}
		}
		for i := len(nodes); i < want; i++ {
			if err := s.addNode(ctx, nodes[i%len(nodes)], fmt.Sprintf("%s-added-%d", pool, i-len(nodes))); err != nil {
				return err
			}
		}
	}
	state, err = s.state(ctx)
	if err != nil {
		return err
	}
	s.poolOf = make(map[string]string)
	if len(state.Pools()) == 0 {
		s.assumed.add("machine config pools were not recorded: no node is updated")
	}
	for _, pool := range state.Pools() {
		have, counted := len(state.Nodes(pool)), int(state.Pool(pool).Status.MachineCount)
		if _, changed := s.o.Nodes[pool]; have != counted && !changed {
			s.assumed.add(fmt.Sprintf("pool %s has the %d nodes that were recorded, not the %d that it counts", pool, have, counted))
		}
		for _, node := range state.Nodes(pool) {
			s.poolOf[node] = pool
		}
	}
	return nil
}

// findNamed returns an error for a part in RehearseOptions.Faults or Heal that the cluster
// does not have, with the names of those that it has.
func (s *scene) findNamed(ctx context.Context, _ *configv1.ClusterVersion) error {
	if len(s.o.Faults)+len(s.o.Heal) == 0 {
		return nil
	}
	known := make(map[string][]string)
	for kind, gvk := range map[string]schema.GroupVersionKind{
		"operator": configv1.GroupVersion.WithKind("ClusterOperator"),
		"node":     corev1.SchemeGroupVersion.WithKind("Node"),
		"pod":      corev1.SchemeGroupVersion.WithKind("Pod"),
	} {
		all, err := clusterapi.ListShared(ctx, s.base, gvk, clusterapi.ListOptions{})
		if err != nil && !clusterapi.IsAbsent(err) {
			return err
		}
		for _, o := range all {
			known[kind] = append(known[kind], strings.TrimPrefix(o.Key().String(), "/"))
		}
	}
	for _, op := range s.o.To.Payload.Operators() {
		known["operator"] = append(known["operator"], op.Name)
	}
	for _, field := range []struct {
		name  string
		parts iter.Seq[string]
	}{{"Faults", maps.Keys(s.o.Faults)}, {"Heal", maps.Keys(s.o.Heal)}} {
		for _, part := range slices.Sorted(field.parts) {
			kind, name, _ := strings.Cut(part, "/")
			if slices.Contains(known[kind], name) {
				continue
			}
			slices.Sort(known[kind])
			names := bounded.Text(strings.Join(slices.Compact(known[kind]), ", "), maxMessage)
			return fmt.Errorf("RehearseOptions.%s[%s]: the cluster does not have it, but %s", field.name, part, cmp.Or(names, "none"))
		}
	}
	return nil
}

// addNode adds a node like another, without its pods.
func (s *scene) addNode(ctx context.Context, like, name string) error {
	node, err := clusterapi.Get[corev1.Node](ctx, s.base, clusterapi.Key("", like))
	if err != nil {
		return err
	}
	added := node.DeepCopy()
	added.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: node.Labels, Annotations: node.Annotations}
	added.Spec.ProviderID = ""
	if _, ok := added.Labels[corev1.LabelHostname]; ok {
		added.Labels[corev1.LabelHostname] = name
	}
	u, err := clusterapi.ToUnstructured(added)
	if err != nil {
		return err
	}
	return s.base.Load(u)
}

// state is the cluster as decisions about nodes see it.
func (s *scene) state(ctx context.Context) (*mcp.State, error) {
	pools, err := clusterapi.List[mcfgv1.MachineConfigPool](ctx, s.base, clusterapi.ListOptions{})
	if err != nil && !clusterapi.IsAbsent(err) {
		return nil, err
	}
	nodes, err := clusterapi.List[corev1.Node](ctx, s.base, clusterapi.ListOptions{})
	if err != nil && !clusterapi.IsAbsent(err) {
		return nil, err
	}
	return mcp.NewState(mcp.Objects{Pools: pools, Nodes: nodes}, mcp.Options{}), nil
}

// findBroken finds what was recorded as broken and stays so.
func (s *scene) findBroken(ctx context.Context, _ *configv1.ClusterVersion) error {
	operators, err := clusterapi.ReadAll[configv1.ClusterOperator](ctx, s.base, clusterapi.ListOptions{})
	if err != nil && !clusterapi.IsAbsent(err) {
		return err
	}
	for _, co := range operators {
		if f := brokenOperator(co); f != nil {
			s.broken = append(s.broken, broken{"operator/" + co.Name, *f})
		}
	}
	nodes, err := clusterapi.ReadAll[corev1.Node](ctx, s.base, clusterapi.ListOptions{})
	if err != nil && !clusterapi.IsAbsent(err) {
		return err
	}
	for _, n := range nodes {
		reason := n.Annotations[mcp.AnnotationReason]
		switch n.Annotations[mcp.AnnotationState] {
		case mcp.StateDegraded:
			s.broken = append(s.broken, broken{"node/" + n.Name, simulation.Fault{Kind: simulation.FaultNodeDegraded, Message: reason}})
		case mcp.StateUnreconcilable:
			_, said, ok := strings.Cut(reason, ": ")
			if !ok {
				said = reason
			}
			s.broken = append(s.broken, broken{"node/" + n.Name, simulation.Fault{Kind: simulation.FaultNodeUnreconcilable, Message: said}})
		}
	}
	return nil
}

// brokenOperator returns the fault of an operator that was recorded as degraded or
// unavailable and does nothing about it; nil without one.
func brokenOperator(co *configv1.ClusterOperator) *simulation.Fault {
	progressing := openshift.FindCondition(co.Status.Conditions, configv1.OperatorProgressing)
	if progressing != nil && progressing.Status == configv1.ConditionTrue {
		return nil
	}
	available := openshift.FindCondition(co.Status.Conditions, configv1.OperatorAvailable)
	if available != nil && available.Status != configv1.ConditionTrue {
		return &simulation.Fault{Kind: simulation.FaultUnavailable, Reason: available.Reason, Message: available.Message}
	}
	degraded := openshift.FindCondition(co.Status.Conditions, configv1.OperatorDegraded)
	if degraded != nil && degraded.Status == configv1.ConditionTrue {
		return &simulation.Fault{Kind: simulation.FaultDegraded, Reason: degraded.Reason, Message: degraded.Message}
	}
	return nil
}

// findPods notes what drains depend on.
func (s *scene) findPods(ctx context.Context, _ *configv1.ClusterVersion) error {
	podKind := corev1.SchemeGroupVersion.WithKind("Pod")
	pods, err := clusterapi.ReadAll[corev1.Pod](ctx, s.base, clusterapi.ListOptions{})
	if err != nil && !clusterapi.IsAbsent(err) {
		return err
	}
	s.podless = len(pods) == 0 && s.gaps.lacks(podKind.GroupKind())
	switch {
	case s.podless:
		s.assumed.add("pods were not recorded: all drains succeed, each in the time of one pod")
		return nil
	case s.gaps.lacks(podKind.GroupKind()):
		s.assumed.add(fmt.Sprintf("not all pods were recorded: drains evict the %d that were", len(pods)))
	}
	if _, err := clusterapi.ListShared(ctx, s.base, budgetKind, clusterapi.ListOptions{}); err != nil && !clusterapi.IsAbsent(err) {
		return err
	}
	if s.gaps.lacks(budgetKind.GroupKind()) {
		s.assumed.add("not all PodDisruptionBudgets were recorded: others allow every eviction")
	}
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil && !disruption.Ready(p) {
			s.broken = append(s.broken, broken{"pod/" + p.Namespace + "/" + p.Name, simulation.Fault{Kind: simulation.FaultPodUnready}})
		}
	}
	return nil
}
