// Command outside is ten small programs that somebody else would write with this
// library. They use exported names alone, and each is in a file of its own. One, the
// backend of inventory.go, is run by its test.
//
//	go run . PROGRAM ARGUMENT...
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
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
		{"record", "FOLDER", record},
		{"rehearse", "RECORDING OLD NEW", rehearse},
		{"policy", "VERSION TIME", policy},
		{"serve", "GRAPH-DATA RELEASES", serve},
		{"operators", "MUST-GATHER", operators},
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	usage := "usage:"
	for _, p := range programs() {
		usage += "\n  outside " + p.name + " " + p.arguments
		if len(args) > 0 && args[0] == p.name && len(args)-1 == len(strings.Fields(p.arguments)) {
			return p.run(ctx, out, args[1:])
		}
	}
	return errors.New(usage)
}

func main() {
	if err := run(context.Background(), os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
