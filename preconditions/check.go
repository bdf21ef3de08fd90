package preconditions

import (
	"context"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/signature"
)

// Check is one rule about whether a cluster may start an update.
//
// A check only reads. It must be safe for concurrent use, and its findings must
// follow from the Transition and the Input alone, in an order
// that does not vary: reports are compared byte for byte.
type Check interface {
	// Name is stable, in CamelCase and unique in a run. Policies, bypasses and
	// the summary of a refused update refer to the check by it.
	Name() string

	// Applies reports whether the rule concerns this step at all. It is pure: no
	// reads. If it says false the result is NotApplicable.
	Applies(Transition) bool

	// Run judges. No findings, or only Info ones, mean that the check passed.
	// An error means that the question could not be answered, which is never a
	// pass: see [NotApplicableError] and [NoSourceError] for the two errors
	// that checks make themselves. Run returns soon after ctx ends; a
	// check that does not is abandoned and reported as timed out.
	Run(ctx context.Context, in *Input) ([]Finding, error)
}

// Input is what checks judge by. Every check of a run gets its own copy of the
// struct; what the fields point to is shared and read-only.
type Input struct {
	// Reader reads the cluster. Within a run each Get and each List is sent at
	// most once, its answer (an error too) is kept for all checks, and lists
	// are limited to Options.MaxItems. Nil: every read fails with a
	// [NoSourceError].
	clusterapi.Reader

	// Transition is the step that is asked for.
	Transition

	// TargetPayload and CurrentPayload are the releases' contents. Nil: checks
	// that need them are Unknown (NoSource).
	TargetPayload, CurrentPayload *manifest.Payload

	// TargetKernel is the kernel version of the target, for out-of-tree kernel
	// modules. Empty: not known.
	TargetKernel string

	// KubernetesMinors gives the minor version of Kubernetes 1 that a minor version
	// of OpenShift has, such as "5.0", if it is not what the rule for 4.y and the
	// release itself say. May be nil.
	KubernetesMinors map[string]uint64

	// Alerts, Backups, VSphere and Signatures answer what the API server
	// cannot. Nil: checks that need them are Unknown (NoSource), unless the Reader
	// has alerts itself: see [clusterapi.AlertsOf].
	Alerts     risk.AlertSource
	Backups    BackupSource
	VSphere    VSphereSource
	Signatures signature.Store

	// Now is the time that ages are measured against. Zero: the Reader's time, see
	// [clusterapi.TimeOf]; without one, checks that need it are Unknown (NoSource).
	Now time.Time
}

// BackupSource knows when the control plane was last backed up. It must be safe
// for concurrent use.
type BackupSource interface {
	// Latest returns the time of the newest complete backup of etcd; the zero
	// time means that there is none. An error makes the check Unknown.
	Latest(ctx context.Context) (time.Time, error)
}

// VSphereSource knows the versions of the infrastructure below a cluster on
// vSphere. It must be safe for concurrent use.
type VSphereSource interface {
	// Versions returns them. An error makes the check Unknown.
	Versions(ctx context.Context) (*VSphereVersions, error)
}

// VSphereVersions are the versions that a [VSphereSource] reports.
type VSphereVersions struct {
	Hardware map[string]int // virtual hardware version (15 for vmx-15) by node
	Counts   map[int]int    // nodes by hardware version, if it is not known which
	VCenter  []string       // versions of the vCenters, such as 7.0.2
	ESXi     []string       // versions of the hosts
}

// Severity describes what a finding means for the update.
type Severity int

// The severities, in ascending order.
const (
	Info     Severity = iota // worth knowing; the check still passes
	Warning                  // shown and recorded, does not stop the update
	Blocking                 // stops the update
)

func (s Severity) String() string {
	switch {
	case s <= Info:
		return "Info"
	case s == Warning:
		return "Warning"
	default:
		return "Blocking"
	}
}

// MarshalText writes the severity's name.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is one thing that a check found.
type Finding struct {
	Severity Severity `json:"severity"`
	// Reason is a CamelCase word to switch on and to grep for.
	Reason string `json:"reason"`
	// Message is for people and names every object at fault.
	Message string `json:"message"`
	// Remedy describes what makes the finding go away. May be empty.
	Remedy string `json:"remedy,omitempty"`
	// Risk is the name of the update risk that the finding reports, if it
	// reports one: accepting that risk by name bypasses the finding.
	Risk string `json:"risk,omitempty"`
	// RepeatOf is the check whose finding reports the same cause already. Such a
	// finding counts, but summaries leave it out and texts have it below that one, as
	// long as that one is not set aside. Run sets it; checks leave it empty.
	RepeatOf string `json:"repeatOf,omitempty"`
	// Objects are the objects at fault, sorted by the check.
	Objects []Object `json:"objects,omitempty"`
	// Source says where the rule comes from: document and section, or URL.
	Source string `json:"source,omitempty"`
}

// Object points at an object, or a field of it, that a finding is about.
type Object struct {
	GVK             schema.GroupVersionKind
	Namespace, Name string
	FieldPath       string // such as spec.paused; empty for the whole object
	Value           string // what was observed there
	Note            string
	ResourceVersion string // of the objects read, in Report.Seen alone
}

// MarshalJSON writes the kind as apiVersion and kind, like Kubernetes does.
func (o Object) MarshalJSON() ([]byte, error) {
	apiVersion, kind := o.GVK.ToAPIVersionAndKind()
	return json.Marshal(struct {
		APIVersion string `json:"apiVersion,omitempty"`
		Kind       string `json:"kind,omitempty"`
		Namespace  string `json:"namespace,omitempty"`
		Name       string `json:"name"`
		FieldPath  string `json:"fieldPath,omitempty"`
		Value      string `json:"value,omitempty"`
		Note       string `json:"note,omitempty"`
		Version    string `json:"resourceVersion,omitempty"`
	}{apiVersion, kind, o.Namespace, o.Name, o.FieldPath, o.Value, o.Note, o.ResourceVersion})
}

// NotApplicableError is what Run of a [Check] returns when its question does not
// arise in this cluster, for example because an optional API is not served.
type NotApplicableError struct {
	Why string
}

func (e *NotApplicableError) Error() string { return e.Why }

// NoSourceError is what Run of a [Check] returns when the [Input] lacks what it
// needs: the result is Unknown, with reason NoSource.
type NoSourceError struct {
	Source string // the field of Input
}

func (e *NoSourceError) Error() string { return "no source given for " + e.Source }

// UnknownError is what Run of a [Check] returns when its question cannot be answered
// for a reason that has a name of its own.
type UnknownError struct {
	Reason, Why string
}

func (e *UnknownError) Error() string { return e.Why }
