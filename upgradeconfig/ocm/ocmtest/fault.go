package ocmtest

import (
	"cmp"
	"net/http"
	"strings"
	"time"
)

// Fault is a failure to come. It takes the place of a regular answer, or spoils
// one.
type Fault struct {
	// Method and Path choose the requests; Path is the end of theirs, without
	// the query. Empty ones choose all.
	Method, Path string
	// Skip is how many such requests this failure lets pass first; another may take
	// them.
	Skip int
	// Times is how many are failed; zero means one. Always fails all that come.
	Times  int
	Always bool

	// Delay before the answer, or until the client goes.
	Delay time.Duration
	// Status of the answer; zero means 200 with a Body, and else the regular
	// answer's. With a Status and no Body, the body is an OCM error.
	Status int
	// Header is added to the answer's, such as Retry-After or Location. Values
	// go before those of the regular answer.
	Header http.Header
	// Body in place of the regular one; Empty: none at all.
	Body  string
	Empty bool
	// Stall is a pause in the middle of the body.
	Stall time.Duration
	// Cut breaks the connection in the middle of the body, Abort before the
	// answer.
	Cut, Abort bool
	// Late lets the request have its effect before.
	Late bool
	// Handler answers instead of all that.
	Handler http.Handler
}

// Fail adds failures. For each request, the first one that chooses it and is
// not used up counts.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		f.Header = f.Header.Clone()
		f.Times = cmp.Or(f.Times, 1)
		s.faults = append(s.faults, &f)
	}
}

// fault returns the failure of a request, nil if it has none. The caller holds
// the lock.
func (s *Server) fault(r Request) *Fault {
	for _, f := range s.faults {
		if f.Times <= 0 && !f.Always || f.Method != "" && f.Method != r.Method || !strings.HasSuffix(r.Path, f.Path) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		f.Times--
		return f
	}
	return nil
}

// regular reports whether the regular answer is needed.
func (f *Fault) regular() bool {
	replaced := f.Status != 0 || f.Body != "" || f.Empty || f.Abort || f.Handler != nil
	return f.Late || !replaced
}

// spoil makes a failure of an answer.
func (f *Fault) spoil(r reply) reply {
	switch {
	case f.Status != 0 && f.Body == "" && !f.Empty:
		operation := r.operation
		r = problem(f.Status, http.StatusText(f.Status))
		r.operation = operation
	case f.Status != 0:
		r.status = f.Status
	case f.Body != "" || f.Empty:
		r.status = http.StatusOK
	}
	if f.Body != "" || f.Empty {
		r.body = []byte(f.Body)
	}
	r.fault = *f
	return r
}
