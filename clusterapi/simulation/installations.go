package simulation

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// The phases of a ClusterServiceVersion that package olm has no use for.
const (
	csvPending      = "Pending"
	csvInstallReady = "InstallReady"
	csvInstalling   = "Installing"
)

// unmet is the key of the ClusterServiceVersions that wait for what they
// require.
var unmet = reconcile.Key{Kind: "pending"}

// installations plays what OLM does with a ClusterServiceVersion that somebody
// created: once the definitions that it owns and requires are there it is
// installed; the one that it replaces is Replacing in the meantime, and deleted
// afterwards. Nothing that it installs is made, neither Deployments nor roles. When
// a phase began is in the status, so that waits outlive a restart.
func (p *process) installations() *behaviour {
	x := &installer{p}
	return &behaviour{name: partInstallations, look: x.look, watches: []reconcile.Watch{
		p.watch(kindCSV, func(old, new *clusterapi.Object) []reconcile.Wake {
			o := either(old, new)
			wakes := []reconcile.Wake{{Key: keyOf(o)}}
			if csv, err := clusterapi.As[olmapi.ClusterServiceVersion](o); err == nil && csv.Spec.Replaces != "" {
				wakes = append(wakes, reconcile.Wake{Key: reconcile.Key{Namespace: csv.Namespace, Name: csv.Spec.Replaces}})
			}
			return wakes
		}),
		p.watch(kindDefinition, func(old, new *clusterapi.Object) []reconcile.Wake {
			if old != nil && new != nil {
				return nil
			}
			return []reconcile.Wake{{Key: unmet}}
		}),
	}}
}

type installer struct{ p *process }

// phase is what a ClusterServiceVersion comes to.
type phase struct {
	name, reason, message string
	again                 time.Duration // when to look again
}

func (x *installer) look(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	none := reconcile.Result{}
	if r.Key == unmet {
		return x.wakeUnmet(ctx)
	}
	o, csv, err := read[olmapi.ClusterServiceVersion](ctx, x.p, kindCSV, named(r.Key))
	if err != nil || o != nil && csv.IsCopied() {
		return none, err
	}
	all, err := x.versions(ctx, r.Key.Namespace)
	if err != nil {
		return none, err
	}
	if o == nil { // its successor waits for that
		return wakeOf(replacing(all, r.Key.Name)), nil
	}
	began := timeAt(o, "status", "lastTransitionTime")
	if began.IsZero() {
		began = r.Now
	}
	if csv.Status.Phase == olmapi.CSVPhaseDeleting {
		if left := began.Add(stepTime).Sub(r.Now); left > 0 {
			return later(r, left), nil
		}
		return none, x.p.remove(ctx, o)
	}
	next, err := x.next(ctx, csv, all, began, r.Now)
	if err != nil {
		return none, err
	}
	if next.name == "" {
		res := later(r, next.again)
		if csv.Status.Phase == olmapi.CSVPhaseReplacing {
			res.Wake = wakeOf(version(all, csv.Spec.Replaces)).Wake // which goes first
		}
		return res, nil
	}
	condition := map[string]any{
		"phase": next.name, "reason": next.reason, "message": next.message,
		"lastUpdateTime": wireTime(r.Now), "lastTransitionTime": wireTime(r.Now),
	}
	status := map[string]any{"conditions": append(conditionsOf(o), condition)}
	for k, v := range condition {
		status[k] = v
	}
	_, err = x.p.writeStatus(ctx, o, status)
	return later(r, next.again), err // the write wakes it, too
}

// wakeOf is a result that looks at another version, if there is one.
func wakeOf(csv *olmapi.ClusterServiceVersion) reconcile.Result {
	if csv == nil {
		return reconcile.Result{}
	}
	return reconcile.Result{Wake: []reconcile.Wake{{Key: reconcile.Key{Namespace: csv.Namespace, Name: csv.Name}}}}
}

// stepTime is how long OLM takes from one phase to the next if nothing else is
// awaited.
const stepTime = time.Second

