// Package program has what the example programs share: one style of flags, usage
// and errors, exit codes, signals and terminals.
//
// A program prints its results to standard output. It prints to standard error what
// is wrong, one line for each mistake. Flags and arguments may come in any order; a flag
// is repeated only if its usage says that it may be. -h
// prints the usage to standard output. SIGINT and SIGTERM end the program cleanly; a
// second one ends it at once. The exit codes are [Done], [Failed], [BadUsage] and
// [Unknown].
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// The exit codes of all programs.
const (
	Done     = 0 // the program did its work, and the answer is not no
	Failed   = 1 // the answer is no, or a signal ended the program
	BadUsage = 2 // the command line is wrong; the program did nothing
	Unknown  = 3 // an error: something could not be read, reached or written
)

// Command is a program, or a command of one. It is safe for concurrent use if
// its functions are.
type Command struct {
	Name  string // as it is called, without flags
	Args  string // arguments in the usage, such as "[PACKAGE]"; empty: none
	About string // what it does, in a line
	Codes string // what the exit codes mean here, but for 2
	Min   int    // fewest arguments
	Max   int    // most arguments; negative: any number
	// Commands are those that the first argument chooses from; a program that has
	// them has no flags of its own.
	Commands []Command
	Default  string // the command that runs without arguments; empty: none
	// Flags declares the flags; nil: none.
	Flags func(*flag.FlagSet)
	// Required are groups of flags. One of each group must be set.
	Required [][]string
	// Needs maps a condition to conditions of which one must hold if it holds, and
	// Excludes to those that must not hold then. A condition is the name of a flag
	// that is set, or, as "o text|json", of one that has one of these values.
	Needs, Excludes map[string][]string
	// Run does the work once the flags are read.
	Run Func
}

// Func does the work of a command.
type Func func(ctx context.Context, args []string, stdout, stderr io.Writer) error

// Main runs a program and exits.
func Main(c Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the next signal does what signals do
	os.Exit(c.Execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Execute runs a program and returns its exit code.
func (c Command) Execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := c.execute(ctx, args, stdout, stderr)
	name, _, _ := strings.Cut(c.Name, " ")
	exit := exitError{code: Unknown}
	switch {
	case err == nil:
		return Done
	case ctx.Err() != nil:
		err, exit.code = context.Cause(ctx), Failed
	case errors.Is(err, ErrNo):
		return Failed
	case errors.Is(err, ErrUnknown):
		return Unknown
	case errors.As(err, &exit) && exit.code == BadUsage:
		err = fmt.Errorf("%w; %s -h shows the usage", err, name)
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	return exit.code
}

func (c Command) execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 && c.Default != "" {
		args = []string{c.Default}
	}
	if len(c.Commands) > 0 && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		for _, sub := range c.Commands {
			if sub.Name == args[0] {
				sub.Name, sub.Codes = c.Name+" "+sub.Name, c.Codes
				return sub.execute(ctx, args[1:], stdout, stderr)
			}
		}
		return Usagef("there is no command %q", args[0])
	}
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	if c.Flags != nil {
		c.Flags(flags)
	}
	var words []string // flags may follow them
	for {
		if err := c.parse(flags, args); errors.Is(err, flag.ErrHelp) {
			c.usage(stdout, flags)
			return nil
		} else if err != nil {
			return Usagef("%w", err)
		}
		if flags.NArg() == 0 {
			break
		}
		words, args = append(words, flags.Arg(0)), flags.Args()[1:]
	}
	switch {
	case len(c.Commands) > 0:
		return Usagef("a command is missing")
	case c.Max >= 0 && len(words) > c.Max:
		return Usagef("unexpected argument %q", words[c.Max])
	case len(words) < c.Min:
		return Usagef("%s is missing", c.Args)
	}
	if err := c.check(flags); err != nil {
		return err
	}
	return c.Run(ctx, words, stdout, stderr)
}

// parse reads flags up to the first word. A flag that holds one value is an error the
// second time, in a later call too.
func (c Command) parse(flags *flag.FlagSet, args []string) error {
	values := map[string]flag.Value{}
	set := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { set[f.Name] = true })
	flags.VisitAll(func(f *flag.Flag) {
		if strings.Contains(f.Usage, "may be repeated") {
			return
		}
		values[f.Name] = f.Value
		f.Value = &single{Value: f.Value, set: set[f.Name]}
	})
	err := flags.Parse(args)
	for name, value := range values {
		flags.Lookup(name).Value = value // the usage shows defaults by the type of the value
	}
	return err
}

// usage prints the usage in the form that all programs have.
func (c Command) usage(w io.Writer, flags *flag.FlagSet) {
	args := strings.TrimSpace("[flags] " + c.Args)
	if len(c.Commands) > 0 {
		args = "COMMAND [flags] [ARGUMENT]"
	}
	fmt.Fprintf(w, "usage: %s %s\n\n%s\n", c.Name, args, c.About)
	if len(c.Commands) > 0 {
		fmt.Fprintln(w, "\ncommands:")
		for _, sub := range c.Commands {
			fmt.Fprintf(w, "  %-9s %s\n", sub.Name, sub.About)
		}
		fmt.Fprintf(w, "\n%s COMMAND -h shows the flags of a command.", c.Name)
		if c.Default != "" {
			fmt.Fprintf(w, " Without a command it is %s.", c.Default)
		}
		fmt.Fprintln(w)
	}
	any := false
	flags.VisitAll(func(*flag.Flag) { any = true })
	if any {
		fmt.Fprintln(w, "\nflags:")
		flags.SetOutput(w)
		flags.PrintDefaults()
	}
	fmt.Fprintf(w, "\nexit codes: %s; 2: the command line is wrong.\n", c.Codes)
}
