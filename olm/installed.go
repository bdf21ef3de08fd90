package olm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/runtime/schema"

	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/internal/objects"
)

// InProgressUpdate is an operator that is on its way out while its successor
// is already there.
type InProgressUpdate struct {
	// Old is the CSV in phase Replacing or Deleting, New the present one that
	// replaces it, Last the end of the chain of replacements.
	Old, New, Last string
	// Subscriptions are those of the chain, by name.
	Subscriptions []string
}

// readInstalled reads the ClusterServiceVersions of one namespace: the bundles of those
// that count as installed, by name, and the updates that are still being carried out,
// by the name of the old operator. Objects of other namespaces and copies are passed
// over, and those that fail forward: their failed successor may be replaced. An empty
// namespace in an object means this one.
//
// The error is the first fault, by name, that keeps the set from being known, in OLM's
// words. A requirement that cannot be read does not count: see Bundle.Err. The arguments
// are not changed.
func readInstalled(
	namespace string, csvs []olmapi.ClusterServiceVersion, subs []olmapi.Subscription, groups []olmapi.OperatorGroup,
) (bundles []*Bundle, updates []InProgressUpdate, err error) {
	present, own := presentCSVs(namespace, csvs), objects.In(namespace, subs)
	successors := successorsOf(present)
	failForward, err := failsForward(namespace, groups)
	if err != nil {
		return nil, nil, err
	}
	for _, csv := range present {
		if failForward {
			failed, err := endsInFailure(namespace, csv, successors)
			if err != nil {
				return nil, nil, err
			}
			if failed && csv.Status.Phase == olmapi.CSVPhaseReplacing {
				continue
			}
		}
		b, err := installedBundle(csv, owningSubscriptions(csv.Name, own))
		if err != nil {
			return nil, nil, err
		}
		bundles = append(bundles, b)
		if u, ok := inProgress(csv, successors, own); ok {
			updates = append(updates, u)
		}
	}
	return bundles, updates, nil
}

// PresentCSVs returns the ClusterServiceVersions of the snapshot's namespace
// that are not copies, by name. They are elements of Installed.
func (s *Snapshot) PresentCSVs() []*olmapi.ClusterServiceVersion {
	return presentCSVs(s.Namespace, s.Installed)
}

func presentCSVs(namespace string, csvs []olmapi.ClusterServiceVersion) []*olmapi.ClusterServiceVersion {
	return slices.DeleteFunc(objects.In(namespace, csvs), func(csv *olmapi.ClusterServiceVersion) bool {
		here := *csv // an empty namespace means this one
		here.Namespace = namespace
		return here.IsCopied()
	})
}

// owningSubscriptions returns the Subscriptions whose installed operator it
// is, in order.
func owningSubscriptions(csv string, subs []*olmapi.Subscription) []*olmapi.Subscription {
	return slices.DeleteFunc(slices.Clone(subs), func(s *olmapi.Subscription) bool { return s.Status.InstalledCSV != csv })
}

// installedBundle turns a CSV into a bundle: the properties of its annotation
// and nothing else, or without one what it owns and requires, and the package
// that its Subscriptions agree on.
func installedBundle(csv *olmapi.ClusterServiceVersion, owners []*olmapi.Subscription) (*Bundle, error) {
	inferred, err := inferProperties(csv)
	if err != nil {
		return nil, err
	}
	var props []Property
	if text, ok := csv.Annotations[olmapi.AnnotationProperties]; ok {
		props, err = parsePropertiesAnnotation(text)
		if err != nil {
			return nil, fmt.Errorf("failed to retrieve properties of csv %q: %w", csv.Name, err)
		}
	} else {
		props = inferred
		if p, ok := inferPackage(csv, owners); ok {
			props = append(props, p)
		}
	}
	version := csv.Spec.Version
	if version == "" {
		version = "0.0.0"
	}
	// The package is left empty: it is only what the properties say. The error
	// is in the bundle too, and matters only to those who reach it.
	b, _ := NewBundle("", csv.Name, version, props)
	return b, nil
}

// parsePropertiesAnnotation reads the value of [olmapi.AnnotationProperties].
// The error is about JSON of another form.
func parsePropertiesAnnotation(text string) ([]Property, error) {
	var list propertyList
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("failed to unmarshal properties annotation: %w", err)
	}
	return list.Properties, nil
}

