package kubernetes

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/backend"
)

// pathTo returns the path of one object, or of a subresource of it.
func pathTo(k kind, key types.NamespacedName, subresource ...string) ([]string, error) {
	if err := backend.CheckName(k.resource.Resource, key.Name); err != nil {
		return nil, err
	}
	path, err := pathToAll(k, key.Namespace)
	if err != nil {
		return nil, err
	}
	return slices.Concat(path, []string{key.Name}, subresource), nil
}

// pathToAll returns the path of all objects of a kind, of one namespace if that is
// not empty.
func pathToAll(k kind, namespace string) ([]string, error) {
	path := []string{"/apis", k.resource.Group, k.resource.Version}
	if k.resource.Group == "" {
		path = []string{"/api", k.resource.Version}
	}
	if k.namespaced && namespace != "" {
		if err := backend.CheckNamespace(k.resource.Resource, namespace); err != nil {
			return nil, err
		}
		path = append(path, "namespaces", namespace)
	}
	return append(path, k.resource.Resource), nil
}

// params puts options into a request's query.
func params(r *rest.Request, options runtime.Object) *rest.Request {
	return r.SpecificallyVersionedParams(options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"})
}

// with gives a request a JSON body; a patch's has its own type.
func with(r *rest.Request, body []byte) *rest.Request {
	return r.SetHeader("Content-Type", "application/json").Body(body)
}

// send returns the body of an answer, or the error that the answer says.
func send(ctx context.Context, r *rest.Request) ([]byte, error) {
	result := r.SetHeader("Accept", "application/json").Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// object sends a request whose answer must be the object that key names.
func object(ctx context.Context, r *rest.Request, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	raw, err := send(ctx, r)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &u.Object); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %w", gvk.Kind, key.Name, ErrAnswer, err)
	}
	if err := backend.Same(u, gvk, key); err != nil {
		return nil, err
	}
	return u, nil
}
