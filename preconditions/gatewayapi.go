package preconditions

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

func gatewayAPICheck() Check {
	return documented{Rule{
		Name: "GatewayAPI", Scope: Scope{Crossing: "4.19"}, Severities: []Severity{Warning, Blocking},
		Source: "Preparing to update a cluster, Gateway API management", Link: docsPreparing,
		Reads: []schema.GroupVersionKind{crdKind, gvkOf[corev1.ConfigMap]()},
	}, gatewayAPI}
}

const (
	gatewayGroup             = "gateway.networking.k8s.io"
	gatewayExperimentalGroup = "gateway.networking.x-k8s.io"
	gatewayAck               = "ack-4.18-gateway-api-management-in-4.19"
	gatewayBundle            = "v1.2.0"
	gatewayChannel           = "standard"
)

// gatewayAPI: from 4.19 on the ingress operator manages the definitions of the
// Gateway API. Those that somebody else has installed are taken over, and all
// others are not supported beside them.
func gatewayAPI(ctx context.Context, in *Input) ([]Finding, error) {
	crds, err := clusterapi.ListShared(ctx, in.Reader, crdKind, clusterapi.ListOptions{})
	err = optionalAPI(err, "CustomResourceDefinitions")
	var all, odd []Object
	for _, crd := range crds {
		u := crd.Unstructured()
		group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
		if group != gatewayGroup && group != gatewayExperimentalGroup {
			continue
		}
		o := Object{GVK: crdKind, Name: u.GetName()}
		all = append(all, o)
		if o.Note = oddGateway(u.GetName(), u.GetAnnotations()); o.Note != "" {
			odd = append(odd, o)
		}
	}
	sortObjects(all)
	sortObjects(odd)
	var findings []Finding
	if len(all) > 0 {
		acks, ackErr := clusterapi.Read[corev1.ConfigMap](ctx, in.Reader, clusterapi.Key(acksNamespace, acksName))
		switch {
		case ackErr != nil && !apierrors.IsNotFound(ackErr):
			err = joinErrors(err, ackErr)
		case acks == nil || acks.Data[gatewayAck] != "true":
			findings = append(findings, newFinding(Blocking, "GatewayAPICRDs", "The cluster has definitions of the Gateway API, which the target manages itself", all,
				"Remove them, or acknowledge that they are taken over: "+Gate{Key: gatewayAck}.Acknowledge()))
		}
	}
	if len(odd) > 0 {
		findings = append(findings, newFinding(Warning, "GatewayAPICRDsDiffer",
			fmt.Sprintf("Definitions of the Gateway API are not those of the %s channel of %s, which the target has", gatewayChannel, gatewayBundle), odd,
			"Bring them to that release, and remove what it does not have"))
	}
	return findings, err
}

// oddGateway says how a definition differs from those that the target has; empty: it
// is one of them.
func oddGateway(name string, annotations map[string]string) string {
	standard := []string{"gatewayclasses", "gateways", "grpcroutes", "httproutes", "referencegrants"}
	if !slices.ContainsFunc(standard, func(plural string) bool { return name == plural+"."+gatewayGroup }) {
		return "not of the standard set"
	}
	version, channel := annotations[gatewayGroup+"/bundle-version"], annotations[gatewayGroup+"/channel"]
	if version == gatewayBundle && channel == gatewayChannel {
		return ""
	}
	return fmt.Sprintf("bundle-version %q, channel %q", version, channel)
}
