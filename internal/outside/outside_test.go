package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/signaturetest"
)

// TestPrograms runs each program once and compares what it prints.
func TestPrograms(t *testing.T) {
	t.Chdir(t.TempDir())
	release := write(t)
	for _, tt := range []struct{ run, want string }{
		{"whynot stable-4.21_amd64.json 4.20.4 4.21.0", "4.20.4 cannot be updated to 4.21.0 (Risk): risk RouterReload may apply"},
		{"whynot stable-4.21_amd64.json 4.20.3 4.21.1", "4.20.3 can be updated to 4.21.1: the update is recommended\n"},
		{"verify mirror signatures key.asc " + release, "4.21.1, signed by Release team <release@example.com>\n"},
		{"compare releases/4.20.3 releases/4.21.1", "orphan: Job storage-migration-4-20-3\n4.20.3 -> 4.21.1\nobjects: 2 added"},
		{"stuck must-gather", "waits on ClusterOperator etcd: Progressing=True (NodeInstaller)\n"},
		{"rehearse cluster releases/4.20.3 releases/4.21.1", "Completed in 48m0s, at worst 51m0s\n"},
		{"policy 4.21.1 2027-01-02T03:04:05Z", "managed-upgrade-config 4.21.1 stable-4.21 2027-01-02T03:04:05Z\n"},
		{"operators must-gather", "There may be more: ClusterServiceVersion: all or some are not collected in this recording\n" +
			"maximum supported OCP version for mesh/mesh.v1 is 4.21\n"},
	} {
		prints(t, tt.run, tt.want)
	}
}

// prints runs a program and compares what it prints first.
func prints(t *testing.T, command, want string) {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), &out, strings.Fields(command)); err != nil {
		t.Errorf("%s: %v", command, err)
	} else if !strings.HasPrefix(out.String(), want) {
		t.Errorf("%s: got\n%swant\n%s", command, out.String(), want)
	}
}

// TestRealData runs programs on releases and a graph that were published.
func TestRealData(t *testing.T) {
	data := cmp.Or(os.Getenv("CLUSTERUPDATE_DATA"), "../../../shared/data")
	if _, err := os.Stat(data); err != nil {
		t.Skip(err)
	}
	for _, tt := range []struct{ run, want string }{
		{"whynot %s/graphs/stable-4.8_amd64.json 4.7.2 4.7.4",
			"4.7.2 cannot be updated to 4.7.4 (Risk): risk VSphereNodeNameChanges may apply: "},
		{"whynot %s/graphs/stable-4.8_amd64.json 4.7.40 4.8.11",
			"4.7.40 cannot be updated to 4.8.11 (NoEdge): no update leads from 4.7.40 to 4.8.11 in stable-4.8; "},
		{"compare %[1]s/payload-4.17.30 %[1]s/payload-4.18.15",
			"orphan: CustomResourceDefinition servicecas.operator.openshift.io\n4.17.30 -> 4.18.15\nobjects: 16 added, 10 newly included, "},
	} {
		prints(t, fmt.Sprintf(tt.run, data), tt.want)
	}
}

// TestServe asks the server of the program for the graph of a channel.
func TestServe(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t)
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	go func() { w.CloseWithError(run(ctx, w, []string{"serve", "graph-data", "releases"})) }()
	var address string
	_, err := fmt.Fscan(r, &address)
	check(t, err)
	answer, err := http.Get(address + "?channel=stable-4.21&arch=amd64")
	check(t, err)
	defer answer.Body.Close()
	var graph struct {
		Nodes []struct{ Version string }
		Edges [][2]int
	}
	check(t, json.NewDecoder(answer.Body).Decode(&graph))
	if got := fmt.Sprint(graph); got != "{[{4.20.3} {4.21.1}] [[0 1]]}" {
		t.Errorf("got %s", got)
	}
	stop()
	_, err = io.ReadAll(r)
	check(t, err)
}

