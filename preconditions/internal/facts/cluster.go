package facts

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Docs is where OpenShift's documentation is, by minor version.
const Docs = "https://docs.redhat.com/en/documentation/openshift_container_platform/"

// ClusterVersionName is the name of the one ClusterVersion that counts.
const ClusterVersionName = "version"

// ClusterVersion returns nil if absent, or no such kind. The result must not be
// changed.
func ClusterVersion(ctx context.Context, r clusterapi.Reader) (*configv1.ClusterVersion, error) {
	return ReadOrNil[configv1.ClusterVersion](ctx, r, "", ClusterVersionName)
}

// IsTrue reports whether a condition, which may be nil, is True.
func IsTrue(c *configv1.ClusterOperatorStatusCondition) bool {
	return c != nil && c.Status == configv1.ConditionTrue
}

// IsFalse reports whether a condition, which may be nil, is False.
func IsFalse(c *configv1.ClusterOperatorStatusCondition) bool {
	return c != nil && c.Status == configv1.ConditionFalse
}

// Infrastructure returns nil if absent, or no such kind. The result must not be
// changed.
func Infrastructure(ctx context.Context, r clusterapi.Reader) (*configv1.Infrastructure, error) {
	return ReadOrNil[configv1.Infrastructure](ctx, r, "", "cluster")
}

// Platform returns the type of the cluster's platform; empty if it is not known.
func Platform(i *configv1.Infrastructure) configv1.PlatformType {
	if i == nil {
		return ""
	}
	if i.Status.PlatformStatus != nil && i.Status.PlatformStatus.Type != "" {
		return i.Status.PlatformStatus.Type
	}
	//lint:ignore SA1019 it is what old clusters have
	return i.Status.Platform
}

// PoolCondition returns the condition of a type, which is empty if absent.
func PoolCondition(p *mcfgv1.MachineConfigPool, t mcfgv1.MachineConfigPoolConditionType) mcfgv1.MachineConfigPoolCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == t {
			return c
		}
	}
	return mcfgv1.MachineConfigPoolCondition{}
}

// Where gates and acknowledgements are kept.
const (
	GatesNamespace, GatesName = "openshift-config-managed", "admin-gates"
	AcksNamespace, AcksName   = "openshift-config", "admin-acks"
)

// Gates reads the data of both ConfigMaps. Each must exist: without the gates it is
// not known whether there is something to acknowledge.
func Gates(ctx context.Context, r clusterapi.Reader) (gates, acks map[string]string, err error) {
	gates, err = configMapData(ctx, r, GatesNamespace, GatesName)
	if err != nil {
		return nil, nil, err
	}
	acks, err = configMapData(ctx, r, AcksNamespace, AcksName)
	if err != nil {
		return nil, nil, err
	}
	return gates, acks, nil
}

func configMapData(ctx context.Context, r clusterapi.Reader, namespace, name string) (map[string]string, error) {
	cm, err := clusterapi.Get[corev1.ConfigMap](ctx, r, clusterapi.Key(namespace, name))
	if apierrors.IsNotFound(err) {
		// Worded as the operator's cache words it; backends differ.
		return nil, fmt.Errorf("Failed to retrieve ConfigMap %s from namespace %s: %w", name, namespace,
			apierrors.NewNotFound(corev1.Resource("configmap"), name))
	}
	if err != nil {
		return nil, fmt.Errorf("Failed to retrieve ConfigMap %s from namespace %s: %w", name, namespace, err)
	}
	return cm.Data, nil
}
