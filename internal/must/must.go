// Package must ends a test at the first error of what prepares it.
package must

import "testing"

// Get returns a function that returns v, or ends the test if err is not nil:
//
//	p := must.Get(manifest.Load(ctx, files, o))(t)
func Get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return v
	}
}

// Do ends the test if err is not nil.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
