package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
)

var (
	create = clusterapi.CreateOptions{FieldManager: fieldManager}
	update = clusterapi.UpdateOptions{FieldManager: fieldManager}
)

// defaultClusterID is used where Options name none.
const defaultClusterID = "5117a7ed-0000-4000-8000-000000000000"

// age is how long before the start of the simulation its objects were made.
const age = 30 * 24 * time.Hour

// build fills an empty cluster that is at rest at o.Release.
func (c *Cluster) build(ctx context.Context, o Options) error {
	if o.ControlPlane == 0 {
		o.ControlPlane = 3
	}
	if o.Zones == nil {
		o.Zones = []string{"zone-a", "zone-b", "zone-c"}
	}
	if o.Pools == nil {
		o.Pools = []Pool{{Name: mcp.PoolWorker, Nodes: 3}}
	}
	if err := c.Expect(o.Release); err != nil {
		return err
	}
	r := c.newestFirst()[0]
	for _, expected := range o.Expected {
		if err := c.Expect(expected); err != nil {
			return err
		}
	}
	b := &builder{cluster: c, options: o, release: r, now: c.clock.Now()}
	for _, step := range []func() error{b.configuration, b.machineConfiguration, b.operators, b.workloads} {
		if err := step(); err != nil {
			return err
		}
	}
	b.namespaces()
	// Definitions first: a strict backend refuses kinds that it has none of.
	if err := b.storeManifests(ctx, true); err != nil {
		return err
	}
	if err := c.Load(b.objects...); err != nil {
		return err
	}
	return b.storeManifests(ctx, false)
}

// builder collects the objects of a new cluster.
type builder struct {
	cluster *Cluster
	options Options
	release *release
	now     time.Time
	objects []*unstructured.Unstructured
	stored  map[string]bool
}

// add stores an object, made some time before the start. One that is there
// already stays.
func (b *builder) add(u *unstructured.Unstructured) {
	id := identity(u)
	if b.stored[id] {
		return
	}
	if b.stored == nil {
		b.stored = make(map[string]bool)
	}
	b.stored[id] = true
	// A second apart, so that ages order objects as they were added.
	made := b.now.Add(-age + time.Duration(len(b.objects))*time.Second)
	u.SetCreationTimestamp(metav1.NewTime(made.Truncate(time.Second)))
	if _, hasSpec := u.Object["spec"]; hasSpec && u.GetGeneration() == 0 {
		u.SetGeneration(1)
	}
	b.objects = append(b.objects, u)
}

func (b *builder) addTyped(obj any) error {
	u, err := clusterapi.ToUnstructured(obj)
	if err != nil {
		return err
	}
	b.add(u)
	return nil
}

// object makes an object of the given content.
func object(gvk schema.GroupVersionKind, namespace, name string, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	u.SetName(name)
	if namespace != "" {
		u.SetNamespace(namespace)
	}
	return u
}

func (b *builder) namespace(name string) {
	b.add(object(kindNamespace, "", name, map[string]any{}))
}

// namespaces adds the namespaces that each cluster has, and those of the release's objects
// that the release itself does not have: its operators create them for their operands.
func (b *builder) namespaces() {
	for _, name := range []string{"kube-node-lease", "kube-public", "kube-system", "openshift"} {
		b.namespace(name)
	}
	made := make(map[string]bool)
	for _, m := range b.manifests() {
		if m.GroupVersionKind().GroupKind() == kindNamespace.GroupKind() {
			made[m.GetName()] = true
		}
	}
	for _, m := range b.manifests() {
		if name := m.GetNamespace(); name != "" && !made[name] && !deletes(m) {
			b.namespace(name)
		}
	}
}

