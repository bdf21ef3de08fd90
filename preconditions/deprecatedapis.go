package preconditions

import (
	"cmp"
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

// deprecatedAPIs finds APIs in use that the target removes. Which release removes one is
// recorded as a version of Kubernetes.
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
	all := map[string]bool{}
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
		clients, known := clientsOf(c)
		if known && len(clients) == 0 {
			continue // those that walk all APIs
		}
		note := fmt.Sprintf("removed in Kubernetes %s, %d requests", c.Status.RemovedInRelease, c.Status.RequestCount)
		for i, client := range clients {
			note += [...]string{" by ", ", "}[min(i, 1)] + client.text()
			all[client.String()] = true
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
	remedy := "Find who uses them with: oc get apirequestcounts NAME -o yaml. Move these clients to newer versions of the APIs, then acknowledge the removal"
	if len(all) > 0 {
		remedy = "Move these clients to newer versions of the APIs: " + strings.Join(slices.Sorted(maps.Keys(all)), ", ") + ". Then acknowledge the removal"
	}
	f := newFinding(severity, "RemovedAPIsInUse", "APIs that the target does not have any more are in use", used, remedy)
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

// apiClient is a user with one of the programs that it makes requests with.
type apiClient struct{ user, agent string }

func (c apiClient) String() string {
	if c.agent == "" {
		return c.user
	}
	return c.user + " (" + c.agent + ")"
}

// apiUse is a client of an API and how many requests it made, by verb.
type apiUse struct {
	apiClient
	verbs map[string]int64
}

// text names the client and what it asks for.
func (u apiUse) text() string {
	var verbs []string
	for _, verb := range slices.Sorted(maps.Keys(u.verbs)) {
		verbs = append(verbs, fmt.Sprintf("%s %d", verb, u.verbs[verb]))
	}
	asks := strings.Join(verbs, ", ")
	switch {
	case asks == "":
		return u.String()
	case u.agent == "":
		return u.user + " (" + asks + ")"
	}
	return u.user + " (" + u.agent + "; " + asks + ")"
}

// clientsOf returns who made requests in the last day, sorted, without those that walk
// all APIs. It is not known if the records name nobody who made any.
func clientsOf(c *apiserverv1.APIRequestCount) (clients []apiUse, known bool) {
	uses := map[apiClient]apiUse{}
	known = collectUses(uses, c.Status.Last24h...)
	// The current hour is one of the 24, too: what is there counts once.
	current := map[apiClient]apiUse{}
	known = collectUses(current, c.Status.CurrentHour) || known
	for client, use := range current {
		of, ok := uses[client]
		if !ok {
			uses[client] = use
			continue
		}
		for verb, n := range use.verbs {
			of.verbs[verb] = max(of.verbs[verb], n)
		}
	}
	clients = slices.SortedFunc(maps.Values(uses), func(a, b apiUse) int {
		return cmp.Or(strings.Compare(a.user, b.user), strings.Compare(a.agent, b.agent))
	})
	return clients, known
}

// collectUses adds the clients that made requests, without those that walk all APIs. It
// reports whether there are any, these included.
func collectUses(uses map[apiClient]apiUse, hours ...apiserverv1.PerResourceAPIRequestLog) (any bool) {
	walkers := []string{
		"system:kube-controller-manager", "system:cluster-policy-controller",
		"system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccount:kube-system:namespace-controller",
	}
	for _, hour := range hours {
		for _, node := range hour.ByNode {
			for _, u := range node.ByUser {
				if u.RequestCount <= 0 {
					continue
				}
				any = true
				if slices.Contains(walkers, u.UserName) {
					continue
				}
				client := apiClient{u.UserName, u.UserAgent}
				use, ok := uses[client]
				if !ok {
					use = apiUse{client, map[string]int64{}}
					uses[client] = use
				}
				for _, v := range u.ByVerb {
					if v.RequestCount > 0 {
						use.verbs[v.Verb] += v.RequestCount
					}
				}
			}
		}
	}
	return any
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
