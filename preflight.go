package clusterupdate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// The times between the ends of two preflights of one release, while it is requested.
const (
	preflightAtMost  = 10 * time.Minute // even if what the checks look at has changed
	preflightAtLeast = time.Hour
)

// preflightKey is what a preflight is about.
type preflightKey struct {
	uid            types.UID // of the ClusterVersion
	image, version string
	force          bool
}

// preflightRun is what is known of the last preflight of a release.
type preflightRun struct {
	ended   time.Time
	changed bool // what the checks read may have, since then
	failed  bool
}

// preflights is what is remembered of preflights. What they found is in the ClusterVersion.
type preflights struct {
	runs     map[preflightKey]preflightRun
	key      preflightKey              // of found
	found    *clusterversion.Preflight // by the last run; nil: it is in the ClusterVersion
	progress string                    // of the run under way
	asked    preflightKey              // in the last look
	kinds    []schema.GroupVersionKind // whose changes call for another run
	changes  int                       // that have ended
	stale    bool                      // what the ClusterVersion has was found at another release
}

// preflightID distinguishes runs.
type preflightID struct {
	key   preflightKey
	ended time.Time // the run before
}

// preflight checks the release that a request of the mode Preflight names, if that is
// due. Nothing of the release becomes part of the history or is applied.
func (p *planner) preflight() {
	target := p.d.resolution.Preflight
	if target.Image == "" {
		return
	}
	if why := p.d.busy(p.status.History); why != "" {
		p.wait(stepPreflight, target, why)
		return
	}
	r := p.request(target, preflighted)
	key := p.d.preflightKey(p.o.cv.UID)
	run, ran := p.mem.preflights.runs[key]
	due, why := run.ended.Add(preflightAtLeast), "the release was checked"
	if run.changed || run.failed {
		due = run.ended.Add(preflightAtMost)
	}
	if ran && p.later(due, preflightAtLeast) {
		p.waitUntil(stepPreflight, target, due, why)
		return
	}
	p.do(Action{Step: stepPreflight, Release: target, Reason: "a check of the release is requested", preflight: r})
}

// preflightKey is the key of the release that d asks to check.
func (d *intent) preflightKey(uid types.UID) preflightKey {
	r := &d.resolution
	return preflightKey{uid, r.Preflight.Image, r.Preflight.Version, r.Force}
}

// withoutPreflights is the ClusterVersion without what preflights found, and with the
// updates as they were retrieved: checks do not find the risks of a preflight again.
func (p *planner) withoutPreflights() *configv1.ClusterVersion {
	cv := p.o.cv.DeepCopy()
	clusterversion.RemovePreflights(&cv.Status)
	if available, conditional, ok := p.mem.updates.answer(cv.Spec, p.d.gates.architecture); ok {
		cv.Status.AvailableUpdates, cv.Status.ConditionalUpdates = available, conditional
	}
	return cv
}

// busy explains why no release can be checked while a cluster has a history; empty: one can
// be.
func (d *intent) busy(h []configv1.UpdateHistory) string {
	switch {
	case d.lost != nil || len(h) == 0:
		return "the check waits until it is known what the cluster runs"
	case d.installing:
		return "the check waits until the cluster is installed"
	case h[0].State != configv1.CompletedUpdate:
		return fmt.Sprintf("the check waits until the update to %s is complete", h[0].Version)
	}
	return ""
}

// show adds to the next status of cv what preflights found, and how far the one is that is
// requested. What the ClusterVersion has of earlier ones stays, unless it is void: of the
// release that is being checked, until that ends.
func (m *preflights) show(
	s *configv1.ClusterVersionStatus, now time.Time, cv *configv1.ClusterVersion, d *intent, void bool,
) {
	var found []clusterversion.Preflight
	for _, p := range clusterversion.Preflights(&cv.Status) {
		if p.State == clusterversion.PreflightRunning && len(p.Findings) > 0 { // by the run before
			p.State, p.Message = endState(p.Findings), ""
		}
		if p.State != clusterversion.PreflightRunning && !void && !m.stale && p.Release.Image != s.Desired.Image {
			found = append(found, p)
		}
	}
	if current := m.current(d, cv.UID, s.History); current != nil {
		next := *current
		found = slices.DeleteFunc(found, func(p clusterversion.Preflight) bool {
			to := next.Release
			same := p.Release.Image == to.Image || to.Version != "" && p.Release.Version == to.Version
			if same && next.State == clusterversion.PreflightRunning && p.Release.Image == to.Image {
				next.Findings, next.Ended = p.Findings, p.Ended // which hold until the run ends
			}
			return same
		})
		found = append(found, next)
	}
	clusterversion.ShowPreflights(s, found, clusterversion.PreflightDisplay{
		Before: &cv.Status, Now: metav1.NewTime(now),
		Blocks: d.gates.acceptRisks && d.answered, Accepted: acceptedRisks(cv, d.gates),
	})
}

