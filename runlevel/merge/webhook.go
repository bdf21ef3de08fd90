package merge

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// annotationInjectCA on an object in the cluster says that the service-ca operator
// writes its CA bundles, so that a manifest, which cannot know them, must not.
const annotationInjectCA = "service.beta.openshift.io/inject-cabundle"

const webhookPort = 443

func webhookDefaults(c *admissionv1.ValidatingWebhookConfiguration) {
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		setPointer(&w.FailurePolicy, admissionv1.Fail)
		setPointer(&w.MatchPolicy, admissionv1.Equivalent)
		setPointer(&w.NamespaceSelector, metav1.LabelSelector{})
		setPointer(&w.ObjectSelector, metav1.LabelSelector{})
		setPointer(&w.TimeoutSeconds, 10)
		for j := range w.Rules {
			setPointer(&w.Rules[j].Scope, admissionv1.AllScopes)
		}
		if s := w.ClientConfig.Service; s != nil {
			setPointer(&s.Port, webhookPort)
		}
	}
}

func webhooks(existing, required *admissionv1.ValidatingWebhookConfiguration) error {
	if existing.Annotations[annotationInjectCA] == "true" && len(existing.Webhooks) > 0 {
		for i := range required.Webhooks {
			required.Webhooks[i].ClientConfig.CABundle = existing.Webhooks[0].ClientConfig.CABundle
		}
	}
	existing.Webhooks = required.Webhooks
	return nil
}
