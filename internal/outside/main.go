// Command outside holds nine programs that somebody else would write with this
// library, each in a file of its own with nothing but exported names. They are
// small on purpose: each does one job that the documentation describes.
//
//	go run . PROGRAM [ARGUMENT]...
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// A program writes what it finds to out.
type program struct {
	name, arguments string
	run             func(ctx context.Context, out io.Writer, args []string) error
}

func programs() []program {
	return []program{
		{"whynot", "GRAPH FROM TO", whyNot},
		{"verify", "MIRROR SIGNATURES KEYRING PULLSPEC", verify},
		{"compare", "OLD NEW", compare},
		{"stuck", "MUST-GATHER", stuck},
		{"rehearse", "RECORDING OLD NEW", rehearse},
		{"policy", "VERSION TIME", policy},
		{"serve", "GRAPH-DATA RELEASES", serve},
		{"operators", "MUST-GATHER", operators},
	}
}

var errUsage = errors.New("usage: outside PROGRAM [ARGUMENT]...")

func run(ctx context.Context, out io.Writer, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	for _, p := range programs() {
		if p.name == args[0] {
			return p.run(ctx, out, args[1:])
		}
	}
	return errUsage
}

func main() {
	if err := run(context.Background(), os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