// current is what is known here of the preflight that is requested; nil: no more than the
// ClusterVersion has.
func (m *preflights) current(d *intent, uid types.UID, h []configv1.UpdateHistory) *clusterversion.Preflight {
	target, key := d.resolution.Preflight, d.preflightKey(uid)
	if target.Image == "" {
		return nil
	}
	if m.found != nil && m.key == key {
		return m.found
	}
	running := &clusterversion.Preflight{Release: target, State: clusterversion.PreflightRunning, Message: m.progress}
	if why := d.busy(h); why != "" {
		running.Message = why
		return running
	}
	if _, ran := m.runs[key]; ran {
		return nil
	}
	return running
}

// ask records the present request. One that is new, to this process or after another
// request, is run again as after a change.
func (p *preflights) ask(key preflightKey, cv *configv1.ClusterVersion) {
	if p.asked == key {
		return
	}
	p.asked, p.progress = key, ""
	run, ran := p.runs[key]
	if !ran {
		run, ran = p.published(key, cv)
	}
	if ran {
		run.changed = true
		p.note(key, run)
	}
}

// published is the run whose findings the ClusterVersion has: of another process.
func (p *preflights) published(key preflightKey, cv *configv1.ClusterVersion) (run preflightRun, ok bool) {
	found := preflightOf(clusterversion.Preflights(&cv.Status), configv1.Release{Image: key.image})
	if found == nil || p.stale || found.Ended.IsZero() || found.State == clusterversion.PreflightRunning {
		return preflightRun{}, false
	}
	isUnverified := func(f clusterversion.PreflightFinding) bool { return f.Name == notVerified }
	if key.force || slices.ContainsFunc(found.Findings, isUnverified) {
		return preflightRun{}, false // whether that run was forced is not known
	}
	return preflightRun{ended: found.Ended}, true
}

func (p *preflights) note(key preflightKey, run preflightRun) {
	if p.runs == nil {
		p.runs = make(map[preflightKey]preflightRun)
	}
	p.runs[key] = run
}

// ended records the result of a preflight.
func (p *preflights) ended(key preflightKey, out preflightResult, now time.Time) {
	found := out.found
	found.Ended = now
	p.note(key, preflightRun{ended: now, failed: found.State == clusterversion.PreflightFailed})
	p.key, p.found, p.progress = key, found, ""
	p.kinds = out.kinds
	p.changes++
}

// changed records that something has changed that checks read.
func (p *preflights) changed() {
	for key, run := range p.runs {
		run.changed = true
		p.runs[key] = run
	}
}

// preflightResult is what a preflight returns.
type preflightResult struct {
	found *clusterversion.Preflight
	kinds []schema.GroupVersionKind // that the checks read, as far as they are watched
}

// preflightJob checks a release while decisions continue. done gets what was found.
func (r *decider) preflightJob(request *loadRequest) reconcile.Job {
	key := r.preflights.asked
	return reconcile.Job{
		ID: preflightID{key, r.preflights.runs[key].ended},
		Run: func(ctx context.Context, report func(any)) (any, error) {
			return r.loader.preflight(ctx, request, report), nil
		},
		Report: func(text any) []reconcile.Wake {
			r.ended = append(r.ended, func(time.Time, reconcile.Request) { r.preflights.progress, _ = text.(string) })
			return []reconcile.Wake{{Key: decideKey, After: r.process.o.StatusInterval}}
		},
		Done: func(out any, err error) []reconcile.Wake {
			result, ok := out.(preflightResult)
			if !ok {
				result.found = failedPreflight(request.release, err)
			}
			r.ended = append(r.ended, func(now time.Time, _ reconcile.Request) {
				r.preflights.ended(key, result, now)
				e := clusterapi.Event{Type: EventPreflight, Time: now, Message: preflightText(result.found)}
				r.process.emit(e, EventData{Release: result.found.Release})
			})
			return []reconcile.Wake{{Key: decideKey}, {Reconciler: saverName, Key: signaturesKey}}
		},
	}
}

var poolKind = schema.GroupVersionKind{
	Group: "machineconfiguration.openshift.io", Version: "v1", Kind: "MachineConfigPool",
}

// preflightKinds are those of the objects whose changes call for another preflight: machine
// config pools, and what else checks have read of OpenShift's API and of disruption budgets.
// They are none while no preflight is requested.
func (r *decider) preflightKinds() []schema.GroupVersionKind {
	if r.d.resolution.Preflight.Image == "" {
		return nil
	}
	return append([]schema.GroupVersionKind{poolKind}, r.preflights.kinds...)
}

