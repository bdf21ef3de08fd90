package olm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// The kinds of facts.
const (
	factSubscription      = "Subscription"      // the Subscription exists
	factSubscriptionNeeds = "SubscriptionNeeds" // the operators that it can have
	factNoCatalogEntries  = "NoCatalogEntries"  // its catalog has nothing
	factNoPackage         = "NoPackage"         // its package is not there
	factNoChannel         = "NoChannel"         // its channel is not there
	factNoStartingCSV     = "NoStartingCSV"     // its startingCSV is not there
	factNoMatch           = "NoMatch"           // nothing can be chosen for it
	factFreestanding      = "Freestanding"      // an installed operator without Subscription
	factRequirement       = "Requirement"       // an operator requires another
	factDeprecated        = "Deprecated"        // an operator may not be chosen
	factSameAPI           = "SameAPI"           // operators that own one API
	factSamePackage       = "SamePackage"       // operators of one package
	factSameName          = "SameName"          // operators of one name
	factReplaces          = "Replaces"          // an update and the operator that it replaces
)

// Fact is a part of the explanation why something cannot be.
type Fact struct {
	// Kind is Subscription, SubscriptionNeeds, NoCatalogEntries, NoPackage, NoChannel,
	// NoStartingCSV, NoMatch, Freestanding, Requirement, Deprecated, SameAPI,
	// SamePackage, SameName or Replaces.
	Kind         string
	Subscription string                  // kinds that speak of a Subscription
	Member       string                  // the operator that the fact is about, as in messages: its identifier or name
	Requirement  *Requirement            // Requirement
	API          schema.GroupVersionKind // SameAPI
	Package      string                  // SamePackage, NoPackage
	IDs          []string                // identifiers of further operators: options in order, or rivals sorted
	Message      string                  // in the words of OLM
}

// Error returns the message, so that a fact serves as the reason why something was
// held back.
func (f *Fact) Error() string { return f.Message }

// NotSatisfiable reports that no generation fulfils what is asked. It stays so
// until the input changes.
type NotSatisfiable struct {
	// Facts cannot all be: without any one of them the others could. By message.
	Facts []Fact

	// Others are further such sets of facts, if there are any. No two sets have
	// a fact in common, so each of them takes a change of its own.
	Others [][]Fact
}

// Error lists the facts as OLM does, the sets with semicolons between them.
func (e *NotSatisfiable) Error() string {
	text := "constraints not satisfiable"
	separator := ": "
	for _, facts := range e.sets() {
		messages := make([]string, len(facts))
		for i, f := range facts {
			messages[i] = f.Message
		}
		slices.Sort(messages)
		text += separator + strings.Join(messages, ", ")
		separator = "; "
	}
	return text
}

func (e *NotSatisfiable) sets() [][]Fact {
	if len(e.Facts) == 0 {
		return e.Others
	}
	return append([][]Fact{e.Facts}, e.Others...)
}

// Prevented reports that the question could not be answered: a catalog cannot be
// read, a channel is in disorder, a requirement is malformed, the OperatorGroup is
// missing. Trying again may help.
//
// Channels and bundles of catalogs prevent with AllOrNothing only; without it
// they hold back the Subscriptions that have no other option. A malformed
// requirement of an installed operator always prevents: nobody could promise
// that the operator keeps what it needs.
type Prevented struct {
	Errs []error // at least one
}

// Error is the text of the one error, or those of all in brackets, equal ones
// once.
func (e *Prevented) Error() string {
	var texts []string
	for _, err := range e.Errs {
		if text := err.Error(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// Unwrap returns the single errors.
func (e *Prevented) Unwrap() []error { return e.Errs }

// CatalogError determines which catalog of a resolution is faulty.
type CatalogError struct {
	Catalog string // NAMESPACE/NAME; NAMESPACE/@existing for the installed operators
	Err     error
}

// Error is OLM's text.
func (e *CatalogError) Error() string {
	return fmt.Sprintf("error using catalogsource %s: %v", e.Catalog, e.Err)
}

// Unwrap returns the cause.
func (e *CatalogError) Unwrap() error { return e.Err }

// LimitError reports that a search passed [Options.MaxConflicts]. It says nothing
// about whether there is what it looked for. Where names what the search gave up on,
// and is empty for any generation at all. A catalog that is too large is one, too.
type LimitError = limit.LimitError

const nameMaxConflicts = "MaxConflicts"

// gaveUp reports whether a search passed [Options.MaxConflicts].
func gaveUp(err error) bool {
	past, ok := errors.AsType[*LimitError](err)
	return ok && past.Limit == nameMaxConflicts
}

// Errors that are wrapped with details.
var (
	// ErrSnapshot reports a Snapshot that contradicts itself.
	ErrSnapshot = errors.New("invalid snapshot")
	// ErrNothingToExplain is returned by [Generation.Explain] for a name that nothing in
	// the generation has.
	ErrNothingToExplain = errors.New("no such subscription, package or operator in the generation")
	// ErrNoCELEvaluator is the cause of a [*CELError] where no evaluator was given.
	ErrNoCELEvaluator = errors.New("no evaluator for cel constraints")
)
