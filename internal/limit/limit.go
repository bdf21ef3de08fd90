package limit

import (
	"fmt"
	"sync"
)

// Heap is how many bytes of heap one document may make, whatever it holds.
const Heap = 256 << 20

// LimitError reports that an input passed a limit.
type LimitError struct {
	Where string // file and place in it, or empty for the whole input
	Limit string // name of the field of the options that sets the limit, or empty
	Max   int64  // value of the limit
	What  string // what is limited, such as "bytes in a file"
}

// Error names the place and the limit.
func (e *LimitError) Error() string {
	text := fmt.Sprintf("more than %d %s", e.Max, e.What)
	if e.Limit != "" {
		text += " (limit " + e.Limit + ")"
	}
	if e.Where != "" {
		text = e.Where + ": " + text
	}
	return text
}

// Limit is the most of something. The zero Limit allows any number.
type Limit struct {
	Max  int64  // 0 means any number
	Name string // of the field of the options, for errors
	What string // for errors, such as "bytes in a file"
}

// Check returns a [*LimitError] if n is more than the limit.
func (l Limit) Check(n int64) error {
	if l.Max == 0 || n <= l.Max {
		return nil
	}
	return &LimitError{Limit: l.Name, Max: l.Max, What: l.What}
}

// Usage is what an input holds.
type Usage struct {
	Bytes   int64 // of its text, and of the memory kept for it
	Values  int64 // maps, lists and what they hold
	Entries int64 // files, documents or objects
	Depth   int64 // levels of maps and lists
	Aliases int64 // of YAML, or bytes that they expand to
}

// Add adds the usage of another part of the input. Its depth counts if it is
// larger.
func (u *Usage) Add(other Usage) {
	u.Bytes += other.Bytes
	u.Values += other.Values
	u.Entries += other.Entries
	u.Depth = max(u.Depth, other.Depth)
	u.Aliases += other.Aliases
}

// Budget holds the limits of an input. Its zero value allows everything.
type Budget struct{ Bytes, Values, Entries, Depth, Aliases Limit }

// Check returns a [*LimitError] for the first limit that u passes, in the order
// of the fields.
func (b *Budget) Check(u Usage) error {
	for _, c := range [...]struct {
		limit Limit
		n     int64
	}{{b.Bytes, u.Bytes}, {b.Values, u.Values}, {b.Entries, u.Entries}, {b.Depth, u.Depth}, {b.Aliases, u.Aliases}} {
		if err := c.limit.Check(c.n); err != nil {
			return err
		}
	}
	return nil
}

// Meter adds up the usage of the parts of an input. Set Budget before the first
// use; after that it is safe for concurrent use.
type Meter struct {
	Budget Budget

	mu   sync.Mutex
	used Usage
}

// Spend adds u, and returns a [*LimitError] if the sum passes the budget. It
// adds u in either case.
func (m *Meter) Spend(u Usage) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used.Add(u)
	return m.Budget.Check(m.used)
}

// Used returns the sum of all usages.
func (m *Meter) Used() Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}
