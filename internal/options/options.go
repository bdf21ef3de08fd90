// Package options checks the options that a caller hands to a constructor.
//
// Options are plain structs whose zero value works: a zero field means its
// documented default. A field below zero never means anything, so every
// constructor refuses it here instead of spinning, sleeping or dividing by it
// later.
package options

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
)

// module is where structs are looked into; those of others keep their own
// rules.
const module = "github.com/clusterupdate/clusterupdate"

// NonNegative returns an error for every exported number of o, a struct or a
// pointer to one, that is negative or not a number: durations, sizes, counts
// and rates. It looks into nested structs of this module and names each field
// as in "graph.ClientOptions: Timeout is negative: -1s". The fields named in
// except may hold anything.
func NonNegative(o any, except ...string) error {
	v := reflect.Indirect(reflect.ValueOf(o))
	if !v.IsValid() {
		return nil
	}
	return errors.Join(negative(v, v.Type().String()+": ", except)...)
}

func negative(v reflect.Value, prefix string, except []string) []error {
	var errs []error
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		if !field.IsExported() || slices.Contains(except, field.Name) {
			continue
		}
		switch {
		case value.CanInt():
			if value.Int() < 0 {
				errs = append(errs, fmt.Errorf("%s%s is negative: %v", prefix, field.Name, number(value)))
			}
		case value.CanFloat():
			if f := value.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
				errs = append(errs, fmt.Errorf("%s%s is not a finite number: %v", prefix, field.Name, f))
			} else if f < 0 {
				errs = append(errs, fmt.Errorf("%s%s is negative: %v", prefix, field.Name, f))
			}
		case value.Kind() == reflect.Struct && strings.HasPrefix(field.Type.PkgPath(), module):
			errs = append(errs, negative(value, prefix+field.Name+".", except)...)
		}
	}
	return errs
}

func number(v reflect.Value) any {
	if v.Type() == reflect.TypeFor[time.Duration]() {
		return time.Duration(v.Int())
	}
	return v.Int()
}
