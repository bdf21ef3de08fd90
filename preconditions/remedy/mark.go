package remedy

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// markVersion is the format of the marks of this package.
const markVersion = 1

// mark is what an annotation of this package holds.
type mark struct {
	Version int    `json:"version"`
	For     string `json:"for"`
}

// markFor is the annotation of an object that is made for a release.
func markFor(release string) string {
	text, err := json.Marshal(mark{markVersion, release})
	if err != nil {
		return "" // strings alone
	}
	return string(text)
}

// readMark returns the release that an object was made for, or "" if it has no mark. It
// refuses a mark of a later format.
func readMark(o metav1.Object, name string) (string, error) {
	text, ok := o.GetAnnotations()[name]
	if !ok {
		return "", nil
	}
	var m mark
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return "", fmt.Errorf("annotation %s: %w", name, err)
	}
	if m.Version > markVersion {
		return "", fmt.Errorf("annotation %s is of format %d, and %d is the last that is known", name, m.Version, markVersion)
	}
	return m.For, nil
}
