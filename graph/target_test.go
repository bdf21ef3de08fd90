package graph_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/graph"
)

func TestChooseTarget(t *testing.T) {
	release := func(version, image string) configv1.Release {
		return configv1.Release{Version: version, Image: image}
	}
	update := func(version, status string) configv1.ConditionalUpdate {
		c := configv1.ConditionalUpdate{Release: release(version, "r/x@sha256:"+version)}
		if status != "" {
			c.Conditions = []metav1.Condition{{Type: "Recommended", Status: metav1.ConditionStatus(status), Reason: "R", Message: "m"}}
		}
		return c
	}
	available := []configv1.Release{release("4.9.9", ""), release("4.9.2", "r/x@sha256:2"), release("4.9.10", "r/x@sha256:10"), release("4.9.2", "r/x@sha256:2b"), release("4.9.3", "r/x:three")}
	conditional := []configv1.ConditionalUpdate{update("4.9.11", "False"), update("4.9.12", "Unknown"), update("4.9.13", ""), update("4.9.2", "False"), update("4.9.1", "True")}
	for name, tt := range map[string]struct {
		q              graph.TargetQuery
		image, version string
		issue          string // status and reason
		err            string
	}{
		"version, the first in the list":     {graph.TargetQuery{Version: "4.9.2"}, "r/x@sha256:2", "4.9.2", "", ""},
		"version, recommended first":         {graph.TargetQuery{Version: "4.9.2", AllowNotRecommended: true}, "r/x@sha256:2", "4.9.2", "", ""},
		"version without an image":           {q: graph.TargetQuery{Version: "4.9.9"}, err: "no such update: 4.9.9 is not one of the possible targets: 4.9.10, 4.9.9, 4.9.3, 4.9.2, 4.9.2"},
		"version not recommended":            {q: graph.TargetQuery{Version: "4.9.11"}, err: "the update 4.9.11 is not one of the recommended updates, but is available as a conditional update: Recommended=False: R: m"},
		"version not recommended, allowed":   {graph.TargetQuery{Version: "4.9.11", AllowNotRecommended: true}, "r/x@sha256:4.9.11", "4.9.11", "False R", ""},
		"version not judged":                 {q: graph.TargetQuery{Version: "4.9.13"}, err: "the update 4.9.13 is not one of the recommended updates, but is available as a conditional update: Recommended=Unknown: NoConditions: The conditional update to 4.9.13 has not been judged yet."},
		"image":                              {graph.TargetQuery{Image: "r/x@sha256:10"}, "r/x@sha256:10", "4.9.10", "", ""},
		"image, elsewhere":                   {graph.TargetQuery{Image: "mirror/y@sha256:10"}, "mirror/y@sha256:10", "4.9.10", "", ""},
		"image before version":               {graph.TargetQuery{Image: "r/x@sha256:10", Version: "4.9.2"}, "r/x@sha256:10", "4.9.10", "", ""},
		"tag":                                {graph.TargetQuery{Image: "r/x:three"}, "r/x:three", "4.9.3", "", ""},
		"tag elsewhere":                      {q: graph.TargetQuery{Image: "mirror/x:three"}, err: "no such update: mirror/x:three is not one of the possible targets: 4.9.10, 4.9.9, 4.9.3, 4.9.2, 4.9.2"},
		"image not recommended":              {q: graph.TargetQuery{Image: "m@sha256:4.9.12"}, err: "the update 4.9.12 is not one of the recommended updates, but is available as a conditional update: Recommended=Unknown: R: m"},
		"latest":                             {graph.TargetQuery{Latest: true}, "r/x@sha256:10", "4.9.10", "", ""},
		"latest of all":                      {graph.TargetQuery{Latest: true, AllowNotRecommended: true}, "r/x@sha256:4.9.13", "4.9.13", "Unknown NoConditions", ""},
		"nothing asked for":                  {q: graph.TargetQuery{}, err: "no such update: neither an image, nor a version, nor the latest is asked for"},
		"neither listed":                     {q: graph.TargetQuery{Version: "4.8.0", AllowNotRecommended: true}, err: "no such update: 4.8.0 is not one of the possible targets: 4.9.13, 4.9.12, 4.9.11, 4.9.10, 4.9.9, 4.9.3, 4.9.2, 4.9.2, 4.9.2"},
		"recommended, though not among them": {q: graph.TargetQuery{Version: "4.9.1"}, err: "no such update: 4.9.1 is not one of the possible targets: 4.9.10, 4.9.9, 4.9.3, 4.9.2, 4.9.2"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.q.Desired = &configv1.Update{Force: true, AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}}
			got, issue, err := graph.ChooseTarget(available, conditional, tt.q)
			text := ""
			if issue != nil {
				text = string(issue.Status) + " " + issue.Reason
			}
			if tt.err != "" {
				var refused *graph.NotRecommendedError
				if err == nil || err.Error() != tt.err || got != nil || errors.As(err, &refused) == errors.Is(err, graph.ErrNoTarget) {
					t.Errorf("%+v, %v, want %s", got, err, tt.err)
				}
				return
			}
			want := &configv1.Update{Version: tt.version, Image: tt.image, AcceptRisks: tt.q.Desired.AcceptRisks}
			if diff := cmp.Diff(want, got); diff != "" || err != nil || text != tt.issue {
				t.Errorf("%s (%s), %v", diff, text, err)
			}
		})
	}
	for _, lists := range [][]configv1.ConditionalUpdate{nil, {update("4.9.1", "False")}} {
		if _, _, err := graph.ChooseTarget(nil, lists, graph.TargetQuery{Latest: true}); err == nil || err.Error() != "no such update: no update is recommended" {
			t.Error(err)
		}
	}
}
