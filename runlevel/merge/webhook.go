package merge

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// annotationInjectCA on an object in the cluster reports that the service-ca
// operator writes its CA bundles, so that a manifest, which cannot know them, must
// not.
const annotationInjectCA = "service.beta.openshift.io/inject-cabundle"

func webhooks(existing, required *admissionv1.ValidatingWebhookConfiguration) error {
	if existing.Annotations[annotationInjectCA] == "true" && len(existing.Webhooks) > 0 {
		for i := range required.Webhooks {
			required.Webhooks[i].ClientConfig.CABundle = existing.Webhooks[0].ClientConfig.CABundle
		}
	}
	existing.Webhooks = required.Webhooks
	return nil
}
