package clusterupdate

import (
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// origin is why a release is wanted, and so how far it is trusted.
type origin string

const (
	running     origin = "running"   // the cluster runs it already
	resumed     origin = "resumed"   // an update to it had been accepted before
	requested   origin = "requested" // somebody asks for it
	preflighted origin = "preflight" // somebody asks to check it
)

// intent is what a ClusterVersion asks for.
type intent struct {
	faults     field.ErrorList
	answered   bool                     // the updates were retrieved
	cleared    *configv1.ClusterVersion // with the available updates as they were retrieved last
	resolution clusterversion.Resolution
	own, base  configv1.Release
	want       configv1.Release
	origin     origin
	baseOrigin origin
	verified   bool  // resumed: it was verified when it was accepted
	installing bool  // no release was ever completed
	lost       error // why it is not known what the cluster runs: only an image that is requested is applied
	gates      gates
}

// intentOf works out what a ClusterVersion asks for. It is a pure function.
func intentOf(o object, m memory, set settings) intent {
	cv := o.cv
	available, conditional, answered := m.updates.answer(cv.Spec, true)
	if answered { // what was retrieved counts, published or not
		cv = cv.DeepCopy()
		cv.Status.AvailableUpdates, cv.Status.ConditionalUpdates = available, conditional
	}
	d := intent{own: o.own, gates: o.gates, installing: !m.work.ran, lost: o.lost, answered: answered}
	d.faults = append(clusterversion.Validate(cv, o.gates.acceptRisks), o.notUnderstood...)
	d.cleared = clusterversion.Clear(cv, d.faults)
	asks, faulty := d.cleared, cv.Spec.DesiredUpdate != nil && d.cleared.Spec.DesiredUpdate == nil
	if faulty && len(o.notUnderstood) == 0 && slices.ContainsFunc(d.faults, isNotAvailable) {
		if set.o.Graph != nil && m.updates.unjudged(acceptedRisks(cv, o.gates)) {
			// The version may well be available: not known is not invalid.
			d.faults = slices.DeleteFunc(d.faults, isNotAvailable)
			faulty = false
		} else if isConditional(cv, cv.Spec.DesiredUpdate.Version) {
			asks, faulty = cv, false // it is known what speaks against it
		}
	}

	d.base, d.baseOrigin = o.own, running
	if o.lost != nil {
		d.base = configv1.Release{}
	}
	if h := started(cv, o.own, m.work.ran); h != nil {
		d.base, d.baseOrigin, d.verified = configv1.Release{Version: h.Version, Image: h.Image}, resumed, h.Verified
	}
	var applied configv1.Release
	if m.work.sync != nil {
		applied = m.work.sync.loaded.release
	}
	d.base = graph.FillRelease(graph.FillRelease(d.base, applied, nil), cv.Status.Desired, nil)

	d.resolution = clusterversion.Resolve(asks, d.base, faulty, set.o.Resolve)
	if i := slices.IndexFunc(d.faults, isOfRequest); i >= 0 && d.resolution.Row == clusterversion.RowInvalid {
		d.resolution.Why += ": " + d.faults[i].Error()
	}
	if len(o.notUnderstood) > 0 {
		d.resolution.Why = "the request is not understood, so it changes nothing: " + o.notUnderstood.ToAggregate().Error()
	}
	if d.resolution.Row == clusterversion.RowAtRisk { // available by the options
		d.faults = slices.DeleteFunc(d.faults, isNotAvailable)
		d.cleared = clusterversion.Clear(cv, d.faults)
	}
	if d.resolution.Outcome == clusterversion.Resolved && d.installing {
		d.resolution = clusterversion.Resolution{Outcome: clusterversion.OwnRelease, Row: clusterversion.RowInstalling, Release: d.base, Why: "the cluster is still being installed", Withdrawn: d.resolution.Withdrawn}
	}
	if d.resolution.Outcome == clusterversion.Resolved && len(cv.Status.History) == 0 && d.lost == nil {
		d.resolution = clusterversion.Resolution{Outcome: clusterversion.OwnRelease, Row: clusterversion.RowNoHistory, Release: d.base, Withdrawn: d.resolution.Withdrawn}
	}
	d.want, d.origin = d.resolution.Release, d.baseOrigin
	if d.resolution.Outcome == clusterversion.Resolved {
		d.origin = requested
	}
	return d
}

func isOfRequest(err *field.Error) bool { return strings.HasPrefix(err.Field, "spec.desiredUpdate") }

const notAvailableDetail = "when image is empty the update must be an available update"

func isNotAvailable(err *field.Error) bool { return err.Detail == notAvailableDetail }

// started returns the entry of an update that was started, nil if absent. What has
// been going on since the installation is not an update.
func started(cv *configv1.ClusterVersion, own configv1.Release, ran bool) *configv1.UpdateHistory {
	h := cv.Status.History
	if len(h) == 0 || h[0].State == configv1.CompletedUpdate || h[0].Image == own.Image || !ran {
		return nil
	}
	return &h[0]
}

// reconciledVersion is the version that the cluster is at, or on its way to.
func reconciledVersion(cv *configv1.ClusterVersion, own configv1.Release, ran bool) string {
	if h := started(cv, own, ran); h != nil {
		return h.Version
	}
	return own.Version
}

// resolve asks for the newest recommended update in automatic mode, once the
// cluster has finished the one before. A request of somebody else that is not
// fulfilled yet goes first.
func (p *planner) resolve() {
	if why := p.d.resolution.Why; why != "" {
		p.wait(stepResolve, configv1.Release{}, why)
	}
	cv, w := p.o.cv, &p.mem.work
	if !p.set.o.Auto || p.d.resolution.Row == clusterversion.RowPreflight || len(p.o.notUnderstood) > 0 || p.d.installing || w.sync == nil || !w.report.Reconciling || cv.Status.History[0].State != configv1.CompletedUpdate {
		return
	}
	if u := cv.Spec.DesiredUpdate; u != nil && p.d.resolution.Outcome != clusterversion.OwnRelease && !equality.Semantic.DeepEqual(u, p.mem.asked) {
		return
	}
	progressing := openshift.FindCondition(p.status.Conditions, configv1.OperatorProgressing)
	state := graph.AutoState{
		Current:     p.status.Desired.Version,
		Available:   p.status.AvailableUpdates,
		Desired:     cv.Spec.DesiredUpdate,
		Progressing: progressing != nil && progressing.Status == configv1.ConditionTrue,
	}
	next, _ := graph.NextUpdate(state, p.set.o.AutoPolicy)
	if next == nil || equality.Semantic.DeepEqual(next, cv.Spec.DesiredUpdate) {
		return
	}
	release := configv1.Release{Version: next.Version, Image: next.Image}
	p.do(Action{Step: stepResolve, Release: release, Reason: "automatic mode: the newest recommended update", ask: next})
}

// isConditional reports whether a version is an update with known issues.
func isConditional(cv *configv1.ClusterVersion, version string) bool {
	return slices.ContainsFunc(cv.Status.ConditionalUpdates, func(u configv1.ConditionalUpdate) bool { return u.Release.Version == version })
}
