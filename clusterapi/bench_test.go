package clusterapi_test

import (
	"fmt"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// BenchmarkModify changes one condition of a ClusterVersion, and begins an
// entry, with a history of growing length.
func BenchmarkModify(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
			cv.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: "Available", Status: "True"}, {Type: "Progressing", Status: "False"}}
			for i := range n {
				cv.Status.History = append(cv.Status.History, configv1.UpdateHistory{
					State: configv1.CompletedUpdate, Image: fmt.Sprint(i), Version: fmt.Sprintf("4.18.%d", i),
					StartedTime: metav1.NewTime(time.Unix(int64(i), 0)),
				})
			}
			u := checktest.Get(clusterapi.ToUnstructured(cv))(b)
			b.ReportAllocs()
			for b.Loop() {
				api := &fake{obj: u}
				checktest.OK(b, checktest.Err(
					clusterapi.Modify(b.Context(), api, clusterapi.Key("", "version"),
						clusterapi.ModifyOptions{Status: true}, func(cv *configv1.ClusterVersion) error {
							cv.Status.Conditions[1].Status = "True"
							cv.Status.History = append([]configv1.UpdateHistory{{State: configv1.PartialUpdate, Image: "new"}}, cv.Status.History...)
							return nil
						})))
			}
		})
	}
}
