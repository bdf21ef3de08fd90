package preview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/fieldchange"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// Options are the options of [Run]. They are plain data.
type Options struct {
	// Reader is the cluster: a live one, a recording, one in memory. It is
	// required, and nothing is ever written to it.
	Reader clusterapi.Reader
	// Payload is the release of the tasks. It shows what is excluded, and which
	// images there are; nil leaves both out.
	Payload *manifest.Payload
	// Running is the release that the cluster runs, loaded with the same filter.
	// With it the preview distinguishes what the release changes from what somebody
	// else has changed, which fields and objects stay behind, and which images
	// change. nil leaves these out.
	Running *manifest.Payload
	// Filter holds gates, capabilities and overrides of the cluster, as in
	// [runlevel.Options].
	Filter manifest.Filter
	// Owner is the ClusterVersion that owns what is applied, as in
	// [runlevel.Options]; nil adds no owner.
	Owner *metav1.OwnerReference
	// Mode is how the update applies objects, as in [runlevel.Options]: the default
	// is [runlevel.ApplyServerSide]. What the cluster-version operator would do needs
	// [runlevel.ApplyMerge].
	Mode runlevel.Mode
	// Adopt names the field managers whose fields the update takes over, as in
	// [runlevel.Options].
	Adopt []string
	// Server is asked too, if it is set: every write of the preview is sent to it,
	// and [Change].Server shows where its answer differs. It must say that it
	// changes nothing.
	Server Server
	// Descriptions shows changes of descriptions in schemas of
	// CustomResourceDefinitions field by field, instead of counting them.
	Descriptions bool
	// Key makes the digits that stand for credentials: with one key, equal
	// previews have equal texts. nil is a random one.
	Key []byte
	// Clock gives the creation times of objects; nil means one that stays at the
	// time of Reader ([clusterapi.TimeOf]), if it has one, else the real one.
	Clock clock.WithTicker
}

// Server is an API server that carries out writes without storing anything, such as
// clusterapi/kubernetes with its option DryRun. It is safe for concurrent use.
type Server interface {
	clusterapi.Writer
	// DryRun reports whether that is so. If it is not, Run refuses to start.
	DryRun() bool
}

// Action is what an update does to an object: Create, Update, Delete, Fail, Unknown,
// Keep, Skip, Absent, Unmanaged or Excluded.
type Action string

// The actions that change something, or may.
const (
	// Create makes an object that does not exist.
	Create Action = "Create"
	// Update changes fields of one that does.
	Update Action = "Update"
	// Delete asks for one to be gone.
	Delete Action = "Delete"
	// Unknown is an object that is created or changed: which of the two is unknown,
	// since it was not collected.
	Unknown Action = "Unknown"
	// Fail is one that the API server would refuse.
	Fail Action = "Fail"
)

// The others: Absent is a deletion of an object that does not exist, Keep writes
// nothing that is new, Skip leaves an object that is only ever created, and exists, as
// it is. An override of the ClusterVersion takes what is Unmanaged out of the update,
// and Excluded is what does not belong on this cluster.
const (
	absent    Action = "Absent"
	keep      Action = "Keep"
	skip      Action = "Skip"
	unmanaged Action = "Unmanaged"
	excluded  Action = "Excluded"
)

// Task is the manifest of a change. It is plain data.
type Task struct {
	// File is the manifest's file name, Document its place in it, from 1.
	File     string `json:"file"`
	Document int    `json:"document,omitempty"`
	// Index is the task's place among all tasks, from 1; 0 for a manifest that
	// was excluded before there were tasks.
	Index int `json:"index,omitempty"`
	// Level and Component follow from the file name, and are empty if it has none.
	Level     string `json:"level,omitempty"`
	Component string `json:"component,omitempty"`
}

