package nodes

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// explain says of each node of each pool what the present decision makes of it, and
// why. Errors are those of reading the cluster.
func (r *Rehearsal) explain(ctx context.Context) ([]Explanation, error) {
	state, err := r.state(ctx)
	if err != nil {
		return nil, err
	}
	var all []Explanation
	for _, pool := range state.Pools() {
		for node, verdict := range state.Explanations(pool) {
			all = append(all, Explanation{Pool: pool, Node: node, Verdict: string(verdict.Kind), Text: verdict.Text})
		}
	}
	return all, nil
}

// Explanation is what a decision makes of a node.
type Explanation struct {
	Pool    string `json:"pool"`
	Node    string `json:"node"`
	Verdict string `json:"verdict"`
	Text    string `json:"text"`
}

// WriteText writes the result for people: the explanations, the entries of the
// timeline, and what came of it. Width is that of the output; zero means 80.
func (r *Result) WriteText(w io.Writer, width int) error {
	var b strings.Builder
	explained(&b, "before it begins:\n", r.Explained)
	if r.Estimate != nil {
		b.WriteString(r.Estimate.String())
	}
	if r.Plan != nil {
		if err := plan.WriteText(&b, *r.Plan); err != nil {
			return err
		}
	}
	if err := r.Timeline.WriteText(&b, timeline.TextOptions{Width: width}); err != nil {
		return err
	}
	for _, p := range r.Pools {
		fmt.Fprintf(&b, "pool %s: %d of %d nodes updated", p.Name, p.Updated, p.Nodes)
		switch {
		case p.Duration > 0:
			fmt.Fprintf(&b, " after %s", p.Duration)
		case p.Paused:
			b.WriteString(", paused")
		}
		b.WriteByte('\n')
	}
	for _, part := range []struct {
		title string
		lines []string
	}{{"assumed:", r.Assumed}, {"why:", r.Why}} {
		if len(part.lines) == 0 {
			continue
		}
		b.WriteString(part.title + "\n")
		for _, line := range part.lines {
			b.WriteString("  " + line + "\n")
		}
	}
	explained(&b, "as it is now:\n", r.Held)
	fmt.Fprintf(&b, "%s after %s\n", strings.ToLower(string(r.Outcome)), r.Duration)
	_, err := io.WriteString(w, b.String())
	return err
}

func explained(b *strings.Builder, title string, all []Explanation) {
	if len(all) > 0 {
		b.WriteString(title)
	}
	for _, e := range all {
		fmt.Fprintf(b, "  %s/%s: %s: %s\n", e.Pool, e.Node, e.Verdict, e.Text)
	}
}
