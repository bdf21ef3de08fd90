package view_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

// The status of a cluster in the middle of an update, what it waits on included, is
// that of its recording, and of a fork of the recording.
func TestStatusOfRecording(t *testing.T) {
	c := newUpdating(t, reconcile.VirtualOptions{Seed: 1})
	looks := 6
	if israce.Enabled {
		looks = 2
	}
	seen := map[string]bool{}
	for i := range looks {
		c.Advance(t, 100*time.Second)
		dir := filepath.Join(t.TempDir(), "recording")
		checktest.OK(t, dump.Record(t.Context(), c, dir, dump.RecordOptions{Clock: c.Virtual.Clock()}))
		recording := checktest.Get(dump.Open(t.Context(), os.DirFS(dir), dump.Options{}))(t)
		if now := recording.Time(); !now.Equal(c.Virtual.Now()) || len(recording.Problems()) > 0 {
			t.Errorf("look %d: time %s, problems %v", i, now, recording.Problems())
		}
		text := func(r clusterapi.Reader) string {
			t.Helper()
			s := checktest.Get(view.ReadStatus(t.Context(), r, view.StatusOptions{Components: components(c)}))(t)
			for _, chain := range s.Waits {
				seen[chain[0].Runlevel] = true
			}
			var out bytes.Buffer
			checktest.OK(t, s.WriteText(&out, &out, view.StatusText{Details: "all", Waits: true}))
			return out.String()
		}
		live := text(c)
		if diff := cmp.Diff(live, text(recording)); diff != "" {
			t.Errorf("look %d: recorded (-live +recorded):\n%s", i, diff)
		}
		if diff := cmp.Diff(live, text(memory.New(memory.Options{Base: recording}))); diff != "" {
			t.Errorf("look %d: forked (-live +forked):\n%s", i, diff)
		}
	}
	checktest.FailIf(t, len(seen) < looks/2, "the update waited on the runlevels %v", seen)
}

// What a must-gather is assumed to have completely stands in the status, beside
// what it does not have.
func TestRecordedStatusAssumed(t *testing.T) {
	const name = "4.14.1-degraded"
	tree := fstest.MapFS{}
	for part, at := range map[string]string{
		"cv": "config.openshift.io/clusterversions", "co": "config.openshift.io/clusteroperators",
		"mcp": "machineconfiguration.openshift.io/machineconfigpools/m", "node": "core/nodes/n",
	} {
		data := checktest.Get(os.ReadFile(filepath.Join(testdata.Dir(t), "clusters", name, name+"-"+part+".yaml")))(t)
		tree["must-gather.local.1/quay-io-x-sha256-0/cluster-scoped-resources/"+at+".yaml"] = &fstest.MapFile{Data: data}
	}
	for _, tc := range []struct {
		drop, want string
	}{
		{"", "warning: MachineConfigPool, Node: assumed to be recorded completely\n"},
		{"core/nodes/n", "warning: MachineConfigPool: assumed to be recorded completely\n"},
	} {
		delete(tree, "must-gather.local.1/quay-io-x-sha256-0/cluster-scoped-resources/"+tc.drop+".yaml")
		recording := checktest.Get(dump.Open(t.Context(), tree, dump.Options{}))(t)
		for _, r := range []clusterapi.Reader{recording, clusterapi.ReadOnly(recording), memory.New(memory.Options{Base: recording})} {
			status := checktest.Get(view.ReadStatus(t.Context(), r, view.StatusOptions{}))(t)
			checktest.Equal(t, recording.Time(), status.Now, "time")
			var text strings.Builder
			checktest.OK(t, status.WriteText(io.Discard, &text, view.StatusText{}))
			if !strings.Contains(text.String(), tc.want) || strings.Contains(text.String(), "Node: all or some") != (tc.drop != "") {
				t.Errorf("without %q: %s", tc.drop, text.String())
			}
		}
	}
}

