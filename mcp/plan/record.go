package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// State is how far a plan has come.
type State string

// The states of a plan.
const (
	StateRunning   State = "Running"
	StateFailed    State = "Failed"    // a step failed
	StateHeld      State = "Held"      // stopped, all left as it is
	StateFreezing  State = "Freezing"  // being stopped
	StateFrozen    State = "Frozen"    // stopped, pools paused again
	StateRestoring State = "Restoring" // being undone
	StateRestored  State = "Restored"  // undone, as far as that may be
	StateEnding    State = "Ending"    // all steps are done, marks are being removed
	StateFinished  State = "Finished"  // all steps are done
)

// Ended reports whether a plan continues in no way.
func (s State) Ended() bool { return s == StateRestored || s == StateFinished }

// stopped reports whether a plan continues only when somebody says so.
func (s State) stopped() bool { return s == StateFailed || s == StateHeld || s == StateFrozen }

// The states of a step; one that is not recorded is Pending.
const (
	stepPending = "Pending"
	stepRunning = "Running"
	stepDone    = "Done"
	stepFailed  = "Failed"
	stepSkipped = "Skipped" // it was so without the plan
)

// Progress is what a plan's record says besides the plan.
type Progress struct {
	// Version is the version of the record's format.
	Version int `json:"version"`
	// Hash is the hash of the plan's text.
	Hash  string `json:"hash"`
	State State  `json:"state"`
	// Holder is the runner that has the plan; empty: none.
	Holder string `json:"holder,omitempty"`
	// Renewed is when the holder last wrote, by its own clock.
	Renewed time.Time `json:"renewed,omitzero"`
	// AllowReboots is the option of the Restore under way.
	AllowReboots bool                    `json:"allowReboots,omitempty"`
	Steps        map[string]StepProgress `json:"steps"`
	// Report is what the last stop left or put back.
	Report *Report `json:"report,omitempty"`
}

