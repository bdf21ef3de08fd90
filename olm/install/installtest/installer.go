package installtest

import (
	"cmp"
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// The phases of a ClusterServiceVersion that package olm has no use for.
const (
	phasePending      = "Pending"
	phaseInstallReady = "InstallReady"
	phaseInstalling   = "Installing"
)

// The reasons of phases that decide about the next one.
const (
	reasonUnmet  = "RequirementsNotMet"
	reasonFailed = "InstallComponentFailed"
)

var kindDefinition = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// waiting is the key of the ClusterServiceVersions that wait for what they require, or
// for the one that they replace.
var waiting = reconcile.Key{Kind: "pending"}

// installer plays what OLM does with a ClusterServiceVersion that somebody created:
// once the definitions that it owns and requires are there it is installed; the one
// that it replaces is Replacing in the meantime, and deleted afterwards.
type installer struct {
	olm OLM
	api clusterapi.ClusterAPI
}

func (*installer) Name() string { return "installations" }

func (*installer) Watches() []reconcile.Watch {
	versionChanged := func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
		o := cmp.Or(new, old)
		out := []reconcile.Wake{{Key: keyOf(o)}}
		csv, err := clusterapi.As[olmapi.ClusterServiceVersion](o)
		if err == nil && csv.Spec.Replaces != "" {
			out = append(out, reconcile.Wake{Key: reconcile.Key{Namespace: csv.Namespace, Name: csv.Spec.Replaces}})
		}
		if err == nil && csv.Status.Phase == olmapi.CSVPhaseReplacing {
			out = append(out, reconcile.Wake{Key: waiting})
		}
		return out
	}
	definitionChanged := func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
		if old != nil && new != nil {
			return nil
		}
		return []reconcile.Wake{{Key: waiting}}
	}
	return []reconcile.Watch{
		{GVK: (*olmapi.ClusterServiceVersion)(nil).APIKind(), Changed: versionChanged},
		{GVK: kindDefinition, Changed: definitionChanged},
	}
}

func (x *installer) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	all, err := x.versions(ctx, r.Key.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	if r.Key == waiting {
		isOther := func(csv *olmapi.ClusterServiceVersion) bool { return csv.Status.Phase != phasePending }
		return reconcile.Result{Wake: wakes(slices.DeleteFunc(all, isOther)...)}, nil
	}
	csv := version(all, r.Key.Name)
	if csv == nil { // its successor waits for that
		return reconcile.Result{Wake: wakes(replacing(all, r.Key.Name))}, nil
	}
	next, err := x.next(ctx, csv, all)
	if err != nil {
		return reconcile.Result{}, err
	}
	if next.name == "" {
		return x.awaits(csv, all, r.Now), nil
	}
	began := timeOf(csv.Status.LastTransitionTime)
	if at := began.Add(x.lasts(csv.Status.Phase)); at.After(r.Now) && next.name != olmapi.CSVPhaseReplacing {
		return reconcile.Result{At: at}, nil
	}
	return reconcile.Result{}, x.enter(ctx, csv, next, r.Now) // the write wakes it
}

// lasts returns how long a phase lasts at least.
func (x *installer) lasts(phase string) time.Duration {
	switch phase {
	case phasePending, phaseInstallReady, olmapi.CSVPhaseDeleting:
		return stepTime
	case phaseInstalling:
		return cmp.Or(x.olm.Install, time.Minute)
	}
	return 0
}

// awaits returns the result for a version whose next phase does not follow yet.
func (x *installer) awaits(csv *olmapi.ClusterServiceVersion, all []*olmapi.ClusterServiceVersion, now time.Time) reconcile.Result {
	switch {
	case csv.Status.Phase == olmapi.CSVPhaseReplacing: // the older one goes first
		return reconcile.Result{Wake: wakes(version(all, csv.Spec.Replaces))}
	case csv.Status.Reason == reasonFailed:
		return reconcile.Result{At: now.Add(time.Minute)}
	}
	return reconcile.Result{}
}

// phase is what a ClusterServiceVersion comes to.
type phase struct{ name, reason, message string }

// removed is the phase of a deleted version.
var removed = phase{name: "removed"}

// enter takes a version to a phase, unless somebody else took it to another.
func (x *installer) enter(ctx context.Context, csv *olmapi.ClusterServiceVersion, next phase, now time.Time) error {
	key := clusterapi.Key(csv.Namespace, csv.Name)
	if next == removed {
		err := x.api.Delete(ctx, csv.APIKind(), key, clusterapi.DeleteOptions{UID: csv.UID})
		if apierrors.IsConflict(err) {
			return nil // another of its name
		}
		return ignoreMissing(err)
	}
	_, err := clusterapi.Modify(ctx, x.api, key, clusterapi.ModifyOptions{Status: true}, func(c *olmapi.ClusterServiceVersion) error {
		if c.UID != csv.UID || c.Status.Phase != csv.Status.Phase {
			return nil
		}
		c.Status = olmapi.ClusterServiceVersionStatus{Phase: next.name, Reason: next.reason, Message: next.message}
		if !now.IsZero() {
			c.Status.LastTransitionTime = &metav1.Time{Time: now}
		}
		return nil
	})
	return ignoreMissing(err)
}

