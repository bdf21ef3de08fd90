package simulation

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// rendering keeps each pool's rendered config in step with the release that
// ControllerConfig describes and with the MachineConfigs that the pool selects.
func (p *process) rendering() *behaviour {
	every := []reconcile.Wake{{Key: everyPool, After: renderTime}}
	return &behaviour{name: "rendering of machine configs", look: p.renderPools, watches: []reconcile.Watch{
		p.watch(kindMachineConfigPool, unless(sameForRenderer, wakeChanged(renderTime))),
		p.watch(kindMachineConfig, func(old, new *clusterapi.Object) []reconcile.Wake {
			if isRendered(either(old, new).Unstructured()) {
				return nil
			}
			return every
		}),
		p.watch(kindControllerConfig, func(_, _ *clusterapi.Object) []reconcile.Wake { return every }),
	}}
}

// sameForRenderer reports whether nothing of a pool changed but other parts of its
// status.
func sameForRenderer(old, new *clusterapi.Object) bool {
	return sameSpec(old, new) && renderFails(old) == renderFails(new)
}

// everyPool is the key of all pools.
var everyPool = reconcile.Key{Kind: "every pool"}

func isRendered(u *unstructured.Unstructured) bool {
	return strings.HasPrefix(u.GetName(), "rendered-")
}

// renderFails is the condition RenderDegraded of a pool.
func renderFails(o *clusterapi.Object) mcfgv1.MachineConfigPoolCondition {
	if p, err := clusterapi.As[mcfgv1.MachineConfigPool](o); err == nil {
		if c := (*pool)(p).condition(mcfgv1.MachineConfigPoolRenderDegraded); c != nil {
			return *c
		}
	}
	return mcfgv1.MachineConfigPoolCondition{}
}

func (p *process) renderPools(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	if r.Key != everyPool {
		return reconcile.Result{}, p.renderPool(ctx, r.Key.Name, r.Now)
	}
	pools, err := p.pools(ctx)
	var res reconcile.Result
	for _, pool := range pools {
		res.Wake = append(res.Wake, reconcile.Wake{Key: reconcile.Key{Name: pool.Name}})
	}
	return res, err
}

// recordedParts returns the MachineConfigs from which a pool's recorded config was
// rendered, as far as there are any.
func (p *process) recordedParts(ctx context.Context, pool *mcfgv1.MachineConfigPool) (parts []*unstructured.Unstructured, problem string, err error) {
	for _, source := range pool.Spec.Configuration.Source {
		o, err := clusterapi.GetShared(ctx, p.api, kindMachineConfig, clusterapi.Key("", source.Name))
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		parts = append(parts, o.Unstructured())
	}
	return parts, "", nil
}

// recordedName is the name of the pool's recorded config if the rendered one has the
// content that stands for it, else "".
func recordedName(pool *mcfgv1.MachineConfigPool, rendered *unstructured.Unstructured) string {
	name, content, _ := strings.Cut(pool.Annotations[annotationRecorded], " ")
	if content != rendered.GetName() {
		return ""
	}
	return name
}

func (p *process) renderPool(ctx context.Context, name string, now time.Time) error {
	cc, err := clusterapi.GetShared(ctx, p.api, kindControllerConfig, clusterapi.Key("", mcp.ControllerConfigName))
	if clusterapi.IsMissing(err) {
		return nil // the operator has not described its release yet
	}
	if err != nil {
		return err
	}
	stored, pool, err := read[mcfgv1.MachineConfigPool](ctx, p, kindMachineConfigPool, clusterapi.Key("", name))
	if stored == nil || err != nil {
		return err
	}
	parts, problem, err := p.poolConfigs(ctx, pool)
	if err != nil {
		return err
	}
	if problem == "" {
		rendered := render(cc.Unstructured(), pool, parts)
		if recorded := recordedName(pool, rendered); recorded != "" {
			rendered.SetName(recorded)
		} else if err := p.create(ctx, rendered); err != nil {
			return err
		}
		stored, err = change(ctx, p, stored, false, func(p *mcfgv1.MachineConfigPool) {
			if p.Spec.Configuration.Name != rendered.GetName() {
				p.Spec.Configuration = poolConfiguration(rendered.GetName(), parts)
			}
		})
		if err != nil {
			return err
		}
	} else {
		problem = "Failed to render configuration for pool " + name + ": " + problem
	}
	_, err = change(ctx, p, stored, true, func(p *mcfgv1.MachineConfigPool) { setRenderDegraded(&p.Status, problem, metav1.NewTime(now)) })
	return err
}

