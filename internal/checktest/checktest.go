// Package checktest has the checks that nearly every test makes.
package checktest

import (
	"fmt"

	"github.com/google/go-cmp/cmp"
)

// T is what testing.T, testing.B, testing.F and rapid.T share.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// OK ends the test if there is an error.
func OK(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Same fails the test, which continues, with the difference of two values if there is one.
func Same(t T, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// SameIn is Same whose failure names what differs.
func SameIn(t T, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s: -want +got\n%s", what, diff)
	}
}

// Must returns what a call returned, and panics if that is an error.
func Must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

// Equal fails the test, which continues, if two values differ. The format and
// its arguments name them.
func Equal[V comparable](t T, want, got V, format string, args ...any) {
	t.Helper()
	if got == want {
		return
	}
	text := "%s: got %v, want %v"
	if _, isText := any(got).(string); isText {
		text = "%s: got %q, want %q"
	}
	t.Errorf(text, fmt.Sprintf(format, args...), got, want)
}
