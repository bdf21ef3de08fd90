package olm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FactKind is the kind of a [Fact].
type FactKind string

// The kinds of facts.
const (
	FactSubscription      FactKind = "Subscription"      // the Subscription exists
	FactSubscriptionNeeds FactKind = "SubscriptionNeeds" // the operators that it can have
	FactNoCatalogEntries  FactKind = "NoCatalogEntries"  // its catalog has nothing
	FactNoPackage         FactKind = "NoPackage"         // its package is not there
	FactNoChannel         FactKind = "NoChannel"         // its channel is not there
	FactNoStartingCSV     FactKind = "NoStartingCSV"     // its startingCSV is not there
	FactNoMatch           FactKind = "NoMatch"           // nothing can be chosen for it
	FactFreestanding      FactKind = "Freestanding"      // an installed operator without Subscription
	FactRequirement       FactKind = "Requirement"       // an operator requires another
	FactDeprecated        FactKind = "Deprecated"        // an operator may not be chosen
	FactSameAPI           FactKind = "SameAPI"           // operators that own one API
	FactSamePackage       FactKind = "SamePackage"       // operators of one package
	FactSameName          FactKind = "SameName"          // operators of one name
	FactReplaces          FactKind = "Replaces"          // an update and the operator that it replaces
)

// Fact is a part of the explanation why something cannot be.
type Fact struct {
	Kind         FactKind
	Subscription string                  // kinds that speak of a Subscription
	Member       string                  // the operator that the fact is about, as in messages: its identifier or name
	Requirement  *Requirement            // FactRequirement
	API          schema.GroupVersionKind // FactSameAPI
	Package      string                  // FactSamePackage, FactNoPackage
	IDs          []string                // identifiers of further operators: options in order, or rivals sorted
	Message      string                  // in the words of OLM
}

// Error returns the message, so that a fact serves as reason of what was held
// back.
func (f *Fact) Error() string { return f.Message }

// NotSatisfiable says that no generation fulfils what is asked. It stays so
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

// Prevented says that the question could not be answered: a catalog cannot be
// read, a channel is in disorder, a requirement is malformed, the OperatorGroup
// is missing. Trying again may help.
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

// CatalogError says which catalog of a resolution is faulty.
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

// LimitError says that a search passed [Options.MaxConflicts]. It says nothing
// about whether there is what it looked for.
type LimitError struct {
	Limit int // contradictions
	// What was looked for: "subscription NAME", or an operator and what it
	// requires. Empty: any generation at all.
	What string
}

// Error names the limit, and what was given up.
func (e *LimitError) Error() string {
	if e.What == "" {
		return fmt.Sprintf("no answer within %d conflicts (MaxConflicts)", e.Limit)
	}
	return fmt.Sprintf("gave up on %s after %d conflicts (MaxConflicts)", e.What, e.Limit)
}

// ErrSnapshot is wrapped by errors about a Snapshot that contradicts itself.
var ErrSnapshot = errors.New("invalid snapshot")
