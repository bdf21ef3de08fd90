package remedy

import (
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// markVersion is the format of the marks of this package.
const markVersion = 1

// mark is what an annotation of this package records: what an object was made or changed
// for, and what was there before.
type mark struct {
	Version int               `json:"version"`
	For     string            `json:"for"`
	Before  map[string]string `json:"before,omitempty"` // fields that were there; the others were not
	After   map[string]string `json:"after,omitempty"`  // what was written
}

// put marks an object.
func (m mark) put(o metav1.Object, name string) {
	m.Version = markVersion
	annotate(o, name, jsonText(m))
}

// putAgain marks an object that may have the mark already. What was there before the
// first change counts.
func (m mark) putAgain(o metav1.Object, name string) error {
	earlier, ok, err := readMark(o, name)
	if err != nil {
		return err
	}
	if ok {
		m.Before = earlier.Before
	}
	m.put(o, name)
	return nil
}

// readMark reads a mark; there is none without an error. One of a later format is
// refused.
func readMark(o metav1.Object, name string) (m mark, ok bool, err error) {
	text, ok := o.GetAnnotations()[name]
	if !ok {
		return m, false, nil
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return m, false, fmt.Errorf("annotation %s: %w", name, err)
	}
	if m.Version > markVersion {
		return m, false, fmt.Errorf("annotation %s is of format %d, and %d is the last that is known", name, m.Version, markVersion)
	}
	return m, true, nil
}

// takeBack removes a mark and restores what was there before, if what is there now is
// what was written: else it is somebody else's. Without the mark it does nothing.
func takeBack(o metav1.Object, name string, now map[string]string, restore func(before map[string]string) error) error {
	m, ok, err := readMark(o, name)
	if err != nil || !ok {
		return err
	}
	unannotate(o, name)
	for field, value := range m.After {
		if now[field] != value {
			return nil
		}
	}
	return restore(m.Before)
}

func annotate(o metav1.Object, name, value string) {
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	o.SetAnnotations(annotations)
}

func unannotate(o metav1.Object, name string) {
	annotations := maps.Clone(o.GetAnnotations())
	delete(annotations, name)
	o.SetAnnotations(annotations)
}

// jsonText encodes what came from JSON, or is text.
func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}
