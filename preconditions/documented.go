package preconditions

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Documented returns the checks that the documentation asks an administrator to
// make, and that the operator does not make itself.
func Documented() []Check {
	return []Check{
		poolsPausedCheck(),
		poolsDegradedCheck(),
		poolsUpdatingCheck(),
		kubeletSkewCheck(),
		nodesUnavailableCheck(),
		spareCapacityCheck(),
		maxUnavailableCheck(),
		disruptionBudgetsCheck(),
		cloudCredentialsCheck(),
		credentialsRequestsCheck(),
		networkPluginCheck(),
		rhelNodesCheck(),
		singleNodeCheck(),
		clusterOperatorsCheck(),
		criticalAlertsCheck(),
		deprecatedAPIsCheck(),
		adminAcksCheck(),
		gatewayAPICheck(),
		unsupportedOverridesCheck(),
		versionOverridesCheck(),
		machineHealthChecksCheck(),
		etcdBackupCheck(),
		volumeSnapshotsCheck(),
		operatorCompatibilityCheck(),
		vSphereCheck(),
		kernelModulesCheck(),
		updateChannelCheck(),
		disconnectedCheck(),
		multiArchCheck(),
		featureSetCheck(),
		cgroupV1Check(),
		runcCheck(),
		updateInProgressCheck(),
		bootLoaderCheck(),
	}
}

// minorStep are steps to another minor or major version.
func minorStep() Scope { return Scope{Kinds: []Kind{Minor, Major}} }

// Where the documentation is.
const (
	docs418           = docs + "4.18/html/"
	docsUnderstanding = docs418 + "updating_clusters/understanding-openshift-updates-1"
	docsPreparing     = docs418 + "updating_clusters/preparing-to-update-a-cluster"
	docsPerforming    = docs418 + "updating_clusters/performing-a-cluster-update"
)

// crdKind has no Go type here.
var crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// gvkOf returns the kind of a Go type; an unregistered one has none.
func gvkOf[T any]() schema.GroupVersionKind {
	gvk, _ := clusterapi.KindOf[T]()
	return gvk
}

// documented is a check that the documentation asks an administrator to make.
// Its findings come from where its rule comes from.
type documented struct {
	rule Rule
	run  func(context.Context, *Input) ([]Finding, error)
}

func (c documented) Name() string              { return c.rule.Name }
func (c documented) Rule() Rule                { return c.rule }
func (c documented) Applies(t Transition) bool { return c.rule.Scope.Covers(t) }

func (c documented) Run(ctx context.Context, in *Input) ([]Finding, error) {
	findings, err := c.run(ctx, in)
	for i := range findings {
		if findings[i].Source == "" {
			findings[i].Source = c.rule.Source
		}
	}
	return findings, err
}

// blockMinor is the severity of what stops other minor and major versions only.
func blockMinor(t Transition) Severity {
	if t.LeavesMinor() {
		return Blocking
	}
	return Warning
}

// newFinding words a finding: what it means, every object at fault, the remedy.
func newFinding(s Severity, reason, meaning string, objects []Object, remedy string) Finding {
	message := meaning
	if len(objects) > 0 {
		names := make([]string, len(objects))
		for i, o := range objects {
			names[i] = o.fullName()
			if o.Note != "" {
				names[i] += " (" + o.Note + ")"
			}
		}
		if !strings.HasSuffix(message, ".") {
			message += ":"
		}
		message += " " + strings.Join(names, ", ")
	}
	return Finding{Severity: s, Reason: reason, Message: strings.TrimSuffix(message, ".") + ". " + remedy, Remedy: remedy, Objects: objects}
}

// fullName is the name with the namespace, if there is one.
func (o Object) fullName() string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// sortObjects orders objects by namespace and name; what is noted tells several
// places of one object apart.
func sortObjects(objects []Object) {
	slices.SortStableFunc(objects, func(a, b Object) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Note, b.Note))
	})
}

// optionalAPI turns "no such API" into "not applicable".
func optionalAPI(err error, what string) error {
	if meta.IsNoMatchError(err) {
		return &NotApplicableError{Why: "the cluster has no " + what}
	}
	return err
}

// theClusterVersion fails as not applicable where there is none.
func theClusterVersion(ctx context.Context, in *Input) (*configv1.ClusterVersion, error) {
	cv, err := getClusterVersion(ctx, in.Reader)
	if err == nil && cv == nil {
		err = &NotApplicableError{Why: "the cluster has no ClusterVersion"}
	}
	return cv, err
}

func clusterVersionObject(field, value string) []Object {
	return []Object{{GVK: configv1.GroupVersion.WithKind("ClusterVersion"), Name: clusterVersionName, FieldPath: field, Value: value}}
}
