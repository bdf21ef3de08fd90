package graph

import (
	"errors"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// Reason is why no updates could be retrieved: the reason of the
// RetrievedUpdates condition. Each is an error for errors.Is.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	ErrNoUpstream            Reason = "NoUpstream"
	ErrInvalidURI            Reason = "InvalidURI"
	ErrInvalidID             Reason = "InvalidID"
	ErrNoArchitecture        Reason = "NoArchitecture"
	ErrNoCurrentVersion      Reason = "NoCurrentVersion"
	ErrNoChannel             Reason = "NoChannel"
	ErrInvalidCurrentVersion Reason = "InvalidCurrentVersion"
	ErrInvalidRequest        Reason = "InvalidRequest"
	ErrRemoteFailed          Reason = "RemoteFailed"
	ErrResponseFailed        Reason = "ResponseFailed"
	ErrResponseInvalid       Reason = "ResponseInvalid"
	ErrVersionNotFound       Reason = "VersionNotFound"
	ErrUnknown               Reason = "Unknown"
)

// Error is the reason itself.
func (r Reason) Error() string { return string(r) }

// Error explains why there are no updates. errors.Is finds its [Reason]; errors.As
// the cause in Err: a [*StatusError], a [*NotFoundError], a [*DecodeError], a
// [*LimitError], the context's error.
type Error struct {
	// Reason is one of the Err constants, as a string.
	Reason string
	// Message is the text of the condition, without the words that
	// [RetrievedUpdates] puts before some.
	Message string
	// Err is the cause, nil where Message says it all.
	Err error
}

// Error is the reason and the message.
func (e *Error) Error() string { return e.Reason + ": " + e.Message }

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.Err }

// Is finds the reason.
func (e *Error) Is(target error) bool {
	r, ok := target.(Reason)
	return ok && string(r) == e.Reason
}

// conditionMessage is the message of the RetrievedUpdates condition, of at most
// 32,768 characters.
func (e *Error) conditionMessage() string {
	switch Reason(e.Reason) {
	case ErrNoUpstream, ErrInvalidURI, ErrInvalidID, ErrNoArchitecture, ErrNoCurrentVersion, ErrNoChannel, ErrInvalidCurrentVersion:
		return schema.CutMessage(e.Message)
	}
	return schema.CutMessage("Unable to retrieve available updates: " + e.Message)
}

// KeepsUpdates reports whether updates that were retrieved before may stay when
// this failure follows: the service was out of reach or answered nonsense, and said
// nothing about this cluster.
func (e *Error) KeepsUpdates() bool {
	switch Reason(e.Reason) {
	case ErrRemoteFailed, ErrResponseFailed, ErrResponseInvalid:
		return true
	}
	return false
}

// RetrievedUpdates returns the condition of that type for the result of a
// retrieval, without a transition time. Success has neither reason nor message.
func RetrievedUpdates(err error) configv1.ClusterOperatorStatusCondition {
	c := configv1.ClusterOperatorStatusCondition{Type: configv1.RetrievedUpdates, Status: configv1.ConditionTrue}
	if err == nil {
		return c
	}
	var e *Error
	if !errors.As(err, &e) {
		e = failure(ErrUnknown, err)
	}
	c.Status, c.Reason, c.Message = configv1.ConditionFalse, e.Reason, e.conditionMessage()
	return c
}

// failure is an error with the message of its cause.
func failure(reason Reason, err error) *Error {
	return &Error{Reason: string(reason), Message: err.Error(), Err: err}
}

// StatusError is an HTTP answer other than 200. Kind and Value are what an update
// service says about it in its body, empty if it does not.
type StatusError struct {
	StatusCode int
	Status     string // e.g. "404 Not Found"
	Kind       string // e.g. "invalid_params"
	Value      string // for people
}

// Error returns the status and, if there is one, the service's message.
func (e *StatusError) Error() string {
	text := "unexpected HTTP status: " + e.Status
	if e.Kind != "" {
		text += fmt.Sprintf(" (%s: %s)", e.Kind, e.Value)
	}
	return text
}

// LimitError reports that input passed a limit.
type LimitError = limit.LimitError

// DecodeError says where a graph is invalid.
type DecodeError struct {
	// Path is the place, e.g. "nodes[3].version". Empty means the whole.
	Path string
	// Line is the line of a syntax error, from 1; zero where Path says enough.
	Line int
	Err  error
}

// Error says where in the input the fault is, and which.
func (e *DecodeError) Error() string {
	switch {
	case e.Path == "" && e.Line == 0:
		return e.Err.Error()
	case e.Path == "":
		return fmt.Sprintf("line %d: %v", e.Line, e.Err)
	case e.Line == 0:
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s (line %d): %v", e.Path, e.Line, e.Err)
}

// Unwrap returns the fault.
func (e *DecodeError) Unwrap() error { return e.Err }

// NotFound returns the error that reports that a version is not in the graph, and
// which versions are near: of reason VersionNotFound, with a [*NotFoundError].
func (g *Graph) NotFound(v *semver.Version, channel string) *Error {
	e := &NotFoundError{Version: v.Original(), Channel: channel, Nodes: len(g.nodes)}
	var below, above *semver.Version
	prefix := openshift.Prefix(v.Original())
	for i := range g.nodes {
		n := g.nodes[i].Version
		e.MinorKnown = e.MinorKnown || strings.HasPrefix(n.Original(), prefix)
		if n.LessThan(v) {
			if below == nil || below.LessThan(n) {
				below = n
			}
		} else if above == nil || n.LessThan(above) {
			above = n
		}
	}
	if below != nil {
		e.Below = below.Original()
	}
	if above != nil {
		e.Above = above.Original()
	}
	return &Error{
		Reason:  string(ErrVersionNotFound),
		Message: fmt.Sprintf("currently reconciling cluster version %s not found in the %q channel", v.Original(), channel),
		Err:     e,
	}
}

// NotFoundError details why a version is not in a graph.
type NotFoundError struct {
	Version string
	Channel string
	// Nodes is the size of the graph. Zero means that the channel is empty or
	// unknown: the service does not distinguish them.
	Nodes int
	// MinorKnown reports whether the graph has another version of the same minor.
	MinorKnown bool
	// Below and Above are the nearest versions in the graph, empty if none.
	Below, Above string
}

// Error explains in one sentence.
func (e *NotFoundError) Error() string {
	if e.Nodes == 0 {
		return fmt.Sprintf("the graph of channel %q is empty: the channel is empty or unknown", e.Channel)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "version %s is not among the %d releases of channel %q", e.Version, e.Nodes, e.Channel)
	if !e.MinorKnown {
		b.WriteString(", which has none of its minor")
	}
	switch {
	case e.Below != "" && e.Above != "":
		fmt.Fprintf(&b, "; nearest are %s and %s", e.Below, e.Above)
	case e.Below != "":
		fmt.Fprintf(&b, "; the highest below is %s", e.Below)
	case e.Above != "":
		fmt.Fprintf(&b, "; the lowest above is %s", e.Above)
	}
	return b.String()
}