// TestInventory proves the backend right.
func TestInventory(t *testing.T) {
	clusterapitest.Conformance(t, func(*testing.T) (clusterapi.ClusterAPI, clusterapitest.Capabilities) {
		return newInventory(clusterapitest.Objects()), clusterapitest.Capabilities{ReadOnly: true}
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write writes what the programs read into the current folder, and returns the pull
// spec of the release in the mirror.
func write(t *testing.T) string {
	t.Helper()
	for name, text := range map[string]string{
		"stable-4.21_amd64.json":               string(sample.Graph()),
		"graph-data/version":                   "1.1.0\n",
		"graph-data/blocked-edges/4.21.0.yaml": "to: 4.21.0\nfrom: 4[.]20[.].*\n",
		"graph-data/raw/metadata.json":         "{}",
		"graph-data/channels/stable-4.21.yaml": "name: stable-4.21\nversions: [4.20.3, 4.21.1]\n",
		"must-gather/cluster-scoped-resources/config.openshift.io/clusterversions/version.yaml": `
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
status:
  desired: {version: 4.21.1}
  history:
  - {version: 4.21.1, state: Partial, startedTime: "2026-01-02T03:04:05Z"}
  - {version: 4.20.3, state: Completed, startedTime: "2025-12-01T00:00:00Z", completionTime: "2025-12-01T01:00:00Z"}
  conditions:
  - {type: Progressing, status: "True", lastTransitionTime: "2026-01-02T03:04:05Z"}
`,
		"must-gather/cluster-scoped-resources/config.openshift.io/clusteroperators/etcd.yaml": `
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: etcd, annotations: {include.release.openshift.io/self-managed-high-availability: "true"}}
status:
  versions: [{name: operator, version: 4.20.3}]
  conditions:
  - {type: Available, status: "True", lastTransitionTime: "2025-12-01T00:00:00Z"}
  - {type: Progressing, status: "True", reason: NodeInstaller, message: 1 of 3 nodes are at revision 8}
`,
		"must-gather/namespaces/mesh/operators.coreos.com/clusterserviceversions.yaml": `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersionList
items:
- apiVersion: operators.coreos.com/v1alpha1
  kind: ClusterServiceVersion
  metadata:
    name: mesh.v1
    namespace: mesh
    annotations: {operatorframework.io/properties: '{"properties":[{"type": "olm.maxOpenShiftVersion", "value": "4.21"}]}'}
  spec: {}
`,
	} {
		check(t, os.MkdirAll(filepath.Dir(name), 0o755))
		check(t, os.WriteFile(name, []byte(text), 0o644))
	}
	check(t, run(t.Context(), io.Discard, []string{"record", "."}))
	image := "registry.example/release@" + mirror(t, sample.To())
	key, err := signaturetest.NewKey(signaturetest.KeyOptions{UserID: "Release team <release@example.com>"})
	check(t, err)
	message, err := key.SignRelease(signature.Digest(image), image, signaturetest.Shape{})
	check(t, err)
	signatures := filepath.Join("signatures", strings.Replace(signature.Digest(image), ":", "=", 1))
	check(t, os.MkdirAll(signatures, 0o755))
	check(t, os.WriteFile(filepath.Join(signatures, "signature-1"), message, 0o644))
	check(t, os.WriteFile("key.asc", key.Public(), 0o644))
	return image
}

// mirror writes an OCI image layout with an image of the release, and returns the
// image's digest.
func mirror(t *testing.T, release fs.FS) string {
	t.Helper()
	check(t, os.MkdirAll("mirror/blobs/sha256", 0o755))
	blob := func(mediaType string, data []byte) map[string]any {
		digest := fmt.Sprintf("%x", sha256.Sum256(data))
		check(t, os.WriteFile("mirror/blobs/sha256/"+digest, data, 0o644))
		return map[string]any{"mediaType": mediaType, "digest": "sha256:" + digest, "size": len(data)}
	}
	marshal := func(v any) []byte {
		data, err := json.Marshal(v)
		check(t, err)
		return data
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	check(t, w.AddFS(release))
	check(t, w.Close())
	const oci = "application/vnd.oci.image."
	image := blob(oci+"manifest.v1+json", marshal(map[string]any{
		"schemaVersion": 2,
		"mediaType":     oci + "manifest.v1+json",
		"config":        blob(oci+"config.v1+json", marshal(map[string]any{"os": "linux", "architecture": "amd64"})),
		"layers":        []any{blob(oci+"layer.v1.tar", layer.Bytes())},
	}))
	check(t, os.WriteFile("mirror/oci-layout", []byte(`{"imageLayoutVersion": "1.0.0"}`), 0o644))
	check(t, os.WriteFile("mirror/index.json", marshal(map[string]any{"schemaVersion": 2, "manifests": []any{image}}), 0o644))
	return image["digest"].(string)
}
