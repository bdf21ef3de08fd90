package clusterupdate

import configv1 "github.com/openshift/api/config/v1"

// complete closes the entry of a release whose manifests have all been applied.
func (p *planner) complete() {
	w, h := p.mem.work.sync, p.o.cv.Status.History
	if w == nil || !p.mem.work.completed() || len(h) > 0 && h[0].State == configv1.CompletedUpdate {
		return
	}
	p.do(Action{Step: stepComplete, Release: w.loaded.release, Reason: "a pass applied all of its manifests, and every operator is done"})
}

// completed reports whether the last pass over what is applied got through.
func (w *work) completed() bool {
	return w.sync != nil && w.report.Image == w.sync.loaded.release.Image && w.report.Completed > 0
}