// poolConfigs returns the MachineConfigs that a pool selects, by name; problem
// explains why it cannot be rendered.
func (p *process) poolConfigs(ctx context.Context, pool *mcfgv1.MachineConfigPool) (parts []*unstructured.Unstructured, problem string, err error) {
	selector, err := metav1.LabelSelectorAsSelector(pool.Spec.MachineConfigSelector)
	if err != nil {
		return nil, err.Error(), nil
	}
	all, err := clusterapi.ListShared(ctx, p.api, kindMachineConfig, clusterapi.ListOptions{Labels: selector})
	if err != nil {
		return nil, "", err
	}
	for _, o := range all {
		if !isRendered(o.Unstructured()) {
			parts = append(parts, o.Unstructured())
		}
	}
	if len(parts) > 0 {
		return parts, "", nil
	}
	if _, recorded := pool.Annotations[annotationRecorded]; recorded {
		return p.recordedParts(ctx, pool)
	}
	return nil, fmt.Sprintf("no MachineConfigs found matching selector %v", selector), nil
}

// setRenderDegraded sets the condition RenderDegraded, True with a problem.
func setRenderDegraded(s *mcfgv1.MachineConfigPoolStatus, problem string, now metav1.Time) {
	want := mcfgv1.MachineConfigPoolCondition{Type: mcfgv1.MachineConfigPoolRenderDegraded,
		Status: corev1.ConditionFalse, Message: problem, LastTransitionTime: now}
	if problem != "" {
		want.Status = corev1.ConditionTrue
	}
	old := find(s.Conditions, func(c *mcfgv1.MachineConfigPoolCondition) bool { return c.Type == want.Type })
	if old == nil {
		s.Conditions = append(s.Conditions, want)
		return
	}
	if old.Status == want.Status {
		want.LastTransitionTime = old.LastTransitionTime
	}
	*old = want
}

// poolConfiguration is the pool's field for a rendered config and its parts.
func poolConfiguration(name string, parts []*unstructured.Unstructured) mcfgv1.MachineConfigPoolStatusConfiguration {
	conf := mcfgv1.MachineConfigPoolStatusConfiguration{ObjectReference: corev1.ObjectReference{Name: name}}
	for _, u := range parts {
		conf.Source = append(conf.Source, corev1.ObjectReference{
			APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName()})
	}
	return conf
}

// render merges MachineConfigs, in the order given, into the rendered config
// of a pool for the release that cc describes. Its name is the same for equal
// content of one release, apart from the pool's name.
func render(cc *unstructured.Unstructured, pool *mcfgv1.MachineConfigPool, parts []*unstructured.Unstructured) *unstructured.Unstructured {
	osImage, _, _ := unstructured.NestedString(cc.Object, "spec", "osImageURL")
	spec := map[string]any{"osImageURL": osImage}
	annotations := map[string]string{
		mcp.AnnotationGeneratedByControllerVersion: cc.GetAnnotations()[mcp.AnnotationGeneratedByControllerVersion],
		mcp.AnnotationReleaseImageVersion:          cc.GetAnnotations()[mcp.AnnotationReleaseImageVersion],
	}
	config := map[string]any{"ignition": map[string]any{"version": "3.4.0"}}
	for _, part := range parts {
		p, _ := part.DeepCopy().Object["spec"].(map[string]any)
		if c, ok := p["config"].(map[string]any); ok {
			mergeIgnition(config, c)
		}
		for _, list := range []string{"kernelArguments", "extensions"} {
			if more, ok := p[list].([]any); ok && len(more) > 0 {
				old, _ := spec[list].([]any)
				spec[list] = append(old, more...)
			}
		}
		if on, _ := p["fips"].(bool); on {
			spec["fips"] = true
		}
		if kernel, _ := p["kernelType"].(string); kernel != "" {
			spec["kernelType"] = kernel
		}
		if url, _ := p["osImageURL"].(string); url != "" {
			spec["osImageURL"] = url
			annotations[mcp.AnnotationOSImageURLOverridden] = "true"
		}
	}
	spec["config"] = config
	u := object(kindMachineConfig, "", "rendered-"+pool.Name+"-"+contentHash(spec, annotations[mcp.AnnotationGeneratedByControllerVersion]), map[string]any{"spec": spec})
	u.SetAnnotations(annotations)
	yes := true
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: mcfgv1.SchemeGroupVersion.String(), Kind: "MachineConfigPool",
		Name: pool.Name, UID: pool.UID, Controller: &yes, BlockOwnerDeletion: &yes}})
	return u
}

