package catalog

import (
	"reflect"

	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/olm"
)

const (
	// fieldCost is what a key of an object takes while the object is looked at.
	fieldCost = 1 << 10
	// propertyCost is what a property takes besides its value, and growth how
	// many times the size of its elements a slice takes until it has all.
	propertyCost = 512
	growth       = 6
	// entryCost is what an entry of a channel, or of deprecations, takes when the
	// catalog is put together.
	entryCost = 1 << 10
)

// spend adds to what the object makes. It returns an error if that is too much.
func (d *decoder) spend(bytes int64) error {
	d.cost += bytes
	if d.cost > limit.Heap {
		return &LimitError{Max: limit.Heap, What: "bytes of memory for an object"}
	}
	if d.cost > d.options.MaxMemory {
		return d.options.memory().Check(d.cost)
	}
	return nil
}

// maxFields is how many keys an object may have.
func (o Options) maxFields() int { return int(min(limit.Heap, o.MaxMemory) / fieldCost) }

// memory is the limit of all objects.
func (o Options) memory() limit.Limit {
	return limit.Limit{Max: o.MaxMemory, Name: "MaxMemory", What: "bytes of memory for all objects"}
}

// spendProperties adds what the properties of a bundle become.
func (d *decoder) spendProperties(properties []olm.Property) error {
	constraint := growth * int64(reflect.TypeFor[olm.Constraint]().Size())
	requirement := growth * int64(reflect.TypeFor[olm.Requirement]().Size())
	for _, p := range properties {
		cost := int64(propertyCost)
		switch p.Type {
		case olm.PropertyBundleObject:
			cost += 2 * int64(len(p.Value))
		case olm.PropertyConstraint:
			values, _ := limit.Shape(p.Value)
			cost += constraint*values + requirement
		case olm.PropertyGVKRequired, olm.PropertyPackageRequired, olm.PropertyLabelRequired:
			cost += 2*limit.Cost(p.Value, new(any)) + requirement
		default:
			cost += 2 * limit.Cost(p.Value, new(any))
		}
		if err := d.spend(cost); err != nil {
			return err
		}
	}
	return nil
}
