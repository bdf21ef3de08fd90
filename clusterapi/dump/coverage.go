package dump

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// The grades of a [Coverage]. Only where a kind is whole does a missing object not
// exist.
const (
	gradeNone  = "none"  // nothing
	gradeSome  = "some"  // some objects; there may be more
	gradeWhole = "whole" // all objects, perhaps there are none
)

// Coverage is what [Recording.Coverage] returns for a kind: grades, which are
// "none", "some" (there may be more) or "whole". It is plain data.
type Coverage struct {
	// Cluster is the grade of the kind in the whole cluster: in all namespaces,
	// for a namespaced kind.
	Cluster string
	// Namespaces are the grades in each namespace that the recording knows of;
	// nil for a kind that is not namespaced. See [Coverage.In] for the others.
	Namespaces map[string]string
	// Assumed reports that the kind counts as whole on the word of [Options].Whole
	// or [MustGather], and not because the recording shows it.
	Assumed bool
}

// In returns the grade of a namespace.
func (c Coverage) In(namespace string) string {
	if g, known := c.Namespaces[namespace]; known || c.Cluster != gradeWhole {
		return cmp.Or(g, gradeNone)
	}
	return gradeWhole
}

// PartialError reports that a recording does not have all objects that were asked
// for. It is [clusterapi.ErrNotCollected] to errors.Is. It is plain data.
type PartialError struct {
	GVK schema.GroupVersionKind
	// Namespaces are those that are known to lack objects of the kind, sorted:
	// all or some of theirs. It is empty for a kind that is not namespaced.
	Namespaces []string
	// AllKnown reports that Namespaces is complete: elsewhere, nothing is missing.
	// It is false if it is not known which namespaces there are, and for a kind
	// that is not namespaced.
	AllKnown bool
}

// Error names the kind and the namespaces.
func (e *PartialError) Error() string {
	const most = 10
	names := strings.Join(e.Namespaces[:min(len(e.Namespaces), most)], ", ")
	if n := len(e.Namespaces) - most; n > 0 {
		names += fmt.Sprintf(" and %d more", n)
	}
	switch {
	case names == "":
		return fmt.Sprintf("%s: all or some are %v", e.GVK.Kind, clusterapi.ErrNotCollected)
	case !e.AllKnown:
		names += ", and perhaps others"
	}
	return fmt.Sprintf("%s: all or some are %v: namespaces %s", e.GVK.Kind, clusterapi.ErrNotCollected, names)
}

// Unwrap returns [clusterapi.ErrNotCollected].
func (e *PartialError) Unwrap() error { return clusterapi.ErrNotCollected }

// MustGather returns the resources of which oc adm must-gather collects all
// objects, each in its own file: those that its script gather names, and those that
// the ClusterOperators of every cluster name among their relatedObjects without a
// name.
func MustGather() []schema.GroupResource {
	var out []schema.GroupResource
	for _, g := range []struct {
		group     string
		resources []string
	}{
		{"", []string{"nodes", "persistentvolumes"}},
		{"admissionregistration.k8s.io", []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}},
		{"apiextensions.k8s.io", []string{"customresourcedefinitions"}},
		{"apiserver.openshift.io", []string{"apirequestcounts"}},
		{"certificates.k8s.io", []string{"certificatesigningrequests"}},
		{"config.openshift.io", []string{"clusteroperators", "clusterversions", "featuregates", "schedulers"}},
		{"machineconfiguration.openshift.io", []string{"containerruntimeconfigs", "controllerconfigs", "kubeletconfigs", "machineconfigpools", "machineconfigs"}},
		{"migration.k8s.io", []string{"storageversionmigrations"}},
		{"operator.openshift.io", []string{"clustercsidrivers", "imagecontentsourcepolicies"}},
		{"security.openshift.io", []string{"securitycontextconstraints"}},
		{"storage.k8s.io", []string{"csidrivers", "csinodes", "storageclasses", "volumeattachments"}},
	} {
		for _, resource := range g.resources {
			out = append(out, schema.GroupResource{Group: g.group, Resource: resource})
		}
	}
	return out
}
