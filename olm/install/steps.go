package install

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/internal/objects"
)

// changeSet are what a generation asks of its namespace: the content of an
// InstallPlan, and the Subscriptions that progress with it.
type changeSet struct {
	Namespace string

	// CSVs are the names of the operators to be installed, in the order of the
	// generation.
	CSVs []string
	// Steps are the objects to be written: all ClusterServiceVersions, then all
	// CustomResourceDefinitions, then the rest.
	Steps []*olmapi.Step
	// Lookups are the bundle images that must be unpacked to know their steps.
	Lookups []olmapi.BundleLookup
	// Current is what the status.currentCSV of Subscriptions becomes, by name
	// of the Subscription: each that one of CSVs serves.
	Current []currentCSV

	operators map[string]*olm.Operator // of Lookups, by identifier
	stable    map[string]bool          // CSVs that are there to stay
	heldBack  map[string]bool          // that a Subscription progresses to and is held back from
}

// currentCSV is the operator that a Subscription progresses to.
type currentCSV struct {
	Subscription, CSV string
}

// Empty reports whether there is nothing to install.
func (c *changeSet) Empty() bool { return len(c.Steps) == 0 && len(c.Lookups) == 0 }

// Kinds that are written before others, and the one that OLM gives Secrets of
// a bundle.
const (
	kindCSV                = "ClusterServiceVersion"
	kindCRD                = "CustomResourceDefinition"
	groupCRD               = "apiextensions.k8s.io"
	kindSubscription       = "Subscription"
	kindServiceAccount     = "ServiceAccount"
	kindBundleSecret       = "BundleSecret"
	conditionNotPersisted  = "BundleLookupNotPersisted"
	conditionLookupPending = "BundleLookupPending"
)

// newChanges turns a generation of the snapshot into changes. An error is about
// a bundle whose content cannot be read, in OLM's words.
func newChanges(s *olm.Snapshot, g *olm.Generation) (*changeSet, error) {
	c := &changeSet{
		Namespace: s.Namespace, operators: map[string]*olm.Operator{}, stable: stableCSVs(s), heldBack: map[string]bool{},
	}
	present := map[string]bool{}
	for _, csv := range s.PresentCSVs() {
		present[csv.Name] = true
	}
	subs := objects.In(s.Namespace, s.Subscriptions)
	for i := range g.HeldBack {
		for _, sub := range subs {
			for _, option := range g.HeldBack[i].NotTaken {
				if sub.Name == g.HeldBack[i].Subscription && sub.Status.CurrentCSV == option.Entry.Name {
					c.heldBack[option.Entry.Name] = true
				}
			}
		}
	}
	for i := range g.Operators {
		op := &g.Operators[i]
		matches := matchingSubscriptions(op, subs)
		if len(matches) > 0 && allCurrent(matches, op.Name, present) {
			continue
		}
		c.CSVs = append(c.CSVs, op.Name)
		if op.Bundle.Image != "" {
			lookup, err := newLookup(op)
			if err != nil {
				return nil, err
			}
			c.Lookups = append(c.Lookups, lookup)
			c.operators[op.Name] = op
		} else {
			objects, err := bundleObjects(op.Bundle)
			if err != nil {
				return nil, err
			}
			steps, err := bundleSteps(s.Namespace, op, objects)
			if err != nil {
				return nil, err
			}
			c.Steps = append(c.Steps, steps...)
		}
		if len(matches) == 0 {
			step, err := newStep(op, op.Subscription(s.Namespace))
			if err != nil {
				return nil, err
			}
			c.Steps = append(c.Steps, step)
		}
		for _, sub := range matches {
			c.Current = append(c.Current, currentCSV{Subscription: sub.Name, CSV: op.Name})
		}
	}
	orderSteps(c.Steps)
	slices.SortFunc(c.Current, func(a, b currentCSV) int { return strings.Compare(a.Subscription, b.Subscription) })
	return c, nil
}

