package clusterapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

// A call is one verb on the wire: what its method is passed. Selectors travel
// as text.
type call struct {
	Verb   string
	GVK    schema.GroupVersionKind
	Key    types.NamespacedName
	Object map[string]any
	List   clusterapi.ListOptions
	Labels *string
	Delete clusterapi.DeleteOptions
	Evict  clusterapi.EvictOptions
	Name   string // of the field manager
}

// An answer is an object, the items of a list, one event of a watch, or an
// error.
type answer struct {
	Object map[string]any
	Items  []map[string]any
	Type   clusterapi.WatchEventType
	Err    []byte
}

// forwarder is a [clusterapi.ClusterAPI] and [clusterapi.Watcher] at the other
// end of an HTTP connection.
type forwarder struct {
	url    string
	client *http.Client
}

// send starts a call. The caller closes the body.
func (f forwarder) send(ctx context.Context, c call) (io.ReadCloser, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := f.client.Do(request)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// do makes a call with one answer.
func (f forwarder) do(ctx context.Context, c call) (answer, error) {
	body, err := f.send(ctx, c)
	if err != nil {
		return answer{}, err
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		return answer{}, err
	}
	return decodeAnswer(data)
}

// decodeAnswer keeps integers integers, which encoding/json would not.
func decodeAnswer(data []byte) (a answer, err error) {
	if err := utiljson.Unmarshal(data, &a); err != nil {
		return answer{}, err
	}
	for _, object := range append(a.Items, a.Object) {
		if err := utiljson.ConvertMapNumbers(object, 0); err != nil {
			return answer{}, err
		}
	}
	if len(a.Err) > 0 {
		return answer{}, clusterapi.DecodeError(a.Err)
	}
	return a, nil
}

func (f forwarder) object(ctx context.Context, c call) (*unstructured.Unstructured, error) {
	a, err := f.do(ctx, c)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: a.Object}, nil
}

func (f forwarder) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	return f.object(ctx, call{Verb: "Get", GVK: gvk, Key: key})
}

func (f forwarder) List(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	a, err := f.do(ctx, listCall("List", gvk, o))
	if err != nil {
		return nil, err
	}
	l := &unstructured.UnstructuredList{}
	for _, item := range a.Items {
		l.Items = append(l.Items, unstructured.Unstructured{Object: item})
	}
	return l, nil
}

func listCall(verb string, gvk schema.GroupVersionKind, o clusterapi.ListOptions) call {
	c := call{Verb: verb, GVK: gvk, List: o}
	if o.Labels != nil {
		c.Labels, c.List.Labels = new(o.Labels.String()), nil
	}
	return c
}

func (f forwarder) Create(ctx context.Context, u *unstructured.Unstructured, o clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	return f.object(ctx, call{Verb: "Create", Object: u.Object, Name: o.FieldManager})
}

func (f forwarder) Apply(ctx context.Context, u *unstructured.Unstructured, o clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	return f.object(ctx, call{Verb: "Apply", Object: u.Object, Name: o.FieldManager})
}

func (f forwarder) Update(ctx context.Context, u *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return f.object(ctx, call{Verb: "Update", Object: u.Object, Name: o.FieldManager})
}

func (f forwarder) UpdateStatus(ctx context.Context, u *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return f.object(ctx, call{Verb: "UpdateStatus", Object: u.Object, Name: o.FieldManager})
}

func (f forwarder) Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, o clusterapi.DeleteOptions) error {
	_, err := f.do(ctx, call{Verb: "Delete", GVK: gvk, Key: key, Delete: o})
	return err
}

func (f forwarder) Evict(ctx context.Context, pod types.NamespacedName, o clusterapi.EvictOptions) error {
	_, err := f.do(ctx, call{Verb: "Evict", Key: pod, Evict: o})
	return err
}

func (f forwarder) Watch(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) iter.Seq2[clusterapi.WatchEvent, error] {
	return func(yield func(clusterapi.WatchEvent, error) bool) {
		body, err := f.send(ctx, listCall("Watch", gvk, o))
		if err == nil {
			defer body.Close()
			lines := json.NewDecoder(body)
			for {
				var line json.RawMessage
				var a answer
				if err = lines.Decode(&line); err != nil {
					break
				}
				if a, err = decodeAnswer(line); err != nil {
					break
				}
				e := clusterapi.WatchEvent{Type: a.Type}
				if a.Object != nil {
					e.Object = &unstructured.Unstructured{Object: a.Object}
				}
				if ctx.Err() != nil || !yield(e, nil) {
					return
				}
			}
		}
		if ctx.Err() == nil { // else the end was wanted
			yield(clusterapi.WatchEvent{}, err)
		}
	}
}

