package dump

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// timestamps returns the latest time of all timestamp files, zero without any.
func (a *assembly) timestamps() time.Time {
	var latest time.Time
	for _, f := range a.c.files {
		if f.place.role != roleTime {
			continue
		}
		lines := 0
		for line := range strings.Lines(string(f.raw)) {
			if strings.TrimSpace(line) == "" {
				continue
			}
			lines++
			if t, ok := timeOf(line); ok && t.After(latest) {
				latest = t
			}
		}
		if lines%2 == 0 || a.isHeap() {
			continue
		}
		// Each run of oc adm inspect writes a line when it starts and one when it
		// ends.
		a.cutOff[f.place.root] = true
		p := Problem{Path: f.path, Line: lines, Err: errors.New("a single line: gathering was cut off")}
		if lines > 1 {
			p.Line, p.Err = 0, fmt.Errorf("%d lines, an odd number: gathering was cut off", lines)
		}
		a.problem(p)
	}
	return latest
}

// timeOf reads a line that Go's time.Time.String wrote. The name of the zone and
// the monotonic reading behind the first three fields mean nothing here.
func timeOf(line string) (time.Time, bool) {
	parts := strings.Fields(line)
	if len(parts) < 3 {
		return time.Time{}, false
	}
	t, err := time.Parse("2006-01-02 15:04:05.999999999 -0700", strings.Join(parts[:3], " "))
	return t, err == nil
}

// time returns the time of the recording, and reports which kinds are later.
func (a *assembly) time(stamped time.Time) time.Time {
	latest := make(map[schema.GroupKind]*object) // the one with the latest time
	var moved, any time.Time
	for gk, k := range a.kinds {
		watched := watches(gk)
		for _, o := range k.objects {
			if l := latest[gk]; l == nil || o.latest.After(l.latest) {
				latest[gk] = o
			}
			if watched && o.moved.After(moved) {
				moved = o.moved
			}
			if o.latest.After(any) {
				any = o.latest
			}
		}
	}
	now := any
	for _, t := range []time.Time{moved, stamped, a.c.o.Now} {
		if !t.IsZero() {
			now = t
		}
	}
	byConditions := now.Equal(moved) && stamped.IsZero() && a.c.o.Now.IsZero()
	for _, gk := range slices.SortedFunc(maps.Keys(latest), compareKinds) {
		if byConditions && watches(gk) {
			continue // it is by other kinds that their conditions are seen to be old
		}
		if o := latest[gk]; o.latest.Sub(now) > time.Hour {
			a.problem(Problem{o.path, o.document, 0, fmt.Errorf("%s %s has a time, %s, more than an hour later than that of the recording, %s",
				gk.Kind, keyText(o.key), o.latest.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))})
		}
	}
	return now
}

// watches reports whether the conditions of a kind tell the time.
func watches(gk schema.GroupKind) bool {
	return gk.Group == configGroup && (gk.Kind == "ClusterVersion" || gk.Kind == "ClusterOperator")
}
