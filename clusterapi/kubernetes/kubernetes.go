package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Options are the options of [New]. The zero value works.
type Options struct {
	// PageSize is the number of objects that one request of a list asks for; 0
	// means 500.
	PageSize int64
	// UserAgent names the program to the API server; empty means that of the
	// configuration, and client-go's default where that has none.
	UserAgent string
	// Logger gets the warnings that an API server sends along with its answers,
	// and the faults that watches recover from; nil means no logging.
	Logger *slog.Logger
	// Clock is the time that a watch waits by after a fault; nil means the real
	// one.
	Clock clock.Clock
}

// New returns the cluster that a configuration points to. It sends nothing
// yet. The result is a [clusterapi.Watcher] as well, and is safe for
// concurrent use.
//
// The configuration is not changed. Of its fields these have no effect: QPS,
// Burst and RateLimiter, since requests are not limited here but by the API
// server's priority and fairness; the warning handlers, in whose place
// Options.Logger stands; and all that has to do with content types. A Timeout
// ends watches, too, which then go on in a new request.
func New(config *rest.Config, o Options) (clusterapi.ClusterAPI, error) {
	if config == nil {
		return nil, errors.New("kubernetes: a configuration is required")
	}
	if o.PageSize < 0 {
		return nil, fmt.Errorf("kubernetes: Options.PageSize is %d, which is negative", o.PageSize)
	}
	if o.PageSize == 0 {
		o.PageSize = 500
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
	config.GroupVersion = nil
	config.APIPath = "/"
	config.QPS, config.Burst, config.RateLimiter = -1, 0, nil
	config.WarningHandler = nil
	config.WarningHandlerWithContext = warnings{o.Logger}
	web, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	client, err := rest.UnversionedRESTClientForConfigAndClient(config, web)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	return &cluster{
		o:       o,
		rest:    client,
		dynamic: dynamic.New(client),
		kinds:   newKinds(client),
	}, nil
}

var (
	_ clusterapi.ClusterAPI = (*cluster)(nil)
	_ clusterapi.Watcher    = (*cluster)(nil)
)

// cluster is a [clusterapi.ClusterAPI] by way of an API server.
type cluster struct {
	o       Options
	rest    rest.Interface
	dynamic dynamic.Interface
	kinds   *kinds
}

// on calls do with the client for the objects of a kind in a namespace.
//
// An API server says 404 both for an object that does not exist and for a kind
// that it does not serve any more, since its definition was deleted or
// replaced. The latter answer makes the kind be looked up anew.
func (c *cluster) on(ctx context.Context, gvk schema.GroupVersionKind, namespace string, do func(dynamic.ResourceInterface, kind) error) error {
	k, err := c.kinds.find(ctx, gvk)
	if err != nil {
		return err
	}
	err = do(c.client(k, namespace), k)
	if !isUnserved(err) {
		return err
	}
	again, lookup := c.kinds.refresh(ctx, gvk, k)
	switch {
	case lookup != nil:
		return lookup
	case again == k:
		return err // only the subresource is missing
	}
	return do(c.client(again, namespace), again)
}

func (c *cluster) client(k kind, namespace string) dynamic.ResourceInterface {
	resource := c.dynamic.Resource(k.resource)
	if k.namespaced && namespace != "" {
		return resource.Namespace(namespace)
	}
	return resource
}

// one is as on, for a single object, which must have a namespace where its
// kind is namespaced.
func (c *cluster) one(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, do func(dynamic.ResourceInterface, kind) error) error {
	return c.on(ctx, gvk, key.Namespace, func(client dynamic.ResourceInterface, k kind) error {
		if k.namespaced && key.Namespace == "" {
			return badRequest("%s %s: the kind is namespaced, and no namespace is given", gvk.Kind, key.Name)
		}
		return do(client, k)
	})
}

// Get implements [clusterapi.Reader].
func (c *cluster) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	var out *unstructured.Unstructured
	err := c.one(ctx, gvk, key, func(client dynamic.ResourceInterface, _ kind) (err error) {
		out, err = client.Get(ctx, key.Name, metav1.GetOptions{})
		return err
	})
	return only(out, err)
}

// only returns an object or an error, never both.
func only(u *unstructured.Unstructured, err error) (*unstructured.Unstructured, error) {
	if err != nil {
		return nil, err
	}
	return u, nil
}

// warnings hands what an API server warns of to a logger.
type warnings struct{ log *slog.Logger }

func (w warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if code == 299 && text != "" {
		w.log.WarnContext(ctx, "the API server warns", "warning", text)
	}
}
