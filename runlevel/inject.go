package runlevel

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/redact"
)

const (
	annotationInjectProxy = "config.openshift.io/inject-proxy"
	annotationInjectTLS   = "config.openshift.io/inject-tls"
)

// inject returns an object with what the cluster's configuration says, where
// its manifest asks for it.
func (a *applier) inject(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	annotations := obj.GetAnnotations()
	switch gvk := obj.GroupVersionKind(); gvk {
	case deploymentKind, daemonSetKind:
		names, proxy := annotations[annotationInjectProxy]
		operator := gvk == deploymentKind && obj.GetNamespace() == "openshift-cluster-version" && obj.GetName() == "cluster-version-operator"
		if proxy || operator {
			obj = obj.DeepCopy()
		}
		if proxy {
			if err := a.injectProxy(ctx, obj, strings.Split(names, ",")); err != nil {
				return nil, err
			}
		}
		if operator {
			if err := a.injectInternalLoadBalancer(ctx, obj); err != nil {
				return nil, err
			}
		}
	case configMapKind:
		if annotations[annotationInjectTLS] == "true" {
			obj = obj.DeepCopy()
			if err := a.injectTLS(ctx, obj); err != nil {
				return nil, err
			}
		}
	}
	return obj, nil
}

// envVar is a variable to set in a container.
type envVar struct{ name, value string }

// injectProxy sets the cluster's proxy in the environment of the named
// containers, if it has one.
func (a *applier) injectProxy(ctx context.Context, obj *unstructured.Unstructured, names []string) error {
	proxy, err := configuration[configv1.Proxy](ctx, a)
	if clusterapi.IsMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	s := proxy.Status
	if s.HTTPProxy == "" && s.HTTPSProxy == "" && s.NoProxy == "" {
		return nil
	}
	vars := []envVar{{"HTTP_PROXY", s.HTTPProxy}, {"HTTPS_PROXY", s.HTTPSProxy}, {"NO_PROXY", s.NoProxy}}
	for _, name := range names {
		found, err := setEnv(obj, name, vars)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("requested injection for non-existent container: %q", name)
		}
	}
	return nil
}

// injectInternalLoadBalancer makes the version operator reach the API server
// by the internal load balancer: the cluster's network may not be up yet.
func (a *applier) injectInternalLoadBalancer(ctx context.Context, obj *unstructured.Unstructured) error {
	infra, err := configuration[configv1.Infrastructure](ctx, a)
	if clusterapi.IsMissing(err) {
		return nil
	}
	if err != nil || infra.Status.APIServerInternalURL == "" {
		return err
	}
	u, err := url.Parse(infra.Status.APIServerInternalURL)
	if err != nil {
		return fmt.Errorf("Infrastructure cluster: status.apiServerInternalURI: %w", redact.Error(err))
	}
	_, err = setEnv(obj, "cluster-version-operator", []envVar{
		{"KUBERNETES_SERVICE_HOST", u.Hostname()}, {"KUBERNETES_SERVICE_PORT", cmp.Or(u.Port(), "443")},
	})
	return err
}

// setEnv sets variables in the containers and init containers of that name. A
// variable that is there already is replaced: a list with two of the same name
// cannot be applied. found reports whether there was such a container.
func setEnv(obj *unstructured.Unstructured, container string, vars []envVar) (found bool, err error) {
	for _, field := range []string{"initContainers", "containers"} {
		path := []string{"spec", "template", "spec", field}
		list, ok, err := unstructured.NestedFieldNoCopy(obj.Object, path...)
		if err != nil {
			return false, err
		}
		if !ok || list == nil {
			continue
		}
		containers, ok := list.([]any)
		if !ok {
			return false, fmt.Errorf("%s is not a list", strings.Join(path, "."))
		}
		for i := range containers {
			c, ok := containers[i].(map[string]any)
			if !ok || c["name"] != container {
				continue
			}
			found = true
			env, ok := c["env"].([]any)
			if !ok && c["env"] != nil {
				return false, fmt.Errorf("%s[%d].env is not a list", strings.Join(path, "."), i)
			}
			for _, v := range vars {
				env = slices.DeleteFunc(env, func(e any) bool {
					m, ok := e.(map[string]any)
					return ok && m["name"] == v.name
				})
				entry := map[string]any{"name": v.name}
				if v.value != "" {
					entry["value"] = v.value // an empty one is never stored
				}
				env = append(env, entry)
			}
			c["env"] = env
		}
	}
	return found, nil
}
