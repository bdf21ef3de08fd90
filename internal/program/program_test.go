package program

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestMain(m *testing.M) {
	if os.Getenv("PROGRAM_WAITS") != "" { // TestSignals
		Main(Command{Name: "waiter", Run: func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
			fmt.Fprintln(stdout, "waiting")
			<-ctx.Done()
			return ctx.Err()
		}})
	}
	os.Exit(m.Run())
}

// example is a program with two commands.
func example() Command {
	var list List
	var version Version
	var speed Speed
	var count Count
	var span Span
	var format, name string
	return Command{
		Name: "example", About: "Example shows.", Codes: "0: shown; 1: not",
		Commands: []Command{
			{Name: "show", Args: "THING", About: "show a thing", Min: 1, Max: 1,
				Required: [][]string{{"list", "version"}},
				Needs:    map[string][]string{"count": {"span", "o json|yaml"}, "o yaml": {"speed", "span"}},
				Excludes: map[string][]string{"span": {"speed", "o yaml"}},
				Flags: func(f *flag.FlagSet) {
					f.Var(&list, "list", "`names`; may be repeated")
					f.Var(&version, "version", "a `version`")
					f.Var(&speed, "speed", "a `factor`")
					f.Var(&count, "count", "a `number`")
					f.Var(&span, "span", "a `duration`")
					Format(f, &format, "json", "yaml")
				},
				Run: func(_ context.Context, args []string, stdout, _ io.Writer) error {
					fmt.Fprintln(stdout, args, list, version, speed, count, time.Duration(span), format)
					return nil
				}},
			{Name: "fail", About: "fail", Flags: func(f *flag.FlagSet) { f.StringVar(&name, "as", "", "`how`") },
				Run: func(context.Context, []string, io.Writer, io.Writer) error {
					return map[string]error{
						"":        errors.New("no file"),
						"no":      No(fmt.Errorf("here: %w", errors.New("no path"))),
						"silent":  fmt.Errorf("here: %w", ErrNo),
						"unknown": ErrUnknown,
						"usage":   No(fmt.Errorf("here: %w", Usagef("too much"))),
						"nothing": No(nil),
					}[name]
				}},
		},
	}
}

func TestExecute(t *testing.T) {
	const hint = "; example -h shows the usage\n"
	for _, tt := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{"show -version 1.0.0 a", Done, "[a] [] 1.0.0 0 0 0s text\n", ""},
		{"show -list x,y a -list z -version 4.7.0 -speed 2.5 -o yaml", Done, "[a] [x y z] 4.7.0 2.5 0 0s yaml\n", ""},
		{"show -list x -count 3 -span 1m a", Done, "[a] [x]  0 3 1m0s text\n", ""},
		{"show -list x -count 3 -o json a", Done, "[a] [x]  0 3 0s json\n", ""},
		{"fail", Unknown, "", "example: no file\n"},
		{"fail -as no", Failed, "", "example: here: no path\n"},
		{"fail -as silent", Failed, "", ""},
		{"fail -as unknown", Unknown, "", ""},
		{"fail -as usage", BadUsage, "", "example: here: too much" + hint},
		{"fail -as nothing", Done, "", ""},
		{"", BadUsage, "", "example: a command is missing" + hint},
		{"shew", BadUsage, "", `example: there is no command "shew"` + hint},
		{"show", BadUsage, "", "example: THING is missing" + hint},
		{"show a b", BadUsage, "", `example: unexpected argument "b"` + hint},
		{"fail b", BadUsage, "", `example: unexpected argument "b"` + hint},
		{"show a -x", BadUsage, "", "example: flag provided but not defined: -x" + hint},
		{"show a", BadUsage, "", "example: -list or -version is missing" + hint},
		{"show a -list x -count 2", BadUsage, "", "example: -count needs -span or -o json|yaml" + hint},
		{"show a -list x -span 1s -speed 2", BadUsage, "", "example: -span does not go with -speed" + hint},
		{"show a -list x -span 1s -o yaml", BadUsage, "", "example: -span does not go with -o yaml" + hint},
		{"show a -list x -o yaml", BadUsage, "", "example: -o yaml needs -speed or -span" + hint},
		{"show -list", BadUsage, "", "example: flag needs an argument: -list" + hint},
		{"show -list a,,b", BadUsage, "", `example: invalid value "a,,b" for flag -list: empty` + hint},
		{"show -version v4.7.0", BadUsage, "", `example: invalid value "v4.7.0" for flag -version: versions of releases have no v: write 4.7.0` + hint},
		{"show -version 4", BadUsage, "", `example: invalid value "4" for flag -version: not a version such as 4.18.3` + hint},
		{"show -speed 0", BadUsage, "", `example: invalid value "0" for flag -speed: not a number above 0` + hint},
		{"show -speed -1", BadUsage, "", `example: invalid value "-1" for flag -speed: not a number above 0` + hint},
		{"show -speed NaN", BadUsage, "", `example: invalid value "NaN" for flag -speed: not a number above 0` + hint},
		{"show -speed +Inf", BadUsage, "", `example: invalid value "+Inf" for flag -speed: not a number above 0` + hint},
		{"show -count 0", BadUsage, "", `example: invalid value "0" for flag -count: not a number above 0` + hint},
		{"show -span -1s", BadUsage, "", `example: invalid value "-1s" for flag -span: not a duration above 0, such as 10m` + hint},
		{"show -count 1 -count 2", BadUsage, "", `example: invalid value "2" for flag -count: the flag is set already` + hint},
		{"show -o json a -list x -o json", BadUsage, "", `example: invalid value "json" for flag -o: the flag is set already` + hint},
		{"show -o xml", BadUsage, "", `example: invalid value "xml" for flag -o: not text, json or yaml` + hint},
		{"-h", Done, "usage: example COMMAND [flags] [ARGUMENT]\n\nExample shows.\n\ncommands:\n  show      show a thing\n  fail      fail\n\n" +
			"example COMMAND -h shows the flags of a command.\n\nexit codes: 0: shown; 1: not; 2: the command line is wrong.\n", ""},
		{"show --help", Done, "usage: example show [flags] THING\n\nshow a thing\n\nflags:\n  -count number\n    \ta number\n" +
			"  -list names\n    \tnames; may be repeated\n  -o format\n    \tformat of the output: text, json or yaml (default text)\n" +
			"  -span duration\n    \ta duration\n  -speed factor\n    \ta factor\n  -version version\n    \ta version\n\n" +
			"exit codes: 0: shown; 1: not; 2: the command line is wrong.\n", ""},
	} {
		var out, errs bytes.Buffer
		code := example().Execute(t.Context(), strings.Fields(tt.args), &out, &errs)
		checktest.SameIn(t, fmt.Sprintf("%q", tt.args), []any{tt.code, tt.stdout, tt.stderr},
			[]any{code, out.String(), errs.String()})
	}
}

