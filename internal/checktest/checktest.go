// Package checktest has the checks that nearly every test makes.
package checktest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

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

// Get returns a function that returns v, or ends the test if err is not nil:
//
//	p := checktest.Get(manifest.Load(ctx, files, o))(t)
func Get[V any](v V, err error) func(T) V {
	return func(t T) V {
		t.Helper()
		OK(t, err)
		return v
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

// Err returns a call's error alone.
func Err[V any](_ V, err error) error { return err }

// Good fails the test, which continues, if there is an error.
func Good(t T, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%v", err)
	}
}

// ErrorIs fails the test, which continues, if an error is not the wanted one.
func ErrorIs(t T, want, err error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want %v", err, want)
	}
}

// ErrorHas fails the test, which continues, if there is no error or its text lacks another.
func ErrorHas(t T, text string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error is %v, want one with %q", err, text)
	}
}

// Fails fails the test, which continues, if there is no error. The format and its
// arguments say what should have failed.
func Fails(t T, err error, format string, args ...any) {
	t.Helper()
	if err == nil {
		t.Errorf(format, args...)
	}
}

// FailIf fails the test, which continues, if something is wrong. The format and its
// arguments say what.
func FailIf(t T, wrong bool, format string, args ...any) {
	t.Helper()
	if wrong {
		t.Errorf(format, args...)
	}
}

// FatalIf ends the test if something is wrong. The format and its arguments say what.
func FatalIf(t T, wrong bool, format string, args ...any) {
	t.Helper()
	if wrong {
		t.Fatal(fmt.Sprintf(format, args...))
	}
}

// ErrorBy fails the test, which continues, if a predicate such as apierrors.IsNotFound
// does not recognise an error.
func ErrorBy(t T, recognises func(error) bool, err error) {
	t.Helper()
	if !recognises(err) {
		t.Errorf("unexpected error: %v", err)
	}
}

// Has fails the test, which continues, for each wanted text that another lacks.
func Has(t T, text string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
}

// Bubble runs a subtest in virtual time.
func Bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}
