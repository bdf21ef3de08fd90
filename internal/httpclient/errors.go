package httpclient

import (
	"fmt"
	"time"
)

// TimeoutError reports that an exchange took longer than Options.Timeout.
type TimeoutError struct {
	Timeout time.Duration
	Err     error // of the transport
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("no complete answer within the time-out of %s: %v", e.Timeout, e.Err)
}

// Unwrap returns Err.
func (e *TimeoutError) Unwrap() error { return e.Err }

// RequestError reports that a request could not be built; nothing was sent.
type RequestError struct{ Err error }

func (e *RequestError) Error() string { return e.Err.Error() }
func (e *RequestError) Unwrap() error { return e.Err }

// BodyError reports that the body of a 2xx answer could not be read to its end.
type BodyError struct {
	StatusCode int
	Status     string
	Err        error
}

func (e *BodyError) Error() string { return e.Err.Error() }
func (e *BodyError) Unwrap() error { return e.Err }
