package view_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

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
					if !strings.Contains(text, d[0]) {
						t.Errorf("the recorded output lacks %q", d[0])
					}
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