// Change is what an update does to one object. It is plain data.
type Change struct {
	// Tasks are the manifests of the object, in their order: mostly one.
	Tasks  []Task `json:"tasks"`
	Object Object `json:"object"`
	Action Action `json:"action"`
	// Fields are those that change, by path, without what only a server sets; for
	// Skip those that the manifest names and the object lacks. Credentials are
	// shown as (redacted-12 digits). Of a definition, those of schemas are in
	// Schemas.
	Fields []clusterapi.FieldChange `json:"fields,omitempty"`
	// Reason explains why, where the action alone does not: what the server would
	// answer, which rule excludes the object, what was not collected.
	Reason string `json:"reason,omitempty"`
	// Awaited are the versions of a ClusterOperator that the update waits for.
	Awaited []configv1.OperandVersion `json:"awaited,omitempty"`
	// Schemas are the changes of a CustomResourceDefinition's schemas, by version.
	Schemas []fieldchange.SchemaChange `json:"schemas,omitempty"`
	// Dropped are versions of a CustomResourceDefinition that the release does not
	// have any more although objects may be stored in them. An API server refuses
	// that.
	Dropped []string `json:"dropped,omitempty"`
	// Stale are fields that the running release's manifest names and the target's
	// does not, and that still stay: they are not ours to remove, or a merge only
	// ever adds to them.
	Stale []StaleField `json:"stale,omitempty"`
	// OperatorRemoves are the paths of the Stale fields that stay with
	// [runlevel.ApplyServerSide] alone: the cluster-version operator would remove them.
	OperatorRemoves []string `json:"operatorRemoves,omitempty"`
	// Drift are fields that somebody else has changed and that the update
	// overwrites, though the release does not change them. With
	// [runlevel.ApplyMerge] they include what somebody else has added and a merge
	// takes away. They are among Fields.
	Drift []runlevel.DriftedField `json:"drift,omitempty"`
	// Rolls determines which pods are replaced, where the pod template changes.
	Rolls *Rolls `json:"rolls,omitempty"`
	// Finalizers hold an object that is deleted.
	Finalizers []string `json:"finalizers,omitempty"`
	// Dependents count what is deleted with the object.
	Dependents []Dependents `json:"dependents,omitempty"`
	// HeldBy are the refused changes that this one waits behind in the order of an
	// update: it does not happen while one of them is refused. Nil for an object
	// that does not change, and if there are none.
	HeldBy []Object `json:"heldBy,omitempty"`
	// Server is what [Options].Server answers that the preview did not; nil where
	// both agree, or it was not asked.
	Server *Answer `json:"server,omitempty"`
	// Seen is the state that the change starts from; nil if absent.
	Seen *Seen `json:"seen,omitempty"`

	old, new *unstructured.Unstructured
	hider    fieldchange.Hider
	unserved []string // versions of a definition that are not served any more
	refused  int      // of Fail: the index of the task
}

// Before returns the object as the cluster has it, nil if absent; After as it would
// be, nil for one that goes and for Changes of which nothing is known. Both must not
// be changed. They hold what other fields hide: credentials. Of a preview that was
// read from JSON they are nil.
func (c *Change) Before() *unstructured.Unstructured { return c.old }

// After returns the object as it would be: see [Change.Before].
func (c *Change) After() *unstructured.Unstructured { return c.new }

