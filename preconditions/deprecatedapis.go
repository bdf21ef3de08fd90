package preconditions

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

func deprecatedAPIsCheck() Check {
	return documented{Rule{
		Name: "DeprecatedAPIs", Scope: minorStep(), Severities: []Severity{Warning, Blocking},
		Source: "Preparing to update a cluster, Kubernetes API removals", Link: docsPreparing,
		Reads: []schema.GroupVersionKind{gvkOf[apiserverv1.APIRequestCount](), gvkOf[corev1.ConfigMap](), gvkOf[configv1.ClusterVersion]()},
		Needs: []string{"TargetPayload", "CurrentPayload"},
	}, deprecatedAPIs}
}

// deprecatedAPIs: nobody uses an API that the target removes. Which release removes
// it is told as a version of Kubernetes.
func deprecatedAPIs(ctx context.Context, in *Input) ([]Finding, error) {
	current, err := in.currentVersion(ctx)
	if err != nil {
		return nil, err
	}
	from, ok := in.kubernetesMinor(current, in.CurrentPayload)
	to, ok2 := in.kubernetesMinor(in.Target, in.TargetPayload)
	if !ok || !ok2 {
		return nil, fmt.Errorf("it is not known which versions of Kubernetes OpenShift %s and %s have", current, in.targetVersion())
	}
	counts, err := list[apiserverv1.APIRequestCount](ctx, in, clusterapi.ListOptions{})
	errs := []error{optionalAPI(err, "APIRequestCounts")}
	var used []Object
	for _, c := range counts {
		if c.Status.RemovedInRelease == "" || c.Status.RequestCount <= 0 {
			continue
		}
		removed, err := removedMinor(c.Status.RemovedInRelease)
		if err != nil {
			errs = append(errs, fmt.Errorf("APIRequestCount %s: status.removedInRelease: %w", c.Name, err))
			continue
		}
		if removed <= from || removed > to {
			continue
		}
		users, known := usersOf(c)
		if known && len(users) == 0 {
			continue // those that walk all APIs
		}
		note := fmt.Sprintf("removed in Kubernetes %s, %d requests", c.Status.RemovedInRelease, c.Status.RequestCount)
		if known {
			note += " by " + strings.Join(users, ", ")
		}
		used = append(used, Object{GVK: gvkOf[apiserverv1.APIRequestCount](), Name: c.Name, FieldPath: "status.requestCount", Value: strconv.FormatInt(c.Status.RequestCount, 10), Note: note})
	}
	if len(used) == 0 {
		return nil, joinErrors(errs...)
	}
	sortObjects(used)
	severity := Warning
	open, err := removalGateOpen(ctx, in, fmt.Sprintf("%d.%d", current.Major(), current.Minor()))
	if open {
		severity = Blocking
	}
	f := newFinding(severity, "RemovedAPIsInUse", "APIs that the target does not have any more are in use", used,
		"Move these clients to newer versions of the APIs, then acknowledge the removal")
	return []Finding{f}, joinErrors(append(errs, err)...)
}

// removedMinor parses a version of Kubernetes 1, such as 1.32.
func removedMinor(text string) (uint64, error) {
	minor, ok := strings.CutPrefix(text, "1.")
	n, err := strconv.ParseUint(minor, 10, 32)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q is not a version of Kubernetes such as 1.32", text)
	}
	return n, nil
}

// usersOf returns who made requests in the last day, each with the program that
// made them, sorted; without those that walk all APIs. Nothing is known where no
// users are recorded.
func usersOf(c *apiserverv1.APIRequestCount) (users []string, known bool) {
	walkers := []string{
		"system:kube-controller-manager", "system:cluster-policy-controller",
		"system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccount:kube-system:namespace-controller",
	}
	seen := map[string]bool{}
	for _, hour := range c.Status.Last24h {
		for _, node := range hour.ByNode {
			for _, u := range node.ByUser {
				known = true
				if slices.Contains(walkers, u.UserName) {
					continue
				}
				text := u.UserName
				if u.UserAgent != "" {
					text += " (" + u.UserAgent + ")"
				}
				seen[text] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen)), known
}

// removalGateOpen reports whether an administrator has yet to acknowledge that APIs
// are removed.
func removalGateOpen(ctx context.Context, in *Input, minor string) (bool, error) {
	gates, acks, err := readGates(ctx, in.Reader)
	if err != nil {
		return false, optionalAPI(err, "ConfigMaps")
	}
	return slices.ContainsFunc(OpenGates(gates, acks, minor), func(g Gate) bool { return strings.Contains(g.Key, "api-removals") }), nil
}
