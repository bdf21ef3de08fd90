// Package flags has what the flags of several programs share.
package flags

import (
	"errors"
	"strings"
)

// List is a [flag.Value] of several values: the flag repeated, or values
// separated by commas, none of them empty.
type List []string

// String joins the values by commas.
func (l *List) String() string { return strings.Join(*l, ",") }

// Set adds values.
func (l *List) Set(value string) error {
	for v := range strings.SplitSeq(value, ",") {
		if v == "" {
			return errors.New("empty")
		}
		*l = append(*l, v)
	}
	return nil
}
