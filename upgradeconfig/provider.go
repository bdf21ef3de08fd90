package upgradeconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Provider knows the upgrade policies of the cluster. It is the source of
// truth: what it does not have is removed from the cluster. It must be safe for
// concurrent use.
//
// A provider that also is a [Notifier] hears how the upgrade goes, by
// [Manager.Notify].
type Provider interface {
	// Policies returns the policies of the cluster. A [Manager] takes the first
	// one by [Policy.Compare] that counts; those that do not may be left out.
	//
	// An empty list without an error reports that there is no policy, and the
	// UpgradeConfig is deleted. So anything but a complete answer must be an error.
	Policies(ctx context.Context) ([]Policy, error)
	// String names the provider in logs and events, without secrets.
	String() string
}

// Policy is an upgrade policy of a provider.
type Policy struct {
	// ID is the provider's name of the policy.
	ID string
	// Spec is what the policy becomes on the cluster.
	Spec Spec
	// State of the policy, as the provider words it; see [Policy.Counts].
	State string
	// Automatic policies name a version once there is one to upgrade to. Others
	// always name one.
	Automatic bool
	// NextRun is when the upgrade is due; zero: not known. Spec.UpgradeAt
	// says the same in the provider's words.
	NextRun time.Time
}

// ErrNoVersion is the error of a policy that has to name a release and does not.
// It is a damaged answer.
var ErrNoVersion = errors.New("it names no version")

// Counts reports whether a policy makes an UpgradeConfig, and if not, why not. It
// does unless its state, in any letter case, is pending, completed or cancelled.
// States that are not known count, as do empty ones. The error is [ErrNoVersion] if
// the policy names neither a version nor an image, unless it is an automatic one
// that is pending, as for a cluster that is up to date.
func (p Policy) Counts() (ok bool, why string, err error) {
	state := strings.ToLower(p.State)
	if p.Spec.Desired.Version == "" && p.Spec.Desired.Image == "" && !(p.Automatic && state == "pending") {
		return false, "", ErrNoVersion
	}
	if isOut(state) {
		return false, state, nil
	}
	return true, "", nil
}

// isOut reports whether a state, in any letter case, takes a policy out.
func isOut(state string) bool {
	switch strings.ToLower(state) {
	case "pending", "completed", "cancelled":
		return true
	}
	return false
}

// Select returns the policies that count, ordered by NextRun: the earliest
// first, those without one last, otherwise in the order given. The error is about
// policies that are damaged: see [Policy.Counts]. If one of them comes before all
// that count, none is returned.
func Select(policies []Policy) ([]Policy, error) {
	ordered := slices.Clone(policies)
	slices.SortStableFunc(ordered, Policy.Compare)
	var out []Policy
	var errs []error
	for _, p := range ordered {
		ok, _, err := p.Counts()
		switch {
		case ok:
			out = append(out, p)
		case err != nil && len(out) == 0:
			return nil, fmt.Errorf("policy %q: %w", p.ID, err)
		case err != nil:
			errs = append(errs, fmt.Errorf("policy %q: %w", p.ID, err))
		}
	}
	return out, errors.Join(errs...)
}

// Compare orders policies by NextRun: those without one come last.
func (p Policy) Compare(q Policy) int {
	if p.NextRun.IsZero() != q.NextRun.IsZero() {
		return -p.NextRun.Compare(q.NextRun)
	}
	return p.NextRun.Compare(q.NextRun)
}

// Local is a [Provider] whose policy is the UpgradeConfig itself: an
// administrator writes it, and syncs leave it as it is, in any phase of its
// upgrade. It is safe for concurrent use.
type Local struct {
	// API is the cluster; required.
	API clusterapi.Reader
	// Namespace and Name of the UpgradeConfig; empty means [DefaultNamespace]
	// and [Name].
	Namespace, Name string
}

// Policies implements [Provider]. There is no policy without an UpgradeConfig or
// with one that is being deleted. Errors are those of the cluster.
func (l Local) Policies(ctx context.Context) ([]Policy, error) {
	list, err := l.API.List(ctx, gvk, clusterapi.ListOptions{Namespace: cmp.Or(l.Namespace, DefaultNamespace)})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		// Others are not looked at: they may be broken without harm.
		if list.Items[i].GetName() != cmp.Or(l.Name, Name) {
			continue
		}
		current, err := clusterapi.FromUnstructured[UpgradeConfig](&list.Items[i])
		if err != nil {
			return nil, err
		}
		if current.DeletionTimestamp != nil {
			return nil, nil
		}
		return []Policy{localPolicy(current)}, nil
	}
	return nil, nil
}

// String implements [Provider].
func (l Local) String() string { return sourceLocal }

func localPolicy(current *UpgradeConfig) Policy {
	p := Policy{ID: current.Name, Spec: current.Spec}
	if at, err := time.Parse(time.RFC3339, current.Spec.UpgradeAt); err == nil {
		p.NextRun = at
	}
	return p
}
