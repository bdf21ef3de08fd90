package olm

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"

	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// The outcomes of a slot.
const (
	outcomeKept          = "Kept"                 // the installed operator stays
	outcomeUpdated       = "Updated"              // the installed operator is replaced
	addedForSubscription = "AddedForSubscription" // a Subscription without operator gets one
	addedForRequirement  = "AddedForRequirement"  // needed by another operator; gets a new Subscription
	outcomeNotInstalled  = "NotInstalled"         // a Subscription without operator stays so
)

// Slot is the place of one operator in a generation.
type Slot struct {
	// Outcome is Kept, Updated, AddedForSubscription, AddedForRequirement or
	// NotInstalled.
	Outcome string

	// Subscriptions are the names of those that the slot serves, sorted. Empty
	// for freestanding operators and those added for a requirement. Several
	// share a slot if they have the same installed operator or come to the same
	// entry.
	Subscriptions []string

	Previous *Bundle   // the installed operator; nil if absent
	Current  *Bundle   // what the generation holds: Previous if Kept, nil if NotInstalled
	Operator *Operator // what is to be installed; nil if Kept or NotInstalled

	// AlsoReplaced are further installed operators that Current replaces, where
	// Subscriptions to several operators come to one entry. Mostly none.
	AlsoReplaced []*Bundle

	// RequiredBy is set if AddedForRequirement: the member that asked first.
	RequiredBy *Demand
}

// Demand is a requirement of a member of a generation.
type Demand struct {
	Bundle      *Bundle
	Requirement *Requirement
}

// Operator is a chosen operator that is not installed yet.
type Operator struct {
	Name           string // of its ClusterServiceVersion
	Version        string // as the catalog has it; may be empty
	Package        string
	Channel        string
	DefaultChannel bool // Channel is the package's default
	Catalog        types.NamespacedName
	Bundle         *Bundle
	Entry          *Entry

	// Replaces is the name of the operator that it replaces: the installed one
	// for an update, else what the entry names; may be empty.
	Replaces string

	// StartingCSV is the operator's name if a Subscription without an installed
	// operator names it as startingCSV, else empty.
	StartingCSV string
}

// HeldBack is a request that got something other than its first option. Reasons
// are found on demand: see [Generation.Explain] and
// [Generation.Why].
type HeldBack struct {
	Subscription string  // whose request it was; empty if it was Demand's
	Demand       *Demand // whose requirement it was; nil if it was a Subscription's

	// NotTaken are the options before the one taken, in order. Empty only with
	// Err.
	NotTaken []Option

	// Taken is the name of the operator that was taken instead or stays; empty
	// if none.
	Taken string

	// Err explains why there is no option but the present state: the Subscription
	// leads nowhere (a *Fact), or its channel or catalog is faulty. A [*LimitError]
	// reports that the search gave up on the options before Taken: whether one of
	// them could be is not known.
	Err error
}

// Option is an entry of a catalog.
type Option struct {
	Catalog types.NamespacedName
	Entry   *Entry
}

// Generation is the set of operators that a namespace is to have, and what
// changes. It is immutable and safe for concurrent use.
type Generation struct {
	Namespace string

	// Slots: those of Subscriptions by (first) Subscription, then freestanding
	// operators by name, then those added for requirements in the order in
	// which they were added.
	Slots []Slot

	// Operators are the chosen ones that are not installed yet, by package, then
	// name. Empty: nothing changes.
	Operators []Operator

	// NewSubscriptions are those to be created, one for each operator that was
	// added for a requirement, in the order of Slots.
	NewSubscriptions []olmapi.Subscription

	// HeldBack: requests that got less than their first option: Subscriptions by
	// name, then requirements in the order in which they were looked at.
	HeldBack []HeldBack

	// BrokenBefore is what was wrong with the installed operators already and
	// was tolerated: unmet requirements that are still unmet, clashes, and
	// deprecated operators.
	BrokenBefore []Broken

	// Stuck are the names of Subscriptions whose installed operator is in the
	// channel and not its head, but which nothing in the channel replaces.
	Stuck []string

	// InProgress are installed operators that are being replaced by others that
	// are installed, too. Their Subscriptions wait.
	InProgress []InProgressUpdate

	// Warnings are things an administrator should know and that changed nothing.
	Warnings []string

	problem *problem
}

// The kinds of [Broken].
const (
	brokenRequirement = "Requirement" // an installed operator lacks what it requires
	brokenAPI         = "API"         // several installed operators own one API
	brokenPackage     = "Package"     // several installed operators are of one package
	brokenDeprecated  = "Deprecated"  // an installed operator is deprecated
)

// Broken is something that was wrong before and stays.
type Broken struct {
	Kind        string       // Requirement, API, Package or Deprecated
	Operators   []string     // names of the installed operators concerned, sorted
	Requirement *Requirement // kind Requirement
	Subject     string       // kinds API and Package: the API as KIND (GROUP/VERSION), the package
}

// Subscription returns the Subscription of a namespace that keeps the operator up to
// date if it was added for a requirement.
func (op *Operator) Subscription(namespace string) *olmapi.Subscription {
	sub := &olmapi.Subscription{}
	sub.APIVersion, sub.Kind = sub.APIKind().ToAPIVersionAndKind()
	sub.Namespace = namespace
	sub.Name = strings.Join([]string{op.Package, op.Channel, op.Catalog.Name, op.Catalog.Namespace}, "-")
	sub.Spec = olmapi.SubscriptionSpec{
		Source:              op.Catalog.Name,
		SourceNamespace:     op.Catalog.Namespace,
		Package:             op.Package,
		Channel:             op.Channel,
		StartingCSV:         op.Name,
		InstallPlanApproval: olmapi.ApprovalAutomatic,
	}
	return sub
}