// next is the phase that follows; without a name none does yet.
func (x *installer) next(ctx context.Context, csv *olmapi.ClusterServiceVersion, all []*olmapi.ClusterServiceVersion, began, now time.Time) (phase, error) {
	successor := replacing(all, csv.Name)
	fault := x.p.c.faults.of(csvPart(csv.Namespace, csv.Name), nil, now)
	left := began.Add(stepTime).Sub(now)
	switch csv.Status.Phase {
	case olmapi.CSVPhaseReplacing:
		if named := csv.Spec.Replaces; named != "" && version(all, named) != nil {
			return phase{}, nil // the older one goes first, or the chain would break
		}
		for s := successor; s != nil; s = replacing(all, s.Name) {
			if s.Status.Phase == olmapi.CSVPhaseSucceeded {
				return phase{name: olmapi.CSVPhaseDeleting, reason: "Replaced", again: stepTime,
					message: "has been replaced by a newer ClusterServiceVersion that has successfully installed."}, nil
			}
		}
		return phase{}, nil
	case "":
		return phase{name: csvPending, reason: "RequirementsUnknown", message: "requirements not yet checked", again: stepTime}, nil
	}
	if successor != nil {
		return phase{name: olmapi.CSVPhaseReplacing, reason: "BeingReplaced", message: "being replaced by csv: " + successor.Name}, nil
	}
	switch csv.Status.Phase {
	case csvPending:
		if left > 0 {
			return phase{again: left}, nil
		}
		if missing, err := x.missing(ctx, csv); err != nil {
			return phase{}, err
		} else if missing != "" {
			if csv.Status.Reason == "RequirementsNotMet" {
				return phase{}, nil
			}
			return phase{name: csvPending, reason: "RequirementsNotMet", message: "one or more requirements couldn't be found"}, nil
		}
		if old := version(all, csv.Spec.Replaces); old != nil && old.Status.Phase != olmapi.CSVPhaseReplacing {
			return phase{again: stepTime}, nil
		}
		return phase{name: csvInstallReady, reason: "AllRequirementsMet", message: "all requirements found, attempting install", again: stepTime}, nil
	case csvInstallReady:
		if left > 0 {
			return phase{again: left}, nil
		}
		return phase{name: csvInstalling, reason: "InstallSucceeded", message: "waiting for install components to report healthy", again: x.p.c.timing.Install}, nil
	case csvInstalling:
		if left := began.Add(x.p.c.timing.Install).Sub(now); left > 0 {
			return phase{again: left}, nil
		}
		switch {
		case fault.is(FaultStuck):
			return phase{again: x.p.c.faults.shows(fault, now)}, nil
		case fault.is(FaultDegraded), fault.is(FaultUnavailable):
			return phase{name: olmapi.CSVPhaseFailed, reason: "InstallComponentFailed", again: x.p.c.faults.shows(fault, now),
				message: "install strategy failed: " + fault.message()}, nil
		}
		return phase{name: olmapi.CSVPhaseSucceeded, reason: "InstallSucceeded", message: "install strategy completed with no errors"}, nil
	case olmapi.CSVPhaseFailed:
		if fault != nil {
			return phase{again: x.p.c.faults.shows(fault, now)}, nil
		}
		if csv.Status.Reason == "InstallComponentFailed" {
			return phase{name: csvPending, reason: "NeedsReinstall", message: "installing again", again: stepTime}, nil
		}
	}
	return phase{}, nil
}

// missing is a definition that a version owns or requires and that is not
// there.
func (x *installer) missing(ctx context.Context, csv *olmapi.ClusterServiceVersion) (string, error) {
	for _, list := range [][]olmapi.APIDescription{csv.Spec.CustomResourceDefinitions.Owned, csv.Spec.CustomResourceDefinitions.Required} {
		for _, d := range list {
			_, err := clusterapi.GetShared(ctx, x.p.api, kindDefinition, clusterapi.Key("", d.Name))
			if apierrors.IsNotFound(err) {
				return d.Name, nil
			}
			if err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

// versions are those of a namespace that stay, without copies, by name.
func (x *installer) versions(ctx context.Context, namespace string) ([]*olmapi.ClusterServiceVersion, error) {
	all, err := clusterapi.ReadAll[olmapi.ClusterServiceVersion](ctx, x.p.api, clusterapi.ListOptions{Namespace: namespace})
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	var out []*olmapi.ClusterServiceVersion
	for _, csv := range all {
		if !csv.IsCopied() && csv.DeletionTimestamp == nil {
			out = append(out, csv)
		}
	}
	return out, err
}

// wakeUnmet looks at all versions that wait for a definition.
func (x *installer) wakeUnmet(ctx context.Context) (res reconcile.Result, err error) {
	all, err := x.versions(ctx, "")
	for _, csv := range all {
		if csv.Status.Phase == csvPending {
			res.Wake = append(res.Wake, reconcile.Wake{Key: reconcile.Key{Namespace: csv.Namespace, Name: csv.Name}})
		}
	}
	return res, err
}

// version finds a version by name, nil if it is not there.
func version(all []*olmapi.ClusterServiceVersion, name string) *olmapi.ClusterServiceVersion {
	for _, csv := range all {
		if name != "" && csv.Name == name {
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

// conditionsOf are the conditions that a status has; OLM adds one with each
// change of phase, and keeps the last 20.
func conditionsOf(o *clusterapi.Object) []any {
	status, _ := o.Unstructured().DeepCopy().Object["status"].(map[string]any)
	all, _ := status["conditions"].([]any)
	return all[max(len(all)-19, 0):]
}

func csvPart(namespace, name string) string { return fmt.Sprintf("csv/%s/%s", namespace, name) }

// csvOf splits a name that is one of a ClusterServiceVersion.
func csvOf(name string) (namespace, csv string, ok bool) { return strings.Cut(name, "/") }