// preflightWatches are those that the latest decision wants. Of machine config pools each
// change counts; of the rest only a deletion and a change of what is wanted do, not one of
// the status. Nodes and pods change all the time: what is new about them, and what is
// created, the next run finds.
func (r *decider) preflightWatches() []reconcile.Watch {
	wakes := []reconcile.Wake{{Key: decideKey, After: r.process.o.StatusInterval}}
	generation := func(o *clusterapi.Object) int64 { return o.Unstructured().GetGeneration() }
	var watches []reconcile.Watch
	for _, kind := range r.watched {
		watches = append(watches, reconcile.Watch{
			GVK: kind, Trim: trimmed, Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
				listed := old == nil
				if listed || kind != poolKind && new != nil && generation(old) == generation(new) {
					return nil
				}
				r.preflights.changed()
				return wakes
			},
		})
	}
	return watches
}

// trimmed is an object without what watches of the decider do not compare.
func trimmed(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(u.GroupVersionKind())
	out.SetNamespace(u.GetNamespace())
	out.SetName(u.GetName())
	out.SetUID(u.GetUID())
	out.SetResourceVersion(u.GetResourceVersion())
	out.SetGeneration(u.GetGeneration())
	return out
}

// watchedKinds are those of objects that checks have read, as far as a preflight watches
// them because of that: see [decider.preflightKinds]. Some are watched anyway.
func watchedKinds(seen []preconditions.Object) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, o := range seen { // in order of their kinds
		isOpenShift := strings.HasSuffix(o.GVK.Group, ".openshift.io") || o.GVK.Group == "policy"
		anyway := []schema.GroupVersionKind{versionKind, gateKind, operatorKind, poolKind}
		if isOpenShift && !slices.Contains(anyway, o.GVK) && !slices.Contains(kinds, o.GVK) {
			kinds = append(kinds, o.GVK)
		}
	}
	return kinds
}

// preflightText is what an event says of a preflight that has ended.
func preflightText(p *clusterversion.Preflight) string {
	text := "the check of " + versionText(p.Release)
	switch {
	case p.State == clusterversion.PreflightFailed:
		text += " failed"
	case len(p.Findings) == 0:
		return text + " found nothing against an update"
	}
	return fmt.Sprintf("%s: %s", text, strings.Join(p.Risks(), ", "))
}

func failedPreflight(r configv1.Release, err error) *clusterversion.Preflight {
	f := clusterversion.PreflightFinding{Name: clusterversion.PreflightIncomplete, Message: err.Error()}
	return &clusterversion.Preflight{
		Release: r, State: clusterversion.PreflightFailed, Findings: []clusterversion.PreflightFinding{f},
	}
}

// preflight retrieves, verifies, loads and checks a release as [loader.load] does, and
// judges it by all checks. It writes nothing. report gets how far it is.
func (l *loader) preflight(ctx context.Context, r *loadRequest, report func(any)) preflightResult {
	l.process.report(EventPreflight, r.release, "checking "+quoted(r.release))
	var out *loaded
	var notes []string
	var refusal *LoadError
	fault := panics.Isolate(func() error {
		out, notes, refusal = l.open(ctx, r)
		return nil
	})
	switch {
	case fault != nil:
		return preflightResult{found: failedPreflight(r.release, fault)}
	case refusal != nil:
		return preflightResult{found: failedPreflight(r.release, refusal)}
	}
	found := &preflightFindings{}
	for _, note := range notes {
		found.add(notVerified, note, "")
	}
	if _, err := l.runningPayload(ctx, r); err != nil {
		l.process.log("the running release's payload cannot be read: it is not compared with the one to check", err)
	}
	checked, err := l.checkAll(ctx, r, out.payload, report)
	var kinds []schema.GroupVersionKind
	if err != nil {
		found.add(clusterversion.PreflightIncomplete, err.Error(), "")
	} else {
		found.addResults(checked.Decide(preconditions.Policy{Bypasses: l.process.o.Bypasses}).Results)
		kinds = watchedKinds(checked.Seen)
	}
	if ask := l.process.o.PreflightPreview; ask != nil {
		l.preview(ctx, ask, r.previous, out.payload, found)
	}
	done := &clusterversion.Preflight{Release: out.release, State: endState(found.all), Findings: found.all}
	return preflightResult{found: done, kinds: kinds}
}

// notVerified is the name of the finding that a release was not verified.
const notVerified = "ReleaseNotVerified"

