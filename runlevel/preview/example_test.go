package preview_test

import (
	"context"
	"fmt"
	"log"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

// exampleUpdate is a cluster with a small release, and the next one.
func exampleUpdate(ctx context.Context) (cluster *memory.Cluster, running, next *manifest.Payload) {
	load := func(version string, manifests ...string) *manifest.Payload {
		p, err := manifest.Load(ctx, testdata.Release(version, manifests...), manifest.LoadOptions{})
		if err != nil {
			log.Fatal(err)
		}
		return p
	}
	const meta = `namespace: dns, annotations: {include.release.openshift.io/self-managed-high-availability: "true"`
	running = load("4.21.1",
		`{apiVersion: v1, kind: Namespace, metadata: {name: dns, annotations: {include.release.openshift.io/self-managed-high-availability: "true"}}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: servers, `+meta+`}}, data: {cache: "30s", upstream: 192.0.2.1}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: hosts, `+meta+`}}}`)
	next = load("4.21.2",
		`{apiVersion: v1, kind: Namespace, metadata: {name: dns, annotations: {include.release.openshift.io/self-managed-high-availability: "true"}}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: servers, `+meta+`}}, data: {cache: "60s", upstream: 192.0.2.1}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: hosts, `+meta+`, release.openshift.io/delete: "true"}}}`,
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: dns, `+meta+`}}}`)
	cluster = memory.NewOpenShift(memory.Options{})
	if _, err := runlevel.Run(ctx, running.Tasks(), runlevel.Options{API: cluster}); err != nil {
		log.Fatal(err)
	}
	return cluster, running, next
}

// What an update would change, for people; the cluster stays as it is.
func ExampleRun() {
	ctx := context.Background()
	cluster, running, next := exampleUpdate(ctx)
	p, err := preview.Run(ctx, next.Tasks(), preview.Options{Reader: cluster, Payload: next, Running: running})
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Text(os.Stdout, preview.TextOptions{}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Update from 4.21.1 to 4.21.2: 1 to create, 1 to update, 1 to delete, 1 unchanged
	//
	// Runlevel 50
	//
	//   ~ ConfigMap dns/servers    0000_50_x_01.yaml
	//       ~ data.cache: "30s" -> "60s"
	//
	//   - ConfigMap dns/hosts    0000_50_x_02.yaml
	//
	//   + ServiceAccount dns/dns    0000_50_x_03.yaml
	//
	// Assumed
	//     What the update waits for comes about: workloads roll out, definitions are established, operators report their versions.
	//     What operators change once they run is not part of it.
	//     Rules in CEL (x-kubernetes-validations) are not evaluated.
	//     Admission is not asked: webhooks and policies may change or refuse objects.
}

// A preview is data: objects, what becomes of them, and which fields change.
func ExamplePreview() {
	ctx := context.Background()
	cluster, _, next := exampleUpdate(ctx)
	p, err := preview.Run(ctx, next.Tasks(), preview.Options{Reader: cluster})
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range p.Changes {
		fmt.Println(c.Object, c.Action)
		for _, f := range c.Fields {
			fmt.Println("  ", f.Path, f.Old, f.New)
		}
	}
	// Output:
	// Namespace dns Keep
	// ConfigMap dns/servers Update
	//    data.cache 30s 60s
	// ConfigMap dns/hosts Delete
	// ServiceAccount dns/dns Create
}

// Before the update begins, somebody changes an object: what was seen of it does not
// hold any more.
func ExamplePreview_Check() {
	ctx := context.Background()
	cluster, _, next := exampleUpdate(ctx)
	p, err := preview.Run(ctx, next.Tasks(), preview.Options{Reader: cluster})
	if err != nil {
		log.Fatal(err)
	}
	_, err = clusterapi.Modify(ctx, cluster, clusterapi.Key("dns", "servers"), clusterapi.ModifyOptions{}, func(cm *corev1.ConfigMap) error {
		cm.Data["upstream"] = "192.0.2.9"
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	moved, err := p.Check(ctx, cluster)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range moved {
		fmt.Println(m.Object, "is not as the preview saw it:", m.Reason)
	}
	// Output:
	// ConfigMap dns/servers is not as the preview saw it: it was changed
}