// Seen is a state of an object. It is plain data.
type Seen struct {
	UID             types.UID `json:"uid,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
	// Digest stands for the object without status, managedFields and what else
	// only a server sets: 16 hexadecimal digits of its SHA-256.
	Digest string `json:"digest"`
}

// StaleField is a field that stays. It is plain data.
type StaleField struct {
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Release determines which release a preview is about. It is plain data.
type Release struct {
	Version string `json:"version,omitempty"`
	Image   string `json:"image,omitempty"`
	// Hash stands for the manifests: [manifest.Payload].Hash.
	Hash string `json:"hash,omitempty"`
}

// Preview is what an update would do to a cluster. It is plain data.
type Preview struct {
	Release Release  `json:"release,omitzero"`
	Running *Release `json:"running,omitempty"`
	// Mode is how the update applies objects.
	Mode runlevel.Mode `json:"mode,omitempty"`
	// Time is when it was made.
	Time time.Time `json:"time"`
	// Changes are the objects of the release, one for each, in the order of their
	// manifests; those that were excluded on loading come last.
	Changes []Change `json:"changes"`
	// Configuration is what was read to put it into objects, such as the cluster's
	// proxy, and where each state is.
	Configuration []Configuration `json:"configuration,omitempty"`
	// Left are objects of the running release that the target does not mention.
	Left []Left `json:"left,omitempty"`
	// Images are the component images that change.
	Images []manifest.ImageChange `json:"images,omitempty"`
	// Access are the rights that are gained or lost.
	Access []AccessChange `json:"access,omitempty"`
	// Implicit are the capabilities that the update enables although the ClusterVersion
	// neither has them nor asks for them, sorted. Nil if Filter has no capabilities.
	Implicit []string `json:"implicitCapabilities,omitempty"`
	// RemovedAPIs are those that the cluster is asked for although they go.
	RemovedAPIs []RemovedAPI `json:"removedAPIs,omitempty"`
	// Unknowns are arguments of oc adm inspect that would collect what is missing,
	// one call each.
	Unknowns []string `json:"unknowns,omitempty"`
	// Assumed are what the preview takes for granted.
	Assumed []string `json:"assumed,omitempty"`
}

// Run works out what the tasks of a release would do to a cluster in an update: a
// pass of state [runlevel.Updating], by the same code and in the same order, over a
// fork of it in memory. What the pass would wait for counts as done, and it
// continues after what fails.
//
// What the reader cannot give because it was not collected, or is forbidden, is
// in the result as unknown. Every other failure of it is an error, and so are
// options that lack a Reader or have an unknown Mode.
func Run(ctx context.Context, tasks []*manifest.Task, o Options) (*Preview, error) {
	if o.Reader == nil {
		return nil, errors.New("preview: there is no Reader")
	}
	if o.Server != nil && !o.Server.DryRun() {
		return nil, errors.New("preview: the Server would store what it is sent: it is not in dry run")
	}
	if now := clusterapi.TimeOf(o.Reader); o.Clock == nil && !now.IsZero() {
		o.Clock = reconcile.NewClock(now)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	r := newRun(o)
	if err := r.makeNamespaces(ctx); err != nil {
		return nil, err
	}
	if err := r.pass(ctx, tasks); err != nil {
		return nil, err
	}
	return r.preview(ctx, tasks)
}

// Summary counts the changes by action and kind. Kinds without a change of an
// action are not in it.
func (p *Preview) Summary() map[Action]map[string]int {
	out := make(map[Action]map[string]int)
	for i := range p.Changes {
		c := &p.Changes[i]
		if out[c.Action] == nil {
			out[c.Action] = make(map[string]int)
		}
		out[c.Action][c.Object.Kind]++
	}
	return out
}

// Count is how many objects an action is about.
func (p *Preview) Count(a Action) int {
	n := 0
	for i := range p.Changes {
		if p.Changes[i].Action == a {
			n++
		}
	}
	return n
}

// taskOf is a manifest as a change has it.
func taskOf(m *manifest.Manifest, index int) Task {
	level, component, _ := manifest.ParseName(m.Filename)
	return Task{File: m.Filename, Document: m.Document, Index: index, Level: level, Component: component}
}

// sortChanges puts changes in the order of their manifests.
func sortChanges(changes []Change) {
	slices.SortStableFunc(changes, func(a, b Change) int {
		x, y := a.Tasks[0].Index, b.Tasks[0].Index
		if (x == 0) != (y == 0) {
			return cmp.Compare(y, x) // those without an index last
		}
		return cmp.Compare(x, y)
	})
}

// errorf names the package.
func errorf(format string, args ...any) error { return fmt.Errorf("preview: "+format, args...) }
