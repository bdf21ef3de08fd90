package clusterupdate

import (
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/runlevel"
)

// What a node waits for may wake it at the very time of the next look at all
// that waits: the step that has begun goes on, and is looked at once.
func TestStepBegunAtTheTimeOfTheNextLook(t *testing.T) {
	p := &pass{live: make(map[int]*liveNode), limit: time.Hour}
	const node = 7
	p.hand([]int{node})
	call, _, ok := p.enter(t.Context(), node, time.Time{})
	if !ok {
		t.Fatal("the node was not begun")
	}
	p.hand([]int{node})
	if call.Err() != nil {
		t.Error("the step under way was called off")
	}
	if p.left(node, runlevel.Step{Stalled: true}, false) {
		t.Error("decisions depend on a node that waits on")
	}
	if call.Err() == nil || p.working != 0 {
		t.Errorf("the step has not ended: %v, %d at work", call.Err(), p.working)
	}
	if _, _, ok := p.enter(t.Context(), node, time.Time{}); ok {
		t.Error("a node that waits was begun")
	}
	p.hand([]int{node})
	if _, _, ok := p.enter(t.Context(), node, time.Time{}); !ok {
		t.Error("the node was not begun again")
	}
}
