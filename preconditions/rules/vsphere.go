package rules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

// VSphereSamples is a [preconditions.VSphereSource] of metrics that the cluster's own
// vSphere problem detector has: vsphere_node_hw_version_total, vsphere_vcenter_info and
// vsphere_esxi_version_total. They do not say which node has which hardware. Its error is
// about a sample without a version. It is safe for concurrent use as long as nobody changes
// the samples.
func VSphereSamples(samples []clusterapi.Sample) preconditions.VSphereSource {
	return vSphereSamples(samples)
}

type vSphereSamples []clusterapi.Sample

func (samples vSphereSamples) Versions(context.Context) (*preconditions.VSphereVersions, error) {
	v := &preconditions.VSphereVersions{Counts: map[int]int{}}
	for _, s := range samples {
		switch s.Name {
		case "vsphere_node_hw_version_total":
			text, ok := strings.CutPrefix(s.Labels["hw_version"], "vmx-")
			n, err := strconv.Atoi(text)
			if !ok || err != nil {
				return nil, fmt.Errorf("%s: %q is not a hardware version such as vmx-15", s.Name, s.Labels["hw_version"])
			}
			v.Counts[n] += int(s.Value)
		case "vsphere_vcenter_info":
			v.VCenter = append(v.VCenter, s.Labels["version"])
		case "vsphere_esxi_version_total":
			v.ESXi = append(v.ESXi, s.Labels["version"])
		}
	}
	return v, nil
}

const leastHardware = 15

// vSphere: what is below the nodes is new enough for releases from 4.13 on.
func vSphere(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	infrastructure, err := facts.Infrastructure(ctx, in.Reader)
	if err != nil {
		return nil, err
	}
	if facts.Platform(infrastructure) != configv1.VSpherePlatformType {
		return nil, &preconditions.NotApplicableError{Why: "the cluster is not on vSphere"}
	}
	if in.Target != nil && (openshift.Minor{Major: 4, Minor: 13}).Above(openshift.MinorOf(in.Target)) {
		return nil, nil
	}
	if in.VSphere == nil {
		return nil, &preconditions.NoSourceError{Source: "VSphere"}
	}
	v, err := in.VSphere.Versions(ctx)
	if err != nil {
		return nil, err
	}
	if v == nil || len(v.Hardware)+len(v.Counts)+len(v.VCenter)+len(v.ESXi) == 0 {
		return nil, errors.New("the source of vSphere's versions knows none")
	}
	var found findings
	addOldHardware(v, &found)
	tooOld, errs := olderThan(v, func(v vSphereVersion) bool { return v.less(vSphereVersion{7, 0, 2, 0}) })
	found.add(preconditions.Blocking, "VSphereVersion", "The cluster runs on a vSphere older than 7.0 Update 2", tooOld, "Upgrade vCenter and ESXi first")
	if len(tooOld) == 0 && (crosses(in.Transition, "4.13") || crosses(in.Transition, "4.14")) {
		errs = append(errs, addMigration(ctx, in, v, &found))
	}
	return found, facts.JoinErrors(errs...)
}

// addOldHardware finds nodes whose virtual hardware is too old.
func addOldHardware(v *preconditions.VSphereVersions, found *findings) {
	var objects []preconditions.Object
	for name, version := range v.Hardware {
		if version < leastHardware {
			o := object[corev1.Node]("", name, "", strconv.Itoa(version), fmt.Sprintf("vmx-%d", version))
			objects = append(objects, o)
		}
	}
	meaning := fmt.Sprintf("Nodes have virtual hardware older than version %d", leastHardware)
	var counts []string
	for version, n := range v.Counts {
		if version < leastHardware && n > 0 {
			counts = append(counts, fmt.Sprintf("%d of vmx-%d", n, version))
		}
	}
	slices.Sort(counts)
	if len(counts) > 0 {
		meaning += ", " + strings.Join(counts, ", ")
	}
	const remedy = "Shut down these nodes one after another and upgrade their virtual hardware"
	if len(objects) == 0 && len(counts) > 0 {
		found.addAt(preconditions.Blocking, "VSphereHardwareVersion", meaning, remedy, infrastructureObject("status.platformStatus.type", string(configv1.VSpherePlatformType)))
	}
	found.add(preconditions.Blocking, "VSphereHardwareVersion", meaning, objects, remedy)
}