// configuration adds the ClusterVersion and what else the version operator reads.
func (b *builder) configuration() error {
	for _, name := range []string{"default", "openshift-config", "openshift-config-managed", mcp.OperatorNamespace} {
		b.namespace(name)
	}
	configMap := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	b.add(object(configMap, "openshift-config", "admin-acks", map[string]any{}))
	b.add(object(configMap, "openshift-config-managed", "admin-gates", map[string]any{}))
	topology := string(b.topology())
	b.add(object(configv1.GroupVersion.WithKind("Infrastructure"), "", "cluster", map[string]any{
		"spec": map[string]any{"platformSpec": map[string]any{"type": "None"}},
		"status": map[string]any{
			"infrastructureName":     "simulated",
			"platform":               "None",
			"platformStatus":         map[string]any{"type": "None"},
			"controlPlaneTopology":   topology,
			"infrastructureTopology": string(configv1.HighlyAvailableTopologyMode),
			"apiServerURL":           "https://api.simulated.example:6443",
			"apiServerInternalURI":   "https://api-int.simulated.example:6443",
		},
	}))
	b.add(object(configv1.GroupVersion.WithKind("FeatureGate"), "", "cluster", map[string]any{
		"spec": map[string]any{},
		"status": map[string]any{"featureGates": []any{map[string]any{
			"version": b.release.Version, "enabled": []any{}, "disabled": []any{},
		}}},
	}))
	b.add(object(configv1.GroupVersion.WithKind("Proxy"), "", "cluster", map[string]any{
		"spec": map[string]any{}, "status": map[string]any{},
	}))
	b.add(b.clusterVersion())
	return nil
}

func (b *builder) topology() configv1.TopologyMode {
	if b.options.ControlPlane == 1 {
		return configv1.SingleReplicaTopologyMode
	}
	return configv1.HighlyAvailableTopologyMode
}

func (b *builder) clusterVersion() *unstructured.Unstructured {
	cv := &b.options.ClusterVersion
	spec := map[string]any{"clusterID": cv.ClusterID}
	if cv.ClusterID == "" {
		spec["clusterID"] = defaultClusterID
	}
	if cv.Channel != "" {
		spec["channel"] = cv.Channel
	}
	if cv.Upstream != "" {
		spec["upstream"] = cv.Upstream
	}
	started := b.now.Add(-age).UTC().Truncate(time.Second)
	completed := started.Add(time.Hour).Format(time.RFC3339)
	condition := func(t configv1.ClusterStatusConditionType, status configv1.ConditionStatus, message string) any {
		return map[string]any{"type": string(t), "status": string(status), "message": message, "lastTransitionTime": completed}
	}
	return object(kindClusterVersion, "", "version", map[string]any{
		"spec": spec,
		"status": map[string]any{
			"desired": map[string]any{"version": b.release.Version, "image": b.release.Image},
			"history": []any{map[string]any{
				"state": string(configv1.CompletedUpdate), "version": b.release.Version, "image": b.release.Image,
				"startedTime": started.Format(time.RFC3339), "completionTime": completed, "verified": false,
			}},
			"observedGeneration": int64(1),
			"versionHash":        "",
			"availableUpdates":   nil,
			"conditions": []any{
				condition(configv1.OperatorAvailable, configv1.ConditionTrue, "Done applying "+b.release.Version),
				condition("Failing", configv1.ConditionFalse, ""),
				condition(configv1.OperatorProgressing, configv1.ConditionFalse, "Cluster version is "+b.release.Version),
			},
		},
	})
}

// operators adds the ClusterOperators, at rest at the release, and their
// workloads.
func (b *builder) operators() error {
	for _, o := range b.release.Operators {
		op := b.release.operators[o.Name]
		if o.Name == "" {
			return errors.New("an operator of Options.Release has no name")
		}
		u, err := b.operatorAtRest(op)
		if err != nil {
			return err
		}
		b.add(u)
	}
	return nil
}

// operatorAtRest is a ClusterOperator that is well at the release.
func (b *builder) operatorAtRest(op *operator) (*unstructured.Unstructured, error) {
	co := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: op.Name, Annotations: b.operatorAnnotations(op.Name)}}
	co.Status.Versions = op.Versions
	at := metav1.NewTime(b.now.Add(-age + time.Hour).Truncate(time.Second))
	set := func(t configv1.ClusterStatusConditionType, status configv1.ConditionStatus, message string) {
		setCondition(&co.Status.Conditions, t, status, "AsExpected", message, at)
	}
	set(configv1.OperatorProgressing, configv1.ConditionFalse, "Cluster operator is at "+b.release.Version)
	set(configv1.OperatorAvailable, configv1.ConditionTrue, "")
	set(configv1.OperatorDegraded, configv1.ConditionFalse, "")
	set(configv1.OperatorUpgradeable, configv1.ConditionTrue, "")
	u, err := clusterapi.ToUnstructured(co)
	if err != nil {
		return nil, err
	}
	// Typed objects write null where these are empty.
	for _, field := range []string{"relatedObjects", "extension"} {
		unstructured.RemoveNestedField(u.Object, "status", field)
	}
	return u, nil
}

