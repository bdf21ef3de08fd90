package kubernetes

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// List implements [clusterapi.Reader].
func (c *cluster) List(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	var out *unstructured.UnstructuredList
	err := c.on(ctx, gvk, opts.Namespace, func(client dynamic.ResourceInterface, _ kind) (err error) {
		out, err = c.pages(ctx, client, gvk, opts)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// selection is what of opts the server selects by.
func selection(opts clusterapi.ListOptions) metav1.ListOptions {
	var out metav1.ListOptions
	if opts.Labels != nil {
		out.LabelSelector = opts.Labels.String()
	}
	if opts.NodeName != "" {
		out.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", opts.NodeName).String()
	}
	return out
}

// pages gets all pages of a list, sorted. All are of one state of the cluster,
// which the server keeps for some minutes; where it has given that up before
// the last page, the list is got anew in one piece.
func (c *cluster) pages(ctx context.Context, client dynamic.ResourceInterface, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	request := selection(opts)
	request.Limit = c.o.PageSize
	if opts.Limit > 0 {
		request.Limit = min(request.Limit, int64(opts.Limit)+1)
	}
	var all *unstructured.UnstructuredList
	for {
		page, err := client.List(ctx, request)
		if apierrors.IsResourceExpired(err) && request.Continue != "" {
			request.Continue, request.Limit, all = "", 0, nil
			continue
		}
		if err != nil {
			return nil, err
		}
		next := page.GetContinue()
		if all == nil {
			all = page
		} else {
			all.Items = append(all.Items, page.Items...)
			all.SetResourceVersion(page.GetResourceVersion())
		}
		if opts.Limit > 0 && len(all.Items) > opts.Limit {
			return nil, &clusterapi.LimitError{GVK: gvk, Limit: opts.Limit}
		}
		if next == "" {
			break
		}
		request.Continue = next
	}
	all.SetContinue("")
	all.SetRemainingItemCount(nil)
	for i := range all.Items {
		// A list of an API service need not repeat the kind in its items.
		all.Items[i].SetGroupVersionKind(gvk)
	}
	slices.SortFunc(all.Items, func(a, b unstructured.Unstructured) int {
		return compareKeys(clusterapi.KeyOf(&a), clusterapi.KeyOf(&b))
	})
	return all, nil
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