// Nothing lasts less than no time, even if what was recorded is later than now.
func TestRecordedStatusNeverNegative(t *testing.T) {
	for _, cluster := range []string{"clusters/4.14.1-degraded", "clusters/4.15.0-ec2-early", "insights-4.7"} {
		dir := filepath.Join(testdata.Dir(t), cluster)
		recording := checktest.Get(dump.Open(t.Context(), os.DirFS(dir), dump.Options{Now: time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)}))(t)
		status := checktest.Get(view.ReadStatus(t.Context(), recording, view.StatusOptions{}))(t)
		var text strings.Builder
		checktest.OK(t, status.WriteText(&text, io.Discard, view.StatusText{Details: "all", Waits: true}))
		if found := regexp.MustCompile(`[ (:]-[0-9]+[hms]`).FindString(text.String()); found != "" {
			t.Errorf("%s: %q in %s", cluster, found, text.String())
		}
	}
}

// recordedClock is what the command line tool adds to the newest transition when
// it reads files.
const recordedClock = 368_975 * time.Nanosecond

// readItems decodes a file with a list, or nothing where there is none.
func readItems[T any](t testing.TB, file string) []T {
	t.Helper()
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil
	}
	checktest.OK(t, err)
	var list struct{ Items []T }
	if err := yaml.Unmarshal(text, &list); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return list.Items
}

// readDump reads the objects of a recorded cluster.
func readDump(t testing.TB, dir string) *view.Objects {
	t.Helper()
	prefix := filepath.Join(dir, filepath.Base(dir))
	o := &view.Objects{}
	o.ClusterOperators = readItems[*configv1.ClusterOperator](t, prefix+"-co.yaml")
	readInto(t, prefix+"-mcp.yaml", &o.MachineConfigPools)
	readInto(t, prefix+"-mc.yaml", &o.MachineConfigs)
	readInto(t, prefix+"-node.yaml", &o.Nodes)
	text := checktest.Get(os.ReadFile(prefix + "-cv.yaml"))(t)
	var cv struct {
		configv1.ClusterVersion
		Items []*configv1.ClusterVersion
	}
	checktest.OK(t, yaml.Unmarshal(text, &cv))
	if o.ClusterVersion = &cv.ClusterVersion; len(cv.Items) > 0 {
		o.ClusterVersion = cv.Items[0]
	}
	return o
}

func readInto[T any](t testing.TB, file string, items *[]T) { *items = readItems[T](t, file) }

// dumps are the folders of the recorded clusters.
func dumps(t testing.TB) []string {
	t.Helper()
	all := checktest.Get(filepath.Glob(filepath.Join(testdata.Dir(t), "clusters", "*", "*.output")))(t)
	var dirs []string
	for _, file := range all {
		if dir := filepath.Dir(file); filepath.Base(dir) != "recommend" {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		t.Fatal("no recorded clusters")
	}
	return dirs
}

// differences are the texts of recorded outputs that are defects of the tool that
// printed them, with ours.
var differences = map[string][2]string{
	// A duration below a second is printed as minutes.
	"4.15.0-ec2-early.detailed-output": {"kube-apiserver   6m8s ", "kube-apiserver   now  "},
}

// The recorded outputs come out byte by byte, but for defects.
func TestRecordedStatus(t *testing.T) {
	for _, dir := range dumps(t) {
		for suffix, details := range map[string]view.Details{".output": "none", ".detailed-output": "all"} {
			name := filepath.Base(dir) + suffix
			t.Run(name, func(t *testing.T) {
				o := readDump(t, dir)
				s, err := view.AssessStatus(o, latestTransition(o).Add(recordedClock))
				checktest.OK(t, err)
				var out, errOut bytes.Buffer
				checktest.OK(t, s.WriteText(&out, &errOut, view.StatusText{Details: details}))
				want := checktest.Get(os.ReadFile(filepath.Join(dir, name)))(t)
				text := string(want)
				if d, ok := differences[name]; ok {
					checktest.FailIf(t, !strings.Contains(text, d[0]), "the recorded output lacks %q", d[0])
					text = strings.ReplaceAll(text, d[0], d[1])
				}
				checktest.Same(t, text, out.String())
				if errOut.Len() > 0 {
					t.Errorf("warns %q", errOut.String())
				}
			})
		}
	}
}
