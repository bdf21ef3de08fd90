package runlevel

import (
	"context"
	"fmt"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

func operatorManifest(t testing.TB, file, name string) *manifest.Manifest {
	return newManifest(t, file, fmt.Sprintf("{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: %q, annotations: {}}}", name))
}

// ClusterOperators are created ahead in every pass, whatever its state and number,
// once each and only those of config.openshift.io/v1.
func TestPrecreationInEveryPass(t *testing.T) {
	other := newManifest(t, "0000_10_a_3", "{apiVersion: config.openshift.io/v1beta1, kind: ClusterOperator, metadata: {name: beta, annotations: {}}}")
	tasks := manifest.NewTasks([]*manifest.Manifest{configMaps(t, "0000_10_a_1")[0].Manifest, operatorManifest(t, "0000_10_a_2", "a"), other, operatorManifest(t, "0000_10_a_4", "b")})
	want := []string{"pre a", "pre b", "0000_10_a_1", "a", "beta", "b"}
	for _, state := range []State{Initializing, Updating, Reconciling} {
		for _, attempt := range []int{0, 1, 9} {
			t.Run(fmt.Sprint(state, attempt), func(t *testing.T) {
				r := &recorder{apply: func(_ context.Context, _ *manifest.Task, s State) error {
					if s != state && s != Precreating {
						t.Errorf("applied in state %s", s)
					}
					return nil
				}}
				checktest.Get(Run(t.Context(), tasks, Options{Applier: r, State: state, Attempt: attempt, Workers: 1}))(t)
				checktest.Same(t, want, r.log)
			})
		}
	}
}

// The context is looked at before each ClusterOperator that is created ahead.
func TestPrecreationEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &recorder{apply: func(context.Context, *manifest.Task, State) error { cancel(); return nil }}
	tasks := manifest.NewTasks([]*manifest.Manifest{operatorManifest(t, "0000_10_a_1", "a"), operatorManifest(t, "0000_10_a_2", "b")})
	res, err := Run(ctx, tasks, Options{Applier: r})
	checktest.Same(t, []string{"pre a"}, r.log)
	if err == nil || err.Error() != "update context canceled at 0 of 2" || res.Failure != nil {
		t.Errorf("error %v, failure %v", err, res.Failure)
	}
}
