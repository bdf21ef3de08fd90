// Package timeline shows what happened when: the phases of nodes in a rollout, or
// the runlevels and operators of an update, as text, JSON and a picture.
//
// A [Timeline] is data: entries with a start, an end, a [Lane] and a phase. A
// [Recorder] makes one from what happens. Whoever watches a rollout starts an entry
// when a node comes to a phase, which ends the one before, and ends it when the node
// is done:
//
//	r, err := timeline.NewRecorder(timeline.Options{Title: "Rollout"})
//	...
//	node := timeline.Lane{Group: "worker", Name: "worker-0"}
//	r.Start(timeline.Entry{Lane: node, Start: at, Phase: "Draining"})
//	r.Start(timeline.Entry{Lane: node, Start: later, Phase: "Rebooting"})
//	r.End(node, end)
//	t, err := r.Timeline()
//
// # Lanes
//
// A lane is what one thing does: a node of a pool, an operator, a runlevel. Lanes of
// one group are shown together. Groups, and the lanes of each, come in the order in
// which they start, so that a rollout is a staircase. Entries of one lane that
// overlap are shown in several rows.
//
// An entry without an end continues: it is shown up to the end of the timeline. One
// that ends when it starts is a moment, shown as a mark.
//
// # Forms
//
//	WriteText     one line an entry, times relative, for reading and grep
//	WriteSVG      a picture of its own: no script, light and dark
//	MarshalJSON   everything
//
// Text and picture are bounded in lanes: past MaxLanes the largest groups are folded, to
// what the entries of each phase have in common. The first lanes in trouble stay, since they
// are what is looked for.
//
// The order of Entries changes no form but JSON, which keeps it. Names and texts may
// hold anything: what a terminal or XML could take for more than text is replaced or
// escaped.
//
// Values without methods of their own are plain data: safe to read from many
// goroutines at a time, not to change while others read.
//
// docs/limits.md lists the limits of this package.
//
// Sources: the formats of https://www.w3.org/TR/SVG2/ and RFC 3339.
package timeline
