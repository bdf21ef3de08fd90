package forecast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// assumptions lists what is made up, each once, in order. It is safe for concurrent use.
type assumptions struct {
	mu    sync.Mutex
	texts []string
}

func (a *assumptions) add(texts ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, text := range texts {
		if !slices.Contains(a.texts, text) {
			a.texts = append(a.texts, text)
		}
	}
}

func (a *assumptions) list() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.texts)
}

// gaps is a cluster as a fork reads it: what was not collected is not there, and
// neither is what would act in place of the rehearsal's own machine-config controller.
// It is safe for concurrent use.
type gaps struct {
	inner clusterapi.Reader

	mu      sync.Mutex
	lacking map[schema.GroupKind]bool // kinds that are not known in full
}

func newGaps(r clusterapi.Reader) *gaps {
	return &gaps{inner: r, lacking: make(map[schema.GroupKind]bool)}
}

// lacks reports whether not all objects of a kind are known.
func (g *gaps) lacks(gk schema.GroupKind) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lacking[gk]
}

// Get implements [clusterapi.Reader]. Forks do not call it: they list.
func (g *gaps) Get(
	ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName,
) (*unstructured.Unstructured, error) {
	return g.inner.Get(ctx, gvk, key)
}

// List implements [clusterapi.Reader].
func (g *gaps) List(
	ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions,
) (*unstructured.UnstructuredList, error) {
	list, err := g.inner.List(ctx, gvk, o)
	if err != nil && !errors.Is(err, clusterapi.ErrNotCollected) {
		return nil, err
	}
	if err != nil {
		g.mu.Lock()
		g.lacking[gvk.GroupKind()] = true
		g.mu.Unlock()
	}
	if list == nil {
		list = &unstructured.UnstructuredList{}
	}
	list.Items = slices.DeleteFunc(
		slices.Clone(list.Items), func(u unstructured.Unstructured) bool { return acts(gvk, &u) },
	)
	seen := make(map[types.UID]bool, len(list.Items))
	for i := range list.Items {
		uid := list.Items[i].GetUID()
		if uid != "" && seen[uid] { // recordings that were edited by hand have such
			list.Items[i] = *list.Items[i].DeepCopy()
			list.Items[i].SetUID("")
		}
		seen[uid] = true
	}
	return list, nil
}

// acts reports whether an object belongs to the machine-config controller of the
// cluster, or is written by a part of it that the rehearsal does not play.
func acts(gvk schema.GroupVersionKind, u *unstructured.Unstructured) bool {
	switch gvk.GroupKind() {
	case corev1.SchemeGroupVersion.WithKind("Pod").GroupKind():
		return u.GetNamespace() == mcp.OperatorNamespace && u.GetLabels()[mcp.LabelApp] == mcp.AppController
	case coordinationv1.SchemeGroupVersion.WithKind("Lease").GroupKind():
		return u.GetNamespace() == mcp.OperatorNamespace
	case mcfgv1.SchemeGroupVersion.WithKind("MachineConfigNode").GroupKind():
		return true
	}
	return false
}

// known is a fork as checks read it: what the recording lacks is not known, even if
// the fork continues without it.
type known struct {
	clusterapi.Reader
	gaps *gaps
}

func (k known) Get(
	ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName,
) (*unstructured.Unstructured, error) {
	u, err := k.Reader.Get(ctx, gvk, key)
	if err != nil && clusterapi.IsAbsent(err) && k.gaps.lacks(gvk.GroupKind()) {
		return nil, fmt.Errorf("%s %s: %w", gvk.Kind, key.Name, clusterapi.ErrNotCollected)
	}
	return u, err
}

func (k known) List(
	ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions,
) (*unstructured.UnstructuredList, error) {
	list, err := k.Reader.List(ctx, gvk, o)
	if err == nil && k.gaps.lacks(gvk.GroupKind()) {
		return list, fmt.Errorf("%s: %w", gvk.Kind, clusterapi.ErrNotCollected)
	}
	return list, err
}

// lenient is a check that passes where the recording does not decide it. What it finds
// for certain stays.
type lenient struct {
	preconditions.Check
	gaps    *gaps
	assumed *assumptions
}

// checks are those of the version operator, lenient.
func checks(g *gaps, a *assumptions) []preconditions.Check {
	all := preconditions.AtLoad()
	for i, c := range all {
		all[i] = lenient{c, g, a}
	}
	return all
}

// Run implements [preconditions.Check].
func (l lenient) Run(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	judged := *in
	judged.Reader = known{in.Reader, l.gaps}
	findings, err := l.Check.Run(ctx, &judged)
	var none *preconditions.NoSourceError
	if errors.Is(err, clusterapi.ErrNotCollected) || errors.As(err, &none) {
		l.assumed.add(fmt.Sprintf("the check %s passes: %s", l.Name(), strings.TrimSpace(err.Error())))
		return findings, nil
	}
	return findings, err
}
