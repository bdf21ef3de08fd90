package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// view shows an update: on a terminal with a block of bars that is redrawn in
// place, elsewhere with a line for each thing that is worth one, or as JSON.
type view struct {
	mu   sync.Mutex
	out  io.Writer
	json bool
	tty  bool

	target    string    // version to show the progress to
	start     time.Time // of the cluster's time
	now       time.Time
	done, all int
	levels    []*level // in the order in which they begin
	waits     map[string]string
	pools     map[string]rollout.Event
	nodes     map[string]string // those under way, by name
	drawn     int               // lines of the block on the screen
	drawnAt   time.Time
}

// level is one runlevel and how far it has come.
type level struct {
	name        string
	done, total int
	told        bool
}

func newView(out io.Writer, asJSON bool, target string) *view {
	v := &view{out: out, json: asJSON, target: target, waits: map[string]string{}, pools: map[string]rollout.Event{}, nodes: map[string]string{}}
	if f, ok := out.(*os.File); ok && !asJSON {
		fi, err := f.Stat()
		v.tty = err == nil && fi.Mode()&os.ModeCharDevice != 0
	}
	return v
}

// update takes an event of the Updater.
func (v *view) update(e clusterupdate.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.json {
		v.encode(e)
		return
	}
	v.at(e.Time)
	switch e.Type {
	case clusterupdate.EventRetrievedUpdates:
		v.say("graph", "%s", recommended(e))
	case clusterupdate.EventSignatureVerified:
		v.say("signature", "%s", e.Message)
	case clusterupdate.EventRetrievePayload, clusterupdate.EventPreconditionsPassed, clusterupdate.EventPayloadLoaded:
		v.say("release", "%s", e.Message)
	case clusterupdate.EventRetrievePayloadFailed, clusterupdate.EventLoadPayloadFailed, clusterupdate.EventVerifyPayloadVersionFailed,
		clusterupdate.EventPreconditionBlock, clusterupdate.EventPreconditionWarn, clusterupdate.EventRequestIgnored:
		v.say("release", "%s", e.Message)
	case clusterupdate.EventCompleted:
		v.say("update", "%s", e.Message)
	case clusterupdate.EventTask:
		if e.Release.Version == v.target {
			v.task(e.Progress)
		}
	}
	v.draw(false)
}

func recommended(e clusterupdate.Event) string {
	if len(e.Updates) == 0 {
		return strings.TrimSpace("no recommended updates " + e.Message)
	}
	var versions []string
	for _, r := range e.Updates {
		versions = append(versions, r.Version)
	}
	return fmt.Sprintf("recommended updates of %s: %s", e.Release.Version, strings.Join(versions, ", "))
}

// task takes an event of a pass. A pass that waits begins anew, so what counts
// is how far the furthest one came.
func (v *view) task(p *runlevel.Event) {
	switch p.Type {
	case runlevel.PassStarted:
		v.all = p.Total
	case runlevel.TaskDone, runlevel.TaskSkipped:
		v.done = max(v.done, p.Done+p.Skipped)
		if p.Task.Manifest.GVK().Kind == "ClusterOperator" {
			delete(v.waits, p.Task.Manifest.Identity().Name)
		}
		l := v.level(p.Level)
		l.done, l.total = max(l.done, p.LevelSettled), p.LevelTotal
		if l.done == l.total && !l.told {
			l.told = true
			v.say("runlevel "+l.name, "%d/%d done, %d/%d in all", l.done, l.total, v.done, v.all)
		}
	case runlevel.Waiting:
		if p.Wait == nil {
			return
		}
		l := v.level(p.Level)
		l.total = p.LevelTotal
		if text := waitText(p.Wait); v.waits[p.Wait.Operator] != text {
			v.waits[p.Wait.Operator] = text
			v.say("runlevel "+p.Level, "%d/%d done, waiting on %s: %s", l.done, l.total, p.Wait.Operator, text)
		}
	case runlevel.Warning:
		v.say("warning", "%s: %s", p.Task, p.Message)
	}
}

func (v *view) level(name string) *level {
	for _, l := range v.levels {
		if l.name == name {
			return l
		}
	}
	v.levels = append(v.levels, &level{name: name})
	return v.levels[len(v.levels)-1]
}

func waitText(w *runlevel.Wait) string {
	if w.Reason == "" && w.Message == "" {
		return strings.Join(w.Undone, ", ")
	}
	return fmt.Sprintf("Available=%s Degraded=%s %s: %s", w.Available, w.Degraded, w.Reason, w.Message)
}

