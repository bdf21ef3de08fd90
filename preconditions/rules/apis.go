package rules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

// adminAcks: gates of the current minor version are acknowledged.
func adminAcks(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	current, err := currentVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	gates, acks, err := facts.Gates(ctx, in.Reader)
	if err != nil {
		return nil, optionalAPI(err, "ConfigMaps")
	}
	var found findings
	for _, g := range preconditions.OpenGates(preconditions.Gates(gates), acks, openshift.MinorOf(current).String()) {
		text, remedy := g.Text, "Then acknowledge with: "+g.Acknowledge()
		if g.Problem != "" {
			text, remedy = g.Problem, "Correct or remove the entry; it cannot be acknowledged"
		}
		found.addAt(preconditions.Blocking, "AdminAckRequired", fmt.Sprintf("Gate %s is open: %s", g.Key, text), remedy,
			object[corev1.ConfigMap](facts.GatesNamespace, facts.GatesName, "data."+g.Key, g.Text, g.URL))
	}
	return found, nil
}

// deprecatedAPIs finds APIs in use that the target removes. Which release removes one is
// recorded as a version of Kubernetes.
func deprecatedAPIs(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	current, err := currentVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	to, ok := kubernetesMinor(in, in.Target, in.TargetPayload)
	switch {
	case !ok && in.Target == nil:
		return nil, errors.New("the version of the target is not known, and so which version of Kubernetes it has")
	case !ok:
		return nil, fmt.Errorf("it is not known which version of Kubernetes OpenShift %s has", in.Target)
	}
	counts, err := facts.List[apiserverv1.APIRequestCount](ctx, in.Reader, clusterapi.ListOptions{})
	errs := []error{optionalAPI(err, "APIRequestCounts")}
	if len(counts) == 0 {
		return nil, errs[0]
	}
	from, err := currentAPIServer(ctx, in, current)
	if err != nil {
		return nil, errors.Join(errs[0], err)
	}
	var used []preconditions.Object
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
		uses, known := usesOf(c)
		if known && len(uses) == 0 {
			continue // those that walk all APIs
		}
		note := fmt.Sprintf("removed in Kubernetes %s, %d requests", c.Status.RemovedInRelease, c.Status.RequestCount)
		if len(uses) > 0 {
			note += " by " + strings.Join(uses.texts(), ", ")
		}
		for client := range uses {
			all[client.text("")] = true
		}
		used = append(used, object[apiserverv1.APIRequestCount]("", c.Name, "status.requestCount", strconv.FormatInt(c.Status.RequestCount, 10), note))
	}
	if len(used) == 0 {
		return nil, facts.JoinErrors(errs...)
	}
	severity := preconditions.Warning
	open, err := removalGateOpen(ctx, in, openshift.MinorOf(current).String())
	if open {
		severity = preconditions.Blocking
	}
	remedy := "Find who uses them with: oc get apirequestcounts NAME -o yaml. Move these clients to newer versions of the APIs, then acknowledge the removal"
	if len(all) > 0 {
		remedy = "Move these clients to newer versions of the APIs: " + strings.Join(slices.Sorted(maps.Keys(all)), ", ") + ". Then acknowledge the removal"
	}
	var found findings
	found.add(severity, "RemovedAPIsInUse", "APIs that the target does not have any more are in use", used, remedy)
	return found, facts.JoinErrors(append(errs, err)...)
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

// text names the client and what it asks for, if that is known.
func (c apiClient) text(asks string) string {
	details := slices.DeleteFunc([]string{c.agent, asks}, func(s string) bool { return s == "" })
	if len(details) == 0 {
		return c.user
	}
	return c.user + " (" + strings.Join(details, "; ") + ")"
}

// apiUses are the clients of an API and how many requests they made, by verb.
type apiUses map[apiClient]map[string]int64

// texts name the clients and what they ask for, sorted by client.
func (uses apiUses) texts() []string {
	clients := slices.SortedFunc(maps.Keys(uses), func(a, b apiClient) int {
		return cmp.Or(strings.Compare(a.user, b.user), strings.Compare(a.agent, b.agent))
	})
	var out []string
	for _, c := range clients {
		var verbs []string
		for _, verb := range slices.Sorted(maps.Keys(uses[c])) {
			verbs = append(verbs, fmt.Sprintf("%s %d", verb, uses[c][verb]))
		}
		out = append(out, c.text(strings.Join(verbs, ", ")))
	}
	return out
}

// usesOf returns who made requests in the last day, without those that walk all APIs. It
// is not known if the records name nobody who made any.
func usesOf(c *apiserverv1.APIRequestCount) (uses apiUses, known bool) {
	uses, known = collectUses(c.Status.Last24h...)
	// The current hour is one of the 24, too: what is there counts once.
	current, knownNow := collectUses(c.Status.CurrentHour)
	for client, verbs := range current {
		if uses[client] == nil {
			uses[client] = map[string]int64{}
		}
		for verb, n := range verbs {
			uses[client][verb] = max(uses[client][verb], n)
		}
	}
	return uses, known || knownNow
}

// collectUses returns the clients that made requests, without those that walk all APIs. It
// reports whether there are any, these included.
func collectUses(hours ...apiserverv1.PerResourceAPIRequestLog) (uses apiUses, any bool) {
	walkers := []string{
		"system:kube-controller-manager", "system:cluster-policy-controller",
		"system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccount:kube-system:namespace-controller",
	}
	uses = apiUses{}
	for _, hour := range hours {
		for _, node := range hour.ByNode {
			for _, u := range node.ByUser {
				any = any || u.RequestCount > 0
				if u.RequestCount <= 0 || slices.Contains(walkers, u.UserName) {
					continue
				}
				client := apiClient{u.UserName, u.UserAgent}
				if uses[client] == nil {
					uses[client] = map[string]int64{}
				}
				for _, v := range u.ByVerb {
					if v.RequestCount > 0 {
						uses[client][v.Verb] += v.RequestCount
					}
				}
			}
		}
	}
	return uses, any
}

// removalGateOpen reports whether an administrator has yet to acknowledge that APIs
// are removed.
func removalGateOpen(ctx context.Context, in *preconditions.Input, minor string) (bool, error) {
	gates, acks, err := facts.Gates(ctx, in.Reader)
	if err != nil {
		return false, optionalAPI(err, "ConfigMaps")
	}
	return slices.ContainsFunc(preconditions.OpenGates(preconditions.Gates(gates), acks, minor), func(g preconditions.Gate) bool { return strings.Contains(g.Key, "api-removals") }), nil
}