// olderThan finds the software that is too old. The errors are for versions that cannot
// be read.
func olderThan(v *preconditions.VSphereVersions, tooOld func(vSphereVersion) bool) (objects []preconditions.Object, errs []error) {
	for _, s := range software(v) {
		version, err := parseVSphere(s.version)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", s.kind, err))
		case tooOld(version):
			objects = append(objects, preconditions.Object{GVK: schema.GroupVersionKind{Kind: s.kind}, Name: s.kind + " " + s.version, Value: s.version})
		}
	}
	return objects, errs
}

// addMigration: 4.13 and 4.14 migrate volumes of the in-tree driver, which takes a
// vSphere that is newer still.
func addMigration(ctx context.Context, in *preconditions.Input, v *preconditions.VSphereVersions, found *findings) error {
	old, _ := olderThan(v, func(v vSphereVersion) bool {
		return v.less(vSphereVersion{7, 0, 3, 'L'}) || v.major == 8 && v.less(vSphereVersion{8, 0, 2, 0})
	})
	if len(old) == 0 {
		return nil
	}
	volumes, err := facts.List[corev1.PersistentVolume](ctx, in.Reader, clusterapi.ListOptions{})
	var inTree []preconditions.Object
	for _, pv := range volumes {
		if pv.Spec.VsphereVolume != nil {
			inTree = append(inTree, object[corev1.PersistentVolume]("", pv.Name, "spec.vsphereVolume", "", ""))
		}
	}
	if len(inTree) == 0 {
		return err
	}
	sortObjects(old)
	sortObjects(inTree)
	*found = append(*found, newFinding(preconditions.Warning, "VSphereVolumeMigration",
		"Volumes of the in-tree driver are migrated, for which vSphere has to be 7.0 Update 3L, 8.0 Update 2 or later", append(old, inTree...),
		"Upgrade vCenter and ESXi first, or acknowledge that the migration is put off"))
	return err
}

type vSphereSoftware struct{ kind, version string }

// software is what has versions, each once.
func software(v *preconditions.VSphereVersions) []vSphereSoftware {
	var out []vSphereSoftware
	for _, version := range v.VCenter {
		out = append(out, vSphereSoftware{"vCenter", version})
	}
	for _, version := range v.ESXi {
		out = append(out, vSphereSoftware{"ESXi", version})
	}
	slices.SortStableFunc(out, func(a, b vSphereSoftware) int {
		return cmp.Or(-strings.Compare(a.kind, b.kind), strings.Compare(a.version, b.version))
	})
	return slices.Compact(out)
}

// vSphereVersion is a version of vCenter or ESXi; patch is the letter of a patch,
// such as L of 7.0 Update 3L. 0: unknown.
type vSphereVersion struct {
	major, minor, update int
	patch                byte
}

// parseVSphere reads the forms that are in use: 7.0.3, 7.0.3.01400, 7.0u3L, 7.0
// Update 3l, 7.0.3 build-21424296.
func parseVSphere(text string) (vSphereVersion, error) {
	form := regexp.MustCompile(`(?i)^(\d{1,4})\.(\d{1,4})(?:(?:\.| ?u(?:pdate)? ?)(\d{1,4})([a-z])?)?(?:\.(\d{3})\d\d)?(?:[ .,+-].*)?$`)
	m := form.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return vSphereVersion{}, fmt.Errorf("%q is not a version such as 7.0.3", text)
	}
	number := func(i int) int { n, _ := strconv.Atoi(m[i]); return n }
	v := vSphereVersion{major: number(1), minor: number(2), update: number(3)}
	switch {
	case m[4] != "":
		v.patch = strings.ToUpper(m[4])[0]
	case m[5] != "" && number(5) <= 26: // 00200 is patch A or C of some update; 01400 is L of 7.0 Update 3
		v.patch = vCenterPatch(number(5))
	}
	return v, nil
}

// vCenterPatch returns the letter of a patch of vCenter 7.0 Update 3 by its number, at
// least: 01400 is L.
func vCenterPatch(n int) byte {
	if n >= 14 {
		return 'L' + byte(n-14)
	}
	return 'A'
}

func (v vSphereVersion) less(o vSphereVersion) bool {
	return cmp.Or(cmp.Compare(v.major, o.major), cmp.Compare(v.minor, o.minor), cmp.Compare(v.update, o.update), cmp.Compare(v.patch, o.patch)) < 0
}
