package disruption

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Stays reports whether a drain leaves a pod alone: those of an existing DaemonSet,
// which would return, and mirrors of static pods. All others go, also those whose
// local data is lost and those that no controller creates again. exists reports
// whether a DaemonSet does; an error of it is returned, and such a drain must not
// start.
func Stays(p *corev1.Pod, exists func(daemonSet types.NamespacedName) (bool, error)) (bool, error) {
	finished := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	c := metav1.GetControllerOfNoCopy(p)
	if !finished && c != nil && c.Kind == "DaemonSet" && c.APIVersion == appsv1.SchemeGroupVersion.String() {
		stays, err := exists(types.NamespacedName{Namespace: p.Namespace, Name: c.Name})
		if err != nil || stays {
			return stays, err
		}
	}
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror, nil
}
