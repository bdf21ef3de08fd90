package manifest

import (
	"fmt"
	"strings"
)

// Identity determines which resource of a cluster an object is. The version of the
// API does not belong to it: apps/v1 and apps/v1beta1 of one Deployment are the
// same resource.
type Identity struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the form that errors use, without the namespace if there is
// none: Group: "g" Kind: "k" Namespace: "ns" Name: "n".
func (id Identity) String() string {
	if id.Namespace == "" {
		return fmt.Sprintf("Group: %q Kind: %q Name: %q", id.Group, id.Kind, id.Name)
	}
	return fmt.Sprintf("Group: %q Kind: %q Namespace: %q Name: %q", id.Group, id.Kind, id.Namespace, id.Name)
}

// ParseName returns the runlevel and the component in a manifest's file name: the
// pattern is
//
//	0000_<runlevel>_<component>_<rest>
//
// where the runlevel is digits and the component is letters and digits with
// single inner hyphens, up to the first underscore. ok is false for a name of
// another form. Level and component are text: "10" and "010" are different
// levels, and the number is never compared as a number.
func ParseName(filename string) (level, component string, ok bool) {
	rest, ok := strings.CutPrefix(filename, "0000_")
	if !ok {
		return "", "", false
	}
	level, rest, ok = strings.Cut(rest, "_")
	if !ok || level == "" || strings.Trim(level, "0123456789") != "" {
		return "", "", false
	}
	component, _, ok = strings.Cut(rest, "_")
	if !ok || !isComponent(component) {
		return "", "", false
	}
	return level, component, true
}

// isComponent reports whether s is letters and digits with single hyphens
// between them.
func isComponent(s string) bool {
	hyphen := true // also refuses a leading hyphen and the empty text
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			hyphen = false
		case c == '-' && !hyphen:
			hyphen = true
		default:
			return false
		}
	}
	return !hyphen
}
