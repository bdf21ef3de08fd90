package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrNo makes a program exit with Failed without a message, because its output has
// already said why the answer is no.
var ErrNo = errors.New("the answer is no")

// ErrUnknown makes a program exit with Unknown without a message, where its output
// has said already what is not known.
var ErrUnknown = errors.New("the answer is not known")

type unreadError struct{ error }

func (e unreadError) Unwrap() error { return e.error }

// Unread returns err as one that makes a program exit with Unknown, after its
// message; nil for nil. Errors of usage, and those that have a meaning here
// already, stay what they are.
func Unread(err error) error {
	bad := usageError{}
	if err == nil || errors.As(err, &bad) || errors.Is(err, ErrNo) || errors.Is(err, ErrUnknown) {
		return err
	}
	return unreadError{err}
}

// Answer prints text, wrapped where the output is a terminal, and returns nil, or
// [ErrNo] where the answer is no.
func Answer(w io.Writer, text string, yes bool) error {
	if _, err := io.WriteString(TerminalOf(w).Wrap(w), text); err != nil || yes {
		return err
	}
	return ErrNo
}

// JSON prints data.
func JSON(w io.Writer, data any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(data)
}

type usageError struct{ error }

// Usagef returns an error that makes a program exit with BadUsage.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }
