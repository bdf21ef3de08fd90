// Package aggregate joins errors as the conditions of OpenShift show them.
package aggregate

import (
	"slices"
	"strings"
)

// Errors joins errors: one as it is, several in brackets and separated by
// commas, equal texts once. Without any it returns nil. errors.Is and errors.As
// find each of them.
func Errors(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return list(errs)
}

type list []error

func (e list) Error() string {
	var texts []string
	for _, err := range e {
		if text := err.Error(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func (e list) Unwrap() []error { return e }
