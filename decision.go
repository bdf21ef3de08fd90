package clusterupdate

import (
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// The steps of an update, in their order. Each has its own file.
const (
	stepFetch     = "fetch"
	stepEvaluate  = "evaluate"
	stepResolve   = "resolve"
	stepPreflight = "preflight"
	stepLoad      = "load"
	stepAccept    = "accept"
	stepApply     = "apply"
	stepComplete  = "complete"
)

var steps = []string{stepFetch, stepEvaluate, stepResolve, stepPreflight, stepLoad, stepAccept, stepApply, stepComplete}

// Decision is what an [Updater] decided at one time.
type Decision struct {
	Time       time.Time                 `json:"time"`
	Resolution clusterversion.Resolution `json:"resolution"`
	// Actions are what it does, and what it waits for, in the order of the
	// steps.
	Actions []Action `json:"actions,omitempty"`
	// Awaits are what it waits for, which is not a failure.
	Awaits []Cause `json:"awaits,omitempty"`
	// Failures are what failed and is tried again. As long as a write of the status
	// does, no action is carried out.
	Failures []Cause `json:"failures,omitempty"`
}

// Cause is something that an update waits for, or that failed.
type Cause struct {
	// Subject names it, as clusteroperator/etcd, hook/backups or release 4.21.1 do.
	Subject string `json:"subject"`
	// Message describes what it lacks, or how it failed.
	Message string `json:"message"`
	// Since is when this process saw it so first; of a ClusterOperator, since when
	// it is awaited.
	Since time.Time `json:"since,omitzero"`
}

// Action is a step that an [Updater] takes, or will take.
type Action struct {
	// Step is fetch, evaluate, resolve, preflight, load, accept, apply or complete:
	// see the package's documentation.
	Step string `json:"step"`
	// Release is what it is about, as far as it is about one.
	Release configv1.Release `json:"release,omitzero"`
	// Reason explains why, and of an action that waits what for.
	Reason string `json:"reason"`
	// At is when it is due, of an action that waits; zero: now, or when what
	// Reason names has happened.
	At time.Time `json:"at,omitzero"`
	// Waits reports that nothing is done yet.
	Waits bool `json:"waits,omitempty"`

	fetch     *retrieval       // to run
	load      *loadRequest     // to run
	ask       *configv1.Update // for which to ask
	adopt     *syncWork        // to apply from now on
	pass      *passStart       // to begin
	resume    bool             // what a pass waits for is looked at
	hook      *hookCall        // to make
	recheck   *recheckCall     // to run
	preflight *loadRequest     // to run
}

// String returns "step release: reason", with "waits" before the reason of an action
// that waits.
func (a Action) String() string {
	text := a.Step
	if a.Release.Version != "" {
		text += " " + a.Release.Version
	}
	if a.Waits {
		text += " waits"
	}
	return text + ": " + a.Reason
}

// object is the ClusterVersion as it was read, and whatever else of the cluster a
// plan is made from. It is not changed.
type object struct {
	cv    *configv1.ClusterVersion
	own   configv1.Release
	gates gates
	risks clusterRisks

	operators     reported        // nil: not looked at
	lost          error           // why own is not known; nil: it is
	notUnderstood field.ErrorList // the parts of the request that are not
}

// settings are the options that decisions depend on.
type settings struct {
	o         *Options
	interval  time.Duration
	deletions []string                                // that are pending
	starts    func(operator string) (time.Time, bool) // since when operators are awaited
	draining  bool                                    // calls of a pass that was called off are under way
}

// memory is what an [Updater] remembers between its decisions, as those who ask, load
// and apply keep it. It is a cache: nothing of it is needed to continue after a
// restart. It is about one entry of the history and one request. Where either has
// moved, for whatever reason, it is dropped before anything else happens.
type memory struct {
	updates    availableUpdates
	loads      loads
	work       work
	hooks      hookAnswers
	preflights preflights
	asked      *configv1.Update // by automatic mode, last

	hookCalls []int // calls of each hook that have ended
}

// adopt makes w what passes apply.
func (m *memory) adopt(w *syncWork, status *configv1.ClusterVersionStatus, architecture string) {
	if m.work.sync == nil || m.work.sync.loaded != w.loaded {
		m.loads.accepted = loadedMessage(w.loaded.release, architecture)
	}
	m.loads.take(w.loaded)
	m.work.adopt(w, status)
}

// causes are what keeps a ClusterVersion from being as it asks.
func (m *memory) causes(cv *configv1.ClusterVersion, hooks []clusterversion.Hook) (awaits, failures []Cause) {
	w := &m.work
	if a := &m.loads.wanted; a.err != nil {
		failures = append(failures, Cause{Subject: releaseSubject(a.err.Release), Message: a.err.Message, Since: a.since})
	}
	if w.passErr != nil || w.report.Failure != nil {
		awaits, failures = append(awaits, w.awaits...), append(failures, w.failing...)
	}
	t := m.hookTrouble(cv.UID, cv.Status.History, hooks)
	awaits = append(awaits, t.waits...)
	failures = append(append(failures, t.failed...), t.blocked...)
	return awaits, failures
}

// planner is a decision in the making.
type planner struct {
	set     settings
	now     time.Time
	o       object
	mem     memory // as it is once the decision is carried out
	d       intent
	accepts bool // what passes apply now becomes an entry of the history
	loading *loadRequest
	held    bool // hooks are not done
	status  configv1.ClusterVersionStatus
	risks   string // see [riskText]
	actions []Action
}

// plan decides what to do about a ClusterVersion that asks for d, and what its status
// says. It is a pure function: it looks at nothing but its arguments, and changes
// nothing.
func plan(now time.Time, o object, d intent, m memory, set settings) (configv1.ClusterVersionStatus, []Action) {
	p := &planner{set: set, now: now, o: o, mem: m, d: d}
	p.load()
	p.accept()
	p.complete()
	p.status, p.risks = p.judge()
	p.mem.preflights.show(&p.status, now, o.cv, &p.d, p.accepts)
	p.resolve()
	p.preflight()
	p.fetch()
	p.hooks()
	p.apply()
	slices.SortStableFunc(p.actions, func(a, b Action) int { return slices.Index(steps, a.Step) - slices.Index(steps, b.Step) })
	return p.status, p.actions
}

// judge computes the status, and then its condition Upgradeable, which depends on the
// rest, with the risks behind that.
func (p *planner) judge() (configv1.ClusterVersionStatus, string) {
	in := newStatusInput(p.now, p.o.cv, p.d, &p.mem, &p.set)
	in.accepts, in.loading = p.accepts, p.loading
	in.completed = in.completed || p.accepts && p.mem.work.sync.found
	if openshift.FindCondition(p.o.cv.Status.Conditions, configv1.OperatorUpgradeable) == nil {
		in.upgradeable = &configv1.ClusterOperatorStatusCondition{Status: configv1.ConditionUnknown} // its place among the conditions
	}
	cv := *p.o.cv
	cv.Status = nextStatus(p.o.cv.Status, in)
	u := p.o.risks.upgradeable(&cv, p.d.own.Version, p.set.deletions, p.set.o.ReasonStyle)
	if u.Condition != nil {
		c := *u.Condition
		c.Type = configv1.OperatorUpgradeable
		setCondition(&cv.Status.Conditions, c, in.now)
	} else {
		removeCondition(&cv.Status.Conditions, configv1.OperatorUpgradeable)
	}
	return cv.Status, riskText(p.d.gates, u.Risks)
}

func (p *planner) do(a Action) { p.actions = append(p.actions, a) }

func (p *planner) wait(step string, r configv1.Release, reason string) {
	p.waitUntil(step, r, time.Time{}, reason)
}

func (p *planner) waitUntil(step string, r configv1.Release, at time.Time, reason string) {
	p.do(Action{Step: step, Release: r, Reason: reason, At: at, Waits: true})
}

// later reports whether t is still to come. If it is further off than anything
// waits, the clock was set back since, and it is due.
func (p *planner) later(t time.Time, longest time.Duration) bool {
	return t.After(p.now) && t.Sub(p.now) <= longest
}

// longestWait is the longest time between two passes, and between two attempts
// at a release.
func (p *planner) longestWait() time.Duration { return 2 * p.set.interval }
