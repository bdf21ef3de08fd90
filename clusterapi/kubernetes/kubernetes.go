package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/backend"
)

// Options are the options of [New]. The zero value works.
type Options struct {
	// PageSize is the number of objects that one request of a list asks for; 0
	// means 500.
	PageSize int64
	// UserAgent names the program to the API server; empty means the
	// configuration's, and client-go's default if that has none.
	UserAgent string
	// Logger gets the warnings that an API server sends along with its answers,
	// and the faults that watches recover from; nil means no logging.
	Logger *slog.Logger
	// Clock is the time that a watch waits by after a fault, and by which files
	// with certificates are read again; nil means the real one.
	Clock clock.Clock
	// Limits bound what is taken from the server.
	Limits Limits
	// DryRun sends dryRun=All with every write: the server admits, defaults,
	// merges and validates it, answers as it would otherwise, and stores
	// nothing. False means that writes are stored. Each write is tried by itself: an
	// object in a namespace, or of a kind, that an earlier write would have made is
	// refused. The resourceVersion of an answer is the present object's, and empty for
	// a new one, whose UID is made up. The server refuses a write if a webhook has side
	// effects that it may not leave out. The permissions needed are those of the write.
	DryRun bool
}

// New returns the cluster that a configuration points to. It sends nothing
// yet. [Cluster.Close] ends its connections.
//
// The configuration is not changed. Of its fields these have no effect: QPS, Burst
// and RateLimiter, since requests are not limited here but by the API server's
// priority and fairness; the warning handlers, in whose place Options.Logger
// stands; and all that has to do with content types. A Timeout ends watches, too,
// which then continue in a new request. Without one, a call lasts as long as its
// context and the server let it.
func New(config *rest.Config, o Options) (*Cluster, error) {
	if config == nil {
		return nil, errors.New("kubernetes: a configuration is required")
	}
	if o.PageSize < 0 {
		return nil, fmt.Errorf("kubernetes: Options.PageSize is %d, which is negative", o.PageSize)
	}
	if o.PageSize == 0 {
		o.PageSize = 500
	}
	if err := o.Limits.complete(); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.UserAgent != "" {
		config = rest.CopyConfig(config)
		config.UserAgent = o.UserAgent
	}
	config = dynamic.ConfigFor(config) // a copy
	config.AcceptContentTypes = "application/json"
	config.ContentType = "application/json"
	config.GroupVersion = nil
	config.APIPath = "/"
	config.QPS, config.Burst, config.RateLimiter = -1, 0, nil
	config.WarningHandler = nil
	config.WarningHandlerWithContext = warnings{o.Logger}
	web, disconnect, err := newHTTPClient(config, o)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	client, err := rest.UnversionedRESTClientForConfigAndClient(config, web)
	if err != nil {
		disconnect()
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	c := &Cluster{o: o, rest: client, disconnect: disconnect}
	c.life, c.end = context.WithCancel(context.Background())
	c.kinds = newKinds(client, c.life)
	return c, nil
}

var (
	_ clusterapi.ClusterAPI = (*Cluster)(nil)
	_ clusterapi.Watcher    = (*Cluster)(nil)
	_ io.Closer             = (*Cluster)(nil)
)

// Cluster is a [clusterapi.ClusterAPI] and a [clusterapi.Watcher] by way of an
// API server: see [New]. It is safe for concurrent use.
type Cluster struct {
	o          Options
	rest       rest.Interface
	kinds      *kinds
	disconnect func()

	life context.Context // ends with Close
	end  context.CancelFunc
}

// Close ends all calls and watches that are in progress, and all connections;
// those of a Transport that the configuration brought along stay. Calls
// that end by it, and later ones, return [ErrClosed]. Close may be called more
// than once, and always returns nil.
func (c *Cluster) Close() error {
	c.end()
	c.disconnect()
	return nil
}

// call runs do with a context that ends with the cluster's, too.
func (c *Cluster) call(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.life, func() { cancel(ErrClosed) })()
	if c.life.Err() != nil {
		return ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err := do(ctx)
	var answer apierrors.APIStatus
	if err != nil && c.life.Err() != nil && !errors.As(err, &answer) {
		return ErrClosed // whichever of its consequences was seen first
	}
	return err
}

// on calls do with how the server serves a kind.
//
// An API server says 404 both for an object that does not exist and for a kind
// that it does not serve any more, since its definition was deleted or
// replaced. The latter answer makes the kind be looked up again.
func (c *Cluster) on(ctx context.Context, gvk schema.GroupVersionKind, do func(context.Context, kind) error) error {
	return c.call(ctx, func(ctx context.Context) error {
		k, err := c.kinds.find(ctx, gvk)
		if err != nil {
			return err
		}
		err = do(ctx, k)
		if !backend.IsUnserved(err) {
			return err
		}
		again, lookup := c.kinds.refresh(ctx, gvk, k)
		switch {
		case lookup != nil:
			return lookup
		case again == k:
			return err // only the subresource is missing
		}
		return do(ctx, again)
	})
}

// one is as on, for a single object, which must have a namespace where its kind is
// namespaced. do gets the key without a namespace if it is not.
func (c *Cluster) one(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, do func(context.Context, kind, types.NamespacedName) error) error {
	return c.on(ctx, gvk, func(ctx context.Context, k kind) error {
		key := key
		if k.namespaced && key.Namespace == "" {
			return backend.BadRequest("%s %s: the kind is namespaced, and no namespace is given", gvk.Kind, key.Name)
		}
		if !k.namespaced {
			key.Namespace = ""
		}
		return do(ctx, k, key)
	})
}

// Get implements [clusterapi.Reader].
func (c *Cluster) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (out *unstructured.Unstructured, err error) {
	err = c.one(ctx, gvk, key, func(ctx context.Context, k kind, key types.NamespacedName) error {
		path, err := pathTo(k, key)
		if err != nil {
			return err
		}
		out, err = object(ctx, c.rest.Get().AbsPath(path...), gvk, key)
		return err
	})
	return out, err
}

// List implements [clusterapi.Reader].
func (c *Cluster) List(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (out *unstructured.UnstructuredList, err error) {
	out, _, err = c.list(ctx, gvk, opts)
	return out, err
}

// list also returns the size of the answer in bytes.
func (c *Cluster) list(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (out *unstructured.UnstructuredList, size int64, err error) {
	b := newBudget("List", c.o.Limits.List)
	err = c.on(within(ctx, b), gvk, func(ctx context.Context, k kind) error {
		path, err := pathToAll(k, opts.Namespace)
		if err != nil {
			return err
		}
		out, err = backend.Pages(ctx, gvk, opts, c.o.PageSize, func(ctx context.Context, request metav1.ListOptions) (*unstructured.UnstructuredList, error) {
			if request.Continue == "" {
				b.left = b.max // from the start, perhaps again
			}
			raw, err := send(ctx, params(c.rest.Get().AbsPath(path...), &request))
			if err != nil {
				return nil, err
			}
			return backend.Page(raw, gvk)
		})
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return out, b.max - b.left, nil
}

// Watch implements [clusterapi.Watcher].
//
// The first list decides whether there is anything to watch: its error ends
// the sequence. After that, faults of the network and of the server are waited
// out, for as long as ctx lasts; errors that say that the request itself has
// become impossible, since the kind or the permission is gone, end it, and so
// does an answer that is too large or not what was asked for.
func (c *Cluster) Watch(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) iter.Seq2[clusterapi.WatchEvent, error] {
	opts.Limit = 0
	return func(yield func(clusterapi.WatchEvent, error) bool) {
		stopped := false
		err := c.call(ctx, func(ctx context.Context) error {
			for e, err := range backend.Watch(ctx, c.source(gvk, opts), gvk, opts) {
				if err != nil {
					return err
				}
				stopped = !yield(e, nil)
				if stopped {
					return nil
				}
			}
			return context.Cause(ctx)
		})
		if !stopped && err != nil && ctx.Err() == nil {
			yield(clusterapi.WatchEvent{}, err)
		}
	}
}

func (c *Cluster) source(gvk schema.GroupVersionKind, opts clusterapi.ListOptions) backend.Source {
	return backend.Source{
		List: func(ctx context.Context) (*unstructured.UnstructuredList, int64, error) {
			return c.list(ctx, gvk, opts)
		},
		Follow: func(ctx context.Context, request metav1.ListOptions, do func(watch.EventType, *unstructured.Unstructured, int64) error) error {
			return c.on(ctx, gvk, func(ctx context.Context, k kind) error {
				return c.follow(ctx, gvk, k, opts.Namespace, request, do)
			})
		},
		Limit:  c.o.Limits.List,
		Logger: c.o.Logger,
		Clock:  c.o.Clock,
	}
}

// follow reads the events of one watch.
func (c *Cluster) follow(ctx context.Context, gvk schema.GroupVersionKind, k kind, namespace string, request metav1.ListOptions, do func(watch.EventType, *unstructured.Unstructured, int64) error) error {
	path, err := pathToAll(k, namespace)
	if err != nil {
		return err
	}
	request.Watch = true
	b := newBudget("Object", c.o.Limits.Object)
	stream, err := params(c.rest.Get().AbsPath(path...), &request).Stream(within(ctx, b))
	if err != nil {
		return err
	}
	defer stream.Close()
	decoder := json.NewDecoder(stream)
	for {
		b.left = b.max // for each event
		var e map[string]json.RawMessage
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("watch of %s: %w", gvk.Kind, err)
		}
		var t watch.EventType
		u := &unstructured.Unstructured{}
		if err := errors.Join(utiljson.Unmarshal(e["type"], &t), utiljson.Unmarshal(e["object"], &u.Object)); err != nil {
			return fmt.Errorf("watch of %s: %w: an event that is none: %w", gvk.Kind, ErrAnswer, err)
		}
		if t == watch.Error {
			var status metav1.Status
			if err := utiljson.Unmarshal(e["object"], &status); err != nil {
				return fmt.Errorf("watch of %s: %w", gvk.Kind, err)
			}
			return apierrors.FromObject(&status)
		}
		if err := do(t, u, int64(len(e["object"]))); err != nil {
			return err
		}
	}
}

// warnings hands what an API server warns of to a logger.
type warnings struct{ log *slog.Logger }

func (w warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if code == 299 && text != "" {
		w.log.WarnContext(ctx, "the API server warns", "warning", text)
	}
}
