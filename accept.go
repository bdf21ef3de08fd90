package clusterupdate

import (
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// accept makes a release that was loaded what passes apply. One that is not the
// newest entry of the history yet is accepted: this, and nothing else, adds an
// entry.
func (p *planner) accept() {
	a := &p.mem.loads.wanted
	if a.out == nil {
		a = &p.mem.loads.fallback
	}
	if a.out == nil {
		p.refresh()
		return
	}
	w := p.newWork(a.out, a.force)
	reason := "the cluster is at it"
	switch h := p.o.cv.Status.History; {
	case len(h) == 0 && a.key.target.origin == running:
		if n := len(p.o.operators); n > 0 && !p.o.operators.are(w.loaded.release.Version) {
			p.wait(stepAccept, w.loaded.release, "operators report something else: "+p.o.operators.String())
			return
		} else if w.found = n > 0; w.found {
			reason = "operators report it, and the history was lost"
		} else {
			reason = "the cluster runs it, and the history is empty"
		}
		p.accepts = true
	case len(h) == 0 && a.key.target.origin == requested:
		reason, p.accepts = "it was requested, and the history was lost", true
	case clusterversion.SameRelease(&h[0], w.loaded.release):
	case a.key.target.origin == requested:
		reason, p.accepts = "it was requested, and all checks passed", true
	case p.d.installing:
		reason, p.accepts = "Options.Own says that the cluster runs it", true
	default:
		p.wait(stepAccept, w.loaded.release, "nobody asked for it")
		return
	}
	step := stepApply
	if p.accepts {
		step = stepAccept
		p.set.deletions = nil // were those of the release before
	}
	p.replace(step, w, reason)
}

// refresh takes over what the object says about how the accepted release is
// applied.
func (p *planner) refresh() {
	old := p.mem.work.sync
	if old == nil {
		return
	}
	if w := p.newWork(old.loaded, old.force); !w.same(old) {
		p.replace(stepApply, w, "other overrides, capabilities or owner")
	} else {
		p.mem.work.sync = w
	}
}

func (p *planner) replace(step string, w *syncWork, reason string) {
	p.do(Action{Step: step, Release: w.loaded.release, Reason: reason, adopt: w})
	p.mem.adopt(w, &p.o.cv.Status, p.set.o.architecture(w.loaded.release))
}

func (p *planner) newWork(release *loaded, force bool) *syncWork {
	return &syncWork{loaded: release, owner: p.o.cv.UID, force: force,
		overrides: p.d.cleared.Spec.Overrides, caps: p.capabilities(release.gates, release.implicit, release.capabilities)}
}

// capabilities resolves those of the cluster for a release that has some: none that
// is enabled is ever switched off again. What else is known is what the status
// names, and what the release has that passes apply so far.
func (p *planner) capabilities(g gates, implicit, has []string) manifest.Capabilities {
	known := sets.New(has...)
	for _, c := range p.o.cv.Status.Capabilities.KnownCapabilities {
		known.Insert(string(c))
	}
	if p.mem.work.sync != nil {
		known.Insert(p.mem.work.sync.loaded.capabilities...)
	}
	stay := sets.New(p.set.o.EnabledCapabilities...).Insert(implicit...)
	for _, c := range p.o.cv.Status.Capabilities.EnabledCapabilities {
		stay.Insert(string(c))
	}
	return manifest.ResolveCapabilities(p.d.cleared.Spec.Capabilities, sets.List(stay), g.enabled, sets.List(known)...)
}

func (o *Options) architecture(r configv1.Release) string {
	if r.Architecture != "" {
		return string(r.Architecture)
	}
	return o.Architecture
}
