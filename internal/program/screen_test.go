package program

import (
	"bytes"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestScreen(t *testing.T) {
	var out bytes.Buffer
	if err := NewScreen(&out).Show("a\nb\n", "a, b"); err != nil || out.String() != "a, b\n" {
		t.Errorf("elsewhere: %q, %v", out.String(), err)
	}
	out.Reset()
	s := Screen{w: &out, t: Terminal{Width: 8, Escapes: true}, height: 5}
	if err := s.Show("a short\nrather long\n", ""); err != nil || out.String() != "\x1b[H\x1b[Ja short\nrather \n" {
		t.Errorf("on a terminal: %q, %v", out.String(), err)
	}
	out.Reset()
	s.Show(strings.Repeat("x\n", 5), "")
	checktest.Equal(t, "\x1b[H\x1b[Jx\nx\nx\n...\n", out.String(), "beyond its height")
}
