package clusterupdate

import (
	"slices"
	"strings"
	"sync"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// maxPayloadVersions is how many versions a [PayloadProgress] has samples of: a
// process that never ends would have those of all the releases it has seen.
const maxPayloadVersions = 16

// PayloadProgress counts, by version, what passes over releases come to: the attempts
// that failed, and the manifests that are applied and pending. Let it observe the events
// of an [Updater], see Options.Observe. The zero value works; it is safe for concurrent
// use.
//
// It has the 16 versions whose passes it has observed last, until the process ends. A
// version whose attempts have all succeeded has no sample of errors.
type PayloadProgress struct {
	mu       sync.Mutex
	versions []payloadCount // the one of the last pass is the last
}

type payloadCount struct {
	version     string
	done, total int
	errors      int // of all passes
	counted     int // of them, in the pass under way
}

// Observe records an event. It ignores those of other types than [EventTask]. An
// event of a runlevel.Pass that has come another way goes into Pass of the data of one.
func (p *PayloadProgress) Observe(e clusterapi.Event) {
	d := dataOf(e)
	if e.Type != EventTask || d.Pass == nil {
		return
	}
	step, ok := d.Pass.Data.(*runlevel.Progress)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.of(d.Release.Version)
	if step.FailedAttempts < c.counted {
		c.counted = 0 // another pass
	}
	c.errors += step.FailedAttempts - c.counted
	c.done, c.total, c.counted = step.Done, step.Total, step.FailedAttempts
}

// of returns the counts of a version, which become the last.
func (p *PayloadProgress) of(version string) *payloadCount {
	last := len(p.versions) - 1
	if i := slices.IndexFunc(p.versions, func(c payloadCount) bool { return c.version == version }); i < 0 {
		p.versions = append(p.versions, payloadCount{version: version})
	} else if i < last {
		c := p.versions[i]
		p.versions = append(slices.Delete(p.versions, i, i+1), c)
	}
	if len(p.versions) > maxPayloadVersions {
		p.versions = slices.Delete(p.versions, 0, 1)
	}
	return &p.versions[len(p.versions)-1]
}

// samples are those of both metrics, each by version.
func (p *PayloadProgress) samples() []clusterapi.Sample {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := slices.SortedFunc(slices.Values(p.versions), func(a, b payloadCount) int { return strings.Compare(a.version, b.version) })
	var m metrics
	for _, c := range counts {
		if c.errors > 0 {
			m.add(MetricPayloadErrors, float64(c.errors), "version", c.version)
		}
	}
	for _, c := range counts {
		m.add(MetricPayload, float64(c.done), "version", c.version, "type", "applied")
		m.add(MetricPayload, float64(c.total-c.done), "version", c.version, "type", "pending")
	}
	return m
}
