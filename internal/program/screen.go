package program

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Screen shows a text that changes: redrawn in place on a terminal, elsewhere as
// lines. It is not safe for concurrent use.
type Screen struct {
	w      io.Writer
	t      Terminal
	height int
}

// NewScreen returns a screen on an output.
func NewScreen(w io.Writer) *Screen {
	s := &Screen{w: w, t: TerminalOf(w)}
	if f, ok := w.(*os.File); ok && s.t.Escapes {
		_, s.height, _ = term.GetSize(int(f.Fd()))
	}
	return s
}

// Show shows a text in place of the one before where escapes are welcome, cut to
// the terminal's size, else adds a line. It returns the error of writing.
func (s *Screen) Show(text, line string) error {
	if !s.t.Escapes {
		_, err := io.WriteString(s.w, line+"\n")
		return err
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if s.height > 1 && len(lines) >= s.height {
		lines = append(lines[:s.height-2], "...")
	}
	for i, l := range lines {
		if r := []rune(l); len(r) >= s.t.Width {
			lines[i] = string(r[:s.t.Width-1])
		}
	}
	_, err := io.WriteString(s.w, "\x1b[H\x1b[J"+strings.Join(lines, "\n")+"\n")
	return err
}
