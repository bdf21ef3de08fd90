package forecast_test

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/forecast"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

// Every recorded cluster goes on as its state implies: those that are well complete the
// rest of their update and the next one, those that are degraded stay so, and a minor
// update in mid-update is refused.
func TestRecordings(t *testing.T) {
	const (
		degraded = "ClusterOperator etcd: Degraded=True (EtcdEndpoints_ErrorUpdatingEtcdEndpoints"
		progress = "An update is already in progress"
		workers  = "4.14.1-workers-started-updating-multiple-pools"
	)
	for _, tt := range []struct {
		name, cluster, from, desired, to string
		want                             forecast.Outcome
		why                              string // the first cause
	}{
		{"patch", "not-upgrading", "4.14.1", "", "4.14.2", forecast.Completed, ""},
		{"minor", "not-upgrading", "4.14.1", "", "4.15.0", forecast.Completed, ""},
		{"rest", "4.14.1-degraded", "4.14.0-rc.3", "", "4.14.1", forecast.Stuck, degraded},
		{"patch", "4.14.1-degraded", "4.14.0-rc.3", "4.14.1", "4.14.2", forecast.Stuck, degraded},
		{"minor", "4.14.1-degraded", "4.14.0-rc.3", "4.14.1", "4.15.1", forecast.Refused, progress},
		{"rest", workers, "4.14.0", "", "4.14.1", forecast.Completed, ""},
		{"patch", workers, "4.14.0", "4.14.1", "4.14.2", forecast.Completed, ""},
		{"minor", workers, "4.14.0", "4.14.1", "4.15.2", forecast.Refused, progress},
		{"rest", "4.15.0-ec2-early", "4.14.0-rc.7", "", "4.15.0-ec.2", forecast.Completed, ""},
		{"patch", "4.15.0-ec2-early", "4.14.0-rc.7", "4.15.0-ec.2", "4.15.1", forecast.Completed, ""},
		{"minor", "4.15.0-ec2-early", "4.14.0-rc.7", "4.15.0-ec.2", "4.16.1", forecast.Refused, progress},
		{"without the release in between", workers, "4.14.0", "", "4.14.2", forecast.Refused,
			"the update to 4.14.1 is under way, and RehearseOptions.Desired does not have its release"},
	} {
		t.Run(tt.cluster+" "+tt.name, func(t *testing.T) {
			o := forecast.RehearseOptions{
				Reader: recorded(t, tt.cluster), From: release(t, "4.17.30", tt.from, "4.13.9"),
				To: release(t, "4.18.15", tt.to, tt.from, tt.desired),
			}
			if tt.desired != "" {
				o.Desired = release(t, "4.17.30", tt.desired, tt.from)
			}
			r := checktest.Get(forecast.Rehearse(context.Background(), o))(t)
			checktest.Equal(t, tt.want, r.Outcome, "why: %v", r.Why)
			checktest.Equal(t, tt.want == forecast.Completed, len(r.Why) == 0, "why: %v", r.Why)
			if tt.why != "" {
				checktest.Has(t, r.Why[0].String(), tt.why)
				// That a release is not at hand says nothing about the cluster.
				checktest.Equal(t, strings.HasPrefix(tt.name, "without"), r.Why[0].Assumed, "%s is assumed", r.Why[0])
			}
		})
	}
}

// The preview and the rehearsal of a simulated cluster agree: live and recorded its release
// can be applied, and without a namespace that every cluster has both refuse its objects.
func TestNamespaces(t *testing.T) {
	images := payload.Images{release(t, "4.17.30", "4.17.30"), release(t, "4.18.15", "4.18.15", "4.17.30")}
	clock := reconcile.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	cluster := checktest.Get(simulation.New(simulation.Options{
		Clock: clock, Release: payload.Release(images[0].Payload),
		ClusterVersion: simulation.ClusterVersion{Channel: "stable-4.18"},
	}))(t)
	o := forecast.Options{To: "4.18.15", Releases: images, Rehearse: &forecast.RehearseOptions{}}
	f := checktest.Get(forecast.Update(t.Context(), record(t, cluster), o))(t)
	checktest.Equal(t, forecast.Completed, f.Rehearsal.Outcome, "why: %v", f.Rehearsal.Why)
	checktest.Equal(t, 0, f.Changes.Count(preview.Fail), "objects refused")

	system := corev1.SchemeGroupVersion.WithKind("Namespace")
	checktest.OK(t, cluster.Delete(t.Context(), system, clusterapi.Key("", "kube-system"), clusterapi.DeleteOptions{}))
	f = checktest.Get(forecast.Update(t.Context(), cluster, o))(t)
	checktest.Equal(t, 8, f.Changes.Count(preview.Fail), "objects refused")
	checktest.Equal(t, forecast.Stuck, f.Rehearsal.Outcome, "why: %v", f.Rehearsal.Why)
	checktest.Has(t, f.Rehearsal.Why[0].String(), `Could not update rolebinding "kube-system/cloud-controller-manager"`)
	checktest.Equal(t, 1, len(f.WhyNot()), "%s", signs(t, f))
}

// An object in a namespace that only an operator of the target makes is refused by neither
// the preview nor the rehearsal, and both say what they assume.
func TestNewNamespace(t *testing.T) {
	const file = "release-manifests/0000_70_dns-operator_07_clusteroperator.yaml"
	text := string(checktest.Get(fs.ReadFile(sample.To(), file))(t))
	text = strings.Replace(text, "relatedObjects:", `relatedObjects: # and the operand's
  - {group: "", resource: namespaces, name: openshift-dns-proxy}`, 1) + `---
apiVersion: v1
kind: ConfigMap
metadata:
  name: defaults
  namespace: openshift-dns-proxy
  annotations: {include.release.openshift.io/self-managed-high-availability: "true"}
`
	to := overlay{sample.To(), fstest.MapFS{file: &fstest.MapFile{Data: []byte(text)}}}
	images := payload.Images{
		checktest.Get(payload.Open(t.Context(), sample.FromVersion, sample.From()))(t),
		checktest.Get(payload.Open(t.Context(), sample.ToVersion, to))(t),
	}
	cluster := checktest.Get(simulation.New(simulation.Options{
		Clock:   reconcile.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		Release: payload.Release(images[0].Payload), ClusterVersion: simulation.ClusterVersion{Channel: sample.Channel},
	}))(t)
	o := forecast.Options{To: sample.ToVersion, Releases: images, Rehearse: &forecast.RehearseOptions{}}
	f := checktest.Get(forecast.Update(t.Context(), cluster, o))(t)
	checktest.Equal(t, forecast.Completed, f.Rehearsal.Outcome, "why: %v", f.Rehearsal.Why)
	checktest.Equal(t, 0, f.Changes.Count(preview.Fail), "objects refused")
	assumed := strings.Join(append(f.Changes.Assumed, f.Rehearsal.Assumed...), "\n")
	checktest.Has(t, assumed, "Operators of the release make these namespaces: openshift-dns-proxy.",
		"an operator of 4.21.1 makes the namespace openshift-dns-proxy")
}
