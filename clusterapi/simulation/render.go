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

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// renderReaction keeps each pool's rendered config in step with the release
// that ControllerConfig describes and with the MachineConfigs that the pool
// selects.
func (c *Cluster) renderReaction() reaction {
	return reaction{
		name:  loopRender,
		kinds: only(kindMachineConfig, kindMachineConfigPool, kindControllerConfig),
		delay: c.timing.Render,
		keys: func(u *unstructured.Unstructured) []string {
			switch u.GroupVersionKind() {
			case kindMachineConfigPool:
				return []string{u.GetName()}
			case kindMachineConfig:
				if isRendered(u) {
					return nil
				}
			}
			return []string{everyPool}
		},
		react: func(ctx context.Context, name string) (time.Duration, error) {
			if name != everyPool {
				return 0, c.renderPool(ctx, name)
			}
			pools, err := c.pools(ctx)
			if err != nil {
				return 0, err
			}
			for i := range pools {
				if err := c.renderPool(ctx, pools[i].Name); err != nil {
					return 0, err
				}
			}
			return 0, nil
		},
	}
}

// everyPool is no valid name of a pool.
const everyPool = "*"

func isRendered(u *unstructured.Unstructured) bool {
	return strings.HasPrefix(u.GetName(), "rendered-")
}

func (c *Cluster) renderPool(ctx context.Context, name string) error {
	cc, err := c.Get(ctx, kindControllerConfig, clusterapi.Key("", mcp.ControllerConfigName))
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil // the operator has not described its release yet
	}
	if err != nil {
		return err
	}
	pool, err := clusterapi.Get[mcfgv1.MachineConfigPool](ctx, c, clusterapi.Key("", name))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	parts, problem, err := c.poolConfigs(ctx, pool)
	if err != nil {
		return err
	}
	if problem != "" {
		return c.renderDegraded(ctx, name, "Failed to render configuration for pool "+name+": "+problem)
	}
	rendered := render(cc, pool, parts)
	if _, err := c.Create(ctx, rendered, create); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = clusterapi.Modify(ctx, c, clusterapi.Key("", name), modify, func(p *mcfgv1.MachineConfigPool) error {
		if p.Spec.Configuration.Name != rendered.GetName() {
			p.Spec.Configuration = poolConfiguration(rendered.GetName(), parts)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.renderDegraded(ctx, name, "")
}

// poolConfigs returns the MachineConfigs that a pool selects, by name; problem
// says why it cannot be rendered.
func (c *Cluster) poolConfigs(ctx context.Context, p *mcfgv1.MachineConfigPool) (parts []*unstructured.Unstructured, problem string, err error) {
	selector, err := metav1.LabelSelectorAsSelector(p.Spec.MachineConfigSelector)
	if err != nil {
		return nil, err.Error(), nil
	}
	list, err := c.List(ctx, kindMachineConfig, clusterapi.ListOptions{Labels: selector})
	if err != nil {
		return nil, "", err
	}
	for i := range list.Items {
		if !isRendered(&list.Items[i]) {
			parts = append(parts, &list.Items[i])
		}
	}
	if len(parts) == 0 {
		return nil, fmt.Sprintf("no MachineConfigs found matching selector %v", selector), nil
	}
	return parts, "", nil
}

// renderDegraded sets the condition RenderDegraded, True with a problem, and
// leaves it as it is where nothing changes.
func (c *Cluster) renderDegraded(ctx context.Context, name, problem string) error {
	now := metav1.NewTime(c.clock.Now())
	_, err := clusterapi.Modify(ctx, c, clusterapi.Key("", name), modifyStatus, func(p *mcfgv1.MachineConfigPool) error {
		want := mcfgv1.MachineConfigPoolCondition{Type: mcfgv1.MachineConfigPoolRenderDegraded,
			Status: corev1.ConditionFalse, Message: problem, LastTransitionTime: now}
		if problem != "" {
			want.Status = corev1.ConditionTrue
		}
		for i := range p.Status.Conditions {
			old := &p.Status.Conditions[i]
			if old.Type != want.Type {
				continue
			}
			if old.Status == want.Status {
				want.LastTransitionTime = old.LastTransitionTime
			}
			*old = want
			return nil
		}
		p.Status.Conditions = append(p.Status.Conditions, want)
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
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
		p, _, _ := unstructured.NestedMap(part.Object, "spec")
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

// controllerVersion is the commit of the machine-config operator in a release.
func controllerVersion(r *release) string { return digest("machine-config-operator " + r.Version)[:40] }

// controllerConfig is the ControllerConfig that describes r.
func controllerConfig(r *release) *unstructured.Unstructured {
	u := object(kindControllerConfig, "", mcp.ControllerConfigName, map[string]any{"spec": map[string]any{
		"clusterDNSIP":        "172.30.0.10",
		"cloudProviderConfig": "",
		"ipFamilies":          "IPv4",
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
	a[mcp.AnnotationGeneratedByControllerVersion] = controllerVersion(r)
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
	return a[mcp.AnnotationGeneratedByControllerVersion] == controllerVersion(r) &&
		a[mcp.AnnotationReleaseImageVersion] == r.Version && os == r.OSImage && image == r.Image
}
