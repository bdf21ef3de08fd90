package program

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// Terminal is what the other end of an output can show. The zero value is for a
// file or a pipe.
type Terminal struct {
	// Width in columns; zero: lines have any length.
	Width int
	// Escapes reports whether escape sequences are welcome.
	Escapes bool
}

// TerminalOf looks at an output and at the environment: on a terminal the width is
// $COLUMNS, else the terminal's own, else 80, and escapes are used unless $NO_COLOR
// is set or $TERM is dumb or empty.
func TerminalOf(w io.Writer) Terminal {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return Terminal{}
	}
	width, _, _ := term.GetSize(int(f.Fd()))
	return terminal(width, os.Getenv)
}

func terminal(width int, getenv func(string) string) Terminal {
	if n, err := strconv.Atoi(getenv("COLUMNS")); err == nil && n > 0 {
		width = n
	}
	if width <= 0 {
		width = 80
	}
	kind := getenv("TERM")
	return Terminal{Width: width, Escapes: kind != "" && kind != "dumb" && getenv("NO_COLOR") == ""}
}

// Wrap returns a writer that breaks lines between words where they are wider
// than the terminal, and indents what follows. Lines are written when they are
// complete.
func (t Terminal) Wrap(w io.Writer) io.Writer {
	if t.Width == 0 {
		return w
	}
	return &wrapper{w: w, width: t.Width}
}

type wrapper struct {
	w     io.Writer
	width int
	line  []byte // begun
}

func (w *wrapper) Write(p []byte) (int, error) {
	w.line = append(w.line, p...)
	for {
		line, rest, ok := bytes.Cut(w.line, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		_, err := io.WriteString(w.w, wrap(string(line), w.width)+"\n")
		w.line = rest
		if err != nil {
			return 0, err
		}
	}
}

func wrap(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	text := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(text)]
	var out strings.Builder
	out.WriteString(indent)
	at, first := len(indent), true
	for _, word := range strings.SplitAfter(text, " ") {
		n := utf8.RuneCountInString(strings.TrimRight(word, " "))
		if at+n > width && !first {
			out.WriteString("\n" + indent + "    ")
			at = len(indent) + 4
		}
		out.WriteString(word)
		at, first = at+utf8.RuneCountInString(word), false
	}
	return out.String()
}

// Block prints lines that stay, and below them, if escapes are welcome, a block of
// lines that is redrawn in place. It is not safe for concurrent use.
type Block struct {
	w      io.Writer
	t      Terminal
	height int       // of the terminal in lines; zero: unknown
	drawn  int       // lines of the block on the screen
	at     time.Time // when it was drawn
}

// NewBlock returns a block on an output.
func NewBlock(w io.Writer) *Block {
	b := &Block{w: w, t: TerminalOf(w)}
	if f, ok := w.(*os.File); ok && b.t.Escapes {
		_, b.height, _ = term.GetSize(int(f.Fd()))
	}
	return b
}

// Print prints lines that stay, in place of the block.
func (b *Block) Print(line string) {
	b.clear()
	io.WriteString(b.t.Wrap(b.w), line+"\n")
	b.at = time.Time{}
}

// Draw redraws the block, at most ten times a second.
func (b *Block) Draw(lines func() []string) {
	if b.t.Escapes && time.Since(b.at) >= 100*time.Millisecond {
		b.draw(lines())
	}
}

// Show redraws the block with a text, or prints a line if escapes are not welcome.
func (b *Block) Show(text, line string) {
	if !b.t.Escapes {
		b.Print(line)
		return
	}
	b.draw(strings.Split(strings.TrimSuffix(text, "\n"), "\n"))
}

// draw draws lines, cut to the size of the terminal.
func (b *Block) draw(lines []string) {
	b.clear()
	if b.height > 1 && len(lines) >= b.height {
		lines = append(lines[:b.height-2], "...")
	}
	for _, line := range lines {
		if r := []rune(line); len(r) >= b.t.Width {
			line = string(r[:b.t.Width-1])
		}
		io.WriteString(b.w, line+"\n")
		b.drawn++
	}
	b.at = time.Now()
}

func (b *Block) clear() {
	if b.drawn > 0 {
		io.WriteString(b.w, "\x1b["+strconv.Itoa(b.drawn)+"A\x1b[J")
	}
	b.drawn = 0
}
