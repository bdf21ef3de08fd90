package preconditions

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

// Gate is an entry of the ConfigMap admin-gates: something that an administrator
// must acknowledge before the cluster may leave a minor version.
type Gate struct {
	// Key is the entry's key, such as ack-4.18-kube-1.32-api-removals-in-4.19.
	// An acknowledgement has the same key.
	Key string
	// Text describes what there is to consider; URL is the first https link in it,
	// else the link to the OpenShift documentation.
	Text, URL string
	// From is the minor version, like 4.18, that a cluster cannot leave before the
	// gate is acknowledged; empty where Problem explains why it is not known.
	From string
	// Problem describes what is wrong with the entry; such a gate cannot be
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
	g := Gate{Key: key, Text: text, URL: facts.Docs}
	match := gateKey.FindStringSubmatch(key)
	if match == nil {
		g.Problem = fmt.Sprintf("admin-gates configmap gate %q is invalid: admin-gates configmap gate name %s has invalid format; must comply with %q", key, key, gateKey)
		return g
	}
	if _, err := facts.ParseVersion(match[1] + ".0"); err != nil {
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
	return fmt.Sprintf(`oc -n %s patch cm %s --patch '{"data":{"%s":"true"}}' --type=merge`, facts.AcksNamespace, facts.AcksName, g.Key)
}
