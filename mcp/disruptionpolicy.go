package mcp

import (
	"errors"
	"fmt"
	"slices"

	opv1 "github.com/openshift/api/operator/v1"
)

// NodeDisruptionPolicies returns the policies of a cluster whose
// MachineConfiguration has spec.nodeDisruptionPolicy user: the defaults, with the
// user's instead of those for equal paths and units, and beside them. newer adds
// those that releases after 4.18 have. A cluster says itself what its policies are,
// in status.nodeDisruptionPolicyStatus.clusterPolicies; ask it first.
func NodeDisruptionPolicies(user opv1.NodeDisruptionPolicyConfig, newer bool) opv1.NodeDisruptionPolicyClusterStatus {
	p := defaultPolicies(newer)
	for _, f := range user.Files {
		policy := opv1.NodeDisruptionPolicyStatusFile{Path: f.Path, Actions: statusActions(f.Actions)}
		if at := slices.IndexFunc(p.Files, func(o opv1.NodeDisruptionPolicyStatusFile) bool { return o.Path == f.Path }); at >= 0 {
			p.Files[at] = policy
		} else {
			p.Files = append(p.Files, policy)
		}
	}
	for _, u := range user.Units {
		policy := opv1.NodeDisruptionPolicyStatusUnit{Name: u.Name, Actions: statusActions(u.Actions)}
		if at := slices.IndexFunc(p.Units, func(o opv1.NodeDisruptionPolicyStatusUnit) bool { return o.Name == u.Name }); at >= 0 {
			p.Units[at] = policy
		} else {
			p.Units = append(p.Units, policy)
		}
	}
	if len(user.SSHKey.Actions) > 0 {
		p.SSHKey.Actions = statusActions(user.SSHKey.Actions)
	}
	return p
}

// ErrPoliciesNotReady: a cluster has not said yet what its policies are.
var ErrPoliciesNotReady = errors.New("NodeDisruptionPolicyStatus was not ready")

// PoliciesOf returns the policies that a cluster says it has: those in the status of
// MachineConfiguration cluster. Where that is older than its spec, or there is none, the
// error is [ErrPoliciesNotReady]; a daemon waits for two minutes then, and is Degraded
// after that.
func PoliciesOf(m *opv1.MachineConfiguration) (opv1.NodeDisruptionPolicyClusterStatus, error) {
	switch {
	case m == nil:
		return opv1.NodeDisruptionPolicyClusterStatus{}, fmt.Errorf("%w: there is no MachineConfiguration", ErrPoliciesNotReady)
	case m.Status.ObservedGeneration != m.Generation:
		return opv1.NodeDisruptionPolicyClusterStatus{}, fmt.Errorf("%w: its status is of generation %d, its spec of %d", ErrPoliciesNotReady, m.Status.ObservedGeneration, m.Generation)
	}
	return m.Status.NodeDisruptionPolicyStatus.ClusterPolicies, nil
}

func statusActions(spec []opv1.NodeDisruptionPolicySpecAction) []opv1.NodeDisruptionPolicyStatusAction {
	out := make([]opv1.NodeDisruptionPolicyStatusAction, len(spec))
	for i, a := range spec {
		out[i] = opv1.NodeDisruptionPolicyStatusAction{
			Type: opv1.NodeDisruptionPolicyStatusActionType(a.Type), Reload: a.Reload.DeepCopy(), Restart: a.Restart.DeepCopy(),
		}
	}
	return out
}

func defaultPolicies(newer bool) opv1.NodeDisruptionPolicyClusterStatus {
	type actions = []opv1.NodeDisruptionPolicyStatusAction
	plain := func(t opv1.NodeDisruptionPolicyStatusActionType) opv1.NodeDisruptionPolicyStatusAction {
		return opv1.NodeDisruptionPolicyStatusAction{Type: t}
	}
	restart := func(service opv1.NodeDisruptionPolicyServiceName) opv1.NodeDisruptionPolicyStatusAction {
		return opv1.NodeDisruptionPolicyStatusAction{Type: opv1.RestartStatusAction, Restart: &opv1.RestartService{ServiceName: service}}
	}
	reload := func() opv1.NodeDisruptionPolicyStatusAction {
		return opv1.NodeDisruptionPolicyStatusAction{Type: opv1.ReloadStatusAction, Reload: &opv1.ReloadService{ServiceName: "crio.service"}}
	}
	var p opv1.NodeDisruptionPolicyClusterStatus
	add := func(path string, a ...opv1.NodeDisruptionPolicyStatusAction) {
		p.Files = append(p.Files, opv1.NodeDisruptionPolicyStatusFile{Path: path, Actions: a})
	}
	const none, daemonReload = opv1.NoneStatusAction, opv1.DaemonReloadStatusAction
	add("/var/lib/kubelet/config.json", plain(none))
	add("/etc/machine-config-daemon/no-reboot/containers-gpg.pub", reload())
	add("/etc/containers/policy.json", reload())
	add(registriesPath, plain(opv1.SpecialStatusAction))
	add("/etc/containers/registries.d", reload())
	add("/etc/crio/policies", reload())
	add("/etc/nmstate/openshift", plain(none))
	add("/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt", restart("coreos-update-ca-trust.service"), restart("crio.service"))
	p.SSHKey.Actions = actions{plain(none)}
	if !newer {
		return p
	}
	add("/etc/kubernetes/credential-providers", restart("kubelet.service"))
	add("/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf", plain(daemonReload), restart("kubelet.service"))
	add("/etc/iri-registry", restart("iri-registry.service"))
	add("/usr/local/bin/load-registry-image.sh", restart("iri-registry.service"))
	add("/etc/pki/ca-trust/source/anchors/iri-root-ca.crt", restart("coreos-update-ca-trust.service"))
	p.Units = []opv1.NodeDisruptionPolicyStatusUnit{{Name: "iri-registry.service", Actions: actions{plain(daemonReload), restart("iri-registry.service")}}}
	return p
}
