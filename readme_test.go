package clusterupdate_test

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/signaturetest"
)

// What the programs of README.md are given.
var ctx = context.Background()

// images opens the sample releases.
var images = manifest.PayloadSourceFunc(func(_ context.Context, r configv1.Release) (fs.FS, error) {
	return sample.Payload(r.Image)
})

// updateService is an update service's answer.
func updateService() graph.Source {
	g, err := graph.DecodeBytes(sample.Graph(), graph.DecodeOptions{})
	if err != nil {
		log.Fatal(err)
	}
	return graph.Static(g)
}

// published is a key, a digest and the folder in which its signature is published.
func published() (publicKey []byte, digest string, folder fs.FS) {
	key, err := signaturetest.NewKey(signaturetest.KeyOptions{UserID: "Release team <release@example.com>"})
	if err != nil {
		log.Fatal(err)
	}
	digest = signature.Digest(sample.ToImage)
	message, err := key.SignRelease(digest, "registry.example/ocp/release:4.21.1-x86_64", signaturetest.Shape{})
	if err != nil {
		log.Fatal(err)
	}
	name := strings.Replace(digest, ":", "=", 1) + "/signature-1"
	return key.Public(), digest, fstest.MapFS{name: &fstest.MapFile{Data: message}}
}

// Why can this release not be updated to that one?
func Example_whyNot() {
	g, err := graph.DecodeBytes(sample.Graph(), graph.DecodeOptions{})
	if err != nil {
		log.Fatal(err)
	}
	network, err := path.NewNetwork(ctx, path.NetworkOptions{}, path.ChannelGraph{Channel: "stable-4.21", Arch: "amd64", Graph: g})
	if err != nil {
		log.Fatal(err)
	}
	why, err := network.Explain(path.ExplainQuery{From: "4.20.4", To: "4.21.0"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(why)
	// Output:
	// 4.20.4 cannot be updated to 4.21.0 (Risk): risk RouterReload may apply: Requests may fail while routers reload their configuration. Version 4.21.1 corrects this. https://docs.example/known-issues/router-reload; no path from 4.20.4 to 4.21.0: the highest version that can be reached is 4.21.1; nothing leads to 4.21.0
}

// Who signed this release?
func Example_verify() {
	publicKey, digest, folder := published()
	keyring, err := signature.ParseKeyring("release keys", publicKey)
	if err != nil {
		log.Fatal(err)
	}
	store := &signature.FileStore{FS: folder}
	who, err := signature.NewVerifier([]*signature.Keyring{keyring}, store).Verify(ctx, digest)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(who.Signers[0].UserID, "signed", who.Signers[0].Reference)
	// Output:
	// Release team <release@example.com> signed registry.example/ocp/release:4.21.1-x86_64
}

// What would a cluster apply of this release, and what would it leave out?
func Example_wouldApply() {
	p, err := manifest.Load(ctx, sample.To(), manifest.LoadOptions{Filter: manifest.DefaultFilter()})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(p.Manifests), "manifests of", p.Release.Version)
	for _, x := range p.Excluded {
		fmt.Println(x.Manifest, "is left out:", x.Reason)
	}
	// Output:
	// 102 manifests of 4.21.1
	// Filename: "0000_50_cluster-monitoring-operator_05_preview.yaml" Group: "" Kind: "ConfigMap" Namespace: "openshift-monitoring" Name: "monitoring-preview" is left out: "Default" is required, and release.openshift.io/feature-set=TechPreviewNoUpgrade
	// Filename: "0000_50_ingress-operator_05_deployment-hosted.yaml" Group: "apps" Kind: "Deployment" Namespace: "openshift-ingress-operator" Name: "ingress-operator" is left out: include.release.openshift.io/self-managed-high-availability unset
}

// files is a must-gather of a cluster in the middle of an update: etcd has not
// reported its new version.
var files = fstest.MapFS{
	"must-gather.local.8/timestamp": {Data: []byte("2026-01-02 03:10:00 +0000 UTC\n2026-01-02 03:12:00 +0000 UTC\n")},
	"must-gather.local.8/registry-example-must-gather/cluster-scoped-resources/config.openshift.io/clusterversions/version.yaml": {Data: []byte(`---
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
status:
  desired: {version: 4.21.1}
  history:
  - {version: 4.21.1, state: Partial, startedTime: "2026-01-02T03:04:05Z"}
  - {version: 4.20.3, state: Completed, startedTime: "2025-12-01T00:00:00Z", completionTime: "2025-12-01T01:00:00Z"}
  conditions:
  - {type: Failing, status: "False", lastTransitionTime: "2025-12-01T00:00:00Z"}
  - {type: Progressing, status: "True", lastTransitionTime: "2026-01-02T03:04:05Z", message: "Working towards 4.21.1, waiting on etcd"}
`)},
	"must-gather.local.8/registry-example-must-gather/cluster-scoped-resources/config.openshift.io/clusteroperators/etcd.yaml": {Data: []byte(`---
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: etcd, annotations: {include.release.openshift.io/self-managed-high-availability: "true"}}
status:
  versions: [{name: operator, version: 4.20.3}]
  conditions:
  - {type: Available, status: "True", lastTransitionTime: "2025-12-01T00:00:00Z"}
  - {type: Progressing, status: "True", reason: NodeInstaller, message: 1 of 3 nodes are at revision 8, lastTransitionTime: "2026-01-02T03:08:00Z"}
`)},
}

// What does the update of this cluster wait on?
func Example_waitsOn() {
	recording, err := dump.Open(ctx, files, dump.Options{})
	if err != nil {
		log.Fatal(err)
	}
	status, err := clusterupdate.ReadStatus(ctx, recording, clusterupdate.StatusOptions{Now: recording.Time()})
	if err != nil {
		log.Fatal(err)
	}
	if err := status.WriteText(os.Stdout, os.Stderr, view.StatusText{Waits: true}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// = Control Plane =
	// Assessment:      Progressing
	// Target Version:  4.21.1 (from 4.20.3)
	// Updating:        etcd
	// Completion:      0% (0 operators updated, 1 updating, 0 waiting)
	// Duration:        7m55s (Est. Time Remaining: 1h3m)
	// Operator Health: 1 Healthy
	//
	// The update waits on:
	//   ClusterOperator etcd: Progressing=True (NodeInstaller), for 4m
	//     1 of 3 nodes are at revision 8
	//
	// = Update Health =
	// SINCE   LEVEL   IMPACT   MESSAGE
	// 7m55s   Info    None     Update is proceeding well
}

// What stands against updating this cluster?
func Example_whatStandsAgainst() {
	recording, err := dump.Open(ctx, files, dump.Options{})
	if err != nil {
		log.Fatal(err)
	}
	report, err := clusterupdate.Preflight(ctx, recording, configv1.Release{Version: "4.22.0"}, clusterupdate.PreflightOptions{
		Checks: preconditions.Operator(), // nil: all 39
		Input:  preconditions.Input{Now: recording.Time()},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := report.Decide(preconditions.Policy{}).WriteText(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Warnings:
	//   ClusterVersionRecommendedUpdate NoChannel: Configured channel is unset, so the recommended status of updating from 4.21.1 to 4.22.0 is unknown.
	//     Remedy: prefer a recommended update
	// Passed: ClusterVersionRollback, ClusterVersionGiantHop, ClusterVersionUpgradeable
	// Nothing blocks the update: 0 blocking, 1 warnings, 0 not known.
}

// Update a cluster from a loop of one's own.
func Example_ownLoop() {
	cluster := memory.NewOpenShift(memory.Options{})
	version := &configv1.ClusterVersion{}
	version.Name = "version"
	version.Spec.ClusterID = "8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01"
	if _, err := clusterapi.Create(ctx, cluster, version, clusterapi.CreateOptions{}); err != nil {
		log.Fatal(err)
	}

	updater, err := clusterupdate.New(clusterupdate.Options{
		API:      cluster,
		Payloads: images,
		Graph:    updateService(),
		Own:      configv1.Release{Version: sample.FromVersion, Image: sample.FromImage},
	})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		r, err := updater.Sync(ctx) // does all that is due now
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Done, r.Failure)
		// Wait for r.After, or for a change, and go on.
	}
	// Output:
	// false Cluster operators etcd, kube-apiserver, kube-controller-manager, kube-scheduler are not available
	// false Cluster operators etcd, kube-apiserver, kube-controller-manager, kube-scheduler are not available
}

// Rehearse an update on a simulated cluster, in virtual time.
func Example_rehearse() {
	load := func(image string) *manifest.Payload {
		release, err := sample.Payload(image)
		if err != nil {
			log.Fatal(err)
		}
		p, err := manifest.Load(ctx, release, manifest.LoadOptions{Image: image, Filter: manifest.DefaultFilter()})
		if err != nil {
			log.Fatal(err)
		}
		return p
	}
	from, to := load(sample.FromImage), load(sample.ToImage)

	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	clock := reconcile.NewClock(start)
	cluster, err := simulation.New(simulation.Options{
		Clock: clock, Release: payload.Release(from), ClusterVersion: simulation.ClusterVersion{Channel: sample.Channel},
	})
	if err != nil {
		log.Fatal(err)
	}
	cluster.Expect(payload.Release(to))
	updater, err := clusterupdate.New(clusterupdate.Options{
		API: cluster, Payloads: images, Graph: updateService(), Verifier: signature.Insecure(), Clock: clock,
	})
	if err != nil {
		log.Fatal(err)
	}
	nodes, err := rollout.New(rollout.Options{API: cluster, Mode: rollout.Drive})
	if err != nil {
		log.Fatal(err)
	}
	run := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: cluster, Clock: clock, Seed: 1},
		cluster.Process(), updater.Process(), nodes.Process())
	defer run.Close()

	key := clusterapi.Key("", "version")
	if err := run.RunUntil(start.Add(10 * time.Minute)); err != nil {
		log.Fatal(err)
	}
	_, err = clusterapi.Modify(ctx, cluster, key, clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) error {
		cv.Spec.DesiredUpdate = &configv1.Update{Version: to.Release.Version}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := run.RunUntil(start.Add(3 * time.Hour)); err != nil {
		log.Fatal(err)
	}
	cv, err := clusterapi.Get[configv1.ClusterVersion](ctx, cluster, key)
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range cv.Status.History {
		fmt.Println(h.Version, h.State)
	}
	// Output:
	// 4.21.1 Completed
	// 4.20.3 Completed
}

var docExample = regexp.MustCompile("(?s)<!-- (Example\\w*) of (\\S+) -->\n```go\n(.*?)```")

// TestDocsShowExamples: a program in README.md or docs is the body of an Example,
// word for word, so it compiles and does what its output says.
func TestDocsShowExamples(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		found := docExample.FindAllStringSubmatch(string(text), -1)
		if blocks := strings.Count(string(text), "```go\n"); len(found) != blocks {
			t.Errorf("%s has %d programs in Go, of which %d name an Example", page, blocks, len(found))
		}
		for _, m := range found {
			want := exampleBody(t, m[2], m[1])
			if m[3] != want && !*update {
				t.Errorf("%s does not show %s of %s: rewrite it by go test . -run TestDocsShow -update", page, m[1], m[2])
			}
			text = bytes.Replace(text, []byte(m[0]), []byte(strings.TrimSuffix(m[0], m[3]+"```")+want+"```"), 1)
		}
		if *update {
			if err := os.WriteFile(page, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// exampleBody is the body of a function without its Output comment.
func exampleBody(t *testing.T, file, name string) string {
	t.Helper()
	fset := token.NewFileSet()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.ParseFile(fset, file, src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != name {
			continue
		}
		body := src[fset.Position(f.Body.Lbrace).Offset+1 : fset.Position(f.Body.Rbrace).Offset]
		body, _, _ = bytes.Cut(body, []byte("\t// Output:"))
		lines := strings.Split(strings.Trim(string(body), "\n"), "\n")
		for i := range lines {
			lines[i] = strings.TrimPrefix(lines[i], "\t")
		}
		return strings.Join(lines, "\n") + "\n"
	}
	t.Fatalf("%s has no function %s", file, name)
	return ""
}
