package preconditions

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Where gates and acknowledgements are kept.
const (
	gatesNamespace, gatesName = "openshift-config-managed", "admin-gates"
	acksNamespace, acksName   = "openshift-config", "admin-acks"
)

// Gate is an entry of the ConfigMap admin-gates: something that an administrator
// must acknowledge before the cluster may leave a minor version.
type Gate struct {
	// Key is the entry's key, such as ack-4.18-kube-1.32-api-removals-in-4.19.
	// An acknowledgement has the same key.
	Key string
	// Text tells what there is to consider; URL is the first https link in it,
	// else that of the OpenShift documentation.
	Text, URL string
	// From is the minor version, like 4.18, that a cluster cannot leave before
	// the gate is acknowledged; empty where Problem says why it is not known.
	From string
	// Problem says what is wrong with the entry; such a gate cannot be
	// acknowledged. Without From it stops clusters of every version.
	Problem string
}

var (
	gateKey  = regexp.MustCompile(`^ack-([4-5][.][0-9]{1,})-[^-]`)
	gateLink = regexp.MustCompile(`https://[^[:space:]]*`)
)

// Gates reads the data of a ConfigMap admin-gates, of a cluster or of a release
// that is still to come. The result is sorted by key.
func Gates(data map[string]string) []Gate {
	gates := make([]Gate, 0, len(data))
	for key, text := range data {
		gates = append(gates, newGate(key, text))
	}
	slices.SortFunc(gates, func(a, b Gate) int { return strings.Compare(a.Key, b.Key) })
	return gates
}

func newGate(key, text string) Gate {
	g := Gate{Key: key, Text: text, URL: docs}
	match := gateKey.FindStringSubmatch(key)
	if match == nil {
		g.Problem = fmt.Sprintf("admin-gates configmap gate %q is invalid: admin-gates configmap gate name %s has invalid format; must comply with %q", key, key, gateKey)
		return g
	}
	if _, err := parseVersion(match[1] + ".0"); err != nil {
		g.Problem = fmt.Sprintf("admin-gates configmap gate %q is invalid: failed to parse SemVer ack version from admin-gate %q: %v", key, key, err)
		return g
	}
	g.From = match[1]
	if text == "" {
		g.Problem = fmt.Sprintf("admin-gates configmap gate %s must contain a non-empty value.", key)
		return g
	}
	for _, link := range gateLink.FindAllString(text, -1) {
		if _, err := url.Parse(link); err == nil {
			g.URL = link
			break
		}
	}
	return g
}

// OpenGates returns the gates that keep a cluster on a minor version (like
// 4.18): those of this version that acks does not acknowledge with exactly
// "true" or that have no text, and those whose key names no version at all.
func OpenGates(gates []Gate, acks map[string]string, minor string) []Gate {
	var open []Gate
	for _, g := range gates {
		switch {
		case g.From == "":
			open = append(open, g)
		case g.From != minor:
		case g.Problem != "" || acks[g.Key] != "true":
			open = append(open, g)
		}
	}
	return open
}

// Acknowledge returns the command that acknowledges the gate.
func (g Gate) Acknowledge() string {
	return fmt.Sprintf(`oc -n %s patch cm %s --patch '{"data":{"%s":"true"}}' --type=merge`, acksNamespace, acksName, g.Key)
}

// readGates reads both ConfigMaps. Each must exist: without the gates it is not
// known whether there is something to acknowledge.
func readGates(ctx context.Context, r clusterapi.Reader) ([]Gate, map[string]string, error) {
	gates, err := configMapData(ctx, r, gatesNamespace, gatesName)
	if err != nil {
		return nil, nil, err
	}
	acks, err := configMapData(ctx, r, acksNamespace, acksName)
	if err != nil {
		return nil, nil, err
	}
	return Gates(gates), acks, nil
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

// adminAcks: gates of the current minor version are acknowledged.
func adminAcks(ctx context.Context, in *Input) ([]Finding, error) {
	current, err := in.currentVersion(ctx)
	if err != nil {
		return nil, err
	}
	gates, acks, err := readGates(ctx, in.Reader)
	if err != nil {
		return nil, optionalAPI(err, "ConfigMaps")
	}
	var found findings
	for _, g := range OpenGates(gates, acks, minorText(current)) {
		text, remedy := g.Text, "Then acknowledge with: "+g.Acknowledge()
		if g.Problem != "" {
			text, remedy = g.Problem, "Correct or remove the entry; it cannot be acknowledged"
		}
		found.addAt(Blocking, "AdminAckRequired", fmt.Sprintf("Gate %s is open: %s", g.Key, text), remedy,
			object[corev1.ConfigMap](gatesNamespace, gatesName, "data."+g.Key, g.Text, g.URL))
	}
	return found, nil
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
		return nil, joinErrors(errs...)
	}
	severity := Warning
	open, err := removalGateOpen(ctx, in, minorText(current))
	if open {
		severity = Blocking
	}
	remedy := "Find who uses them with: oc get apirequestcounts NAME -o yaml. Move these clients to newer versions of the APIs, then acknowledge the removal"
	if len(all) > 0 {
		remedy = "Move these clients to newer versions of the APIs: " + strings.Join(slices.Sorted(maps.Keys(all)), ", ") + ". Then acknowledge the removal"
	}
	var found findings
	found.add(severity, "RemovedAPIsInUse", "APIs that the target does not have any more are in use", used, remedy)
	return found, joinErrors(append(errs, err)...)
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
func removalGateOpen(ctx context.Context, in *Input, minor string) (bool, error) {
	gates, acks, err := readGates(ctx, in.Reader)
	if err != nil {
		return false, optionalAPI(err, "ConfigMaps")
	}
	return slices.ContainsFunc(OpenGates(gates, acks, minor), func(g Gate) bool { return strings.Contains(g.Key, "api-removals") }), nil
}
