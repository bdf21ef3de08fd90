package olm

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// OpenShiftVersion is a minor release of OpenShift.
type OpenShiftVersion struct {
	Major, Minor uint64
}

// String is MAJOR.MINOR.
func (v OpenShiftVersion) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Less orders minor releases as numbers.
func (v OpenShiftVersion) Less(w OpenShiftVersion) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// OpenShift 4.23 and 5.0 are the same release under two names.
var (
	last4  = OpenShiftVersion{4, 23}
	first5 = OpenShiftVersion{5, 0}
)

func (v OpenShiftVersion) normal() OpenShiftVersion {
	if v == last4 {
		return first5
	}
	return v
}

// Next is the minor release after this one: of both 4.23 and 5.0 it is 5.1.
func (v OpenShiftVersion) Next() OpenShiftVersion {
	n := v.normal()
	n.Minor++
	return n
}

// Allows reports whether an operator of which v is the highest supported
// OpenShift may run on the release w.
func (v OpenShiftVersion) Allows(w OpenShiftVersion) bool {
	if w == first5 {
		w = last4
	}
	return !v.normal().Less(w)
}

// ParseOpenShiftVersion returns the minor release of a version such as
// "4.18.3" or "4.19".
// The error is about a text that is not a version.
func ParseOpenShiftVersion(version string) (OpenShiftVersion, error) {
	v, err := semver.ParseTolerant(version)
	if err != nil {
		return OpenShiftVersion{}, fmt.Errorf("OpenShift version %q: %w", version, err)
	}
	return OpenShiftVersion{v.Major, v.Minor}, nil
}

// maxOpenShift returns the highest OpenShift that the values of properties
// olm.maxOpenShiftVersion allow; nil if absent.
func maxOpenShift(values []json.RawMessage) (*OpenShiftVersion, string, error) {
	switch len(values) {
	case 0:
		return nil, "", nil
	case 1:
	default:
		return nil, "", fmt.Errorf("defining more than one %q property is not allowed", PropertyMaxOpenShift)
	}
	raw := string(values[0])
	value := strings.Trim(raw, `"`)
	if value == "" {
		return nil, "", errors.New(`value cannot be "" (an empty string)`)
	}
	v, err := semver.ParseTolerant(value)
	if err != nil {
		return nil, "", fmt.Errorf("failed to parse \"%s\" as semver: %w", value, err)
	}
	if v.Patch != 0 || len(v.Pre) > 0 {
		return nil, "", fmt.Errorf("property %s must specify only <major>.<minor> version, got invalid value %s",
			PropertyMaxOpenShift, v)
	}
	warning := ""
	if !strings.HasPrefix(raw, `"`) {
		warning = fmt.Sprintf("property %s is the number %s, which may lose its last digits when it is encoded again: write %q", PropertyMaxOpenShift, raw, value)
	}
	return &OpenShiftVersion{v.Major, v.Minor}, warning, nil
}

// MaxOpenShiftVersion returns the highest OpenShift that an installed operator
// supports, by the properties in its annotation. Results are those of
// [Bundle.MaxOpenShiftVersion]; the error may be about the annotation too.
func MaxOpenShiftVersion(csv *olmapi.ClusterServiceVersion) (highest *OpenShiftVersion, warning string, err error) {
	text, ok := csv.Annotations[olmapi.AnnotationProperties]
	if !ok {
		return nil, "", nil
	}
	properties, err := parsePropertiesAnnotation(text)
	if err != nil {
		return nil, "", err
	}
	var values []json.RawMessage
	for _, p := range properties {
		if p.Type == PropertyMaxOpenShift {
			values = append(values, p.Value)
		}
	}
	return maxOpenShift(values)
}

// MaxOpenShiftVersion returns the highest OpenShift that the bundle supports;
// nil if it does not say. The error is in OLM's words. warning is not empty if
// the value is a number: 4.10 written so becomes 4.1 as soon as anybody encodes
// it again.
func (b *Bundle) MaxOpenShiftVersion() (highest *OpenShiftVersion, warning string, err error) {
	return maxOpenShift(b.MaxOpenShift)
}

// BlockingOperator is an installed operator that keeps the cluster from its
// next minor release.
type BlockingOperator struct {
	Namespace, Name string
	// Max is the highest OpenShift that it supports, as it says; nil with Err.
	Max *OpenShiftVersion
	// Err is why its limit cannot be read, which blocks too.
	Err error
}

// String is the line of the ClusterOperator's message.
func (b BlockingOperator) String() string {
	if b.Err != nil {
		return fmt.Sprintf("%s/%s has invalid %s properties: %v", b.Namespace, b.Name, PropertyMaxOpenShift, b.Err)
	}
	return fmt.Sprintf("maximum supported OCP version for %s/%s is %s", b.Namespace, b.Name, b.Max)
}

// Compatibility determines which installed operators keep a cluster from an update.
type Compatibility struct {
	// Release is the cluster's, Target the one looked at.
	Release, Target OpenShiftVersion
	// Blocking are the operators in the way, in the order of the list.
	Blocking []BlockingOperator
	// Warnings are about values that others may read differently.
	Warnings []string
}

// CheckNext determines which operators keep a cluster of this release from the next
// minor one. csvs are those of all namespaces; copies are passed over. Patch
// updates are never blocked, and a forced update ignores the result.
func CheckNext(release OpenShiftVersion, csvs []olmapi.ClusterServiceVersion) *Compatibility {
	return checkTarget(release, release.Next(), csvs)
}

func checkTarget(release, target OpenShiftVersion, csvs []olmapi.ClusterServiceVersion) *Compatibility {
	c := &Compatibility{Release: release, Target: target}
	for i := range csvs {
		csv := &csvs[i]
		if csv.IsCopied() {
			continue
		}
		highest, warning, err := MaxOpenShiftVersion(csv)
		if warning != "" {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s/%s: %s", csv.Namespace, csv.Name, warning))
		}
		if err != nil || highest != nil && !highest.Allows(target) {
			c.Blocking = append(c.Blocking, BlockingOperator{Namespace: csv.Namespace, Name: csv.Name, Max: highest, Err: err})
		}
	}
	return c
}

// Message lists the blocking operators as the ClusterOperator does: those that
// cannot be read first, the rest after them in reverse order. It is empty if
// nothing blocks.
func (c *Compatibility) Message() string {
	if len(c.Blocking) == 0 {
		return ""
	}
	kind, or := "minor", ""
	if c.Target.Major != c.Release.Major {
		kind = "major"
	}
	if c.Target == last4 {
		or = fmt.Sprintf(" or major version upgrades to %s", first5)
	}
	lines := []string{fmt.Sprintf("ClusterServiceVersions blocking %s version upgrades to %s%s:", kind, c.Target, or)}
	for _, b := range c.Blocking {
		if b.Err != nil {
			lines = append(lines, "- "+b.String())
		}
	}
	for _, b := range slices.Backward(c.Blocking) {
		if b.Err == nil {
			lines = append(lines, "- "+b.String())
		}
	}
	return strings.Join(lines, "\n")
}