// operatorAnnotations are those of an operator's manifest, or without one those by
// which an operator of a release is known.
func (b *builder) operatorAnnotations(name string) map[string]string {
	for _, m := range b.release.Manifests {
		if m.GroupVersionKind().GroupKind() == kindClusterOperator.GroupKind() && m.GetName() == name {
			return m.GetAnnotations()
		}
	}
	return map[string]string{"include.release.openshift.io/self-managed-high-availability": "true"}
}

// storeManifests applies the release's own objects, as an update to it would
// have: its definitions of kinds, or all others.
func (b *builder) storeManifests(ctx context.Context, definitions bool) error {
	done := make(map[string]bool)
	for _, m := range b.manifests() {
		id := identity(m)
		if (m.GetKind() == "CustomResourceDefinition") != definitions {
			continue
		}
		if m.GroupVersionKind().GroupKind() == kindClusterOperator.GroupKind() || done[id] || deletes(m) {
			continue
		}
		done[id] = true
		if err := b.cluster.storeManifest(ctx, m); err != nil {
			return fmt.Errorf("manifest %s %s: %w", m.GetKind(), path(m), err)
		}
	}
	return nil
}

// manifests are the release's objects; those of operators may be there twice.
func (b *builder) manifests() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, o := range b.release.Operators {
		all = append(all, o.Workloads...)
	}
	return append(all, b.release.Manifests...)
}

// deletes reports whether a manifest deletes the object that it names.
func deletes(m *unstructured.Unstructured) bool {
	_, ok := m.GetAnnotations()["release.openshift.io/delete"]
	return ok
}

// storeManifest applies one manifest. What typed apply refuses, for instance a
// field that its kind's schema lacks, is created: there such a field is
// dropped.
func (c *Cluster) storeManifest(ctx context.Context, m *unstructured.Unstructured) error {
	u := m.DeepCopy()
	unstructured.RemoveNestedField(u.Object, "status")
	_, err := c.Apply(ctx, u, clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload})
	if err == nil {
		return nil
	}
	if _, createErr := c.Create(ctx, u, clusterapi.CreateOptions{FieldManager: clusterapi.ManagerPayload}); createErr != nil {
		if apierrors.IsAlreadyExists(createErr) {
			return err
		}
		return createErr
	}
	return nil
}

// workloads adds what runs in addition to the operators.
func (b *builder) workloads() error {
	for i := range b.options.Workloads {
		w := &b.options.Workloads[i]
		if w.Name == "" {
			return fmt.Errorf("Options.Workloads[%d] has no name", i)
		}
		if w.MinAvailable != nil && w.MaxUnavailable != nil {
			return fmt.Errorf("workload %s: both MinAvailable and MaxUnavailable are set", w.Name)
		}
		b.namespace(w.namespace())
		for _, obj := range w.objects() {
			if err := b.addTyped(obj); err != nil {
				return err
			}
		}
	}
	return nil
}

// machineConfiguration adds MachineConfigs, pools and nodes.
func (b *builder) machineConfiguration() error {
	cc := controllerConfig(b.release, string(b.topology()))
	b.add(cc)
	pools := append([]Pool{{Name: mcp.PoolMaster, Nodes: b.options.ControlPlane}}, b.options.Pools...)
	for _, role := range []string{mcp.PoolMaster, mcp.PoolWorker} {
		b.add(machineConfig("00-"+role, role, "/etc/kubernetes/kubelet.conf", role))
		b.add(machineConfig("01-"+role+"-kubelet", role, "/etc/systemd/kubelet-role", role))
	}
	seen := make(map[string]bool)
	for i, p := range pools {
		if p.Name == "" {
			p.Name = mcp.PoolWorker
		}
		if seen[p.Name] || p.Nodes < 0 {
			return fmt.Errorf("Options.Pools[%d], %s: a second pool of that name, or a negative number of nodes", i-1, p.Name)
		}
		seen[p.Name] = true
		if err := b.pool(cc, &p); err != nil {
			return err
		}
	}
	return nil
}