// forwardTo serves a cluster to forwarders.
func forwardTo(api clusterapi.ClusterAPI) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := json.NewEncoder(w)
		c, err := readCall(r.Body)
		if err == nil && c.Verb == "Watch" {
			serveWatch(r.Context(), w, api, c)
			return
		}
		var a answer
		if err == nil {
			a, err = serve(r.Context(), api, c)
		}
		if err != nil {
			a = answer{Err: clusterapi.EncodeError(err)}
		}
		_ = out.Encode(a)
	})
}

func readCall(body io.Reader) (c call, err error) {
	data, err := io.ReadAll(io.LimitReader(body, 16<<20))
	if err != nil {
		return c, err
	}
	if err := utiljson.Unmarshal(data, &c); err != nil {
		return c, err
	}
	if err := utiljson.ConvertMapNumbers(c.Object, 0); err != nil {
		return c, err
	}
	if c.Labels != nil {
		c.List.Labels, err = labels.Parse(*c.Labels)
	}
	return c, err
}

func serve(ctx context.Context, api clusterapi.ClusterAPI, c call) (answer, error) {
	in := &unstructured.Unstructured{Object: c.Object}
	var out *unstructured.Unstructured
	var err error
	switch c.Verb {
	case "Get":
		out, err = api.Get(ctx, c.GVK, c.Key)
	case "List":
		l, err := api.List(ctx, c.GVK, c.List)
		if err != nil {
			return answer{}, err
		}
		var a answer
		for i := range l.Items {
			a.Items = append(a.Items, l.Items[i].Object)
		}
		return a, nil
	case "Create":
		out, err = api.Create(ctx, in, clusterapi.CreateOptions{FieldManager: c.Name})
	case "Apply":
		out, err = api.Apply(ctx, in, clusterapi.ApplyOptions{FieldManager: c.Name})
	case "Update":
		out, err = api.Update(ctx, in, clusterapi.UpdateOptions{FieldManager: c.Name})
	case "UpdateStatus":
		out, err = api.UpdateStatus(ctx, in, clusterapi.UpdateOptions{FieldManager: c.Name})
	case "Delete":
		return answer{}, api.Delete(ctx, c.GVK, c.Key, c.Delete)
	case "Evict":
		return answer{}, api.Evict(ctx, c.Key, c.Evict)
	default:
		err = fmt.Errorf("there is no verb %q", c.Verb)
	}
	if err != nil {
		return answer{}, err
	}
	return answer{Object: out.Object}, nil
}

func serveWatch(ctx context.Context, w http.ResponseWriter, api clusterapi.ClusterAPI, c call) {
	watcher, ok := api.(clusterapi.Watcher)
	if !ok {
		_ = json.NewEncoder(w).Encode(answer{Err: clusterapi.EncodeError(fmt.Errorf("the cluster cannot be watched"))})
		return
	}
	for e, err := range watcher.Watch(ctx, c.GVK, c.List) {
		a := answer{Type: e.Type}
		switch {
		case err != nil:
			a.Err = clusterapi.EncodeError(err)
		case e.Object != nil:
			a.Object = e.Object.Object
		}
		if json.NewEncoder(w).Encode(a) != nil {
			return
		}
		w.(http.Flusher).Flush()
	}
}

// A forwarding backend is as good as what it forwards to.
func TestForwarding(t *testing.T) {
	clusterapitest.Conformance(t, func(t *testing.T) (clusterapi.ClusterAPI, clusterapitest.Capabilities) {
		server := httptest.NewServer(forwardTo(memory.New(memory.Options{CheckNamespaces: true, GracefulPods: true})))
		t.Cleanup(server.Close)
		return forwarder{server.URL, server.Client()}, clusterapitest.Capabilities{Watch: true}
	})
}

// A backend behind HTTP carries its errors by EncodeError and DecodeError.
func ExampleDecodeError() {
	server := httptest.NewServer(forwardTo(cluster()))
	defer server.Close()
	api := forwarder{server.URL, server.Client()}
	_, err := api.Get(context.Background(), schema.GroupVersionKind{Version: "v1", Kind: "Node"}, clusterapi.Key("", "n1"))
	fmt.Println(err)
	// Output: nodes "n1" not found
}
