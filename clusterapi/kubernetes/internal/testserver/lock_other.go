//go:build !unix

package testserver

// lock does nothing here: programs that are built twice are the same.
func lock(string) (unlock func(), err error) { return func() {}, nil }
