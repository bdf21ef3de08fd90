package view_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

var update = flag.Bool("update", false, "write the wanted texts of testdata")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		checktest.OK(t, os.WriteFile(file, []byte(got), 0o644))
	}
	if diff := cmp.Diff(readFile(t, file), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

var trailing = regexp.MustCompile(`(?m) +$`)

// sample compares a text with an output of the product's documentation, which has
// lost the spaces at the ends of its lines.
func checkSample(t *testing.T, name, got string) {
	t.Helper()
	want := readFile(t, filepath.Join("testdata", name))
	if diff := cmp.Diff(trailing.ReplaceAllString(want, ""), trailing.ReplaceAllString(got, "")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func readFile(tb testing.TB, name string) string {
	tb.Helper()
	text := checktest.Get(os.ReadFile(name))(tb)
	return string(text)
}

// readVersion reads the first ClusterVersion of a YAML file with one or a list of
// them.
func readVersion(tb testing.TB, name string) *configv1.ClusterVersion {
	tb.Helper()
	text := []byte(readFile(tb, name))
	var list configv1.ClusterVersionList
	checktest.OK(tb, yaml.Unmarshal(text, &list))
	if len(list.Items) > 0 {
		return &list.Items[0]
	}
	cv := &configv1.ClusterVersion{}
	checktest.OK(tb, yaml.Unmarshal(text, cv))
	return cv
}

// texts returns what a view writes, with the error behind what it shows, as the
// command line tool's tests have it.
func texts(write func(out, errOut io.Writer) error) (shown, warned string) {
	var out, errOut bytes.Buffer
	if err := write(&out, &errOut); err != nil {
		out.WriteString("\nerror: " + strings.TrimSuffix(err.Error(), "\n") + "\n")
	}
	return out.String(), errOut.String()
}

// wantTexts compares both streams of a view. Texts are those of the terminal: lines
// are wanted as they are.
func wantTexts(t *testing.T, wantOut, wantErr string, write func(out, errOut io.Writer) error) {
	t.Helper()
	out, errOut := texts(write)
	checktest.SameIn(t, "out", wantOut, out)
	checktest.SameIn(t, "err", wantErr, errOut)
}

// indented returns the JSON of a value, which stays.
func indented(t *testing.T, v any) string {
	t.Helper()
	text := checktest.Get(json.MarshalIndent(v, "", "  "))(t)
	return string(text) + "\n"
}

// latestTransition returns the newest transition time of the ClusterVersion and the
// ClusterOperators, with which recorded outputs were made.
func latestTransition(o *view.Objects) time.Time {
	var conditions []configv1.ClusterOperatorStatusCondition
	if o.ClusterVersion != nil {
		conditions = append(conditions, o.ClusterVersion.Status.Conditions...)
	}
	for _, co := range o.ClusterOperators {
		conditions = append(conditions, co.Status.Conditions...)
	}
	var latest time.Time
	for _, c := range conditions {
		if c.LastTransitionTime.After(latest) {
			latest = c.LastTransitionTime.Time
		}
	}
	return latest
}
