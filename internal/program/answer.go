package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Errors that decide the exit code and are not printed: the output has the reason.
var (
	ErrNo      = errors.New("the answer is no")      // exit with Failed
	ErrUnknown = errors.New("the answer is unknown") // exit with Unknown
)

// exitError is an error that decides the exit code.
type exitError struct {
	error
	code int
}

func (e exitError) Unwrap() error { return e.error }

// No returns err as an answer of no: the program prints it and exits with Failed,
// unless err is an error of usage. It returns nil for nil.
func No(err error) error {
	if err == nil || errors.As(err, new(exitError)) {
		return err
	}
	return exitError{err, Failed}
}

// Usagef returns an error that makes a program exit with BadUsage. It formats as
// [fmt.Errorf] does.
func Usagef(format string, args ...any) error {
	return exitError{fmt.Errorf(format, args...), BadUsage}
}

// Answer prints text, wrapped if the output is a terminal. It returns the error of
// writing, or [ErrNo] if the answer is no.
func Answer(w io.Writer, text string, yes bool) error {
	if _, err := io.WriteString(TerminalOf(w).Wrap(w), text); err != nil || yes {
		return err
	}
	return ErrNo
}

// Report prints data as JSON if that is the format, else what text writes. It returns
// an error as [Answer] does.
func Report(w io.Writer, format string, yes bool, data any, text func(io.Writer) error) error {
	if format == "json" {
		text = func(w io.Writer) error { return JSON(w, data) }
	}
	if err := text(w); err != nil || yes {
		return err
	}
	return ErrNo
}

// Text returns a function that prints a text as [Answer] does.
func Text(text string) func(io.Writer) error {
	return func(w io.Writer) error { return Answer(w, text, true) }
}

// JSON prints data as indented JSON. Errors are those of encoding and of writing.
func JSON(w io.Writer, data any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(data)
}
