package backend

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// ErrAnswer is in the chain of an error about an answer that is not what was
// asked for.
var ErrAnswer = errors.New("the server's answer is not what was asked for")

// maxText bounds, in bytes, each text of an answer that an error repeats.
const maxText = 300

func wrongAnswer(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrAnswer, fmt.Sprintf(format, args...))
}

// IsUnserved distinguishes a 404 of the path, which the API server does not serve,
// from one of the object.
func IsUnserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

func quote(s string) string { return fmt.Sprintf("%q", bounded.Text(s, maxText)) }

// Same returns an error unless u is the one object that key names. A key
// without a name stands for any object of its namespace.
func Same(u *unstructured.Unstructured, gvk schema.GroupVersionKind, key types.NamespacedName) error {
	want := gvk.Kind + " " + key.String()
	if key.Namespace == "" {
		want = gvk.Kind + " " + key.Name
	}
	switch {
	case u == nil || u.Object == nil:
		return wrongAnswer("no object, not %s", want)
	case u.GroupVersionKind() != gvk:
		return wrongAnswer("kind %s of %s, not %s of %s", quote(u.GetKind()), quote(u.GetAPIVersion()), want, gvk.GroupVersion())
	case u.IsList():
		return wrongAnswer("a list, not %s", want)
	case u.GetName() == "":
		return wrongAnswer("an object without a name, not %s", want)
	case key.Name != "" && u.GetName() != key.Name:
		return wrongAnswer("name %s, not %s", quote(u.GetName()), want)
	case u.GetNamespace() != key.Namespace:
		return wrongAnswer("namespace %s, not %s", quote(u.GetNamespace()), want)
	}
	return nil
}

// selected returns an error unless an item of a list, or an object of a watch, is
// one that was asked for. An item that does not say its kind has the kind of its
// list's items, and gets it.
func selected(u *unstructured.Unstructured, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) error {
	if u.Object == nil {
		return wrongAnswer("a list of %s has an item that is not an object", gvk.Kind)
	}
	if u.GetKind() == "" && u.GetAPIVersion() == "" {
		u.SetGroupVersionKind(gvk)
	}
	namespace := opts.Namespace
	if namespace == "" {
		namespace = u.GetNamespace()
	}
	return Same(u, gvk, types.NamespacedName{Namespace: namespace})
}

// matches returns an error unless an object has the labels and the node that
// were asked for.
func matches(u *unstructured.Unstructured, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) error {
	key := clusterapi.KeyOf(u)
	if opts.Labels != nil && !opts.Labels.Matches(labels.Set(u.GetLabels())) {
		return wrongAnswer("%s %s has not the labels %s", gvk.Kind, quote(key.String()), quote(opts.Labels.String()))
	}
	if opts.NodeName != "" && gvk.Kind == "Pod" && gvk.Group == "" {
		node, _, _ := unstructured.NestedString(u.Object, "spec", "nodeName")
		if node != opts.NodeName {
			return wrongAnswer("%s %s is not of node %s", gvk.Kind, quote(key.String()), quote(opts.NodeName))
		}
	}
	return nil
}
