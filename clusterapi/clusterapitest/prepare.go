package clusterapitest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/options"
)

// differential is one call of [Differential].
type differential struct {
	o     DifferentialOptions
	apis  [2]clusterapi.ClusterAPI
	kinds []*parsed
	used  []bool // by index into o.Meant
	id    string // a random part of all names
	group string // of the custom kinds
	runs  int
}

// patience is how long to wait for what a server does on its own, and for a
// watch to tell what it must.
const patience = time.Minute

func newDifferential(a, b clusterapi.ClusterAPI, o DifferentialOptions) (*differential, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	if o.Sequences == 0 {
		o.Sequences = 50
	}
	if o.Length == 0 {
		o.Length = 25
	}
	if o.Failures == 0 {
		o.Failures = 3
	}
	if o.Tries == 0 {
		o.Tries = 150
	}
	for i, m := range o.Meant {
		if m.Reason == "" {
			return nil, fmt.Errorf("difference %d that is meant has no reason: %+v", i, m)
		}
	}
	var random [4]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	d := &differential{o: o, apis: [2]clusterapi.ClusterAPI{a, b}, used: make([]bool, len(o.Meant)), id: hex.EncodeToString(random[:])}
	d.group = "d" + d.id + ".clusterupdate.github.io"
	for _, k := range parsedKinds() {
		if len(o.Kinds) > 0 && !slices.Contains(o.Kinds, k.name) {
			continue
		}
		if k.custom {
			k.gvk.Group = d.group
		}
		d.kinds = append(d.kinds, &k)
	}
	for _, name := range o.Kinds {
		if !slices.Contains(DifferentialKinds(), name) {
			return nil, fmt.Errorf("there is no kind %q: want some of %v", name, DifferentialKinds())
		}
	}
	return d, nil
}

// prepare defines the custom kinds on both backends.
func (d *differential) prepare(ctx context.Context) error {
	for i, api := range d.apis {
		list, _ := parse(strings.ReplaceAll(definitionsOfSequences, "GROUP", d.group)).([]any)
		for _, item := range list {
			content, _ := item.(map[string]any)
			u := &unstructured.Unstructured{Object: content}
			if _, err := api.Create(ctx, u, clusterapi.CreateOptions{}); err != nil {
				return fmt.Errorf("backend %s: creating %s: %w", sideNames[i], u.GetName(), err)
			}
			if err := established(ctx, api, u.GetName()); err != nil {
				return fmt.Errorf("backend %s: %w", sideNames[i], err)
			}
		}
		for _, k := range d.kinds {
			if !k.custom {
				continue
			}
			err := await(ctx, "the kind "+k.name+" to be served", func(ctx context.Context) (bool, error) {
				_, err := api.List(ctx, k.gvk, clusterapi.ListOptions{})
				return err == nil, err
			})
			if err != nil {
				return fmt.Errorf("backend %s: %w", sideNames[i], err)
			}
		}
	}
	return nil
}

// cleanUp deletes what prepare made. What remains is not a fault.
func (d *differential) cleanUp() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, api := range d.apis {
		for _, plural := range []string{"widgets.", "gadgets."} {
			_ = api.Delete(ctx, definitions, clusterapi.Key("", plural+d.group), clusterapi.DeleteOptions{})
		}
	}
}

// read is Get by a backend that may be wrong.
func read(ctx context.Context, api clusterapi.Reader, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	u, err := api.Get(ctx, gvk, key)
	if err == nil && (u == nil || u.Object == nil) {
		return nil, errors.New("neither an object nor an error")
	}
	return u, err
}

// established waits for a definition.
func established(ctx context.Context, api clusterapi.Reader, name string) error {
	return await(ctx, name+" to be Established", func(ctx context.Context) (bool, error) {
		crd, err := read(ctx, api, definitions, clusterapi.Key("", name))
		if err != nil {
			return apierrors.IsNotFound(err), err
		}
		return isTrue(crd, "Established") && isTrue(crd, "NamesAccepted") || crd.GetDeletionTimestamp() != nil, nil
	})
}

// await polls until done says so.
func await(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, err := done(ctx)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s (last error: %w)", what, errors.Join(err, ctx.Err()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}
