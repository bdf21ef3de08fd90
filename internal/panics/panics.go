// Package panics turns a panic in code that a caller supplied into an error,
// so that it ends neither a process nor a call that others wait for.
package panics

import (
	"fmt"
	"runtime/debug"
)

// Error is a panic, or a runtime.Goexit, in code that was called. Its text
// leaves the stack out, since texts end up in conditions and events.
type Error struct {
	Value any    // what was passed to panic; nil for a Goexit
	Stack []byte // where it happened, as runtime/debug.Stack prints it
}

func (e *Error) Error() string {
	if e.Value == nil {
		return "panic: the goroutine was ended by runtime.Goexit"
	}
	return fmt.Sprintf("panic: %v", e.Value)
}

// Unwrap returns the value of the panic if that is an error.
func (e *Error) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Catch calls f and returns its error, or an *Error where f panicked. A
// runtime.Goexit in f still ends the calling goroutine; use Isolate if that must
// not happen.
func Catch(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Error{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

// Isolate is Catch in a new goroutine, for which it waits: a runtime.Goexit in f,
// which tests call through FailNow, becomes an *Error too.
func Isolate(f func() error) error {
	var err error = &Error{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = Catch(f)
	}()
	<-done
	return err
}
