// Command verify tells whether a release may be trusted: who signed its digest,
// under which name and when.
//
// With keyrings it looks for OpenPGP signatures, in stores on the web or in
// directories (<store>/sha256=<hash>/signature-1), as a cluster does before an
// update. Every keyring must be satisfied:
//
//	go run ./examples/verify -digest sha256:… \
//	    -store https://mirror.openshift.com/pub/openshift-v4/signatures/openshift/release \
//	    -keyring verifier-public-key-redhat
//
// With a public key in PEM it looks for cosign signatures, as the container
// runtime does on a pull: in repositories of registries that anybody may read,
// and in OCI image layouts. The image must have been signed under its own
// repository, so -digest takes a whole pull spec here; a bare digest is taken
// for one of the product's repository:
//
//	go run ./examples/verify -digest quay.io/openshift-release-dev/ocp-release@sha256:… \
//	    -store docker://quay.io/openshift-release-dev/ocp-release -store ./layout -key openshift.pem
//
// -store and -keyring take several values, at once or by repetition. -configmap
// prints the manifest that brings the OpenPGP signatures which verified to a
// disconnected cluster; -configmap FILE writes it, and -configmap DIR names the
// file as mirror tools do.
//
// The exit code is 0 when the digest verified, 1 when it did not, 2 when the
// flags are wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

type options struct {
	image     string // a digest or a pull spec
	stores    list
	keyrings  list
	key       string
	plainHTTP bool
	configMap destination
	timeout   time.Duration
}

// list is a flag that may be given several times.
type list []string

func (l *list) String() string     { return strings.Join(*l, " ") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

// destination is where a manifest goes: a flag that needs no value.
type destination struct {
	wanted bool
	path   string // empty: standard output
}

func (d *destination) String() string   { return d.path }
func (d *destination) IsBoolFlag() bool { return true }

func (d *destination) Set(s string) error {
	d.wanted, d.path = s != "false", s
	if s == "true" || s == "false" || s == "-" {
		d.path = ""
	}
	return nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("verify", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.image, "digest", "", "digest, or pull spec with a digest, of the release image")
	flags.Var(&o.stores, "store", "`URL or directory` of signatures; several are asked; with -key, docker://repository or an OCI layout")
	flags.Var(&o.keyrings, "keyring", "`file` of OpenPGP public keys; each of several must be satisfied")
	flags.StringVar(&o.key, "key", "", "`file` of a public key in PEM, for cosign signatures")
	flags.BoolVar(&o.plainHTTP, "plain-http", false, "speak http with registries")
	flags.Var(&o.configMap, "configmap", "write the manifest with the signatures to a `file`, else to standard output")
	flags.DurationVar(&o.timeout, "timeout", 2*time.Minute, "how long to look for signatures")
	if err := flags.Parse(expand(args)); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if err := o.check(flags.Args()); err != nil {
		fmt.Fprintln(stderr, "verify:", err)
		return 2
	}

	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	verify := openPGP
	if o.key != "" {
		verify = cosign
	}
	if err := verify(ctx, o, stdout, stderr); err != nil {
		explain(stderr, err)
		return 1
	}
	return 0
}

// expand writes out flags with several values, "-store a b" as "-store a
// -store b", and the value that -configmap may have.
func expand(args []string) []string {
	var out []string
	var list string // the flag that more values belong to
	value := false  // the next argument is a value, whatever it looks like
	for i, a := range args {
		name := strings.TrimLeft(a, "-")
		switch {
		case value:
			out, value = append(out, a), false
		case !strings.HasPrefix(a, "-") && list == "configmap":
			out[len(out)-1], list = "-configmap="+a, ""
		case !strings.HasPrefix(a, "-") && list != "":
			out = append(out, "-"+list, a)
		case a == "-" || !strings.HasPrefix(a, "-"):
			return append(out, args[i:]...)
		default:
			out = append(out, a)
			list, value = name, false
			switch name {
			case "store", "keyring":
				value = true
			case "configmap":
			case "digest", "key", "timeout":
				list, value = "", true
			default:
				if list, _, _ = strings.Cut(name, "="); list != "store" && list != "keyring" {
					list = ""
				}
			}
		}
	}
	return out
}

// check reports flags that do not go together.
func (o *options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case o.image == "":
		return errors.New("-digest is required")
	case len(o.stores) == 0:
		return errors.New("at least one -store is required")
	case (len(o.keyrings) == 0) == (o.key == ""):
		return errors.New("either -keyring or -key is required")
	case o.key != "" && o.configMap.wanted:
		return errors.New("-configmap holds OpenPGP signatures: it goes with -keyring")
	case o.plainHTTP && o.key == "":
		return errors.New("-plain-http is for registries: it goes with -key")
	case o.timeout <= 0:
		return errors.New("-timeout must be above 0")
	}
	return nil
}
