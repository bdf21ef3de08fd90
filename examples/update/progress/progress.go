// Package progress shows an update as text, from the events of an Updater and of a
// rollout of the nodes: in lines, and in bars for a screen.
package progress

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// Progress is how far an update has come.
type Progress struct {
	target string            // the version whose manifests are followed
	say    func(line string) // gets each line: how long after the first event, its subject, what happened

	start, now time.Time // of the cluster
	done, all  int       // manifests
	levels     []*levelProgress
	waits      map[string]string // on operators, by name
	pools      map[string]rollout.EventData
	nodes      map[string]string // phases of nodes under way, by name
}

// New returns the progress of an update to a version. say gets each line: how long
// after the first event, its subject, what happened.
func New(target string, say func(line string)) *Progress {
	return &Progress{
		target: target, say: say,
		waits: map[string]string{}, pools: map[string]rollout.EventData{}, nodes: map[string]string{},
	}
}

// levelProgress is one runlevel and how far it has come.
type levelProgress struct {
	name        string
	done, total int
	shown       bool
}

// Updater takes an event of the Updater.
func (p *Progress) Updater(e clusterapi.Event) {
	p.at(e.Time)
	d := e.Data.(*clusterupdate.EventData)
	switch e.Type {
	case clusterupdate.EventRetrievedUpdates:
		p.print("graph", recommendedText(d, e.Message))
	case clusterupdate.EventSignatureVerified:
		p.print("signature", e.Message)
	case clusterupdate.EventRetrievePayload, clusterupdate.EventPreconditionsPassed, clusterupdate.EventPayloadLoaded,
		clusterupdate.EventRetrievePayloadFailed, clusterupdate.EventLoadPayloadFailed, clusterupdate.EventRequestIgnored,
		clusterupdate.EventVerifyPayloadVersionFailed, clusterupdate.EventPreconditionBlock, clusterupdate.EventPreconditionWarn:
		p.print("release", e.Message)
	case clusterupdate.EventCompleted:
		p.print("update", e.Message)
	case clusterupdate.EventTask:
		if d.Pass != nil && d.Release.Version == p.target {
			p.task(d.Pass)
		}
	}
}

func recommendedText(d *clusterupdate.EventData, message string) string {
	if len(d.Updates) == 0 {
		return strings.TrimSpace("no recommended updates " + message)
	}
	var versions []string
	for _, r := range d.Updates {
		versions = append(versions, r.Version)
	}
	return fmt.Sprintf("recommended updates of %s: %s", d.Release.Version, strings.Join(versions, ", "))
}

// task takes an event of a pass. A pass that waits is followed by one that starts
// at the beginning, so what counts is how far the furthest one got.
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
		l.done = max(l.done, at.LevelSettled)
		l.total = at.LevelTotal
		if l.done == l.total && !l.shown {
			l.shown = true
			p.print("runlevel "+l.name, fmt.Sprintf("%d/%d done, %d/%d in all", l.done, l.total, p.done, p.all))
		}
	case runlevel.EventWaiting:
		if at.Wait == nil {
			return
		}
		l := p.level(at.Level)
		l.total = at.LevelTotal
		w := at.Wait
		text := fmt.Sprintf("Available=%s Degraded=%s %s: %s", w.Available, w.Degraded, w.Reason, w.Message)
		if w.Reason == "" && w.Message == "" {
			text = strings.Join(w.Undone, ", ")
		}
		if p.waits[w.Operator] != text {
			p.waits[w.Operator] = text
			p.print("runlevel "+at.Level, fmt.Sprintf("%d/%d done, waiting on %s: %s", l.done, l.total, w.Operator, text))
		}
	case runlevel.EventDrifted:
		p.print("drift", e.Message)
	case runlevel.EventWarning:
		p.print("warning", fmt.Sprintf("%s: %s", at.Task, e.Message))
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

// Node takes an event of the rollout.
func (p *Progress) Node(e clusterapi.Event) {
	p.at(e.Time)
	d := e.Data.(*rollout.EventData)
	switch e.Type {
	case rollout.EventNodePhase:
		p.nodes[d.Node] = string(d.Phase)
	case rollout.EventNodeDone:
		delete(p.nodes, d.Node)
		p.print("nodes "+d.Pool, d.Node+" is updated")
	case rollout.EventPoolProgress:
		if d.Updated < d.Total || p.pools[d.Pool].Total > 0 {
			p.pools[d.Pool] = *d
		}
	case rollout.EventNodeTargeted:
		p.print("nodes "+d.Pool, e.Message)
	case rollout.EventPoolDone:
		p.print("nodes "+d.Pool, "all nodes are updated")
	case rollout.EventPoolBlocked, rollout.EventNodeFailed, rollout.EventDrainBlocked, rollout.EventDrainRetry,
		rollout.EventStalled:
		text := e.Message
		if text == "" && e.Err != nil {
			text = e.Err.Error()
		}
		if d.Node != "" && !strings.Contains(text, d.Node) {
			text = strings.TrimSpace(d.Node + " " + text)
		}
		p.print("nodes "+d.Pool, text)
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

func (p *Progress) print(subject, text string) {
	p.say(fmt.Sprintf("%s  %-14s %s", time.Time{}.Add(p.now.Sub(p.start)).Format(time.TimeOnly), subject, text))
}

// Summary is how an update ended, by the ClusterVersion, in lines: its
// conditions and the operators that are awaited, unless the newest update has
// completed, and the history.
func (p *Progress) Summary(cv *configv1.ClusterVersion) []string {
	var lines []string
	history := cv.Status.History
	if len(history) == 0 || history[0].State != configv1.CompletedUpdate || history[0].Version != p.target {
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
	for _, h := range history {
		line := fmt.Sprintf("  %s %s, started %s", h.Version, h.State, h.StartedTime.UTC().Format(minutes))
		if h.CompletionTime != nil {
			line += ", ended " + h.CompletionTime.UTC().Format(minutes)
		}
		lines = append(lines, line)
	}
	return lines
}

// Bars are how far the update is: manifests, runlevels under way, operators
// that are awaited, pools and their nodes, a line for each.
func (p *Progress) Bars() []string {
	var lines []string
	add := func(subject string, done, total int) {
		const width = 40
		n := width * done / max(total, 1)
		bar := strings.Repeat("#", n) + strings.Repeat(".", width-n)
		lines = append(lines, fmt.Sprintf("%-14s [%s] %d/%d", subject, bar, done, total))
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
