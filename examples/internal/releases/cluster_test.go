package releases_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/examples/internal/releases"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/program"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// excluded runs a program that reads two releases and tells what it has excluded of the second.
func excluded(t *testing.T, args ...string) (code int, out []string, errs string) {
	t.Helper()
	var f releases.Flags
	var stdout, stderr bytes.Buffer
	c := program.Command{Name: "test", Max: 2, Flags: func(set *flag.FlagSet) { f.Declare(set) }, Run: func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		from, to, filter, err := f.Releases(ctx, args, stderr)
		if err != nil {
			return err
		}
		fmt.Fprintln(stdout, from.Release.Image, to.Release.Image)
		for _, m := range to.Inclusion(filter).Manifests {
			if !m.Included {
				fmt.Fprintln(stdout, m.Rule, m.Identity.Name)
			}
		}
		return nil
	}}
	code = c.Execute(t.Context(), args, &stdout, &stderr)
	return code, strings.Split(strings.TrimSpace(stdout.String()), "\n"), stderr.String()
}

// codeOf is the exit code of a program that ends with an error.
func codeOf(t *testing.T, err error) int {
	c := program.Command{Name: "test", Run: func(context.Context, []string, io.Writer, io.Writer) error { return err }}
	return c.Execute(t.Context(), nil, io.Discard, io.Discard)
}

// What the flags say decides.
func TestDescribed(t *testing.T) {
	const images = sample.FromImage + " " + sample.ToImage
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"", []string{"FeatureSet monitoring-preview", "Profile ingress-operator"}},
		{"-feature-set TechPreviewNoUpgrade", []string{"Profile ingress-operator"}},
		{"-feature-set any -profile any", nil},
		{"-baseline None", []string{"FeatureSet monitoring-preview", "Capability sample-templates", "Profile ingress-operator"}},
		{"-baseline None -capability openshift-samples", []string{"FeatureSet monitoring-preview", "Profile ingress-operator"}},
		{"-capability Console,Beans -allow-unknown", []string{"FeatureSet monitoring-preview", "Profile ingress-operator"}}, // the default set is vCurrent
		{"-profile any -feature-set any -override Job.batch/openshift-etcd/none -override Deployment.apps/openshift-console-operator/none", nil},
		{"-profile any -feature-set any -override Namespace/openshift-security -override ConfigMap/openshift-security/security-defaults", []string{"Override openshift-security", "Override security-defaults"}},
		{"-major 9 -gate A,B -exclude internal-openshift-hosted", []string{"FeatureSet monitoring-preview", "Profile ingress-operator"}},
	} {
		code, got, errs := excluded(t, strings.Fields(tt.args)...)
		if diff := cmp.Diff(append([]string{images}, tt.want...), got); diff != "" || code != 0 || errs != "" {
			t.Errorf("%s: exit %d, %s, %s", tt.args, code, errs, diff)
		}
	}
}

// A recorded cluster decides: its feature set, capabilities and overrides. It knows
// the images of the releases that it has or may have.
func TestRecorded(t *testing.T) {
	const (
		version = `{"apiVersion":"config.openshift.io/v1","kind":"ClusterVersion","metadata":{"name":"version","uid":"u"},
			"spec":{"clusterID":"u","capabilities":{"baselineCapabilitySet":"None"},"overrides":[{"kind":"Namespace","group":"","namespace":"","name":"openshift-security","unmanaged":true}]},
			"status":{"desired":{"version":"4.20.3","image":"a@sha256:1"},"availableUpdates":[{"version":"4.21.1","image":"a@sha256:2"}],"history":[{"state":"Completed","version":"4.20.3","image":"a@sha256:1"}]}}`
		gates = `{"apiVersion":"config.openshift.io/v1","kind":"FeatureGate","metadata":{"name":"cluster"},"spec":{"featureSet":"TechPreviewNoUpgrade"},
			"status":{"featureGates":[{"version":"4.20.3","enabled":[{"name":"A"}]}]}}`
	)
	record := func(files ...string) string {
		dir := t.TempDir()
		for i, text := range files {
			checktest.OK(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.json", i)), []byte(text), 0o600))
		}
		return dir
	}
	want := []string{"a@sha256:1 a@sha256:2", "Override openshift-security", "Capability sample-templates", "Profile ingress-operator"}
	code, got, errs := excluded(t, "-dump", record(version, gates))
	if diff := cmp.Diff(want, got); diff != "" || code != 0 || errs != "" {
		t.Errorf("exit %d, %s, %s", code, errs, diff)
	}
	code, got, errs = excluded(t, "-dump", record(version))
	want = slices.Insert(want, 2, "FeatureSet monitoring-preview")
	if diff := cmp.Diff(want, got); diff != "" || code != 0 || !strings.HasPrefix(errs, "the FeatureGate was not collected: the feature set is taken to be Default") {
		t.Errorf("exit %d, %s, %s", code, errs, diff)
	}
	if code, _, errs := excluded(t, "-dump", record(gates)); code != program.Unknown || !strings.Contains(errs, "the ClusterVersion: ") {
		t.Errorf("exit %d, %s", code, errs)
	}
	conditional := strings.Replace(version, `"availableUpdates":[{"version":"4.21.1","image":"a@sha256:2"}]`, `"conditionalUpdates":[{"release":{"version":"4.21.1","image":"a@sha256:3"},"risks":[]}]`, 1)
	conditional = strings.Replace(conditional, `"desired":{"version":"4.20.3","image":"a@sha256:1"}`, `"desired":{"version":"4.20.9","image":"a@sha256:9"}`, 1)
	code, got, _ = excluded(t, "-dump", record(conditional, gates))
	if code != 0 || got[0] != "a@sha256:1 a@sha256:3" || slices.Contains(got, "FeatureSet monitoring-preview") {
		t.Errorf("exit %d, %s", code, got)
	}
}

// Without a recording an update is that of a simulated cluster.
func TestUpdate(t *testing.T) {
	var f releases.Flags
	f.DeclareRecorded(flag.NewFlagSet("test", flag.ContinueOnError))
	c, from, to, err := f.Update(t.Context(), "", nil, io.Discard)
	checktest.OK(t, err)
	if from.Release.Version != sample.FromVersion || to.Release.Version != sample.ToVersion || c.Owner().Name != "version" || c.Owner().UID == "" {
		t.Errorf("%s %s %v", from.Release.Version, to.Release.Version, c.Owner())
	}
	if v := c.Filter(from, to).Judge(to.Manifests[0]); v != (manifest.Verdict{Included: true}) {
		t.Error(v)
	}
	if _, _, _, err := f.Update(t.Context(), "", []string{"absent"}, io.Discard); codeOf(t, err) != program.Unknown {
		t.Error(err)
	}
}
