package nodeaction

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// The phases of a run with a node, in order.
const (
	phaseChecking    = "Checking"                      // does the node need the action?
	phasePreCordon   = string(rollout.HookPreCordon)   // the hook runs; then the node is cordoned
	phaseDraining    = "Draining"                      // pods are leaving
	phasePreUpgrade  = string(rollout.HookPreUpgrade)  // the hook runs
	phaseActing      = "Acting"                        // the action is under way
	phasePreUncordon = string(rollout.HookPreUncordon) // the hook runs; then the node is uncordoned
	phasePostUpgrade = string(rollout.HookPostUpgrade) // the hook runs
	phaseDone        = "Done"
)

// Record is what a run keeps on a node, in the annotation that [Annotation]
// names.
type Record struct {
	Version int    `json:"version"` // of the format
	Action  string `json:"action"`  // its name
	// Phase is Checking, PreCordon, Draining, PreUpgrade, Acting, PreUncordon,
	// PostUpgrade or Done, in this order.
	Phase string `json:"phase"`
	// Since is the time of the last change of phase or progress.
	Since time.Time `json:"since"`
	// Asked is when the drain began.
	Asked time.Time `json:"asked,omitzero"`
	// Attempt counts the programs that worked on the node: each that takes over
	// adds one, and the one before stops.
	Attempt int `json:"attempt"`
	// WasCordoned: the node was unschedulable before, so it stays so.
	WasCordoned bool `json:"wasCordoned,omitempty"`
	// Progress is the action's own.
	Progress string `json:"progress,omitempty"`
	// Waiting says what is waited for.
	Waiting string `json:"waiting,omitempty"`
	// Failed says what halted the run in this phase.
	Failed string `json:"failed,omitempty"`
	// Skipped: the node did not need the action.
	Skipped bool `json:"skipped,omitempty"`
}

const recordVersion = 1

var validID = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$`)

const (
	recordPrefix  = clusterapi.AnnotationPrefix + "action."
	confirmPrefix = clusterapi.AnnotationPrefix + "confirmed."
)

// Annotation returns the name of the annotation on nodes that keeps what a run
// has done.
func Annotation(id string) string { return recordPrefix + id }

// ErrVersion says that a record was written by a newer version of this library.
var ErrVersion = errors.New("the record has a newer format")

// RecordOf returns what a run keeps on a node, and whether it keeps anything.
// It fails for a value that is not a record, and with [ErrVersion].
func RecordOf(n *corev1.Node, id string) (Record, bool, error) {
	value, ok := n.Annotations[Annotation(id)]
	if !ok {
		return Record{}, false, nil
	}
	r, err := parseRecord(value)
	if err != nil {
		return Record{}, true, fmt.Errorf("node %s: annotation %s: %w", n.Name, Annotation(id), err)
	}
	return r, true, nil
}

func parseRecord(value string) (Record, error) {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal([]byte(value), &head); err != nil {
		return Record{}, err
	}
	if head.Version > recordVersion {
		return Record{}, fmt.Errorf("%w: version %d; this program knows 1 to %d", ErrVersion, head.Version, recordVersion)
	}
	var r Record
	if err := json.Unmarshal([]byte(value), &r); err != nil {
		return Record{}, err
	}
	if r.Version < 1 || r.Attempt < 1 || !slices.Contains(phases, r.Phase) {
		return Record{}, fmt.Errorf("not a record: version %d, phase %q, attempt %d", r.Version, r.Phase, r.Attempt)
	}
	return r, nil
}

// phases are all phases, in order.
var phases = []string{phaseChecking, phasePreCordon, phaseDraining, phasePreUpgrade, phaseActing, phasePreUncordon, phasePostUpgrade, phaseDone}

// after reports whether phase p comes later than o.
func after(p, o string) bool { return slices.Index(phases, p) > slices.Index(phases, o) }

func (r Record) write(n *corev1.Node, id string) error {
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	annotate(n, Annotation(id), string(value))
	return nil
}

func annotate(n *corev1.Node, name, value string) {
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Annotations[name] = value
}

var modify = clusterapi.ModifyOptions{FieldManager: clusterapi.ManagerRollout}
