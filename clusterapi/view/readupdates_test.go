package view_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

// Each view of a recorded cluster is one call, at the time and with the alerts of the
// recording; what it lacks is an issue.
func TestReadUpdates(t *testing.T) {
	for _, tt := range []struct {
		cluster, version, target string
		issues                   []string
	}{
		{"insights-4.7", "4.7.16", "4.7.18", []string{"ClusterVersionOperatorDown"}},
		{"clusters/recommend", "4.14.1", "4.14.2", []string{"FailedToCompletePrecheck", "Progressing"}},
	} {
		t.Run(tt.cluster, func(t *testing.T) {
			dir := filepath.Join(testdata.Dir(t), tt.cluster)
			r := clusterapi.ReadOnly(checktest.Get(dump.Open(t.Context(), os.DirFS(dir), dump.Options{}))(t))
			s := checktest.Get(view.ReadSummary(t.Context(), r))(t)
			checktest.Equal(t, tt.version, s.Version, "version")
			recommend := checktest.Get(view.ReadRecommend(t.Context(), r, view.RecommendOptions{Version: tt.target}))(t)
			var issues []string
			for _, issue := range recommend.Issues {
				issues = append(issues, issue.Name)
			}
			checktest.Same(t, tt.issues, issues)
		})
	}
}

func TestReadUpdatesFails(t *testing.T) {
	empty := memory.New(memory.Options{Lenient: true})
	forbidden := errors.New("forbidden")
	noAlerts := view.RecommendOptions{Alerts: func(context.Context) ([]clusterapi.Alert, error) { return nil, forbidden }}
	_, summary := view.ReadSummary(t.Context(), empty)
	_, recommend := view.ReadRecommend(t.Context(), empty, noAlerts)
	for _, err := range []error{summary, recommend} {
		checktest.ErrorHas(t, "reading the ClusterVersion: ", err)
		if !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
	checktest.Must(clusterapi.Create(t.Context(), empty, healthy(), clusterapi.CreateOptions{}))
	r := checktest.Get(view.ReadRecommend(t.Context(), empty, noAlerts))(t)
	checktest.Same(t, []string{"fetching alerts: forbidden"}, r.PrecheckErrors)
	ctx, cancel := context.WithCancel(t.Context())
	noAlerts.Prechecks = []view.PrecheckFunc{func(context.Context) ([]view.PrecheckCondition, error) { cancel(); return nil, nil }}
	checktest.ErrorIs(t, context.Canceled, checktest.Err(view.ReadRecommend(ctx, empty, noAlerts)))
}
