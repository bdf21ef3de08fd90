package clusterupdate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// Progress tells an update as text, from the events of an [Updater] and of a
// rollout of the nodes: in lines, and in bars for a screen. Set its fields before
// the first event; after that its methods are safe for concurrent use.
type Progress struct {
	// Target is the version whose manifests are followed. Empty: all are.
	Target string
	// Say gets each line, one at a time: how long after the first event, what it
	// is about, and what happened. It must not call Progress. Nil: nobody gets
	// them.
	Say func(line string)

	mu         sync.Mutex
	start, now time.Time // of the cluster
	done, all  int       // manifests
	levels     []*levelProgress
	waits      map[string]string // on operators, by name
	pools      map[string]rollout.EventData
	nodes      map[string]string // phases of those under way, by name
}

// levelProgress is one runlevel and how far it has come.
type levelProgress struct {
	name        string
	done, total int
	told        bool
}

// Updater takes an event of the Updater: its Options.Observe.
func (p *Progress) Updater(e clusterapi.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at(e.Time)
	switch e.Type {
	case EventRetrievedUpdates:
		p.say("graph", recommendedText(e))
	case EventSignatureVerified:
		p.say("signature", e.Message)
	case EventRetrievePayload, EventPreconditionsPassed, EventPayloadLoaded, EventRetrievePayloadFailed, EventLoadPayloadFailed,
		EventVerifyPayloadVersionFailed, EventPreconditionBlock, EventPreconditionWarn, EventRequestIgnored:
		p.say("release", e.Message)
	case EventCompleted:
		p.say("update", e.Message)
	case EventTask:
		if d := dataOf(e); d.Pass != nil && (p.Target == "" || d.Release.Version == p.Target) {
			p.task(d.Pass)
		}
	}
}

func recommendedText(e clusterapi.Event) string {
	d := dataOf(e)
	if len(d.Updates) == 0 {
		return strings.TrimSpace("no recommended updates " + e.Message)
	}
	var versions []string
	for _, r := range d.Updates {
		versions = append(versions, r.Version)
	}
	return fmt.Sprintf("recommended updates of %s: %s", d.Release.Version, strings.Join(versions, ", "))
}

// task takes an event of a pass. A pass that waits is followed by one that
// starts at the beginning, so what counts is how far the furthest one came.
func (p *Progress) task(e *clusterapi.Event) {
	at, ok := e.Data.(*runlevel.Progress)
	if !ok {
		return
	}
	switch e.Type {
	case runlevel.EventPassStarted:
		p.all = at.Total
	case runlevel.EventTaskDone, runlevel.EventTaskSkipped:
		p.done = max(p.done, at.Done+at.Skipped)
		if at.Task.Manifest.GVK().Kind == "ClusterOperator" {
			delete(p.waits, at.Task.Manifest.Identity().Name)
		}
		l := p.level(at.Level)
		l.done, l.total = max(l.done, at.LevelSettled), at.LevelTotal
		if l.done == l.total && !l.told {
			l.told = true
			p.say("runlevel "+l.name, fmt.Sprintf("%d/%d done, %d/%d in all", l.done, l.total, p.done, p.all))
		}
	case runlevel.EventWaiting:
		if at.Wait == nil {
			return
		}
		l := p.level(at.Level)
		l.total = at.LevelTotal
		text := fmt.Sprintf("Available=%s Degraded=%s %s: %s", at.Wait.Available, at.Wait.Degraded, at.Wait.Reason, at.Wait.Message)
		if at.Wait.Reason == "" && at.Wait.Message == "" {
			text = strings.Join(at.Wait.Undone, ", ")
		}
		if p.waits[at.Wait.Operator] != text {
			set(&p.waits, at.Wait.Operator, text)
			p.say("runlevel "+at.Level, fmt.Sprintf("%d/%d done, waiting on %s: %s", l.done, l.total, at.Wait.Operator, text))
		}
	case runlevel.EventDrifted:
		p.say("drift", e.Message)
	case runlevel.EventWarning:
		p.say("warning", fmt.Sprintf("%s: %s", at.Task, e.Message))
	}
}

