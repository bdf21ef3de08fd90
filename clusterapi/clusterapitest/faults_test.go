package clusterapitest_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/differential"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
)

const faultVariable = "CLUSTERAPITEST_FAULTS"

// subtest is a fault's name as part of a test's.
func (f fault) subtest() string { return strings.ReplaceAll(f.name, " ", "_") }

// TestBroken runs in a process of its own, where it must fail.
func TestBroken(t *testing.T) {
	if os.Getenv(faultVariable) == "" {
		t.Skip("this is a part of TestFindsFaults")
	}
	for _, f := range recordedFaults {
		t.Run(strings.ReplaceAll(f.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			clusterapitest.Conformance(t, func(t *testing.T) (clusterapi.ClusterAPI, clusterapitest.Capabilities) {
				return f.api(recording(t)), clusterapitest.Capabilities{Watch: true, ReadOnly: true}
			})
		})
	}
	for _, f := range faults {
		t.Run(f.subtest(), func(t *testing.T) {
			t.Parallel()
			b := newBroken(memory.New(asServer))
			f.make(b)
			t.Run("Conformance", func(t *testing.T) {
				clusterapitest.Conformance(t, func(*testing.T) (clusterapi.ClusterAPI, clusterapitest.Capabilities) {
					return b, clusterapitest.Capabilities{Watch: true}
				})
			})
		})
		if !f.differs {
			continue
		}
		t.Run(f.subtest()+"_apart", func(t *testing.T) {
			t.Parallel()
			b := newBroken(memory.New(asServer))
			f.make(b)
			o := differential.Options{Sequences: 600, Failures: 1, Whole: true}
			switch { // what few sequences come to
			case strings.HasPrefix(f.test, "Evict/"):
				o.Kinds = []string{"Pod", "PodDisruptionBudget"}
			case f.test == "Apply/AtomicList":
				o.Kinds = []string{"Deployment"}
			}
			differential.Run(t, memory.New(asServer), b, o)
		})
	}
}

// failures runs some sub-tests of TestBroken in another process, and returns
// the names of those that failed. An error says that it ended otherwise.
func failures(tests ...string) (map[string]bool, error) {
	var run []string
	for _, test := range tests {
		run = append(run, "^"+strings.ReplaceAll("TestBroken/"+test, "/", "$/^")+"$")
	}
	cmd := exec.Command(os.Args[0], "-test.run", strings.Join(run, "|"), "-test.v", "-test.timeout", "5m")
	cmd.Env = append(os.Environ(), faultVariable+"=all")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil, errors.New("all passed")
	}
	if at := strings.Index(string(out), "panic: "); at >= 0 {
		return nil, fmt.Errorf("%.5000s", out[at:])
	}
	failed := make(map[string]bool)
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: TestBroken/"); ok {
			failed[name[:strings.LastIndex(name, " (")]] = true
		}
	}
	return failed, nil
}

// Both find the faults that they are there to find. Each fault is tried in a
// process of its own, and with the sub-test alone that must find it.
func TestFindsFaults(t *testing.T) {
	if testing.Short() || israce.Enabled {
		t.Skip("some 130 processes: not with -short, and not with -race")
	}
	find := func(name, test string, tests ...string) {
		type outcome struct {
			failed map[string]bool
			err    error
		}
		result := make(chan outcome, 1)
		try := func() {
			failed, err := failures(tests...)
			result <- outcome{failed, err}
		}
		// What waits for an event that does not come takes time and nothing
		// else: all of those begin at once.
		waits := strings.HasPrefix(test, "Watch")
		if waits {
			go try()
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !waits {
				try()
			}
			o := <-result
			checktest.FatalIf(t, o.err != nil, "%v", o.err)
			for _, test := range tests {
				checktest.FailIf(t, !o.failed[test], "%s passed", test)
			}
		})
	}
	for _, f := range recordedFaults {
		find(f.name, f.test, strings.ReplaceAll(f.name, " ", "_")+"/"+f.test)
	}
	for _, f := range faults {
		tests := []string{f.subtest() + "/Conformance/" + f.test}
		if f.differs {
			tests = append(tests, f.subtest()+"_apart")
		}
		find(f.name, f.test, tests...)
	}
}

// What has no fault passes.
func TestConformanceOfMemory(t *testing.T) {
	clusterapitest.Conformance(t, func(*testing.T) (clusterapi.ClusterAPI, clusterapitest.Capabilities) {
		return memory.New(asServer), clusterapitest.Capabilities{Watch: true}
	})
}
