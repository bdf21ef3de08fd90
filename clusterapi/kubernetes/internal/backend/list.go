package backend

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Selection is the part of opts that the server selects by.
func Selection(opts clusterapi.ListOptions) metav1.ListOptions {
	var out metav1.ListOptions
	if opts.Labels != nil {
		out.LabelSelector = opts.Labels.String()
	}
	if opts.NodeName != "" {
		out.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", opts.NodeName).String()
	}
	return out
}

// Pages gets all pages of a list by a function that gets one, checks that each item
// was asked for, and sorts them. All pages are of one state of the cluster, which
// the server keeps for some minutes; if it has given that up before the last page,
// the list is got again in one piece.
func Pages(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions, size int64, get func(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error)) (*unstructured.UnstructuredList, error) {
	request := Selection(opts)
	request.Limit = size
	if opts.Limit > 0 {
		request.Limit = min(request.Limit, int64(opts.Limit)+1)
	}
	var all *unstructured.UnstructuredList
	for {
		page, err := get(ctx, request)
		if apierrors.IsResourceExpired(err) && request.Continue != "" {
			request.Continue, request.Limit, all = "", 0, nil
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			u := &page.Items[i]
			if err := selected(u, gvk, opts); err != nil {
				return nil, err
			}
			if err := matches(u, gvk, opts); err != nil {
				return nil, err
			}
		}
		next := page.GetContinue()
		if next != "" && next == request.Continue {
			return nil, wrongAnswer("a page of a list of %s says that it is followed by itself", gvk.Kind)
		}
		if all == nil {
			all = page
		} else {
			all.Items = append(all.Items, page.Items...)
			all.SetResourceVersion(page.GetResourceVersion())
		}
		if opts.Limit > 0 && len(all.Items) > opts.Limit {
			return nil, opts.Exceeded(gvk)
		}
		if next == "" {
			break
		}
		request.Continue = next
	}
	all.SetContinue("")
	all.SetRemainingItemCount(nil)
	slices.SortFunc(all.Items, func(a, b unstructured.Unstructured) int {
		return compareKeys(clusterapi.KeyOf(&a), clusterapi.KeyOf(&b))
	})
	for i := 1; i < len(all.Items); i++ {
		if key := clusterapi.KeyOf(&all.Items[i]); key == clusterapi.KeyOf(&all.Items[i-1]) {
			return nil, wrongAnswer("a list of %s has %s twice", gvk.Kind, quote(key.String()))
		}
	}
	return all, nil
}

// SameList returns an error unless a list reports that it is one. What the kind of
// a list is called is for its definition to say.
func SameList(list *unstructured.UnstructuredList, gvk schema.GroupVersionKind) error {
	if kind := list.GetKind(); kind == "" || kind == "Status" || kind == gvk.Kind {
		return wrongAnswer("kind %s of %s, not a list of %s", quote(kind), quote(list.GetAPIVersion()), gvk.Kind)
	}
	return nil
}

// Page parses one page of a list. An answer without items is not a list, which
// is not the same as an empty one.
func Page(raw []byte, gvk schema.GroupVersionKind) (*unstructured.UnstructuredList, error) {
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("list of %s: %w: %w", gvk.Kind, ErrAnswer, err)
	}
	out := &unstructured.UnstructuredList{Object: m}
	if err := SameList(out, gvk); err != nil {
		return nil, err
	}
	value, ok := m["items"]
	items, isList := value.([]any)
	if !ok || !isList && value != nil {
		return nil, wrongAnswer("kind %s without items, not a list of %s", quote(out.GetKind()), gvk.Kind)
	}
	delete(m, "items")
	out.Items = make([]unstructured.Unstructured, len(items))
	for i, item := range items {
		out.Items[i].Object, _ = item.(map[string]any)
	}
	return out, nil
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
