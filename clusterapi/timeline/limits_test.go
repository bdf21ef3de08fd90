package timeline_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
)

func TestLimits(t *testing.T) {
	refused := func(t *testing.T, err error, limit string) {
		t.Helper()
		var e *timeline.LimitError
		checktest.FailIf(t, !errors.As(err, &e) || e.Limit != limit, "%v does not name %s", err, limit)
	}
	lanes := func(n int) *timeline.Timeline {
		tl := &timeline.Timeline{}
		for i := range n {
			tl.Entries = append(tl.Entries, timeline.Entry{Lane: timeline.Lane{Group: "worker", Name: fmt.Sprint("node-", i)}, Start: at(0), End: at(60), Phase: "p"})
		}
		return tl
	}
	folded := func(t *testing.T, limit int, write func(tl *timeline.Timeline, w io.Writer) error) {
		t.Helper()
		for n, want := range map[int]bool{limit: true, limit + 1: false} {
			var b bytes.Buffer
			checktest.OK(t, write(lanes(n), &b))
			checktest.Equal(t, want, strings.Contains(b.String(), "node-0"), "%d lanes: shown one by one", n)
		}
	}
	limittest.Walk(t, []limittest.Case{
		{Limit: "entries of a recorder", Default: 100_000, Bytes: 1 << 30, Run: func(t *testing.T) int64 {
			r := recorder(t, timeline.Options{})
			for range 100_001 {
				r.Add(timeline.Entry{Start: at(0)})
			}
			tl, err := r.Timeline()
			refused(t, err, "Options.MaxEntries")
			checktest.FailIf(t, len(tl.Entries) != 100_000 || tl.Omitted != 1,
				"%d entries, %d left out", len(tl.Entries), tl.Omitted)
			return 0
		}},
		{Limit: "text of a recorded entry", Default: 4 << 10, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			r := recorder(t, timeline.Options{})
			long := strings.Repeat("x", 4<<10+1)
			r.Add(timeline.Entry{Lane: timeline.Lane{Group: long, Name: long}, Start: at(0), Phase: long, Text: long})
			e := recorded(t, r).Entries[0]
			for _, s := range []string{e.Lane.Group, e.Lane.Name, e.Phase, e.Text} {
				checktest.FailIf(t, len(s) > 4<<10 || !strings.HasSuffix(s, " more bytes)"), "%d bytes", len(s))
			}
			return 0
		}},
		{Limit: "lanes of a text", Default: 500, Bytes: 16 << 20, Run: func(t *testing.T) int64 {
			folded(t, 500, func(tl *timeline.Timeline, w io.Writer) error { return tl.WriteText(w, timeline.TextOptions{}) })
			return 0
		}},
		{Limit: "lanes of a picture", Default: 100, Bytes: 4 << 20, Run: func(t *testing.T) int64 {
			folded(t, 100, func(tl *timeline.Timeline, w io.Writer) error { return tl.WriteSVG(w, timeline.SVGOptions{}) })
			return 0
		}},
	})
}
