package dump_test

import (
	"errors"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// A fork of a recording takes writes of kinds that were not collected: what is
// written is known, and nothing else of the kind.
func TestForkOfWhatWasNotCollected(t *testing.T) {
	r, err := dump.Open(t.Context(), fstest.MapFS{"node.yaml": {Data: []byte(nodeNamed("a"))}}, dump.Options{})
	checktest.OK(t, err)
	fork := memory.New(memory.Options{Base: r})
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}}
	checktest.Must(clusterapi.Create(t.Context(), fork, cm, clusterapi.CreateOptions{}))
	checktest.Good(t, checktest.Err(clusterapi.Get[corev1.ConfigMap](t.Context(), fork, clusterapi.Key("n", "c"))))
	checktest.ErrorIs(t, clusterapi.ErrNotCollected, checktest.Err(
		clusterapi.Get[corev1.ConfigMap](t.Context(), fork, clusterapi.Key("n", "d"))))
	all, err := clusterapi.List[corev1.ConfigMap](t.Context(), fork, clusterapi.ListOptions{})
	checktest.FailIf(t, len(all) != 1 || !errors.Is(err, clusterapi.ErrNotCollected), "%d, %v", len(all), err)
	nodes, err := clusterapi.List[corev1.Node](t.Context(), fork, clusterapi.ListOptions{})
	checktest.FailIf(t, len(nodes) != 1 || err != nil, "%d nodes, %v", len(nodes), err)
	checktest.ErrorIs(t, clusterapi.ErrNotCollected, checktest.Err(
		r.Get(t.Context(), corev1.SchemeGroupVersion.WithKind("ConfigMap"), clusterapi.Key("n", "c"))))
}
