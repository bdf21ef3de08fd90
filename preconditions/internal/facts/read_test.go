package facts

import (
	"errors"
	"fmt"
	"testing"
)

// Each text stands once, also where errors were joined before; another wrapping stays whole.
func TestJoinErrors(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	if got := JoinErrors(nil, JoinErrors(a, b), nil, b, a); got.Error() != "a\nb" || !errors.Is(got, b) {
		t.Errorf("joined before: %q", got)
	}
	if got := JoinErrors(fmt.Errorf("%w and %w", a, b), a); got.Error() != "a and b\na" {
		t.Errorf("another wrapping: %q", got)
	}
	if got := JoinErrors(nil, nil); got != nil {
		t.Errorf("no error: %v", got)
	}
}
