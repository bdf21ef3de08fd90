package memory_test

import (
	"context"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

func TestSmoke(t *testing.T) {
	ctx := context.Background()
	c := memory.New(memory.Options{})
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "y"}}}}}}
	u, err := clusterapi.ToUnstructured(d)
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.Apply(ctx, u, clusterapi.ApplyOptions{FieldManager: "me"})
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Apply(ctx, u, clusterapi.ApplyOptions{FieldManager: "me"})
	if err != nil {
		t.Fatal(err)
	}
	if first.GetResourceVersion() != again.GetResourceVersion() {
		t.Errorf("moved from %s to %s", first.GetResourceVersion(), again.GetResourceVersion())
	}
	data, _ := first.MarshalJSON()
	t.Logf("%s", data)
	cv, err := clusterapi.Create(ctx, c, &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}, clusterapi.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_ = cv
	got, err := clusterapi.Modify(ctx, c, clusterapi.Key("", "version"), clusterapi.ModifyOptions{Status: true}, func(cv *configv1.ClusterVersion) error {
		cv.Status.History = []configv1.UpdateHistory{{State: configv1.PartialUpdate, Image: "x"}}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(got)
	if err := c.Delete(ctx, appsv1.SchemeGroupVersion.WithKind("Deployment"), clusterapi.Key("b", "a"), clusterapi.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}
