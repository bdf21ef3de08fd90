package preconditions

import (
	"cmp"
	"context"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Documented returns the checks that the documentation asks an administrator to
// make, and that the operator does not make itself.
func Documented() []Check {
	return []Check{
		documented{"PoolsPaused", anyStep, poolsPaused},
		documented{"PoolsDegraded", anyStep, poolsDegraded},
		documented{"ClusterOperators", anyStep, clusterOperators},
		documented{"AdminAcks", Transition.LeavesMinor, adminAcks},
		documented{"VersionOverrides", anyStep, versionOverrides},
		documented{"Channel", anyStep, updateChannel},
		documented{"FeatureSet", anyStep, featureSet},
		documented{"UpdateInProgress", anyStep, updateInProgress},
	}
}

type documented struct {
	name    string
	applies func(Transition) bool
	run     func(context.Context, *Input) ([]Finding, error)
}

func (c documented) Name() string              { return c.name }
func (c documented) Applies(t Transition) bool { return c.applies(t) }

func (c documented) Run(ctx context.Context, in *Input) ([]Finding, error) {
	return c.run(ctx, in)
}

func anyStep(Transition) bool { return true }

// blockMinor is the severity of what stops other minor and major versions only.
func blockMinor(t Transition) Severity {
	if t.LeavesMinor() {
		return Blocking
	}
	return Warning
}

// newFinding words a finding: what it means, every object at fault, the remedy.
func newFinding(s Severity, reason, meaning string, objects []Object, remedy, source string) Finding {
	message := meaning
	if len(objects) > 0 {
		names := make([]string, len(objects))
		for i, o := range objects {
			names[i] = o.Name
			if o.Note != "" {
				names[i] += " (" + o.Note + ")"
			}
		}
		message += ": " + strings.Join(names, ", ")
	}
	return Finding{
		Severity: s, Reason: reason, Message: strings.TrimSuffix(message, ".") + ". " + remedy, Remedy: remedy, Objects: objects,
		Source: "OpenShift documentation, " + source,
	}
}

// sortObjects orders objects by name; what is noted tells several places of one
// object apart.
func sortObjects(objects []Object) {
	slices.SortStableFunc(objects, func(a, b Object) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Note, b.Note))
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
