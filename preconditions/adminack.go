package preconditions

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

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
	slices.SortFunc(gates, func(a, b Gate) int {
		if a.Key < b.Key {
			return -1
		}
		return 1 // keys of a map are never equal
	})
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

// adminAcks: a gate of the own minor version is open, or cannot be judged.
func (o RiskOptions) adminAcks(ctx context.Context) ([]Risk, error) {
	fail := func(err error) ([]Risk, error) {
		return []Risk{newRisk(SourceAdminAck+"Unknown", err.Error(), docs)}, err
	}
	own, err := parseVersion(o.OwnVersion)
	if err != nil {
		return fail(fmt.Errorf("Failed to parse cluster version to check admin-acks: %w", err))
	}
	gates, acks, err := readGates(ctx, o.Reader)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return fail(err)
	}
	var risks []Risk
	for _, g := range OpenGates(gates, acks, fmt.Sprintf("%d.%d", own.Major(), own.Minor())) {
		message := g.Text
		if g.Problem != "" {
			message = g.Problem
		}
		risks = append(risks, newRisk(SourceAdminAck+"-"+g.Key, message, g.URL))
	}
	return risks, nil
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
