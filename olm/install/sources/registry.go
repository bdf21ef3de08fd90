package sources

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/operator-framework/operator-registry/pkg/api"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/options"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

// RegistryOptions are those of [NewRegistry].
type RegistryOptions struct {
	// Address is where the registry listens, such as [Address] returns it. Required.
	Address string
	// Dial connects to the address, such as through a port that is forwarded. Nil means by
	// TCP; a proxy of the environment is not used.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// TLS is how the connection is secured. Nil means that it is not, as between OLM and
	// its registries.
	TLS *tls.Config
	// Timeout is how long reading the catalog may take; 0: 5 minutes.
	Timeout time.Duration
	// Refresh is the time after which the registry is asked again; 0: 10 minutes.
	Refresh time.Duration
	// Clock is the time; nil means the real one.
	Clock clock.PassiveClock
	// MaxBundles is the largest number of bundles, each counted in each of its channels;
	// 0: 1,000,000.
	MaxBundles int
	// MaxMessageBytes is the largest bundle or package, in bytes; 0: 4 MiB, which is what
	// OLM accepts.
	MaxMessageBytes int
	// MaxBytes is the largest size of all bundles together, in bytes; 0: 512 MiB.
	MaxBytes int64
}

// LimitError reports which limit was passed. It is plain data: safe for concurrent use.
type LimitError = limit.LimitError

// Address returns where OLM finds the registry of a CatalogSource: the address in its spec,
// the one that OLM has connected to, or else the address of the Service that OLM makes.
func Address(c *olmapi.CatalogSource) string {
	if c.Spec.Address != "" {
		return c.Spec.Address
	}
	if state := c.Status.ConnectionState; state != nil && state.Address != "" {
		return state.Address
	}
	return c.Name + "." + c.Namespace + ".svc:50051"
}

// NewRegistry returns the catalog that a gRPC registry of OLM's serves. Nothing is asked
// yet. The error names an option that is missing or negative, or an invalid address.
//
// Of a package that the registry lists bundles of, but does not find, nothing is
// used: the bundles are among the problems of the catalog. Contents of bundles that have no
// image become properties of type olm.bundle.object.
func NewRegistry(o RegistryOptions) (*Catalog, error) {
	if o.Address == "" {
		return nil, errors.New("sources: RegistryOptions.Address is required")
	}
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	o.Timeout = cmp.Or(o.Timeout, 5*time.Minute)
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, 4<<20)
	secured := insecure.NewCredentials()
	if o.TLS != nil {
		secured = credentials.NewTLS(o.TLS)
	}
	how := []grpc.DialOption{
		grpc.WithTransportCredentials(secured), grpc.WithNoProxy(), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(o.MaxMessageBytes)),
	}
	target := o.Address
	if o.Dial != nil {
		how = append(how, grpc.WithContextDialer(o.Dial))
		target = "passthrough:///" + target // the name may mean something to Dial alone
	}
	conn, err := grpc.NewClient(target, how...)
	if err != nil {
		return nil, fmt.Errorf("registry %s: %w", bounded.Quote(o.Address), err)
	}
	r := &registry{client: api.NewRegistryClient(conn), o: o}
	c := newCatalog(r.read, o.Refresh, o.Clock)
	c.close = conn.Close
	return c, nil
}

type registry struct {
	client api.RegistryClient
	o      RegistryOptions
}

func (r *registry) read(ctx context.Context, _ *catalog.Catalog) (*catalog.Catalog, error) {
	within, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	b, err := r.bundles(within)
	if err == nil {
		err = r.packages(within, b)
	}
	if err == nil {
		return catalog.New(b.blobs()), nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) { // the server may see it first
		end, _ := within.Deadline()
		if own, ok := ctx.Deadline(); ok && !own.After(end) {
			return nil, context.DeadlineExceeded
		}
		err = fmt.Errorf("no whole answer within %v", r.o.Timeout)
	}
	return nil, fmt.Errorf("registry %s: %w", bounded.Quote(r.o.Address), err)
}

// bundles asks for all bundles.
func (r *registry) bundles(ctx context.Context) (*listing, error) {
	stream, err := r.client.ListBundles(ctx, &api.ListBundlesRequest{})
	if err != nil {
		return nil, answer(err)
	}
	count := limit.Meter{Budget: limit.Budget{
		Bytes:   limit.Limit{Max: cmp.Or(r.o.MaxBytes, 512<<20), Name: "MaxBytes", What: "bytes of all bundles"},
		Entries: limit.Limit{Max: int64(cmp.Or(r.o.MaxBundles, 1_000_000)), Name: "MaxBundles", What: "bundles"},
	}}
	b := newListing()
	for {
		bundle, err := stream.Recv()
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing bundles: %w", answer(err))
		}
		if err := count.Spend(limit.Usage{Bytes: int64(proto.Size(bundle)), Entries: 1}); err != nil {
			return nil, err
		}
		if err := b.addBundle(bundle); err != nil {
			return nil, err
		}
	}
}

// packages asks for all packages that bundles name. One that the registry does not find is
// left out; if it finds none, that is an error.
func (r *registry) packages(ctx context.Context, b *listing) error {
	names := b.packageNames()
	packages := make([]*api.Package, len(names))
	missing := make([]error, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i, name := range names {
		group.Go(func() error {
			p, err := r.client.GetPackage(ctx, &api.GetPackageRequest{Name: name})
			if err == nil {
				packages[i] = p
				return nil
			}
			code := status.Code(err)
			err = fmt.Errorf("package %s: %w", bounded.Quote(name), answer(err))
			if code != codes.NotFound && code != codes.Unknown { // operator-registry's own has no code
				return err
			}
			missing[i] = err
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if len(names) > 0 && !slices.Contains(missing, nil) {
		return missing[0]
	}
	for i, p := range packages {
		if p != nil {
			b.addPackage(names[i], p)
		}
	}
	return nil
}

// maxMessage bounds, in bytes, what errors say of a registry's answer.
const maxMessage = 1 << 10

// answer turns a registry's answer into an error.
func answer(err error) error {
	s := status.Convert(err)
	if s.Code() == codes.DeadlineExceeded {
		return context.DeadlineExceeded
	}
	return fmt.Errorf("%s: %s", s.Code(), bounded.Text(s.Message(), maxMessage))
}
