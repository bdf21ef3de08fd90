package remedy

import (
	"encoding/json"
	"fmt"
)

// markVersion is the format of the marks of this package.
const markVersion = 1

// mark is what an annotation of this package says: what an object was made or changed
// for, and what was there before.
type mark struct {
	Version int               `json:"version"`
	For     string            `json:"for"`
	Before  map[string]string `json:"before,omitempty"` // fields that were there; the others were not
	After   map[string]string `json:"after,omitempty"`  // what was written
}

func (m mark) String() string {
	m.Version = markVersion
	text, err := json.Marshal(m)
	if err != nil {
		return "" // strings alone
	}
	return string(text)
}

// readMark reads a mark; there is none without an error. One of a later format is
// refused.
func readMark(annotations map[string]string, name string) (m mark, ok bool, err error) {
	text, ok := annotations[name]
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
