package simulation

import (
	"context"
	"encoding/json"
	"fmt"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// pool is a machine config pool with the questions that matter here. It is
// shared and must not be changed.
type pool mcfgv1.MachineConfigPool

// pools returns all pools by name; none where the kind is not served yet.
func (p *process) pools(ctx context.Context) ([]*pool, error) {
	all, err := clusterapi.ReadAll[mcfgv1.MachineConfigPool](ctx, p.api, clusterapi.ListOptions{})
	if err != nil {
		if meta.IsNoMatchError(err) {
			return nil, nil
		}
		return nil, err
	}
	out := make([]*pool, len(all))
	for i := range all {
		out[i] = (*pool)(all[i])
	}
	return out, nil
}

func (p *pool) condition(t mcfgv1.MachineConfigPoolConditionType) *mcfgv1.MachineConfigPoolCondition {
	return find(p.Status.Conditions, func(c *mcfgv1.MachineConfigPoolCondition) bool { return c.Type == t })
}

func (p *pool) is(t mcfgv1.MachineConfigPoolConditionType) bool {
	c := p.condition(t)
	return c != nil && c.Status == corev1.ConditionTrue
}

// required reports whether an update of the cluster waits for the pool.
func (p *pool) required() bool {
	_, ok := p.Labels[mcp.LabelRequiredForUpgrade]
	return ok
}

// requiredPools returns what keeps the machine-config operator from reporting
// release r: the first degraded pool, or the first required one that is not done.
// fatal reports that waiting does not help. The texts are the machine-config
// operator's.
func requiredPools(pools []*pool, configs map[string]*unstructured.Unstructured, r *release) (problem string, fatal bool) {
	for _, p := range pools {
		s := &p.Status
		if p.is(mcfgv1.MachineConfigPoolDegraded) {
			reason := ""
			for _, t := range []mcfgv1.MachineConfigPoolConditionType{mcfgv1.MachineConfigPoolRenderDegraded, mcfgv1.MachineConfigPoolNodeDegraded} {
				if p.is(t) && reason == "" {
					reason = p.condition(t).Message
				}
			}
			return fmt.Sprintf("MachineConfigPool %s is not ready, retrying. Status: (pool degraded: %v total: %d, ready %d, updated: %d, unavailable: %d, reason: %s)",
				p.Name, true, s.MachineCount, s.ReadyMachineCount, s.UpdatedMachineCount, s.UnavailableMachineCount, reason), false
		}
	}
	for _, p := range pools {
		s := &p.Status
		if !p.required() {
			continue
		}
		if mismatch := configMismatch(s.Configuration.Name, configs, r); mismatch != "" {
			return fmt.Sprintf("MachineConfigPool %s has not progressed to latest configuration: %s, retrying", p.Name, mismatch), false
		}
		if p.Generation <= s.ObservedGeneration && p.is(mcfgv1.MachineConfigPoolUpdated) {
			continue
		}
		if p.Spec.Paused {
			return fmt.Sprintf("required MachineConfigPool %s is paused and cannot sync until it is unpaused", p.Name), true
		}
		return fmt.Sprintf("required MachineConfigPool %s is not ready, retrying. Status: (total: %d, ready %d, updated: %d, unavailable: %d, degraded: %d)",
			p.Name, s.MachineCount, s.ReadyMachineCount, s.UpdatedMachineCount, s.UnavailableMachineCount, s.DegradedMachineCount), false
	}
	return "", false
}

// configMismatch explains why a rendered config is not one of release r.
func configMismatch(name string, configs map[string]*unstructured.Unstructured, r *release) string {
	u := configs[name]
	if u == nil {
		return fmt.Sprintf("machineconfig.machineconfiguration.openshift.io %q not found", name)
	}
	a := u.GetAnnotations()
	if has, want := a[mcp.AnnotationGeneratedByControllerVersion], r.Controller; has != want {
		return fmt.Sprintf("controller version mismatch for %s expected %s has %s", name, want, has)
	}
	if a[mcp.AnnotationOSImageURLOverridden] != "true" {
		if has, _, _ := unstructured.NestedString(u.Object, "spec", "osImageURL"); has != r.OSImage {
			return fmt.Sprintf("osImageURL mismatch for %s in %s expected: %s got: %s", mcp.OperatorNamespace, name, r.OSImage, has)
		}
	}
	if has := a[mcp.AnnotationReleaseImageVersion]; has != r.Version {
		return fmt.Sprintf("release image version mismatch for %s in %s expected: %s got: %s", mcp.OperatorNamespace, name, r.Version, has)
	}
	return ""
}

// poolsExtension is status.extension of the machine-config operator: a text
// for each pool, and what its last sync failed on.
func poolsExtension(pools []*pool, lastError string) []byte {
	texts := make(map[string]string, len(pools)+1)
	for _, p := range pools {
		texts[p.Name] = p.text()
	}
	if lastError != "" {
		texts["lastSyncError"] = lastError
	}
	data, err := json.Marshal(texts) // sorts the keys
	if err != nil {
		return nil // a map of strings always marshals
	}
	return data
}

func (p *pool) text() string {
	s := &p.Status
	reasoned := func(format string, t mcfgv1.MachineConfigPoolConditionType) string {
		c := p.condition(t)
		return fmt.Sprintf(format, c.Reason, c.Message)
	}
	switch {
	case p.is(mcfgv1.MachineConfigPoolRenderDegraded):
		return reasoned("pool is degraded because rendering fails with %q: %q", mcfgv1.MachineConfigPoolRenderDegraded)
	case p.is(mcfgv1.MachineConfigPoolNodeDegraded):
		return reasoned("pool is degraded because nodes fail with %q: %q", mcfgv1.MachineConfigPoolNodeDegraded)
	case p.is(mcfgv1.MachineConfigPoolUpdated):
		return fmt.Sprintf("all %d nodes are at latest configuration %s", s.MachineCount, s.Configuration.Name)
	case p.is(mcfgv1.MachineConfigPoolUpdating):
		return fmt.Sprintf("%d (ready %d) out of %d nodes are updating to latest configuration %s",
			s.UpdatedMachineCount, s.ReadyMachineCount, s.MachineCount, p.Spec.Configuration.Name)
	case p.is(mcfgv1.MachineConfigPoolPinnedImageSetsDegraded):
		return reasoned("pool is degraded because pinned image sets failed with %q: %q", mcfgv1.MachineConfigPoolPinnedImageSetsDegraded)
	}
	return "<unknown>"
}
