package preview_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

var updateGolden = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *updateGolden {
		checktest.OK(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want := checktest.Get(os.ReadFile(file))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (go test ./runlevel/preview -update writes it): %s", name, diff)
	}
}

// before is a cluster, and the release that it runs, with one change by somebody.
const before = `
# 0000_10_a_1.yaml
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: ns, annotations: {note: x}}, data: {level: info, text: "one\ntwo\nthree\nfour\nfive\nsix\n"}}
---
# 0000_10_a_2.yaml
{apiVersion: v1, kind: Secret, metadata: {name: login, namespace: ns, annotations: {note: x}}, data: {password: aHVudGVyMg==}}
---
# 0000_10_b_1.yaml` + fmtWorkload + `
---
# 0000_20_c_1.yaml
{apiVersion: v1, kind: ConfigMap, metadata: {name: old, namespace: ns, annotations: {note: x}}}
---
# 0000_20_c_2.yaml
{apiVersion: v1, kind: ConfigMap, metadata: {name: left, namespace: ns, annotations: {note: x}}}
---
# 0000_20_c_3.yaml
{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: c, annotations: {note: x}}, spec: {}, status: {versions: [{name: operator, version: 4.18.1}]}}
---
# 0000_30_d_1.yaml
`

const fmtWorkload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: ns, annotations: {note: x}}
spec:
  selector: {matchLabels: {app: d}}
  replicas: 2
  template:
    metadata: {labels: {app: d}}
    spec: {containers: [{name: c, image: "example.com/c:1", env: [{name: API_TOKEN, value: hunter2}]}]}`

func scene(t *testing.T) *preview.Preview {
	t.Helper()
	running := before + fmt.Sprintf(role, "{apiGroups: [''], resources: [pods], verbs: [get]}")
	c := cluster(t, strings.Replace(running, "replicas: 2", "replicas: 5", 1)+`
---
{apiVersion: v1, kind: Pod, metadata: {name: d-1, namespace: ns, labels: {app: d}}, spec: {nodeName: worker-1, containers: [{name: c, image: a}]}}`)
	target := strings.NewReplacer("level: info", "level: debug", "three", "THREE", "aHVudGVyMg==", "aHVudGVyMw==", "c:1", "c:2", "hunter2", "hunter3",
		"name: old, namespace: ns, annotations: {note: x}", "name: old, namespace: ns, annotations: {release.openshift.io/delete: 'true'}",
		"name: left", "name: fresh", "4.18.1", "4.19.0").Replace(running)
	target = strings.Replace(target, "verbs: [get]", "verbs: [get, list]", 1) + "\n---\n# 0000_30_d_2.yaml" + strings.Replace(thing, "SPEC", "{}", 1)
	target = strings.Replace(target, "# 0000_30_d_2.yaml", "# 0000_30_d_2.yaml\n", 1)
	from, to := payload(t, "4.18.1", running), payload(t, "4.19.0", target)
	from.Images, to.Images = map[string]string{"c": "example.com/c:1", "gone": "x"}, map[string]string{"c": "example.com/c:2"}
	p := checktest.Get(preview.Run(t.Context(), to.Tasks(), preview.Options{Reader: c, Running: from, Payload: to, Key: []byte("of these tests")}))(t)
	return p
}

// The text is what people read of it.
func TestText(t *testing.T) {
	p := scene(t)
	for name, o := range map[string]preview.TextOptions{
		"all.txt": {Unchanged: true}, "changed.txt": {}, "component.txt": {Component: "b"}, "kind.txt": {Kind: "Secret"},
	} {
		var sb strings.Builder
		checktest.OK(t, p.Text(&sb, o))
		golden(t, name, sb.String())
	}
	if err := p.Text(failing{}, preview.TextOptions{}); err == nil {
		t.Error("the error of the writer is lost")
	}
}

func TestDiff(t *testing.T) {
	p := scene(t)
	for name, o := range map[string]preview.TextOptions{"all.diff": {}, "one.diff": {Kind: "ConfigMap", Context: 1}, "none.diff": {Kind: "ConfigMap", Context: -1}} {
		var sb strings.Builder
		checktest.OK(t, p.Diff(&sb, o))
		golden(t, name, sb.String())
	}
	if err := p.Diff(failing{}, preview.TextOptions{}); err == nil {
		t.Error("the error of the writer is lost")
	}
}

// Credentials stand in none of the forms.
func TestNoCredentials(t *testing.T) {
	p := scene(t)
	var text, diff strings.Builder
	checktest.OK(t, errors.Join(p.Text(&text, preview.TextOptions{Unchanged: true}), p.Diff(&diff, preview.TextOptions{})))
	raw := checktest.Get(json.Marshal(p))(t)
	for name, s := range map[string]string{"text": text.String(), "diff": diff.String(), "JSON": string(raw)} {
		for _, secret := range []string{"hunter2", "hunter3", "aHVudGVyMg", "aHVudGVyMw"} {
			if strings.Contains(s, secret) {
				t.Errorf("%s shows %s", name, secret)
			}
		}
		if !strings.Contains(s, "(redacted-") {
			t.Errorf("%s has no digest", name)
		}
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// Each reader and each release works alike, in whatever order maps are read.
func TestDeterministic(t *testing.T) {
	var first string
	for range 5 {
		var sb strings.Builder
		p := scene(t)
		checktest.OK(t, p.Text(&sb, preview.TextOptions{Unchanged: true}))
		if first == "" {
			first = sb.String()
		}
		if diff := cmp.Diff(first, sb.String()); diff != "" {
			t.Fatal(diff)
		}
	}
}
