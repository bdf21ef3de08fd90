package preconditions

import (
	"context"
	"fmt"
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// osImageStreamKinds are the versions of the kind, the newest first.
func osImageStreamKinds() []schema.GroupVersionKind {
	kind := schema.GroupVersionKind{Group: mcfgv1.GroupName, Kind: "OSImageStream"}
	return []schema.GroupVersionKind{kind.GroupKind().WithVersion("v1"), kind.GroupKind().WithVersion("v1alpha1")}
}

const (
	runtimeRunc     = "runc"
	rhel10Stream    = "rhel-10" // what the names of streams of RHCOS 10 begin with
	runtimeOverride = "-generated-crio-default-container-runtime"
)

// runc finds what makes nodes run containers with runc. RHCOS 10 does not have it: the
// machine-config operator renders no configuration for a pool that is to have both, which
// is degraded then. Files of CRI-O in machine configs that an administrator wrote are not
// read.
func runc(ctx context.Context, in *Input) ([]Finding, error) {
	pools, err := listPools(ctx, in)
	if err != nil && len(pools) == 0 {
		return nil, err
	}
	configs, configsErr := list[mcfgv1.ContainerRuntimeConfig](ctx, in, clusterapi.ListOptions{})
	err = joinErrors(err, unlessMissing(configsErr))
	configured := map[string]bool{} // configs with runc; false: told by the finding about their pools
	for _, c := range configs {
		if runtimeOf(c) == runtimeRunc {
			configured[c.Name] = true
		}
	}
	var blocking, others []Object
	for _, p := range pools {
		config, uses := runcOf(p, pools, configs)
		if !uses {
			continue
		}
		by := "ContainerRuntimeConfig " + config
		if config == "" {
			by = "MachineConfig " + overrideOf(p)
		}
		stream, streamErr := osImageStream(ctx, in, p)
		err = joinErrors(err, streamErr)
		switch {
		case strings.HasPrefix(stream, rhel10Stream):
			configured[config] = false
			blocking = append(blocking, poolObject(p.Name, "spec.osImageStream.name", stream, "OS image stream "+stream+", runc by "+by))
		case config == "":
			others = append(others, poolObject(p.Name, "spec.configuration.source", overrideOf(p), by))
		}
	}
	for _, c := range configs {
		if configured[c.Name] {
			others = append(others, object[mcfgv1.ContainerRuntimeConfig]("", c.Name, "spec.containerRuntimeConfig.defaultRuntime", runtimeRunc, "ContainerRuntimeConfig"))
		}
	}
	var found findings
	const remedy = "Migrate to crun: delete the MachineConfigs 00-override-NAME" + runtimeOverride + ", and set defaultRuntime: crun in ContainerRuntimeConfigs"
	found.add(Blocking, "RuncNotAvailable", "Pools are to have RHCOS 10, which does not have the container runtime runc that they use", blocking, remedy)
	found.add(Warning, "RuncDeprecated", "The container runtime runc is deprecated, and RHCOS 10 does not have it", others, remedy)
	return found, err
}

func runtimeOf(c *mcfgv1.ContainerRuntimeConfig) string {
	if c.Spec.ContainerRuntimeConfig == nil {
		return ""
	}
	return string(c.Spec.ContainerRuntimeConfig.DefaultRuntime)
}

// runcOf reports whether the nodes of a pool use runc, and by which ContainerRuntimeConfig:
// the newest that sets a runtime for the pool or, as custom pools get what workers get, for
// the pool worker. Without one it is what the update to 4.18 kept.
func runcOf(p *mcfgv1.MachineConfigPool, pools []*mcfgv1.MachineConfigPool, configs []*mcfgv1.ContainerRuntimeConfig) (config string, uses bool) {
	of := []*mcfgv1.MachineConfigPool{p}
	if p.Name != controlPlanePool {
		for _, other := range pools {
			if other.Name == mcp.PoolWorker {
				of = append(of, other)
			}
		}
	}
	var newest *mcfgv1.ContainerRuntimeConfig
	for _, c := range configs {
		if runtimeOf(c) == "" || !slices.ContainsFunc(of, func(p *mcfgv1.MachineConfigPool) bool { return selectsPool(c, p) }) {
			continue
		}
		if newest == nil || newest.CreationTimestamp.Before(&c.CreationTimestamp) {
			newest = c
		}
	}
	switch {
	case newest == nil:
		return "", overrideOf(p) != ""
	case runtimeOf(newest) == runtimeRunc:
		return newest.Name, true
	}
	return "", false
}

// selectsPool reports whether a config is for a pool. One without a selector, or with one
// that is not valid, is for none.
func selectsPool(c *mcfgv1.ContainerRuntimeConfig, p *mcfgv1.MachineConfigPool) bool {
	selector, err := metav1.LabelSelectorAsSelector(c.Spec.MachineConfigPoolSelector)
	return err == nil && selector.Matches(labels.Set(p.Labels))
}

// overrideOf is the name of the MachineConfig by which the update to 4.18 kept runc for the
// nodes of a pool; empty if there is none.
func overrideOf(p *mcfgv1.MachineConfigPool) string {
	for _, source := range p.Spec.Configuration.Source {
		if strings.HasSuffix(source.Name, runtimeOverride) {
			return source.Name
		}
	}
	return ""
}

// osImageStream is the stream that the nodes of a pool are to have: the pool's own, else
// that of the cluster, which by default is the one of the release that installed it. Empty:
// there is none, or it is not known.
func osImageStream(ctx context.Context, in *Input, p *mcfgv1.MachineConfigPool) (string, error) {
	if p.Spec.OSImageStream.Name != "" {
		return p.Spec.OSImageStream.Name, nil
	}
	for _, gvk := range osImageStreamKinds() {
		o, err := clusterapi.GetShared(ctx, in.Reader, gvk, clusterapi.Key("", "cluster"))
		if isMissing(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		stream, _, err := unstructured.NestedString(o.Unstructured().Object, "status", "defaultStream")
		if err != nil {
			return "", fmt.Errorf("OSImageStream cluster: %w", err)
		}
		return stream, nil
	}
	cv, err := getClusterVersion(ctx, in.Reader)
	if err != nil || cv == nil || len(cv.Status.History) == 0 {
		return "", err
	}
	installed := versionOrNil(cv.Status.History[len(cv.Status.History)-1].Version)
	if installed != nil && installed.Major() >= 5 {
		return rhel10Stream, nil
	}
	return "", nil
}
