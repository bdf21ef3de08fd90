package preconditions

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// SkewClass says how far the kubelet of a node is from the API server.
type SkewClass string

// The classes of [KubeletSkewOf], from the most severe to the least. They are the
// reasons of the API server operator's condition KubeletMinorVersionUpgradeable.
const (
	SkewUnsupported     SkewClass = "KubeletMinorVersionUnsupported"            // too far behind now
	SkewAhead           SkewClass = "KubeletMinorVersionAhead"                  // newer than the API server
	SkewVersionUnknown  SkewClass = "KubeletVersionUnknown"                     // not a version
	SkewUnsupportedNext SkewClass = "KubeletMinorVersionUnsupportedNextUpgrade" // too far behind after the update
	SkewSupportedNext   SkewClass = "KubeletMinorVersionSupportedNextUpgrade"   // behind, also then supported
	SkewSynced          SkewClass = "KubeletMinorVersionsSynced"                // the same
)

// SkewRule says how many minor versions a kubelet may be behind the API server, by
// the minor version of OpenShift. The rule differs so that nodes can skip an odd
// version, and no even one.
type SkewRule struct {
	Even, Odd int
}

// KubeletSkewRule is the rule of the API server operator.
func KubeletSkewRule() SkewRule { return SkewRule{Even: 2, Odd: 1} }

func (r SkewRule) most(minor uint64) int {
	if minor%2 == 0 {
		return r.Even
	}
	return r.Odd
}

// KubeletSkewOf judges a node on a path of updates, each to the next minor version:
// kubelet is what the node reports (status.nodeInfo.kubeletVersion), apiServer the
// minor version of Kubernetes 1 that the API server has, minor that of OpenShift,
// and steps how many updates there are before the node is updated. It returns the
// class and, for SkewUnsupportedNext, the first step that is too far.
//
// The API server is one minor version further, and the parity of OpenShift's the
// other, with each step. It is pure.
func KubeletSkewOf(kubelet string, apiServer, minor uint64, steps int) (class SkewClass, step int) {
	v, err := semver.StrictNewVersion(strings.TrimPrefix(kubelet, "v"))
	if err != nil || v.Major() != 1 {
		return SkewVersionUnknown, 0
	}
	rule := KubeletSkewRule()
	behind := int64(apiServer) - int64(v.Minor())
	switch {
	case behind > int64(rule.most(minor)):
		return SkewUnsupported, 0
	case behind < 0:
		return SkewAhead, 0
	}
	for i := 1; i <= steps; i++ {
		if behind+int64(i) > int64(rule.most(minor+uint64(i))) {
			return SkewUnsupportedNext, i
		}
	}
	if behind > 0 {
		return SkewSupportedNext, 0
	}
	return SkewSynced, 0
}

func kubeletSkewCheck() Check {
	return documented{Rule{
		Name: "KubeletSkew", Scope: minorStep(), Severities: []Severity{Warning, Blocking},
		Source: "Performing a Control Plane Only update", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[configv1.ClusterOperator](), gvkOf[corev1.Node](), gvkOf[mcfgv1.MachineConfigPool]()},
		Needs: []string{"CurrentPayload"},
	}, kubeletSkew}
}

