package ocmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// reply is an answer before it is written.
type reply struct {
	status    int
	body      []byte
	operation string
	fault     Fault // what spoils it
}

func document(d map[string]any) reply {
	body, err := json.Marshal(d)
	if err != nil {
		return problem(http.StatusInternalServerError, err.Error())
	}
	return reply{status: http.StatusOK, body: body}
}

// problem is an error as OCM words it.
func problem(status int, reason string) reply {
	body, _ := json.Marshal(map[string]any{ // of strings alone: it cannot fail
		"kind": "Error", "id": fmt.Sprint(status), "code": fmt.Sprintf("CLUSTERS-MGMT-%d", status), "reason": reason,
	})
	return reply{status: status, body: body}
}

// readOnly is the answer to a GET; other methods are refused.
func readOnly(r Request, answer reply) reply {
	if r.Method != http.MethodGet {
		return notAllowed(r)
	}
	return answer
}

func notAllowed(r Request) reply {
	return problem(http.StatusMethodNotAllowed, fmt.Sprintf("method %s is not allowed for %s", r.Method, r.Path))
}

func (r reply) write(w http.ResponseWriter, request *http.Request) {
	ctx, f := request.Context(), r.fault
	if !pause(ctx, f.Delay) || f.Abort {
		panic(http.ErrAbortHandler) // the connection breaks
	}
	if f.Handler != nil {
		f.Handler.ServeHTTP(w, request)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Operation-Id", r.operation)
	for k, v := range f.Header {
		w.Header()[http.CanonicalHeaderKey(k)] = v
	}
	w.WriteHeader(r.status)
	if f.Stall == 0 && !f.Cut {
		w.Write(r.body)
		return
	}
	half := len(r.body) / 2
	w.Write(r.body[:half])
	http.NewResponseController(w).Flush()
	if !pause(ctx, f.Stall) || f.Cut {
		panic(http.ErrAbortHandler)
	}
	w.Write(r.body[half:])
}

// pause waits, and reports whether the client is still there.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