// next returns the phase that follows; without a name none does yet.
func (x *installer) next(ctx context.Context, csv *olmapi.ClusterServiceVersion, all []*olmapi.ClusterServiceVersion) (phase, error) {
	successor := replacing(all, csv.Name)
	switch csv.Status.Phase {
	case olmapi.CSVPhaseDeleting:
		return removed, nil
	case olmapi.CSVPhaseReplacing:
		if version(all, csv.Spec.Replaces) != nil {
			return phase{}, nil // the older one goes first, or the chain would break
		}
		for s := successor; s != nil; s = replacing(all, s.Name) {
			if s.Status.Phase == olmapi.CSVPhaseSucceeded {
				return phase{olmapi.CSVPhaseDeleting, "Replaced",
					"has been replaced by a newer ClusterServiceVersion that has successfully installed."}, nil
			}
		}
		return phase{}, nil
	case "":
		return phase{phasePending, "RequirementsUnknown", "requirements not yet checked"}, nil
	}
	if successor != nil {
		return phase{olmapi.CSVPhaseReplacing, "BeingReplaced", "being replaced by csv: " + successor.Name}, nil
	}
	switch csv.Status.Phase {
	case phasePending:
		return x.afterPending(ctx, csv, all)
	case phaseInstallReady:
		return phase{phaseInstalling, "InstallSucceeded", "waiting for install components to report healthy"}, nil
	case phaseInstalling:
		if fault := x.fault(csv); fault != "" {
			return phase{olmapi.CSVPhaseFailed, reasonFailed, "install strategy failed: " + fault}, nil
		}
		return phase{olmapi.CSVPhaseSucceeded, "InstallSucceeded", "install strategy completed with no errors"}, nil
	case olmapi.CSVPhaseFailed:
		if csv.Status.Reason == reasonFailed && x.fault(csv) == "" {
			return phase{phasePending, "NeedsReinstall", "installing again"}, nil
		}
	}
	return phase{}, nil
}

// afterPending returns the phase that follows Pending.
func (x *installer) afterPending(ctx context.Context, csv *olmapi.ClusterServiceVersion, all []*olmapi.ClusterServiceVersion) (phase, error) {
	met, err := x.met(ctx, csv)
	old := version(all, csv.Spec.Replaces)
	switch {
	case err != nil:
		return phase{}, err
	case !met && csv.Status.Reason == reasonUnmet:
		return phase{}, nil
	case !met:
		return phase{phasePending, reasonUnmet, "one or more requirements couldn't be found"}, nil
	case old != nil && old.Status.Phase != olmapi.CSVPhaseReplacing:
		return phase{}, nil
	}
	return phase{phaseInstallReady, "AllRequirementsMet", "all requirements found, attempting install"}, nil
}

func (x *installer) fault(csv *olmapi.ClusterServiceVersion) string {
	if x.olm.Fault == nil {
		return ""
	}
	return x.olm.Fault(csv)
}

// met reports whether the definitions that a version owns and requires are there.
func (x *installer) met(ctx context.Context, csv *olmapi.ClusterServiceVersion) (bool, error) {
	apis := csv.Spec.CustomResourceDefinitions
	for _, d := range slices.Concat(apis.Owned, apis.Required) {
		_, err := x.api.Get(ctx, kindDefinition, clusterapi.Key("", d.Name))
		if err != nil {
			return false, ignoreMissing(err)
		}
	}
	return true, nil
}

// versions returns the versions of a namespace that stay, without copies, by name.
func (x *installer) versions(ctx context.Context, namespace string) ([]*olmapi.ClusterServiceVersion, error) {
	all, err := clusterapi.ReadAll[olmapi.ClusterServiceVersion](ctx, x.api, clusterapi.ListOptions{Namespace: namespace})
	isOut := func(csv *olmapi.ClusterServiceVersion) bool { return csv.IsCopied() || csv.DeletionTimestamp != nil }
	return slices.DeleteFunc(all, isOut), ignoreMissing(err)
}

// wakes makes a driver look at versions; nil ones are left out.
func wakes(csvs ...*olmapi.ClusterServiceVersion) (out []reconcile.Wake) {
	for _, csv := range csvs {
		if csv != nil {
			out = append(out, reconcile.Wake{Key: reconcile.Key{Namespace: csv.Namespace, Name: csv.Name}})
		}
	}
	return out
}

// version finds a version by name, nil if it is not there.
func version(all []*olmapi.ClusterServiceVersion, name string) *olmapi.ClusterServiceVersion {
	for _, csv := range all {
		if csv.Name == name {
			return csv
		}
	}
	return nil
}

// replacing finds the version that replaces another.
func replacing(all []*olmapi.ClusterServiceVersion, name string) *olmapi.ClusterServiceVersion {
	for _, csv := range all {
		if csv.Spec.Replaces == name && csv.Name != name {
			return csv
		}
	}
	return nil
}
