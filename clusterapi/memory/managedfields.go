package memory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sameManagers compares managedFields, whatever their times are and hence
// their order.
func sameManagers(a, b []metav1.ManagedFieldsEntry) bool {
	if len(a) != len(b) {
		return false
	}
	if slices.EqualFunc(a, b, sameManager) {
		return true
	}
	return slices.EqualFunc(byManager(a), byManager(b), sameManager)
}

func byManager(list []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	return slices.SortedFunc(slices.Values(list), func(a, b metav1.ManagedFieldsEntry) int {
		return cmp.Or(strings.Compare(a.Manager, b.Manager), strings.Compare(string(a.Operation), string(b.Operation)),
			strings.Compare(a.Subresource, b.Subresource), strings.Compare(a.APIVersion, b.APIVersion))
	})
}

// sameManager compares entries of managedFields without their times.
func sameManager(a, b metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.APIVersion == b.APIVersion &&
		a.Subresource == b.Subresource && (a.FieldsV1 == b.FieldsV1 || fieldsText(a.FieldsV1) == fieldsText(b.FieldsV1))
}

func fieldsText(f *metav1.FieldsV1) string {
	if f == nil {
		return ""
	}
	return f.GetRawString()
}

// encodeManaged gives an entry's managed fields the form that they have in an
// object. What is as in the live object is shared with it.
func encodeManaged(to, live *entry, next *record) ([]any, error) {
	out := make([]any, 0, len(to.managed))
	owned := make(ownership, 0, len(to.managed))
	for i := range to.managed {
		e := &to.managed[i]
		m := map[string]any{"manager": e.Manager, "operation": string(e.Operation), "apiVersion": e.APIVersion}
		if e.Time != nil {
			m["time"] = e.Time.UTC().Format(time.RFC3339)
		}
		if e.Subresource != "" {
			m["subresource"] = e.Subresource
		}
		if e.FieldsV1 != nil {
			f, err := encodeFields(e, live, next)
			if err != nil {
				return nil, fmt.Errorf("managed fields of %s: %w", e.Manager, err)
			}
			owned = append(owned, owning{e.FieldsV1, f})
			m["fieldsType"], m["fieldsV1"] = e.FieldsType, f.tree
		}
		out = append(out, m)
	}
	if !next.given {
		to.owned = owned
	}
	return out, nil
}

// encodeFields makes e have the FieldsV1 of the live object if that says the same,
// and returns what it says.
func encodeFields(e *metav1.ManagedFieldsEntry, live *entry, next *record) (*ownedFields, error) {
	if f := next.owned.of(e.FieldsV1); f != nil {
		return f, nil
	}
	if live != nil {
		if f := live.owned.of(e.FieldsV1); f != nil {
			return f, nil
		}
		for i := range live.managed {
			old := live.managed[i].FieldsV1
			if f := live.owned.of(old); f != nil && old.Equal(*e.FieldsV1) {
				e.FieldsV1 = old
				return f, nil
			}
		}
	}
	f := &ownedFields{}
	return f, json.Unmarshal(e.FieldsV1.GetRawBytes(), &f.tree)
}
