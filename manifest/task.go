package manifest

import (
	"fmt"
	"strings"
)

// Task is one manifest in its place among those that are to be applied.
type Task struct {
	Manifest *Manifest
	// Index is the place, from 1; Total is the number of all tasks.
	Index, Total int
}

// NewTasks returns one task for each manifest, in order.
func NewTasks(manifests []*Manifest) []*Task {
	tasks := make([]*Task, len(manifests))
	all := make([]Task, len(manifests))
	for i, m := range manifests {
		all[i] = Task{Manifest: m, Index: i + 1, Total: len(manifests)}
		tasks[i] = &all[i]
	}
	return tasks
}

// MarshalText returns the text of String, which is the task in JSON. It has no error.
func (t *Task) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// String returns the task's short text, such as
//
//	deployment "openshift-dns/dns" (3 of 806)
//
// without the namespace if there is none, and with the file's name in place of
// a missing name.
func (t *Task) String() string {
	id := t.Manifest.Identity()
	name := id.Name
	if name == "" {
		name = t.Manifest.Filename
	}
	if id.Namespace != "" {
		name = id.Namespace + "/" + name
	}
	return fmt.Sprintf("%s \"%s\" (%d of %d)", strings.ToLower(id.Kind), name, t.Index, t.Total)
}
