package hosts

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// Runner runs commands on the operating systems of nodes. Package sshhost has one
// for SSH. It must be safe for concurrent use.
type Runner interface {
	// Run runs a command as root, without a shell, and returns what it wrote to
	// its standard output. If the command ran and failed, the error is an
	// [*ExitError]; with any other error it is not known whether it ran. It must
	// return when ctx ends, and within some minutes in any case: actions detach what
	// takes longer.
	Run(ctx context.Context, n *corev1.Node, argv ...string) (stdout string, err error)
}

// ExitError reports that a command ran on a host and failed.
type ExitError struct {
	Command string // its words, separated by blanks
	Status  int    // exit status; -1: it was ended by a signal
	Stderr  string // what it wrote to its standard error
}

// maxStderr is the most bytes of the standard error that the text of an error has.
const maxStderr = 2000

func (e *ExitError) Error() string {
	text := fmt.Sprintf("%s: exit status %d", e.Command, e.Status)
	if e.Status < 0 {
		text = e.Command + ": ended by a signal"
	}
	if s := strings.TrimSpace(bounded.Text(e.Stderr, maxStderr)); s != "" {
		text += ": " + s
	}
	return text
}

// permanentError is an error that trying again does not mend.
type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// Permanent marks an error as one that trying again does not mend: a step of a plan
// fails with it at once. Of nil it is nil. errors.Is and errors.As look through the
// mark.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanentError{err}
}

// IsPermanent reports whether an error is marked by [Permanent].
func IsPermanent(err error) bool {
	_, ok := errors.AsType[permanentError](err)
	return ok
}

// ErrVersion reports that the progress on a node was written by a newer version of this
// library.
var ErrVersion = errors.New("the record has a newer format")