func (p *Progress) level(name string) *levelProgress {
	for _, l := range p.levels {
		if l.name == name {
			return l
		}
	}
	p.levels = append(p.levels, &levelProgress{name: name})
	return p.levels[len(p.levels)-1]
}

func set[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = value
}

// Node takes an event of the rollout: its Options.Observe.
func (p *Progress) Node(e clusterapi.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at(e.Time)
	d := e.Data.(*rollout.EventData)
	switch e.Type {
	case rollout.EventNodePhase:
		set(&p.nodes, d.Node, string(d.Phase))
	case rollout.EventNodeDone:
		delete(p.nodes, d.Node)
		p.say("nodes "+d.Pool, d.Node+" is updated")
	case rollout.EventPoolProgress:
		if d.Updated < d.Total || p.pools[d.Pool].Total > 0 {
			set(&p.pools, d.Pool, *d)
		}
	case rollout.EventNodeTargeted:
		p.say("nodes "+d.Pool, e.Message)
	case rollout.EventPoolDone:
		p.say("nodes "+d.Pool, "all nodes are updated")
	case rollout.EventPoolBlocked, rollout.EventNodeFailed, rollout.EventDrainBlocked, rollout.EventDrainRetry, rollout.EventStalled:
		text := e.Message
		if text == "" && e.Err != nil {
			text = e.Err.Error()
		}
		if d.Node != "" && !strings.Contains(text, d.Node) {
			text = strings.TrimSpace(d.Node + " " + text)
		}
		p.say("nodes "+d.Pool, text)
	}
}

func (p *Progress) at(t time.Time) {
	if p.start.IsZero() {
		p.start = t
	}
	if t.After(p.now) {
		p.now = t
	}
}

func (p *Progress) say(subject, text string) {
	if p.Say != nil {
		p.Say(fmt.Sprintf("%s  %-14s %s", time.Time{}.Add(p.now.Sub(p.start)).Format(time.TimeOnly), subject, text))
	}
}

// Summary says in lines how an update ended, by the ClusterVersion: its
// conditions and the operators that are awaited, unless the newest update has
// completed, and the history.
func (p *Progress) Summary(cv *configv1.ClusterVersion) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var lines []string
	if len(cv.Status.History) == 0 || cv.Status.History[0].State != configv1.CompletedUpdate || p.Target != "" && cv.Status.History[0].Version != p.Target {
		for _, c := range cv.Status.Conditions {
			if c.Message != "" {
				lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(p.waits)) {
			lines = append(lines, "waiting on "+name+": "+p.waits[name])
		}
	}
	lines = append(lines, "history of the cluster version:")
	const minutes = "2006-01-02 15:04"
	for _, h := range cv.Status.History {
		line := fmt.Sprintf("  %s %s, started %s", h.Version, h.State, h.StartedTime.UTC().Format(minutes))
		if h.CompletionTime != nil {
			line += ", ended " + h.CompletionTime.UTC().Format(minutes)
		}
		lines = append(lines, line)
	}
	return lines
}

// Bars says how far the update is: manifests, runlevels under way, operators
// that are awaited, pools and their nodes, a line for each.
func (p *Progress) Bars() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var lines []string
	add := func(subject string, done, total int) {
		const width = 40
		n := width * done / max(total, 1)
		lines = append(lines, fmt.Sprintf("%-14s [%s%s] %d/%d", subject, strings.Repeat("#", n), strings.Repeat(".", width-n), done, total))
	}
	if p.all > 0 {
		add("manifests", p.done, p.all)
	}
	for _, l := range p.levels {
		if l.done < l.total {
			add("runlevel "+l.name, l.done, l.total)
		}
	}
	if len(p.waits) > 0 {
		lines = append(lines, "waiting on     "+strings.Join(slices.Sorted(maps.Keys(p.waits)), ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(p.pools)) {
		add("nodes "+name, p.pools[name].Updated, p.pools[name].Total)
	}
	for _, name := range slices.Sorted(maps.Keys(p.nodes)) {
		lines = append(lines, fmt.Sprintf("  %-12s %s", name, p.nodes[name]))
	}
	return lines
}