// StepProgress is how far a step has come. In a plan of more than 500 steps, one that is
// over keeps its State alone, once the plan has put back what the step changed.
type StepProgress struct {
	State    string    `json:"state"` // Pending, Running, Done, Failed or Skipped
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`
	Attempts int       `json:"attempts,omitempty"`
	// Moved is when a phase last changed in a pool that the step waits for.
	Moved time.Time `json:"moved,omitzero"`
	// Before is what fields had, by object and JSON pointer: null if a field was
	// absent. For nodes' labels it is on the nodes alone.
	Before map[string]map[string]any `json:"before,omitempty"`
	Error  string                    `json:"error,omitempty"`
}

// over reports whether the step is never looked at again.
func (s StepProgress) over(step *Step) bool {
	return s.State == stepDone || s.State == stepSkipped || s.State == stepFailed && !step.stops()
}

// recordFormat is the newest version of a record's format. A record that does not have
// finished steps in runs is of version 1.
const recordFormat = 2

// The keys of a record, and the label of its ConfigMap.
const (
	keyPlan      = "plan"
	keyProgress  = "progress"
	keyFinished  = "finished"
	keyConfirmed = "confirmed"
)

// record is a plan's ConfigMap as it was read or written last.
type record struct {
	object    *unstructured.Unstructured
	data      map[string]string
	Progress  Progress
	finished  string // steps that Progress lacks, in runs
	confirmed map[string]bool
}

func recordName(id string) string { return "rollout-" + id }

// newRecord is the record of a plan that starts.
func newRecord(namespace, id string, plan []byte) *record {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(configMapKind)
	u.SetNamespace(namespace)
	u.SetName(recordName(id))
	u.SetLabels(map[string]string{annotationPlan: id})
	return &record{object: u, data: map[string]string{keyPlan: string(plan)},
		Progress: Progress{Version: 1, Hash: hash(plan), State: StateRunning, Steps: map[string]StepProgress{}}}
}

var configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")

// unreadable is the error of a record that was read and is damaged, or of a newer
// format.
type unreadable struct{ error }

func (e unreadable) Unwrap() error { return e.error }

// readRecord reads a record. Errors of the API come as they are, the rest as
// unreadable.
func readRecord(ctx context.Context, api clusterapi.Reader, namespace, id string) (*record, error) {
	o, err := clusterapi.GetShared(ctx, api, configMapKind, clusterapi.Key(namespace, recordName(id)))
	if err != nil {
		return nil, err
	}
	r, err := decodeRecord(o.Unstructured())
	if err != nil {
		return nil, unreadable{err}
	}
	return r, nil
}

func decodeRecord(u *unstructured.Unstructured) (*record, error) {
	data, _, err := unstructured.NestedStringMap(u.Object, "data")
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	r := &record{object: u, data: data}
	fail := func(err error) (*record, error) {
		return nil, fmt.Errorf("ConfigMap %s/%s, key %s: %w", u.GetNamespace(), u.GetName(), keyProgress, err)
	}
	if err := json.Unmarshal([]byte(data[keyProgress]), &r.Progress); err != nil {
		var head struct{ Version int }
		if json.Unmarshal([]byte(data[keyProgress]), &head) == nil && head.Version > recordFormat {
			return fail(checkFormat("the record", head.Version, recordFormat))
		}
		return fail(err)
	}
	if err := checkFormat("the record", r.Progress.Version, recordFormat); err != nil {
		return fail(err)
	}
	if r.Progress.Steps == nil {
		r.Progress.Steps = map[string]StepProgress{}
	}
	r.finished = data[keyFinished]
	r.confirmed, err = decodeConfirmed(data[keyConfirmed])
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s, key %s: %w", u.GetNamespace(), u.GetName(), keyConfirmed, err)
	}
	return r, nil
}

// store writes the record, on condition that it is stored as it was read, or
// creates it. On success r is what is stored. steps are those of the plan.
func (r *record) store(ctx context.Context, api clusterapi.Writer, steps []Step) error {
	p := r.Progress
	finished := r.finished
	if finished == "" && len(steps) > longPlan {
		p.Steps, finished = foldFinished(p.Steps, steps)
	}
	p.Version = 1
	data := maps.Clone(r.data)
	delete(data, keyFinished)
	if finished != "" {
		p.Version = recordFormat
		data[keyFinished] = finished
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	data[keyProgress] = string(text)
	size := 0
	for k, v := range data {
		size += len(k) + len(v)
	}
	if size > maxBytes {
		return tooLarge("record")
	}
	u := r.object.DeepCopy()
	if err := unstructured.SetNestedStringMap(u.Object, data, "data"); err != nil {
		return err
	}
	var stored *unstructured.Unstructured
	if u.GetResourceVersion() == "" {
		stored, err = api.Create(ctx, u, clusterapi.CreateOptions{FieldManager: clusterapi.ManagerRollout})
	} else {
		stored, err = api.Update(ctx, u, clusterapi.UpdateOptions{FieldManager: clusterapi.ManagerRollout})
	}
	if err != nil {
		return err
	}
	r.object, r.data = stored, data
	return nil
}

// plan is the plan of the record, checked against its hash.
func (r *record) plan() (Plan, error) {
	text := []byte(r.data[keyPlan])
	if hash(text) != r.Progress.Hash {
		return Plan{}, fmt.Errorf("%w: the text in ConfigMap %s was edited", ErrPlanChanged, clusterapi.KeyOf(r.object))
	}
	return Decode(text)
}

// Load reads a plan and its progress from the record in a cluster; namespace ""
// means openshift-config. Without a record the error is one that
// apierrors.IsNotFound recognises; if the plan's text was edited since it was
// started, it is [ErrPlanChanged].
func Load(ctx context.Context, api clusterapi.Reader, namespace, id string) (Plan, Progress, error) {
	r, err := readRecord(ctx, api, namespaceOr(namespace), id)
	if err != nil {
		return Plan{}, Progress{}, err
	}
	p, err := r.plan()
	if err == nil {
		err = r.unfold(p.Steps)
	}
	return p, r.Progress, err
}

func namespaceOr(namespace string) string {
	if namespace == "" {
		return recordNamespace
	}
	return namespace
}

// confirmedSteps is the value of the key "confirmed".
type confirmedSteps struct {
	Version int      `json:"version"`
	Steps   []string `json:"steps"`
}

// confirmedFormat is the version of the format of confirmedSteps.
const confirmedFormat = 1

func encodeConfirmed(steps map[string]bool) (string, error) {
	text, err := json.Marshal(confirmedSteps{confirmedFormat, slices.Sorted(maps.Keys(steps))})
	return string(text), err
}

func decodeConfirmed(text string) (map[string]bool, error) {
	if text == "" {
		return nil, nil
	}
	var c confirmedSteps
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return nil, err
	}
	if err := checkFormat("the list", c.Version, confirmedFormat); err != nil {
		return nil, err
	}
	out := make(map[string]bool, len(c.Steps))
	for _, s := range c.Steps {
		out[s] = true
	}
	return out, nil
}

// Confirm reports that a person has done a step of kind [Manual], or approves what
// a [Gate] of action "approval" asks. It may be said before the step is reached.
// namespace "" means openshift-config. It fails if the plan has no record or no
// such step, and with the errors of the API.
func Confirm(ctx context.Context, api clusterapi.ReadWriter, namespace, id, step string) error {
	key := clusterapi.Key(namespaceOr(namespace), recordName(id))
	o := clusterapi.ModifyOptions{FieldManager: clusterapi.ManagerRollout}
	_, err := clusterapi.Modify(ctx, api, key, o, func(c *corev1.ConfigMap) error {
		p, err := Decode([]byte(c.Data[keyPlan]))
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(p.Steps, func(s Step) bool { return s.ID == step }) {
			return fmt.Errorf("plan %s has no step %s", id, bounded.Quote(step))
		}
		have, err := decodeConfirmed(c.Data[keyConfirmed])
		if err != nil || have[step] {
			return err
		}
		if have == nil {
			have = map[string]bool{}
		}
		have[step] = true
		c.Data[keyConfirmed], err = encodeConfirmed(have)
		return err
	})
	return err
}

// finished reports whether the plan of an ID is known to have ended. One without
// a record may have lost it.
func finished(ctx context.Context, api clusterapi.Reader, namespace, id string) (bool, error) {
	r, err := readRecord(ctx, api, namespace, id)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return r.Progress.State.Ended(), nil
}

// objectName names an object in records and reports: "MachineConfigPool/worker".
func objectName(u *unstructured.Unstructured) string {
	parts := []string{u.GetKind()}
	if ns := u.GetNamespace(); ns != "" {
		parts = append(parts, ns)
	}
	return strings.Join(append(parts, u.GetName()), "/")
}
