package preview

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/redact"
)

// Answer is what an API server said of a write, if it said something else than the
// preview. It is plain data.
type Answer struct {
	// Error is why it refuses; empty if it accepts.
	Error string `json:"error,omitempty"`
	// Accepts reports that it accepts what the preview expects to be refused.
	Accepts bool `json:"accepts,omitempty"`
	// Fields are those that it would store otherwise, as after admission: Old as
	// the preview expects them, New as the server would have them.
	Fields []clusterapi.FieldChange `json:"fields,omitempty"`
	// NeedsOther reports that it cannot tell yet: the object needs another, such as
	// a namespace or a definition, that the update creates or changes before.
	NeedsOther bool `json:"needsOther,omitempty"`
}

// ask sends a write to Options.Server and notes an answer that differs.
func (r *run) ask(ctx context.Context, sent, stored *unstructured.Unstructured, err error, write func(Server) (*unstructured.Unstructured, error)) {
	if r.o.Server == nil {
		return
	}
	n := r.note(ctx, sent.GroupVersionKind(), clusterapi.KeyOf(sent))
	if n.answer != nil {
		return
	}
	got, asked := write(r.o.Server)
	switch {
	case n.unknown != nil && apierrors.IsAlreadyExists(asked): // it was created as if it were new
	case asked != nil && clusterapi.IsMissing(asked) && err == nil:
		n.answer = &Answer{NeedsOther: true, Error: redact.Text(asked.Error())}
	case asked != nil && err == nil:
		n.answer = &Answer{Error: redact.Text(asked.Error())}
	case asked == nil && err != nil:
		n.answer = &Answer{Accepts: true}
	case asked == nil:
		kind := sent.GroupVersionKind().GroupKind()
		fields := slices.DeleteFunc(r.compare(stored, got), func(f clusterapi.FieldChange) bool { return apiserver.Allocated(kind, f.Path) })
		if len(fields) > 0 {
			n.answer = &Answer{Fields: r.shown(sent, fields)}
		}
	}
}

// needOther marks answers about custom resources whose definition the update
// changes before, which the server does not have yet.
func needOther(p *Preview, plurals map[schema.GroupKind]string) {
	changes := make(map[string]bool)
	for i := range p.Changes {
		if c := &p.Changes[i]; c.Object.GroupKind() == definitionKind.GroupKind() {
			changes[c.Object.Name] = c.Action == Create || c.Action == Update || c.Action == Unknown
		}
	}
	for i := range p.Changes {
		c := &p.Changes[i]
		if c.Server != nil && changes[plurals[c.Object.GroupKind()]+"."+c.Object.Group] {
			c.Server.NeedsOther = true
		}
	}
}