// pool adds a pool at rest, its rendered config and its nodes.
func (b *builder) pool(cc *unstructured.Unstructured, p *Pool) error {
	typed := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: p.Name}}
	roles := []string{p.Name}
	custom := p.Name != mcp.PoolMaster && p.Name != mcp.PoolWorker
	if custom {
		roles = []string{mcp.PoolWorker, p.Name}
	}
	var parts []*unstructured.Unstructured
	for _, u := range b.objects {
		if u.GroupVersionKind() == kindMachineConfig && !isRendered(u) && slices.Contains(roles, u.GetLabels()[mcp.LabelRole]) {
			parts = append(parts, u)
		}
	}
	rendered := render(cc, typed, parts)
	uid := "00000000-0000-4000-8000-" + digest("pool " + p.Name)[:12]
	refs := rendered.GetOwnerReferences()
	refs[0].UID = types.UID(uid)
	rendered.SetOwnerReferences(refs)
	b.add(rendered)

	sources := []any{}
	for _, u := range parts {
		sources = append(sources, map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "name": u.GetName()})
	}
	configuration := map[string]any{"name": rendered.GetName(), "source": sources}
	spec := map[string]any{
		"configuration": configuration,
		"nodeSelector":  map[string]any{"matchLabels": map[string]any{mcp.LabelNodeRolePrefix + p.Name: ""}},
		"paused":        p.Paused,
	}
	if custom {
		spec["machineConfigSelector"] = map[string]any{"matchExpressions": []any{map[string]any{
			"key": mcp.LabelRole, "operator": "In", "values": []any{mcp.PoolWorker, p.Name}}}}
	} else {
		spec["machineConfigSelector"] = map[string]any{"matchLabels": map[string]any{mcp.LabelRole: p.Name}}
	}
	if m := p.MaxUnavailable; m != nil {
		if m.Type == 0 {
			spec["maxUnavailable"] = int64(m.IntVal)
		} else {
			spec["maxUnavailable"] = m.StrVal
		}
	}
	line := "MachineConfig " + rendered.GetName()
	at := b.now.Add(-age + time.Hour).UTC().Truncate(time.Second).Format(time.RFC3339)
	condition := func(t mcfgv1.MachineConfigPoolConditionType, status corev1.ConditionStatus, message string) any {
		return map[string]any{"type": string(t), "status": string(status), "reason": "", "message": message, "lastTransitionTime": at}
	}
	n := int64(p.Nodes)
	u := object(kindMachineConfigPool, "", p.Name, map[string]any{
		"spec": spec,
		"status": map[string]any{
			"configuration":           configuration,
			"observedGeneration":      int64(1),
			"machineCount":            n,
			"readyMachineCount":       n,
			"updatedMachineCount":     n,
			"unavailableMachineCount": int64(0),
			"degradedMachineCount":    int64(0),
			"conditions": []any{
				condition(mcfgv1.MachineConfigPoolRenderDegraded, corev1.ConditionFalse, ""),
				condition(mcfgv1.MachineConfigPoolUpdated, corev1.ConditionTrue, "All nodes are updated with "+line),
				condition(mcfgv1.MachineConfigPoolUpdating, corev1.ConditionFalse, ""),
				condition(mcfgv1.MachineConfigPoolNodeDegraded, corev1.ConditionFalse, ""),
				condition(mcfgv1.MachineConfigPoolDegraded, corev1.ConditionFalse, ""),
			},
		},
	})
	u.SetUID(types.UID(uid))
	labels := map[string]string{}
	if !custom {
		labels[mcp.LabelBuiltIn] = ""
		labels[mcp.LabelPoolPrefix+p.Name] = ""
	}
	if p.Name == mcp.PoolMaster {
		labels[mcp.LabelRequiredForUpgrade] = ""
	}
	if len(labels) > 0 {
		u.SetLabels(labels)
	}
	b.add(u)
	for i := range p.Nodes {
		if err := b.addTyped(b.node(p.Name, i, rendered.GetName())); err != nil {
			return err
		}
	}
	return nil
}