// inferProperties returns what a CSV owns and requires, as properties. A name
// of a definition without a dot is an error, whether the result is needed or
// not, as in OLM.
func inferProperties(csv *olmapi.ClusterServiceVersion) ([]Property, error) {
	var props []Property
	add := func(typ string, crds, services []olmapi.APIDescription) error {
		for _, crd := range crds {
			_, group, ok := strings.Cut(crd.Name, ".")
			if !ok {
				return fmt.Errorf("error parsing crd name: %s", crd.Name)
			}
			props = append(props, gvkProperty(typ, schema.GroupVersionKind{Group: group, Version: crd.Version, Kind: crd.Kind}))
		}
		for _, s := range services {
			props = append(props, gvkProperty(typ, schema.GroupVersionKind{Group: s.Group, Version: s.Version, Kind: s.Kind}))
		}
		return nil
	}
	crds, services := csv.Spec.CustomResourceDefinitions, csv.Spec.APIServiceDefinitions
	err := add(propertyGVK, crds.Owned, services.Owned)
	if err == nil {
		err = add(PropertyGVKRequired, crds.Required, services.Required)
	}
	return props, err
}

// inferPackage returns the package of a CSV without properties, if all its
// Subscriptions that name one name the same.
func inferPackage(csv *olmapi.ClusterServiceVersion, owners []*olmapi.Subscription) (Property, bool) {
	name := ""
	for _, s := range owners {
		if pkg := s.Spec.Package; pkg != "" {
			if name != "" && name != pkg {
				return Property{}, false
			}
			name = pkg
		}
	}
	if name == "" {
		return Property{}, false
	}
	version := csv.Spec.Version
	if v, err := semver.ParseTolerant(version); err == nil {
		version = v.String()
		if v.Equals(semver.Version{}) {
			version = ""
		}
	}
	return newProperty(PropertyPackage, wirePackage{PackageName: name, Version: version}), true
}

// FailsForward reports whether the OperatorGroup of the snapshot's namespace
// lets a failed update be replaced. Several OperatorGroups are an error.
func (s *Snapshot) FailsForward() (bool, error) { return failsForward(s.Namespace, s.OperatorGroups) }

// upgradeStrategyFailForward is the strategy of an OperatorGroup by which failed
// updates may be replaced; any other means that they may not.
const upgradeStrategyFailForward = "TechPreviewUnsafeFailForward"

// failsForward reports whether the namespace's OperatorGroup lets a failed
// update be replaced. Without a group it may not.
func failsForward(namespace string, groups []olmapi.OperatorGroup) (bool, error) {
	of := objects.In(namespace, groups)
	switch len(of) {
	case 0:
		return false, nil
	case 1:
		return of[0].Spec.UpgradeStrategy == upgradeStrategyFailForward, nil
	}
	return false, fmt.Errorf("found %d operatorGroups, expected 1", len(of))
}

// successorsOf maps the name of a CSV to the present one whose spec.replaces
// names it.
func successorsOf(present []*olmapi.ClusterServiceVersion) map[string]*olmapi.ClusterServiceVersion {
	m := make(map[string]*olmapi.ClusterServiceVersion)
	for _, csv := range present {
		if csv.Spec.Replaces != "" {
			m[csv.Spec.Replaces] = csv
		}
	}
	return m
}

// endsInFailure walks from a CSV along its successors and reports whether the
// last one failed. All before the last must be in phase Replacing.
func endsInFailure(
	namespace string, csv *olmapi.ClusterServiceVersion, successors map[string]*olmapi.ClusterServiceVersion,
) (bool, error) {
	seen := map[string]bool{}
	for {
		next, ok := successors[csv.Name]
		if !ok {
			return csv.Status.Phase == olmapi.CSVPhaseFailed, nil
		}
		if csv.Status.Phase != olmapi.CSVPhaseReplacing {
			return false, fmt.Errorf("csv %s/%s in phase %s instead of %s", namespace, csv.Name, csv.Status.Phase,
				olmapi.CSVPhaseReplacing)
		}
		if seen[csv.Name] {
			return false, fmt.Errorf("csv %s/%s has already been seen", namespace, csv.Name)
		}
		seen[csv.Name] = true
		csv = next
	}
}

// isLeaving reports whether a CSV is on its way out.
func isLeaving(csv *olmapi.ClusterServiceVersion) bool {
	return csv.Status.Phase == olmapi.CSVPhaseReplacing || csv.Status.Phase == olmapi.CSVPhaseDeleting
}

// inProgress describes the update that a CSV is the old end of, if it is on
// its way out and its successor is there.
func inProgress(
	csv *olmapi.ClusterServiceVersion, successors map[string]*olmapi.ClusterServiceVersion, subs []*olmapi.Subscription,
) (InProgressUpdate, bool) {
	next, ok := successors[csv.Name]
	if !ok || next.Name == csv.Name || !isLeaving(csv) {
		return InProgressUpdate{}, false
	}
	u := InProgressUpdate{Old: csv.Name, New: next.Name}
	chain := map[string]bool{csv.Name: true}
	for c, ok := next, true; ok && !chain[c.Name]; c, ok = successors[c.Name] {
		chain[c.Name] = true
		u.Last = c.Name
	}
	for _, s := range subs {
		if chain[s.Status.InstalledCSV] {
			u.Subscriptions = append(u.Subscriptions, s.Name)
		}
	}
	return u, true
}
