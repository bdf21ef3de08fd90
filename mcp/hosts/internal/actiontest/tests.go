package actiontest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
)

var rewrite = flag.Bool("rewrite", false, "write the transcripts again")

// Golden compares what happened with a transcript in testdata.
func (w *World) Golden(t *testing.T, name string) {
	t.Helper()
	file, got := filepath.Join("testdata", name), strings.Join(w.Lines, "\n")+"\n"
	if *rewrite {
		checktest.OK(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want := checktest.Get(os.ReadFile(file))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got, -rewrite writes it again):\n%s", file, diff)
	}
}

// storm is what goes wrong, in the first hours.
func storm(only map[string]bool) reconcile.Faults {
	return reconcile.Faults{
		Before: 0.05, After: 0.05, Conflict: 0.05, Slow: 0.01, Stale: 0.1, Late: 0.1, Double: 0.05, Merge: 0.05,
		Crash: 0.03, Outage: 0.2, Until: 3 * time.Hour, Only: only,
	}
}

// CrashAtEachCall plays a world again and again, and crashes the program at another
// call each time. start returns a world in which nothing has happened, and what plays
// it to its end and looks at that.
func CrashAtEachCall(t *testing.T, start func() (w *World, play func() error)) {
	t.Helper()
	play := func(at int, after bool) int {
		w, run := start()
		w.CrashAt, w.CrashAfter = at, after
		if err := run(); err != nil {
			t.Fatalf("crash at call %d, after its effect %v: %v\n%s", at, after, err, strings.Join(w.Lines, "\n"))
		}
		return w.Calls
	}
	calls := play(0, false)
	if calls < 20 {
		t.Fatalf("only %d calls", calls)
	}
	step := 1
	if israce.Enabled || testing.Short() {
		step = 7
	}
	for at := 1; at <= calls; at += step {
		for _, after := range []bool{false, true} {
			play(at, after)
		}
	}
}
