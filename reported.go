package clusterupdate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// reported are the releases that ClusterOperators report to run: the names of the
// operators by version. Versions of operators that are part of no release, which
// are not semantic versions, do not count.
type reported map[string][]string

// reported returns what the ClusterOperators report. Operators that cannot be listed
// are an error: it is not known that there are none.
func (r clusterRisks) reported() (reported, error) {
	a := r.answers[read{gvk: operatorKind}]
	if a.err != nil && !meta.IsNoMatchError(a.err) {
		return nil, fmt.Errorf("the versions of ClusterOperators are not known: %w", a.err)
	}
	out := reported{}
	for _, o := range a.objects {
		co, err := clusterapi.As[configv1.ClusterOperator](o)
		if err != nil {
			return nil, fmt.Errorf("the version of ClusterOperator %s is not known: %w", o.Key().Name, err)
		}
		version := stateOf(co).version
		if _, err := semver.StrictNewVersion(version); err == nil {
			out[version] = append(out[version], co.Name)
		}
	}
	for _, names := range out {
		slices.Sort(names)
	}
	return out, nil
}

// versions are those of releases, the lowest first.
func (r reported) versions() []string {
	return slices.SortedFunc(maps.Keys(r), func(a, b string) int {
		x, y := semver.MustParse(a), semver.MustParse(b)
		if c := x.Compare(y); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
}

// are reports whether version is what all operators report that report any.
func (r reported) are(version string) bool { return len(r) == 1 && r[version] != nil }

// String names each version with its operators.
func (r reported) String() string {
	var parts []string
	for _, version := range r.versions() {
		parts = append(parts, fmt.Sprintf("%s (%s)", version, bounded.Join(r[version], ", ", 1000)))
	}
	return bounded.Join(parts, " and ", 4000)
}

// ran reports whether operators run another release than the newest entry of the
// history: then what is being applied is not an installation.
func (r reported) ran(history []configv1.UpdateHistory) bool {
	for version := range r {
		if len(history) == 0 || history[0].Version != "" && history[0].Version != version {
			return true
		}
	}
	return false
}

// lost is why it is not known which release the cluster runs: the history is empty,
// and operators report something else than own, or more than that. own may be zero.
func (r reported) lost(own configv1.Release) error {
	if own.Image == "" {
		return fmt.Errorf("%w: its ClusterOperators report the versions %s", ErrNoRelease, r)
	}
	return &lostError{fmt.Sprintf("the cluster version has no history, and it is not known which release the cluster runs: its ClusterOperators report the versions %s, which is not %s alone: request the release by its image",
		r, quoted(own))}
}

// lostError is a [reported.lost] that a request of an administrator ends.
type lostError struct{ text string }

func (e *lostError) Error() string        { return e.text }
func (e *lostError) Is(target error) bool { return target == ErrNoRelease }

// isLost reports whether err is why nothing is applied until somebody requests an
// image.
func isLost(err error) bool {
	_, ok := errors.AsType[*lostError](err)
	return ok
}

// restored is a ClusterVersion that lost its history as the operators show it: an
// update to the latest version that they report was started from the earliest one.
// What is requested is checked against that.
func (r reported) restored(cv *configv1.ClusterVersion) *configv1.ClusterVersion {
	versions := r.versions()
	first, last := versions[0], versions[len(versions)-1]
	out := cv.DeepCopy()
	out.Status.Desired = configv1.Release{Version: last}
	out.Status.History = []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: first}}
	if first != last {
		out.Status.History = slices.Insert(out.Status.History, 0, configv1.UpdateHistory{State: configv1.PartialUpdate, Version: last})
	}
	return out
}

// restoredReader reads a cluster, but for its ClusterVersion.
type restoredReader struct {
	clusterapi.Reader
	cv *configv1.ClusterVersion
}

func (r restoredReader) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	if gvk == versionKind && key == clusterVersionKey {
		return clusterapi.ToUnstructured(r.cv)
	}
	return r.Reader.Get(ctx, gvk, key)
}