// checkAll runs all checks on a release.
func (l *loader) checkAll(
	ctx context.Context, r *loadRequest, payload *manifest.Payload, report func(any),
) (*preconditions.Report, error) {
	in := l.input(r, payload)
	all := slices.Clone(l.process.o.PreflightChecks)
	for _, c := range l.process.o.Checks {
		if !slices.ContainsFunc(all, func(d preconditions.Check) bool { return d.Name() == c.Name() }) {
			all = append(all, c)
		}
	}
	total := 0
	for _, c := range all {
		if c.Applies(in.Transition) {
			total++
		}
	}
	done := new(atomic.Int64)
	for i, c := range all {
		all[i] = countedCheck{Check: c, count: func() {
			n := int(done.Add(1))
			report(fmt.Sprintf("%d of %d checks done, %d remaining", n, total, total-n))
		}}
	}
	return preconditions.Run(ctx, all, in, preconditions.Options{})
}

// countedCheck is a check that counts when it is done.
type countedCheck struct {
	preconditions.Check
	count func()
}

// Run implements [preconditions.Check].
func (c countedCheck) Run(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	defer c.count()
	return c.Check.Run(ctx, in)
}

// previewFunc is the type of [Options].PreflightPreview.
type previewFunc = func(ctx context.Context, from, to *manifest.Payload) ([]preconditions.Finding, error)

// preview adds what the preview of the embedder finds.
func (l *loader) preview(ctx context.Context, ask previewFunc, from, to *manifest.Payload, found *preflightFindings) {
	var risks []preconditions.Finding
	err := panics.Isolate(func() (err error) {
		risks, err = ask(ctx, from, to)
		return err
	})
	for _, f := range risks {
		found.addFinding("Preview", f)
	}
	if err != nil {
		found.add("Preview"+clusterversion.PreflightUnknown, err.Error(), "")
	}
}

// preflightFindings collects findings, each name and each message once.
type preflightFindings struct {
	all []clusterversion.PreflightFinding
}

// endState is the state of a preflight that has ended with findings.
func endState(findings []clusterversion.PreflightFinding) clusterversion.PreflightState {
	incomplete := func(f clusterversion.PreflightFinding) bool { return f.Name == clusterversion.PreflightIncomplete }
	if slices.ContainsFunc(findings, incomplete) {
		return clusterversion.PreflightFailed
	}
	return clusterversion.PreflightCompleted
}

// add adds a finding. Findings of one name become one.
func (p *preflightFindings) add(name, message, url string) {
	for i := range p.all {
		f := &p.all[i]
		switch {
		case f.Message == message:
			return
		case f.Name == name:
			f.Message += "\n" + message
			return
		}
	}
	p.all = append(p.all, clusterversion.PreflightFinding{Name: name, Message: message, URL: url})
}

func (p *preflightFindings) addFinding(check string, f preconditions.Finding) {
	url := ""
	if strings.HasPrefix(f.Source, "https://") && !strings.ContainsAny(f.Source, " ,") {
		url = f.Source
	}
	message := f.Message
	if f.Remedy != "" {
		message += " " + f.Remedy
	}
	p.add(check+f.Reason, message, url)
}

// addResults adds what checks found. What a check could not decide is a finding too, and a
// check that broke makes the preflight incomplete.
func (p *preflightFindings) addResults(results []preconditions.Result) {
	for _, r := range results {
		findings := r.Findings
		switch broke, ok := errors.AsType[*preconditions.PanicError](r.Err); {
		case r.State != preconditions.Failed && r.State != preconditions.Unknown:
			continue
		case ok:
			p.add(clusterversion.PreflightIncomplete, fmt.Sprintf("the check %s broke: %v", r.Check, broke), "")
			findings = findings[:len(findings)-1]
		case r.Err != nil: // the last finding says so
			last := findings[len(findings)-1]
			p.add(r.Check+clusterversion.PreflightUnknown, last.Message, "")
			findings = findings[:len(findings)-1]
		}
		for _, f := range findings {
			if f.Severity > preconditions.Info && f.RepeatOf == "" {
				p.addFinding(r.Check, f)
			}
		}
	}
}

// preflightOf is the preflight of a release: of its image, whatever registry has it, or of
// its version. It is nil if there is none.
func preflightOf(all []clusterversion.Preflight, r configv1.Release) *clusterversion.Preflight {
	at := slices.IndexFunc(all, func(p clusterversion.Preflight) bool {
		return graph.SameDigest(p.Release.Image, r.Image) || r.Version != "" && p.Release.Version == r.Version
	})
	if at < 0 {
		return nil
	}
	return &all[at]
}

// openRisks determines which risks that a preflight found in an update are not
// accepted; empty: none.
func openRisks(r *loadRequest, found *clusterversion.Preflight, release configv1.Release) string {
	accepted := acceptedRisks(r.cv, r.gates)
	open := slices.DeleteFunc(found.Risks(), func(name string) bool { return slices.Contains(accepted, name) })
	if len(open) == 0 {
		return ""
	}
	const text = "the preflight of %s found risks that are not accepted: %s"
	return fmt.Sprintf(text, versionText(release), strings.Join(open, ", "))
}