// kubeletSkew: no kubelet is too old for the API server that the update brings.
// Unlike the operator's condition, of which the most severe class hides the
// others, it judges each node.
func kubeletSkew(ctx context.Context, in *Input) ([]Finding, error) {
	current, err := in.currentVersion(ctx)
	if err != nil {
		return nil, err
	}
	apiServer, err := currentAPIServer(ctx, in, current)
	if err != nil {
		return nil, err
	}
	nodes, err := list[corev1.Node](ctx, in, clusterapi.ListOptions{})
	pools, poolsErr := poolNames(ctx, in)
	minor := current.Minor()
	if current.Major() != 4 && apiServer >= 13 {
		minor = apiServer - 13 // as 4.y would go on
	}
	at := map[SkewClass][]Object{}
	for _, n := range nodes {
		version := n.Status.NodeInfo.KubeletVersion
		class, _ := KubeletSkewOf(version, apiServer, minor, minorSteps(current, in.Target))
		o := nodeObject(n, "status.nodeInfo.kubeletVersion", version, "kubelet "+strings.TrimPrefix(version, "v"))
		if version == "" {
			o.Note = "no kubelet version"
		}
		if pool := pools[n.Name]; pool != "" {
			o.Note += ", pool " + pool
		}
		at[class] = append(at[class], o)
	}
	var findings []Finding
	add := func(s Severity, class SkewClass, one, several string, remedy string) {
		objects := at[class]
		if len(objects) == 0 {
			return
		}
		sortObjects(objects)
		findings = append(findings, newFinding(s, string(class), skewText(objects, one, several), objects, remedy))
	}
	const update = "Update these nodes first: unpause their pools, and wait until they are updated"
	behind := fmt.Sprintf("too far behind the API server (1.%d)", apiServer)
	add(Blocking, SkewUnsupported, "is "+behind, "are "+behind, update)
	add(Warning, SkewAhead, fmt.Sprintf("is ahead of the API server (1.%d)", apiServer), fmt.Sprintf("are ahead of the API server (1.%d)", apiServer),
		"Wait until the control plane is updated")
	add(Warning, SkewVersionUnknown, "is not a version", "are not versions", "Look at status.nodeInfo of these nodes")
	add(Blocking, SkewUnsupportedNext, "will not be supported in the next OpenShift minor version upgrade", "will not be supported in the next OpenShift minor version upgrade", update)
	// A pool only makes the message clearer.
	if len(findings) == 0 {
		poolsErr = nil
	}
	return findings, joinErrors(err, poolsErr)
}

// skewText names up to three nodes, and counts more.
func skewText(objects []Object, one, several string) string {
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.Name
	}
	switch n := len(names); n {
	case 1:
		return fmt.Sprintf("Kubelet minor version (%s) on node %s %s.", strings.TrimPrefix(objects[0].Value, "v"), names[0], one)
	case 2:
		return fmt.Sprintf("Kubelet minor versions on nodes %s and %s %s.", names[0], names[1], several)
	case 3:
		return fmt.Sprintf("Kubelet minor versions on nodes %s, %s, and %s %s.", names[0], names[1], names[2], several)
	default:
		return fmt.Sprintf("Kubelet minor versions on %d nodes %s.", n, several)
	}
}

// minorSteps is how many minor versions the update is further. What is not known
// counts as one, and so does another major version.
func minorSteps(current, target *semver.Version) int {
	if target == nil || target.Major() != current.Major() || target.Minor() <= current.Minor() {
		return 1
	}
	return int(min(target.Minor()-current.Minor(), 100))
}

// currentVersion is the version that the cluster reconciles.
func (in *Input) currentVersion(ctx context.Context) (*semver.Version, error) {
	if in.Current != nil {
		return in.Current, nil
	}
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	v, err := parseVersion(cv.Status.Desired.Version)
	if err != nil {
		return nil, fmt.Errorf("current version %q: %w", cv.Status.Desired.Version, err)
	}
	return v, nil
}

// currentAPIServer returns the minor version of the API server: what its operator
// reports, else what the current release has.
func currentAPIServer(ctx context.Context, in *Input, current *semver.Version) (uint64, error) {
	co, err := clusterapi.Read[configv1.ClusterOperator](ctx, in.Reader, clusterapi.Key("", apiServerOperator))
	if err == nil {
		if minor, ok := apiServerMinor(co); ok {
			return minor, nil
		}
	}
	if minor, ok := in.kubernetesMinor(current, in.CurrentPayload); ok {
		return minor, nil
	}
	if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return 0, err
	}
	return 0, fmt.Errorf("the version of the API server in OpenShift %s is not known: the ClusterOperator %s does not report it", current, apiServerOperator)
}

// poolNames returns the name of each node's pool. Without machine config pools there
// are none.
func poolNames(ctx context.Context, in *Input) (map[string]string, error) {
	pools, err := readPools(ctx, in)
	names := map[string]string{}
	for _, p := range pools {
		for _, n := range p.nodes {
			names[n.Name] = p.Name
		}
	}
	if notApplicable := new(NotApplicableError); errors.As(err, &notApplicable) {
		return names, nil
	}
	return names, err
}
