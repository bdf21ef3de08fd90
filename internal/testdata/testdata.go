// Package testdata finds real release payloads, update graphs, keys and
// cluster dumps for tests that use them, and makes small payloads.
package testdata

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// Env names the environment variable that points to the data.
const Env = "CLUSTERUPDATE_DATA"

// Dir returns the data's folder: $CLUSTERUPDATE_DATA, else shared/data next to
// the project's root. The test is skipped where there is none.
func Dir(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv(Env)
	if dir == "" {
		root, err := moduleRoot()
		checktest.OK(tb, err)
		dir = filepath.Join(filepath.Dir(root), "shared", "data")
	}
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		tb.Skipf("no real data in %s: set %s to its folder", dir, Env)
	}
	return dir
}

// moduleRoot walks up from the working directory, which for a test is its
// package's folder. Nested modules are passed: the data lies next to the
// outermost one.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	root := dir
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			root = dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return root, nil
		}
		dir = parent
	}
}
