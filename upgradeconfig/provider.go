package upgradeconfig

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Provider knows the upgrade policies of the cluster. It is the source of
// truth: what it does not have is removed from the cluster. It must be safe for
// concurrent use.
//
// A provider that also is a [Notifier] is told how the upgrade goes, by
// [Manager.Notify].
type Provider interface {
	// Policies returns the policies that count, the next one first: see
	// [Select]. The first one becomes the UpgradeConfig.
	//
	// An empty list without an error says that there is no policy, and the
	// UpgradeConfig is deleted. So anything but a complete answer must be an
	// error.
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
	// NextRun is when the upgrade is due; zero: not known. Spec.UpgradeAt
	// says the same in the provider's words.
	NextRun time.Time
}

// Counts says whether a policy makes an UpgradeConfig, and if not, why not. It
// does unless its state, in any letter case, is pending, completed or
// cancelled, and unless it names neither a version nor an image, as an
// automatic policy of a cluster that is up to date. States that are not known
// count, as do empty ones.
func (p Policy) Counts() (bool, string) {
	switch state := strings.ToLower(p.State); state {
	case "pending", "completed", "cancelled":
		return false, state
	}
	if p.Spec.Desired.Version == "" && p.Spec.Desired.Image == "" {
		return false, "no version"
	}
	return true, ""
}

// Select returns the policies that count, ordered by NextRun: the earliest
// first, those without one last, otherwise in the order given.
func Select(policies []Policy) []Policy {
	var out []Policy
	for _, p := range policies {
		if ok, _ := p.Counts(); ok {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b Policy) int { return CompareNextRun(a.NextRun, b.NextRun) })
	return out
}

// CompareNextRun orders times of policies as [Select] does: a zero one, which
// is not known, comes last.
func CompareNextRun(a, b time.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return a.Compare(b)
}

// ProviderFunc makes a function a [Provider]. It is safe for concurrent use if
// the function is, and its errors are the function's.
type ProviderFunc func(ctx context.Context) ([]Policy, error)

// Policies calls f and returns its error.
func (f ProviderFunc) Policies(ctx context.Context) ([]Policy, error) { return f(ctx) }

// String returns "function".
func (f ProviderFunc) String() string { return "function" }