// node takes an event of the node rollout.
func (v *view) node(e rollout.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.json {
		v.encode(struct {
			Type, Pool, Node, Phase, Reason, Message string
			Time                                     time.Time
		}{Type: string(e.Type), Pool: e.Pool, Node: e.Node, Phase: string(e.Phase), Reason: e.Reason, Message: nodeText(e), Time: e.Time})
		return
	}
	v.at(e.Time)
	switch e.Type {
	case rollout.EventNodePhase:
		v.nodes[e.Node] = string(e.Phase)
	case rollout.EventNodeDone:
		delete(v.nodes, e.Node)
		v.say("nodes "+e.Pool, "%s is updated", e.Node)
	case rollout.EventPoolProgress:
		if e.Updated < e.Total || v.pools[e.Pool].Total > 0 {
			v.pools[e.Pool] = e
		}
	case rollout.EventNodeTargeted:
		v.say("nodes "+e.Pool, "%s", e.Text)
	case rollout.EventPoolDone:
		v.say("nodes "+e.Pool, "all nodes are updated")
	case rollout.EventPoolBlocked, rollout.EventNodeFailed, rollout.EventDrainBlocked, rollout.EventDrainRetry, rollout.EventStalled:
		v.say("nodes "+e.Pool, "%s", nodeText(e))
	}
	v.draw(false)
}

// nodeText says what happened, and to which node.
func nodeText(e rollout.Event) string {
	text := e.Text
	if text == "" && e.Err != nil {
		text = e.Err.Error()
	}
	if e.Node != "" && !strings.Contains(text, e.Node) {
		text = strings.TrimSpace(e.Node + " " + text)
	}
	return text
}

const minutes = "2006-01-02 15:04"

// end shows how it ended.
func (v *view) end(cv *configv1.ClusterVersion, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.json {
		v.encode(struct {
			Type    string                   `json:"type"`
			History []configv1.UpdateHistory `json:"history"`
		}{"History", cv.Status.History})
		return
	}
	v.draw(true)
	v.drawn = 0
	if err != nil {
		for _, c := range cv.Status.Conditions {
			if c.Status != "" && c.Message != "" {
				fmt.Fprintf(v.out, "%s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v.waits)) {
			fmt.Fprintf(v.out, "waiting on %s: %s\n", name, v.waits[name])
		}
	}
	fmt.Fprintln(v.out, "history of the cluster version:")
	for _, h := range cv.Status.History {
		line := fmt.Sprintf("  %s %s, started %s", h.Version, h.State, h.StartedTime.UTC().Format(minutes))
		if h.CompletionTime != nil {
			line += ", ended " + h.CompletionTime.UTC().Format(minutes)
		}
		fmt.Fprintln(v.out, line)
	}
}

func (v *view) encode(x any) {
	data, err := json.Marshal(x)
	if err != nil {
		data = fmt.Appendf(nil, `{"type":"Error","message":%q}`, err)
	}
	fmt.Fprintf(v.out, "%s\n", data)
}

func (v *view) at(t time.Time) {
	if v.start.IsZero() {
		v.start = t
	}
	if t.After(v.now) {
		v.now = t
	}
}

// say prints a line that stays, above the block.
func (v *view) say(subject, format string, args ...any) {
	v.clear()
	clock := time.Time{}.Add(v.now.Sub(v.start)).Format(time.TimeOnly)
	fmt.Fprintf(v.out, "%s  %-14s %s\n", clock, subject, fmt.Sprintf(format, args...))
	v.drawnAt = time.Time{}
}

// clear takes the block off the screen.
func (v *view) clear() {
	if v.tty && v.drawn > 0 {
		fmt.Fprintf(v.out, "\x1b[%dA\x1b[J", v.drawn)
	}
	v.drawn = 0
}

// draw redraws the block, at most ten times a second unless it must.
func (v *view) draw(must bool) {
	if !v.tty || !must && time.Since(v.drawnAt) < 100*time.Millisecond {
		return
	}
	v.clear()
	var lines []string
	if v.all > 0 {
		lines = append(lines, fmt.Sprintf("manifests      %s %d/%d", bar(v.done, v.all), v.done, v.all))
	}
	for _, l := range v.levels {
		if l.total > 0 && l.done < l.total {
			lines = append(lines, fmt.Sprintf("runlevel %-5s %s %d/%d", l.name, bar(l.done, l.total), l.done, l.total))
		}
	}
	if len(v.waits) > 0 {
		lines = append(lines, "waiting on     "+strings.Join(slices.Sorted(maps.Keys(v.waits)), ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(v.pools)) {
		p := v.pools[name]
		lines = append(lines, fmt.Sprintf("nodes %-8s %s %d/%d", name, bar(p.Updated, p.Total), p.Updated, p.Total))
	}
	for _, name := range slices.Sorted(maps.Keys(v.nodes)) {
		lines = append(lines, fmt.Sprintf("  %-12s %s", name, v.nodes[name]))
	}
	for _, l := range lines {
		fmt.Fprintf(v.out, "%.79s\n", l)
	}
	v.drawn, v.drawnAt = len(lines), time.Now()
}

func bar(done, total int) string {
	const width = 40
	n := width * done / max(total, 1)
	return "[" + strings.Repeat("#", n) + strings.Repeat(".", width-n) + "]"
}
