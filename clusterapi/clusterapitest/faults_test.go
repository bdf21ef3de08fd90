package clusterapitest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
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
			clusterapitest.Differential(t, memory.New(asServer), b, clusterapitest.DifferentialOptions{Sequences: 300, Failures: 1})
		})
	}
}

// Both find the faults that they are there to find.
func TestFindsFaults(t *testing.T) {
	// Only the sub-tests that must fail are run.
	var run []string
	pattern := func(test string) {
		run = append(run, "^"+strings.ReplaceAll("TestBroken/"+test, "/", "$/^")+"$")
	}
	for _, f := range recordedFaults {
		pattern(strings.ReplaceAll(f.name, " ", "_") + "/" + f.test)
	}
	for _, f := range faults {
		pattern(f.subtest() + "/Conformance/" + f.test)
		if f.differs {
			pattern(f.subtest() + "_apart")
		}
	}
	cmd := exec.Command(os.Args[0], "-test.run", strings.Join(run, "|"), "-test.v", "-test.parallel", "16", "-test.timeout", "15m")
	cmd.Env = append(os.Environ(), faultVariable+"=all")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatal("no fault was found")
	}
	failed := make(map[string]bool)
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: TestBroken/"); ok {
			failed[name[:strings.LastIndex(name, " (")]] = true
		}
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			if !failed[f.subtest()+"/Conformance/"+f.test] {
				t.Errorf("%s passed", f.test)
			}
			if f.differs && !failed[f.subtest()+"_apart"] {
				t.Error("no sequence told it apart")
			}
		})
	}
	for _, f := range recordedFaults {
		if !failed[strings.ReplaceAll(f.name, " ", "_")+"/"+f.test] {
			t.Errorf("%s: %s passed", f.name, f.test)
		}
	}
	if at := strings.Index(string(out), "panic: "); at >= 0 {
		t.Errorf("%.5000s", out[at:])
	}
}

// What has no fault passes.
func TestConformanceOfMemory(t *testing.T) {
	clusterapitest.Conformance(t, func(*testing.T) (clusterapi.ClusterAPI, clusterapitest.Capabilities) {
		return memory.New(asServer), clusterapitest.Capabilities{Watch: true}
	})
}
