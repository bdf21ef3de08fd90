package forecast

import (
	"cmp"
	"slices"

	"github.com/clusterupdate/clusterupdate/preconditions"
)

// Verdict is a forecast in one word.
type Verdict string

// The verdicts; the first that fits is a forecast's.
const (
	// Blocked: something stops the update, for certain.
	Blocked Verdict = "Blocked"
	// Unknown: a check that can stop the update could not be decided, such as for want of an
	// object that a recording lacks.
	Unknown Verdict = "Unknown"
	// Warnings: the update can start, and there is something to know before.
	Warnings Verdict = "Warnings"
	// Ready: neither blocks nor warns anything that is known.
	Ready Verdict = "Ready"
)

// Part is what a finding is about: path, release, checks, operators, nodes, drains,
// credentials, changes or duration.
type Part string

const (
	partPath        Part = "path"
	partRelease     Part = "release"
	partChecks      Part = "checks"
	partOperators   Part = "operators"
	partNodes       Part = "nodes"
	partDrains      Part = "drains"
	partCredentials Part = "credentials"
	partChanges     Part = "changes"
	partDuration    Part = "duration"
)

// parts are in the order of a forecast.
var parts = []Part{
	partPath, partRelease, partChecks, partOperators, partNodes, partDrains, partCredentials, partChanges, partDuration,
}

// partOf sorts checks into parts; a check that is not here belongs to partChecks.
func partOf(check string) Part {
	switch check {
	case "ClusterVersionRollback", "ClusterVersionGiantHop", "ClusterVersionRecommendedUpdate", "Channel", "SkipsMinors":
		return partPath
	case "ReleasePrevious", "ReleaseNewer", "MultiArch", "Disconnected":
		return partRelease
	case "ClusterVersionUpgradeable", "ClusterOperators", "OperatorCompatibility", "DeprecatedAPIs", "KernelModules":
		return partOperators
	case "PoolsPaused", "PoolsDegraded", "PoolsUpdating", "KubeletSkew",
		"NodesUnavailable", "RHELNodes", "CgroupV1", "Runc":
		return partNodes
	case "SpareCapacity", "MaxUnavailable", "DisruptionBudgets":
		return partDrains
	case "CloudCredentials", "CredentialsRequests":
		return partCredentials
	}
	return partChecks
}

// Finding is one thing that is known about an update, or that is not.
type Finding struct {
	Part Part `json:"part"`
	// Check is the name of the check, or Graph, Signature, Preview or Rehearsal.
	Check string `json:"check"`
	// Unknown reports that the question could not be decided. Reason and Message say
	// why, and Severity what that means for the update.
	Unknown bool `json:"unknown,omitempty"`
	preconditions.Finding
	// Same are findings of further checks, or of the rehearsal, with the same cause.
	Same []Finding `json:"same,omitempty"`
}

// Verdict returns the forecast in one word.
func (f *Forecast) Verdict() Verdict {
	verdict := Ready
	for _, found := range f.Findings {
		switch {
		case found.Severity >= preconditions.Blocking && !found.Unknown:
			return Blocked
		case found.Severity >= preconditions.Blocking:
			verdict = Unknown
		case found.Severity == preconditions.Warning && !found.Unknown && verdict == Ready:
			verdict = Warnings
		}
	}
	return verdict
}

// WhyNot returns the findings for which the update cannot start, or for which it is not
// known whether it can: the graph first, then the checks, operators and nodes. It is
// empty if absent.
func (f *Forecast) WhyNot() []Finding {
	var why []Finding
	for _, found := range f.Findings {
		if found.Severity >= preconditions.Blocking {
			why = append(why, found)
		}
	}
	return why
}

func (f *Forecast) add(part Part, check string, found preconditions.Finding) {
	f.Findings = append(f.Findings, Finding{Part: part, Check: check, Finding: found})
}

func (f *Forecast) addUnknown(part Part, check string, found preconditions.Finding) {
	f.Findings = append(f.Findings, Finding{Part: part, Check: check, Unknown: true, Finding: found})
}

func (f *Forecast) addCheck(state preconditions.State, check string) {
	f.Checks[state] = append(f.Checks[state], check)
}

// sort puts what blocks first, and what is not known after what is.
func (f *Forecast) sort() {
	weight := func(found Finding) int {
		weight := 2 * int(found.Severity)
		if !found.Unknown {
			weight++
		}
		return -weight
	}
	slices.SortStableFunc(f.Findings, func(a, b Finding) int {
		byPart := cmp.Compare(slices.Index(parts, a.Part), slices.Index(parts, b.Part))
		return cmp.Or(cmp.Compare(weight(a), weight(b)), byPart)
	})
	for _, list := range []*[]string{&f.Collect, &f.Assumed} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
}
