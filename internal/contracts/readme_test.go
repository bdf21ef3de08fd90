package contracts_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"net/http/httptest"
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
	"github.com/clusterupdate/clusterupdate/clusterapi/forecast"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/graph/policyengine"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/preflight"
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

// prometheus stands for the metrics of a cluster to which no rule applies.
var prometheus = graph.RiskMatcherFunc(func(context.Context, configv1.ClusterCondition) (bool, error) { return false, nil })

// Which updates does a cluster have, and which risks apply to it?
func Example_whichUpdates() {
	g, err := graph.DecodeBytes(sample.Graph(), graph.DecodeOptions{})
	if err != nil {
		log.Fatal(err)
	}
	network, err := path.NewNetwork(ctx, path.NetworkOptions{}, path.ChannelGraph{Channel: "stable-4.21", Arch: "amd64", Graph: g})
	if err != nil {
		log.Fatal(err)
	}
	updates, err := network.Updates(ctx, "4.20.4", prometheus, time.Now(), path.Policy{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(updates)
	// Output:
	// 4.20.4 (amd64)
	// Offered channels: candidate-4.20, fast-4.20, stable-4.20, stable-4.21
	//
	// Updates in stable-4.21:
	//   4.21.1
	//   4.21.0  Recommended=False RouterReload: Requests may fail while routers reload their configuration. Version 4.21.1 corrects this. https://docs.example/known-issues/router-reload
	//
	// Reachable: 1 releases in up to 1 hops; the highest is 4.21.1 in 1.
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

// maintained is a tree of channels and blocked edges, and scanned the releases that
// it is about.
var (
	maintained = fstest.MapFS{
		"version":                             {Data: []byte("1.1.0\n")},
		"raw/metadata.json":                   {Data: []byte("{}")},
		"channels/stable-4.21.yaml":           {Data: []byte("name: stable-4.21\nversions: [4.20.3, 4.20.4, 4.21.1]\n")},
		"blocked-edges/4.21.1-SlowDisks.yaml": {Data: []byte("to: 4.21.1\nfrom: 4[.]20[.]3[+].*\nurl: https://docs.example/slow\nname: SlowDisks\nmessage: Disks may be slow.\nmatchingRules: [{type: Always}]\n")},
	}
	scanned = []graphdata.Release{
		{Version: "4.20.3", Arch: "amd64", Image: sample.FromImage, Source: "4.20.3"},
		{Version: "4.20.4", Arch: "amd64", Image: "registry.example/release@sha256:4", Previous: []string{"4.20.3"}, Source: "4.20.4"},
		{Version: "4.21.1", Arch: "amd64", Image: sample.ToImage, Previous: []string{"4.20.3", "4.20.4"}, Source: "4.21.1"},
	}
)

// Serve an update graph, and say why an update is as it is.
func Example_serve() {
	tree, err := graphdata.Load(ctx, maintained, graphdata.LoadOptions{}) // or os.DirFS of a checkout
	if err != nil {
		log.Fatal(err) // with every fault's file and line
	}
	snapshot, err := graphdata.Build(tree, scanned, graphdata.BuildOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, cause := range snapshot.Why("4.20.3", "4.21.1", "amd64") {
		fmt.Println(cause)
	}
	handler, err := policyengine.New(policyengine.Options{Prefix: "/api/upgrades_info"})
	if err != nil {
		log.Fatal(err)
	}
	handler.Set(snapshot) // again whenever there is a new one
	server := httptest.NewServer(handler)
	defer server.Close()
	// Output:
	// 4.21.1: Declared by previous
	// blocked-edges/4.21.1-SlowDisks.yaml:2: Conditional by from 4[.]20[.]3[+].*: SlowDisks
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

// What would an update do to a cluster?
func Example_whatWouldItDo() {
	recording, err := dump.Open(ctx, files, dump.Options{})
	if err != nil {
		log.Fatal(err)
	}
	f, err := forecast.Update(ctx, recording, forecast.Options{
		To:        "4.22.0",
		Preflight: preflight.Options{Checks: preconditions.Operator()}, // nil: all 40
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := f.WriteText(os.Stdout, forecast.TextOptions{}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Update of cluster (without an ID) from 4.21.1 to 4.22.0
	// Warnings: 1 warning
	//
	// Warnings:
	//   path: ClusterVersionRecommendedUpdate NoChannel: Configured channel is unset,
	//         so the recommended status of updating from 4.21.1 to 4.22.0 is unknown.
	//     To do: Prefer a recommended update; there is none now
	//
	// Passed: ClusterVersionRollback, ClusterVersionGiantHop,
	//         ClusterVersionUpgradeable
	// Assumed: The feature set is Default, without further gates: feature gates:
	//          FeatureGate cluster: not collected in this recording.
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

var update = flag.Bool("update", false, "write the programs into README.md and docs")

var docExample = regexp.MustCompile("(?s)<!-- (Example\\w*|all) of (\\S+) -->\n```go\n(.*?)```")

// TestDocsShowExamples: a program in README.md or docs is the body of an Example, or
// a whole file, word for word, so it compiles and does what a test compares.
func TestDocsShowExamples(t *testing.T) {
	pages := checktest.Get(filepath.Glob(filepath.Join(root, "docs", "*.md")))(t)
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text := checktest.Get(os.ReadFile(page))(t)
		found := docExample.FindAllStringSubmatch(string(text), -1)
		programs := len(docProgram.FindAllString(string(text), -1))
		if blocks := strings.Count(string(text), "```go\n"); len(found)+programs != blocks {
			t.Errorf("%s has %d programs in Go, of which %d name an Example and %d run", page, blocks, len(found), programs)
		}
		for _, m := range found {
			want := exampleBody(t, m[2], m[1])
			if m[3] != want && !*update {
				t.Errorf("%s does not show %s of %s: rewrite it by go test ./internal/contracts -run TestDocsShow -update", page, m[1], m[2])
			}
			text = bytes.Replace(text, []byte(m[0]), []byte(strings.TrimSuffix(m[0], m[3]+"```")+want+"```"), 1)
		}
		if *update {
			checktest.OK(t, os.WriteFile(page, text, 0o644))
		}
	}
}

// exampleBody is the body of a function without its Output comment, or all of a file.
func exampleBody(t *testing.T, file, name string) string {
	t.Helper()
	fset := token.NewFileSet()
	src := checktest.Get(os.ReadFile(filepath.Join(root, file)))(t)
	if name == "all" {
		return string(src)
	}
	parsed := checktest.Get(parser.ParseFile(fset, file, src, parser.ParseComments))(t)
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