// Unpacked puts the steps of an unpacked bundle in the place of its lookup. The
// error is from [bundleSteps].
func (c *changeSet) Unpacked(identifier string, objects []*unstructured.Unstructured) error {
	op := c.operators[identifier]
	if op == nil {
		return fmt.Errorf("no bundle %s is to be unpacked", identifier)
	}
	steps, err := bundleSteps(c.Namespace, op, objects)
	if err != nil {
		return err
	}
	c.Lookups = slices.DeleteFunc(c.Lookups, func(l olmapi.BundleLookup) bool { return l.Identifier == identifier })
	delete(c.operators, identifier)
	c.Steps = append(c.Steps, steps...)
	orderSteps(c.Steps)
	return nil
}

func matchingSubscriptions(op *olm.Operator, subs []*olmapi.Subscription) []*olmapi.Subscription {
	return slices.DeleteFunc(slices.Clone(subs), func(sub *olmapi.Subscription) bool {
		return !asksFor(&sub.Spec, op.Package, op.Channel, op.Catalog)
	})
}

// asksFor reports whether a Subscription may take operators of a channel of a
// package in a catalog.
func asksFor(spec *olmapi.SubscriptionSpec, pkg, channel string, catalog types.NamespacedName) bool {
	return spec.Package == pkg && (spec.Channel == "" || spec.Channel == channel) && spec.Takes(catalog)
}

func allCurrent(subs []*olmapi.Subscription, csv string, present map[string]bool) bool {
	elsewhere := func(sub *olmapi.Subscription) bool { return sub.Status.CurrentCSV != csv }
	return present[csv] && !slices.ContainsFunc(subs, elsewhere)
}

// newLookup is what stands for the steps of a bundle image until it has been
// unpacked.
func newLookup(op *olm.Operator) (olmapi.BundleLookup, error) {
	annotation, err := op.Bundle.Annotation()
	if err != nil {
		return olmapi.BundleLookup{}, err
	}
	return olmapi.BundleLookup{
		Path:       op.Bundle.Image,
		Identifier: op.Name,
		Replaces:   op.Replaces,
		CatalogSourceRef: &corev1.ObjectReference{
			Namespace: op.Catalog.Namespace,
			Name:      op.Catalog.Name,
		},
		Conditions: []olmapi.Condition{
			{
				Type:    conditionNotPersisted,
				Status:  corev1.ConditionTrue,
				Reason:  "BundleNotUnpacked",
				Message: "bundle contents have not yet been persisted to installplan status",
			},
			{
				Type:    conditionLookupPending,
				Status:  corev1.ConditionTrue,
				Reason:  "JobNotStarted",
				Message: "unpack job not yet started",
			},
		},
		Properties: annotation,
	}, nil
}

// bundleObjects returns the objects of an inline bundle: those of its
// properties olm.bundle.object, in order.
// The error names the property that is not a Kubernetes object.
func bundleObjects(b *olm.Bundle) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for i, p := range b.Properties {
		if p.Type != olm.PropertyBundleObject {
			continue
		}
		var value struct {
			Data []byte `json:"data"`
		}
		if err := json.Unmarshal(p.Value, &value); err != nil {
			return nil, fmt.Errorf("bundle %s: property %d (%s): %w", b.Name, i, p.Type, err)
		}
		u, err := objects.Decode(value.Data)
		if err != nil {
			return nil, fmt.Errorf("bundle %s: property %d (%s): %w", b.Name, i, p.Type, err)
		}
		out = append(out, u)
	}
	return out, nil
}