// mergeIgnition lays one Ignition config over another: files by path, units
// and users by name, later ones win.
func mergeIgnition(into, from map[string]any) {
	for _, list := range []struct{ section, field, key string }{
		{"storage", "files", "path"}, {"systemd", "units", "name"}, {"passwd", "users", "name"},
	} {
		more, _, _ := unstructured.NestedSlice(from, list.section, list.field)
		if len(more) == 0 {
			continue
		}
		all, _, _ := unstructured.NestedSlice(into, list.section, list.field)
		for _, e := range more {
			i := slices.IndexFunc(all, func(old any) bool { return field(old, list.key) == field(e, list.key) })
			if i < 0 {
				all = append(all, e)
			} else {
				all[i] = e
			}
		}
		section, _ := into[list.section].(map[string]any)
		if section == nil {
			section = make(map[string]any)
			into[list.section] = section
		}
		section[list.field] = all
	}
}

func field(element any, key string) string {
	m, _ := element.(map[string]any)
	s, _ := m[key].(string)
	return s
}

// contentHash is the part of a rendered config's name that depends on its
// content.
func contentHash(spec map[string]any, version string) string {
	data, err := json.Marshal(spec) // sorts the keys
	if err != nil {
		data = fmt.Append(nil, spec) // a JSON tree always marshals
	}
	sum := md5.Sum(append([]byte("simulated machine config "+version+"\n"), data...))
	return hex.EncodeToString(sum[:])
}

// madeUpData stands for a certificate: its definition wants base64 that is not empty.
const madeUpData = "c2ltdWxhdGVk"

// controllerConfig is a ControllerConfig that describes r, as its definition accepts it.
func controllerConfig(r *release, topology string) *unstructured.Unstructured {
	part := func(kind string) map[string]any {
		return map[string]any{"apiVersion": configv1.GroupVersion.String(), "kind": kind,
			"metadata": map[string]any{"name": "cluster"}, "spec": map[string]any{}}
	}
	infra := part("Infrastructure")
	infra["status"] = map[string]any{"controlPlaneTopology": topology}
	u := object(kindControllerConfig, "", mcp.ControllerConfigName, map[string]any{"spec": map[string]any{
		"additionalTrustBundle":      nil,
		"baseOSContainerImage":       "",
		"cloudProviderCAData":        nil,
		"cloudProviderConfig":        "",
		"clusterDNSIP":               "172.30.0.10",
		"dns":                        part("DNS"),
		"images":                     map[string]any{},
		"infra":                      infra,
		"ipFamilies":                 "IPv4",
		"kubeAPIServerServingCAData": madeUpData,
		"network":                    nil,
		"proxy":                      nil,
		"rootCAData":                 madeUpData,
	}})
	describeRelease(u, r)
	return u
}

// describeRelease writes into a ControllerConfig what the renderer reads.
func describeRelease(u *unstructured.Unstructured, r *release) {
	a := u.GetAnnotations()
	if a == nil {
		a = make(map[string]string)
	}
	a[mcp.AnnotationGeneratedByControllerVersion] = r.Controller
	a[mcp.AnnotationReleaseImageVersion] = r.Version
	u.SetAnnotations(a)
	spec, _ := u.Object["spec"].(map[string]any)
	if spec == nil {
		spec = make(map[string]any)
		u.Object["spec"] = spec
	}
	spec["osImageURL"] = r.OSImage
	spec["releaseImage"] = r.Image
}

func describes(u *unstructured.Unstructured, r *release) bool {
	a := u.GetAnnotations()
	os, _, _ := unstructured.NestedString(u.Object, "spec", "osImageURL")
	image, _, _ := unstructured.NestedString(u.Object, "spec", "releaseImage")
	return a[mcp.AnnotationGeneratedByControllerVersion] == r.Controller &&
		a[mcp.AnnotationReleaseImageVersion] == r.Version && os == r.OSImage && image == r.Image
}
