package clusterupdate_test

import (
	"context"
	"fmt"
	"io/fs"
	"log"
	"testing/fstest"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// tinyRelease is a release of one manifest.
func tinyRelease(version string) fs.FS {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	return fstest.MapFS{
		"release-manifests/release-metadata": file(`{"kind":"cincinnati-metadata-v0","version":"` + version + `","previous":["4.20.3"]}`),
		"release-manifests/image-references": file(`{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":"` + version + `"}}`),
		"manifests/0000_00_version_namespace.yaml": file(`
apiVersion: v1
kind: Namespace
metadata:
  name: openshift-version
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
    version: ` + version),
	}
}

// An update to a release that is requested by its image. The request is forced
// since nobody signed the release.
func Example() {
	ctx := context.Background()
	const oldImage, newImage = "registry.example/release@sha256:aaaa", "registry.example/release@sha256:bbbb"
	images := manifest.PayloadSourceFunc(func(_ context.Context, r configv1.Release) (fs.FS, error) {
		return map[string]fs.FS{oldImage: tinyRelease("4.20.3"), newImage: tinyRelease("4.20.4")}[r.Image], nil
	})

	cluster := memory.NewOpenShift(memory.Options{})
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	version.Spec.ClusterID = "8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01"
	version.Spec.DesiredUpdate = &configv1.Update{Version: "4.20.4", Image: newImage, Force: true}
	if _, err := clusterapi.Create(ctx, cluster, version, clusterapi.CreateOptions{}); err != nil {
		log.Fatal(err)
	}

	updater, err := clusterupdate.New(clusterupdate.Options{
		API:      cluster,
		Payloads: images,
		Own:      configv1.Release{Version: "4.20.3", Image: oldImage}, // there is no history yet
	})
	if err != nil {
		log.Fatal(err)
	}
	for { // Run does this for as long as it may
		r, err := updater.Sync(ctx)
		if err != nil {
			log.Fatal(err)
		}
		if r.Done {
			for _, h := range r.ClusterVersion.Status.History {
				fmt.Println(h.Version, h.State)
			}
			return
		}
	}
	// Output:
	// 4.20.4 Completed
	// 4.20.3 Completed
}

// The answer to a request comes with its reason.
func ExampleResolve() {
	cv := &configv1.ClusterVersion{}
	cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.21.0"}
	cv.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{
		Release: configv1.Release{Version: "4.21.0", Image: "registry.example/release@sha256:cccc"},
		Risks:   []configv1.ConditionalUpdateRisk{{Name: "SlowDisks"}},
	}}
	r := clusterversion.Resolve(cv, configv1.Release{Version: "4.20.3"}, false, clusterversion.ResolveOptions{})
	fmt.Println(r.Outcome, r.Release.Version)
	fmt.Println(r.Why)
	// Output:
	// NotFound 4.20.3
	// version 4.21.0 is not recommended for this cluster because of the risks SlowDisks: to accept them, request it with its image registry.example/release@sha256:cccc
}

// backups keeps backups from being made during an update: it sets an annotation
// that the program which makes them looks at, and takes it off afterwards. It
// remembers nothing itself.
type backups struct{}

const backupsPaused = "backups.example/paused-for"

func (backups) Name() string { return "backups" }

func (backups) BeforeApply(ctx context.Context, r clusterversion.HookRequest) (clusterversion.HookWait, error) {
	running := false
	err := changeBackups(ctx, r.API, func(cm *corev1.ConfigMap) {
		cm.Annotations = map[string]string{backupsPaused: r.ClusterVersion.Status.History[0].Version}
		running = cm.Data["running"] != ""
	})
	if running {
		return clusterversion.HookWait{Reason: "a backup is being made"}, err
	}
	return clusterversion.HookWait{}, err
}

func (backups) AfterComplete(ctx context.Context, r clusterversion.HookRequest) (clusterversion.HookWait, error) {
	return clusterversion.HookWait{}, changeBackups(ctx, r.API, func(cm *corev1.ConfigMap) { delete(cm.Annotations, backupsPaused) })
}

func changeBackups(ctx context.Context, api clusterapi.ClusterAPI, f func(*corev1.ConfigMap)) error {
	_, err := clusterapi.Modify(ctx, api, clusterapi.Key("backups", "state"), clusterapi.ModifyOptions{}, func(cm *corev1.ConfigMap) error {
		f(cm)
		return nil
	})
	return err
}

// A hook that keeps backups from being made during an update.
func Example_hook() {
	ctx := context.Background()
	const oldImage, newImage = "registry.example/release@sha256:aaaa", "registry.example/release@sha256:bbbb"
	images := manifest.PayloadSourceFunc(func(_ context.Context, r configv1.Release) (fs.FS, error) {
		return map[string]fs.FS{oldImage: tinyRelease("4.20.3"), newImage: tinyRelease("4.20.4")}[r.Image], nil
	})
	cluster := memory.NewOpenShift(memory.Options{})
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	version.Spec.ClusterID = "8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01"
	state := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "backups", Name: "state"}}
	if _, err := clusterapi.Create(ctx, cluster, version, clusterapi.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
	if _, err := clusterapi.Create(ctx, cluster, state, clusterapi.CreateOptions{}); err != nil {
		log.Fatal(err)
	}

	updater, err := clusterupdate.New(clusterupdate.Options{
		API: cluster, Payloads: images, Own: configv1.Release{Version: "4.20.3", Image: oldImage},
		Hooks: []clusterversion.Hook{backups{}},
		Observe: func(e clusterapi.Event) {
			switch e.Type {
			case clusterupdate.EventHookDone, clusterupdate.EventHookWaiting, clusterupdate.EventHookFailed, clusterupdate.EventCompleted:
				fmt.Printf("%s %s: %s\n", dataOf(e).Release.Version, e.Type, e.Message)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	until := func(version string) {
		for {
			r, err := updater.Sync(ctx)
			if err != nil {
				log.Fatal(err)
			}
			if h := r.ClusterVersion.Status.History; r.Done && h[0].Version == version {
				break // also the hooks are done
			}
		}
	}
	until("4.20.3")
	_, err = clusterapi.Modify(ctx, cluster, clusterapi.Key("", "version"), clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) error {
		cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.20.4", Image: newImage, Force: true}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	until("4.20.4")
	left, err := clusterapi.Get[corev1.ConfigMap](ctx, cluster, clusterapi.Key("backups", "state"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("annotations: %v\n", left.Annotations)
	// Output:
	// 4.20.3 HookDone: hook backups is done
	// 4.20.3 Completed: Done applying 4.20.3
	// 4.20.3 HookDone: hook backups is done
	// 4.20.4 HookDone: hook backups is done
	// 4.20.4 Completed: Done applying 4.20.4
	// 4.20.4 HookDone: hook backups is done
	// annotations: map[]
}
