package httpclient

import (
	"fmt"
	"time"
)

// Limit names what an exchange must not pass.
type Limit string

// The limits.
const (
	LimitTime      Limit = "time"
	LimitBody      Limit = "body"
	LimitRedirects Limit = "redirects"
)

// LimitError says that an exchange passed a limit of [Options].
type LimitError struct {
	Limit Limit
	// Max is the limit: nanoseconds, bytes, or a number of redirects.
	Max int64
	// Err is what the transport said, for LimitTime; else nil.
	Err error
}

func (e *LimitError) Error() string {
	switch e.Limit {
	case LimitTime:
		return fmt.Sprintf("no complete answer within the time-out of %s: %v", time.Duration(e.Max), e.Err)
	case LimitBody:
		return fmt.Sprintf("response body exceeds the limit of %d bytes", e.Max)
	default:
		return fmt.Sprintf("more redirects than the limit of %d", e.Max)
	}
}

func (e *LimitError) Unwrap() error { return e.Err }

// RequestError says that a request could not be built; nothing was sent.
type RequestError struct{ Err error }

func (e *RequestError) Error() string { return e.Err.Error() }
func (e *RequestError) Unwrap() error { return e.Err }

// BodyError says that the body of a 2xx answer could not be read to its end.
type BodyError struct {
	StatusCode int
	Status     string
	Err        error
}

func (e *BodyError) Error() string { return e.Err.Error() }
func (e *BodyError) Unwrap() error { return e.Err }
