package tarball_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/tarball"
)

func TestCheckName(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"a/b.yaml", ""},
		{strings.Repeat("a", tarball.MaxName), ""},
		{strings.Repeat("a", tarball.MaxName+1), "the name has more than 4096 bytes"},
		{strings.Repeat("a/", tarball.MaxLevels-1) + "b", ""},
		{strings.Repeat("a/", tarball.MaxLevels) + "b", "the name has more than 256 levels"},
	} {
		got := ""
		if err := tarball.CheckName(c.name); err != nil {
			got = err.Error()
		}
		checktest.FailIf(t, got != c.want, "%.20s (%d bytes): %q, want %q", c.name, len(c.name), got, c.want)
	}
}

func TestEnd(t *testing.T) {
	broken := errors.New("broken")
	zeros := bytes.Repeat([]byte{0}, 100_000)
	for _, c := range []struct {
		name string
		r    io.Reader
		want string
	}{
		{"nothing", strings.NewReader(""), ""},
		{"zeros", bytes.NewReader(zeros), ""},
		{"data", io.MultiReader(bytes.NewReader(zeros), strings.NewReader("x")), "something follows the end of the archive"},
		{"error", io.MultiReader(bytes.NewReader(zeros), iotest.ErrReader(broken)), "broken"},
	} {
		got := ""
		if err := tarball.End(c.r); err != nil {
			got = err.Error()
		}
		checktest.Equal(t, c.want, got, "%s", c.name)
	}
}
