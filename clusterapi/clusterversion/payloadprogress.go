package clusterversion

import (
	"slices"
	"strings"
	"sync"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// maxPayloadVersions is how many versions a [PayloadProgress] has samples of: a
// process that never ends would have those of all the releases it has seen.
const maxPayloadVersions = 16

// PayloadProgress counts, by version, the attempts of passes over releases that failed,
// and the manifests that are applied and pending. Let it observe the events of an Updater,
// see Observe of clusterupdate.Options. The zero value works; it is safe for concurrent
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

// passEvent is the data of an event of a pass over the manifests of a release. The version
// may be empty; failed counts the attempts of the pass that failed. A total of 0 is another
// event's.
type passEvent interface {
	PassProgress() (version string, done, total, failed int)
}

// Observe records an event of a pass: one whose data has a method PassProgress, as an
// Updater's has. It ignores others.
func (p *PayloadProgress) Observe(e clusterapi.Event) {
	data, ok := e.Data.(passEvent)
	if !ok {
		return
	}
	version, done, total, failed := data.PassProgress()
	if total == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.of(version)
	if failed < c.counted {
		c.counted = 0 // another pass
	}
	c.errors += failed - c.counted
	c.counted = failed
	c.done, c.total = done, total
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
	counts := slices.Clone(p.versions)
	slices.SortFunc(counts, func(a, b payloadCount) int { return strings.Compare(a.version, b.version) })
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
