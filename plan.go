package clusterupdate

import (
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
)

// The steps of an update, in their order. Each has a file of its own.
const (
	stepFetch    = "fetch"
	stepEvaluate = "evaluate"
	stepResolve  = "resolve"
	stepLoad     = "load"
	stepAccept   = "accept"
	stepApply    = "apply"
	stepComplete = "complete"
)

var steps = []string{stepFetch, stepEvaluate, stepResolve, stepLoad, stepAccept, stepApply, stepComplete}

// Plan is what an [Updater] decided at one time.
type Plan struct {
	Time       time.Time                 `json:"time"`
	Resolution clusterversion.Resolution `json:"resolution"`
	// Actions are what it does, and what it waits for, in the order of the
	// steps.
	Actions []Action `json:"actions,omitempty"`
}

// Action is a step that an [Updater] takes, or will take.
type Action struct {
	// Step is fetch, evaluate, resolve, load, accept, apply or complete: see
	// the package's documentation.
	Step string `json:"step"`
	// Release is what it is about, as far as it is about one.
	Release configv1.Release `json:"release,omitzero"`
	// Reason says why, and of an action that waits what for.
	Reason string `json:"reason"`
	// At is when it is due, of an action that waits; zero: now, or when what
	// Reason names has happened.
	At time.Time `json:"at,omitzero"`
	// Waits says that nothing is done yet.
	Waits bool `json:"waits,omitempty"`

	fetch   *retrieval       // to run
	load    *loadRequest     // to run
	ask     *configv1.Update // for which to ask
	adopt   *syncWork        // to apply from now on
	pass    *passStart       // to begin
	again   bool             // what a pass waits for is looked at
	hook    *hookCall        // to make
	recheck *recheckCall     // to run
}

// object is the ClusterVersion as it was read, and what else of the cluster a
// plan is made from. It is not changed.
type object struct {
	cv    *configv1.ClusterVersion
	own   configv1.Release
	gates gates
	risks clusterRisks

	operators     reported        // nil: not looked at
	lost          error           // why own is not known; nil: it is
	notUnderstood field.ErrorList // what of the request is not
}

// settings are the options that plans depend on.
type settings struct {
	Options
	interval  time.Duration
	deletions []string                                // that are pending
	starts    func(operator string) (time.Time, bool) // since when operators are awaited
	draining  bool                                    // calls of a pass that was called off are under way
}

// planner is a plan in the making.
type planner struct {
	settings
	now     time.Time
	o       object
	s       session // as it is once the plan is carried out
	updates availableUpdates
	d       decision
	accepts bool // what s.sync is now becomes an entry of the history
	loading *loadRequest
	held    bool // hooks are not done
	status  configv1.ClusterVersionStatus
	risks   string // see [riskText]
	actions []Action
}

// plan decides what to do about a ClusterVersion, and what its status says. It
// is a pure function: it looks at nothing but its arguments, and changes
// nothing.
func plan(now time.Time, o object, s session, l availableUpdates, set settings) (configv1.ClusterVersionStatus, []Action) {
	p := &planner{settings: set, now: now, o: o, s: s, updates: l, d: decide(o, s, l, set)}
	p.load()
	p.accept()
	p.complete()
	p.status, p.risks = p.judge()
	p.resolve()
	p.fetch()
	p.hooks()
	p.apply()
	slices.SortStableFunc(p.actions, func(a, b Action) int { return slices.Index(steps, a.Step) - slices.Index(steps, b.Step) })
	return p.status, p.actions
}

// judge computes the status, with the condition Upgradeable of what it says
// besides, and the risks behind that.
func (p *planner) judge() (configv1.ClusterVersionStatus, string) {
	in := newStatusInput(p.now, p.o.cv, p.d, &p.s, p.updates, &p.settings)
	in.accepts, in.loading = p.accepts, p.loading
	in.completed = in.completed || p.accepts && p.s.sync.found
	cv := *p.o.cv
	cv.Status = nextStatus(p.o.cv.Status, in)
	u := p.o.risks.upgradeable(&cv, p.d.own.Version, p.deletions, p.ReasonStyle)
	in.judged, in.upgradeable = true, u.Condition
	return nextStatus(p.o.cv.Status, in), riskText(p.d.gates, u.Risks)
}

func (p *planner) do(a Action) { p.actions = append(p.actions, a) }

func (p *planner) wait(step string, r configv1.Release, reason string) {
	p.waitUntil(step, r, time.Time{}, reason)
}

func (p *planner) waitUntil(step string, r configv1.Release, at time.Time, reason string) {
	p.do(Action{Step: step, Release: r, Reason: reason, At: at, Waits: true})
}

// later reports whether t is still to come. Where it is further off than
// anything waits, the clock was set back since, and it is due.
func (p *planner) later(t time.Time, longest time.Duration) bool {
	return t.After(p.now) && t.Sub(p.now) <= longest
}

// longestWait is the longest time between two passes, and between two attempts
// at a release.
func (p *planner) longestWait() time.Duration { return 2 * p.interval }
