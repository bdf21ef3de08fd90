package preview

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Object determines which object a change is about. It is plain data.
type Object struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// GroupKind is the kind without its version.
func (o Object) GroupKind() schema.GroupKind { return o.GroupVersionKind.GroupKind() }

// String returns kind, namespace and name, such as
//
//	Deployment openshift-dns/dns
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// objectJSON is the form of an Object in JSON, a reference.
type objectJSON struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// MarshalJSON writes apiVersion, kind, namespace and name.
func (o Object) MarshalJSON() ([]byte, error) {
	return json.Marshal(objectJSON{o.GroupVersion().String(), o.Kind, o.Namespace, o.Name})
}

// UnmarshalJSON reads what MarshalJSON writes. A malformed apiVersion is an error.
func (o *Object) UnmarshalJSON(data []byte) error {
	var j objectJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	gv, err := schema.ParseGroupVersion(j.APIVersion)
	if err != nil {
		return err
	}
	*o = Object{gv.WithKind(j.Kind), types.NamespacedName{Namespace: j.Namespace, Name: j.Name}}
	return nil
}