// bundleSteps returns the steps that install a bundle: its CSV, its other
// objects, and what its service accounts need, by name of the account. They
// are the same for an inline bundle and for an image once unpacked. Their owner is
// named when they are written.
//
// The CSV gets the namespace, what it replaces in this generation (nothing, if
// it replaces nothing), and the properties that the catalog says it has.
// Objects are not changed.
// The error is about objects without the operator's CSV or with several, or one
// that cannot be written as JSON.
func bundleSteps(namespace string, op *olm.Operator, objects []*unstructured.Unstructured) ([]*olmapi.Step, error) {
	csv, others, err := findCSV(op.Name, objects)
	if err != nil {
		return nil, err
	}
	annotation, err := op.Bundle.Annotation()
	if err != nil {
		return nil, err
	}
	csv = csv.DeepCopy()
	csv.SetNamespace(namespace)
	addAnnotations(csv, map[string]string{olmapi.AnnotationProperties: annotation})
	unstructured.RemoveNestedField(csv.Object, "spec", "replaces")
	if op.Replaces != "" {
		if err := unstructured.SetNestedField(csv.Object, op.Replaces, "spec", "replaces"); err != nil {
			return nil, fmt.Errorf("bundle CSV %s: %w", op.Name, err)
		}
	}
	typed, err := clusterapi.FromUnstructured[olmapi.ClusterServiceVersion](csv)
	if err != nil {
		return nil, fmt.Errorf("bundle CSV %s: %w", op.Name, err)
	}
	list := []any{csv}
	for _, u := range others {
		list = append(list, u)
	}
	var steps []*olmapi.Step
	for _, obj := range append(list, accountObjects(typed)...) {
		step, err := newStep(op, obj)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// findCSV splits the objects of a bundle into its CSV, which may lack its kind,
// and the rest. Further CSVs are left out.
func findCSV(name string, objects []*unstructured.Unstructured) (
	*unstructured.Unstructured, []*unstructured.Unstructured, error,
) {
	var csv *unstructured.Unstructured
	var others []*unstructured.Unstructured
	for _, u := range objects {
		switch {
		case u.GetKind() != kindCSV && (u.GetKind() != "" || u.GetName() != name):
			others = append(others, u)
		case csv == nil || csv.GetName() != name && u.GetName() == name:
			csv = u
		}
	}
	switch {
	case csv == nil:
		return nil, nil, fmt.Errorf("bundle %s has no ClusterServiceVersion among its objects", name)
	case csv.GetAPIVersion() == "":
		return nil, nil, fmt.Errorf("bundle CSV %s missing APIVersion", csv.GetName())
	case csv.GetKind() == "":
		return nil, nil, fmt.Errorf("bundle CSV %s missing Kind", csv.GetName())
	}
	return csv, others, nil
}

// newStep makes the step that writes an object, typed or not.
func newStep(op *olm.Operator, obj any) (*olmapi.Step, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		var err error
		u, err = clusterapi.ToUnstructured(obj)
		if err != nil {
			return nil, err
		}
		unstructured.RemoveNestedField(u.Object, "status")
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	}
	gv, err := schema.ParseGroupVersion(u.GetAPIVersion())
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", op.Name, err)
	}
	manifest, err := json.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", op.Name, err)
	}
	resource := olmapi.StepResource{
		CatalogSource:          op.Catalog.Name,
		CatalogSourceNamespace: op.Catalog.Namespace,
		Group:                  gv.Group,
		Version:                gv.Version,
		Kind:                   u.GetKind(),
		Name:                   u.GetName(),
		Manifest:               string(manifest),
	}
	if resource.Name == "" {
		resource.Name = u.GetGenerateName()
	}
	if resource.Kind == "Secret" {
		resource.Kind = kindBundleSecret
	}
	return &olmapi.Step{Resolving: op.Name, Resource: resource, Status: olmapi.StepUnknown}, nil
}

// orderSteps puts all CSVs first, then all definitions, and leaves the order
// within each.
func orderSteps(steps []*olmapi.Step) {
	early := []string{kindCRD, kindCSV} // the rest have index -1
	class := func(s *olmapi.Step) int { return -slices.Index(early, s.Resource.Kind) }
	slices.SortStableFunc(steps, func(a, b *olmapi.Step) int { return class(a) - class(b) })
}