func TestDefault(t *testing.T) {
	c := example()
	c.Default = "fail"
	var out, errs bytes.Buffer
	if code := c.Execute(t.Context(), nil, &out, &errs); code != Unknown || errs.String() != "example: no file\n" {
		t.Errorf("exit %d, %s", code, &errs)
	}
	c.Execute(t.Context(), []string{"-h"}, &out, &errs)
	checktest.Has(t, out.String(),
		"\nexample COMMAND -h shows the flags of a command. Without a command it is fail.\n\n")
}

func TestJSON(t *testing.T) {
	var out strings.Builder
	if err := JSON(&out, map[string]int{"a": 1}); err != nil || out.String() != "{\n  \"a\": 1\n}\n" {
		t.Errorf("%v: %s", err, out.String())
	}
}

func TestSignals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no SIGTERM")
	}
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		c := exec.CommandContext(t.Context(), os.Args[0])
		c.Env = append(os.Environ(), "PROGRAM_WAITS=1")
		var errs bytes.Buffer
		c.Stderr = &errs
		out := checktest.Get(c.StdoutPipe())(t)
		checktest.OK(t, c.Start())
		checktest.OK(t, checktest.Err(out.Read(make([]byte, 8))))
		checktest.OK(t, c.Process.Signal(sig))
		exit := new(exec.ExitError)
		if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != Failed || errs.String() != "waiter: "+sig.String()+" signal received\n" {
			t.Errorf("%v: %v, %q", sig, err, errs.String())
		}
	}
}

func TestTerminal(t *testing.T) {
	for _, tt := range []struct {
		width int
		env   map[string]string
		want  Terminal
	}{
		{120, map[string]string{"TERM": "xterm"}, Terminal{120, true}},
		{120, map[string]string{"TERM": "xterm", "COLUMNS": "60"}, Terminal{60, true}},
		{120, map[string]string{"TERM": "xterm", "COLUMNS": "wide"}, Terminal{120, true}},
		{0, map[string]string{"TERM": "dumb"}, Terminal{80, false}},
		{0, map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, Terminal{80, false}},
		{0, nil, Terminal{80, false}},
	} {
		checktest.Equal(t, tt.want, terminal(tt.width, func(name string) string { return tt.env[name] }), "%d %v",
			tt.width, tt.env)
	}
	null := checktest.Get(os.OpenFile(os.DevNull, os.O_WRONLY, 0))(t)
	defer null.Close()
	for _, w := range []io.Writer{io.Discard, null} {
		checktest.Equal(t, (Terminal{}), TerminalOf(w), "the terminal of a file")
	}
}

func TestWrap(t *testing.T) {
	var b strings.Builder
	if (Terminal{}).Wrap(&b) != io.Writer(&b) {
		t.Error("a pipe is wrapped")
	}
	w := (Terminal{Width: 20}).Wrap(&b)
	io.WriteString(w, "short\n  a line that is far ")
	io.WriteString(w, "too wide\naverylongwordthatcannotbebroken\n\n")
	const want = "short\n  a line that is far \n      too wide\naverylongwordthatcannotbebroken\n\n"
	checktest.Same(t, want, b.String())
}

func TestBlock(t *testing.T) {
	lines := func() []string { return []string{"a wide line", "b"} }
	var b strings.Builder
	block := &Block{w: &b, t: Terminal{Width: 7, Escapes: true}}
	block.Print("begins")
	block.Draw(lines)
	block.Draw(lines) // too early
	block.at = time.Now().Add(-time.Second)
	block.Draw(lines)
	block.Print("ends")
	const up = "\x1b[2A\x1b[J"
	checktest.Same(t, "begins\na wide\nb\n"+up+"a wide\nb\n"+up+"ends\n", b.String())
	b.Reset()
	block.height = 4
	block.Show("a\nrather long\n", "")
	block.Show(strings.Repeat("x\n", 4), "")
	checktest.Same(t, "a\nrather\n"+up+"x\nx\n...\n", b.String())
	b.Reset()
	block = NewBlock(&b)
	block.Draw(lines)
	block.Show("a text", "a line")
	block.Print("a line that is wider than any terminal")
	checktest.Equal(t, "a line\na line that is wider than any terminal\n", b.String(), "b.String()")
}
