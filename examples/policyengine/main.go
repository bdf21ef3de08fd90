// Command policyengine serves update graphs as the OpenShift Update Service does, and
// shows them in a browser.
//
// Without flags it serves a small sample that is built in, at an address of the
// loopback that it prints; clusters, and the example update, can use it:
//
//	go run ./examples/policyengine -listen 127.0.0.1:8081
//	go run ./examples/update -upstream http://127.0.0.1:8081/api/upgrades_info/v1/graph
//
// With -tree it serves a tree of cincinnati-graph-data, a checkout or an archive, and
// with -releases the releases of a mirror: an OCI layout, a directory of payloads, a file
// of JSON lines or a stored graph. A tree alone does not know releases: they are made up
// by its build suggestions then. A change of the files takes effect within -interval, and
// at once by SIGHUP; while they are wrong the last good graph is served.
//
// The page is at /, what those ask for who run the service (/livez, /readyz, /metrics) at
// an address of its own. With -print it serves nothing, and prints what it would.
//
// The exit code is 0 when a signal ended it or all was printed, 1 when the tree is
// refused, 2 when the command line is wrong, 3 when a file cannot be read or an address is
// not available.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/examples/policyengine/page"
	"github.com/clusterupdate/clusterupdate/examples/policyengine/server"
	"github.com/clusterupdate/clusterupdate/examples/policyengine/source"
	"github.com/clusterupdate/clusterupdate/graph/policyengine"
	"github.com/clusterupdate/clusterupdate/internal/program"
)

func main() { program.Main(command()) }

const prefix = "/api/upgrades_info"

type options struct {
	source.Options
	listen, status    string
	cert, key, format string
	interval          program.Span
	print             bool
}

func command() program.Command {
	o := options{interval: program.Span(10 * time.Second)}
	return program.Command{
		Name:  "policyengine",
		About: "Policyengine serves update graphs to clusters, and shows them in a browser.",
		Codes: "0: a signal ended it, or all was printed; 1: the tree is refused; 3: a file cannot be read, or an address is not available",
		Needs: map[string][]string{
			"approximate": {"releases"}, "arch": {"tree", "releases"}, "tls-cert": {"tls-key"}, "tls-key": {"tls-cert"},
		},
		Excludes: map[string][]string{"print": {"listen", "status", "tls-cert", "interval", "o"}},
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&o.Tree, "tree", "", "`directory` or archive of cincinnati-graph-data (default: a sample that is built in)")
			o.DeclareReleases(f)
			f.Var((*program.List)(&o.Signatures), "signatures", "`place` of signatures besides those in mirrors: a directory or an address; may be repeated")
			f.BoolVar(&o.Approximate, "approximate", false, "make up releases that only channels name, as is done without -releases")
			f.BoolVar(&o.Compat, "compat", false, "read and build as the existing update service does")
			f.StringVar(&o.listen, "listen", "127.0.0.1:0", "`address` to serve at")
			f.StringVar(&o.status, "status", "127.0.0.1:0", "`address` for health and metrics")
			f.StringVar(&o.cert, "tls-cert", "", "`file` of the certificate to serve the graph by TLS")
			f.StringVar(&o.key, "tls-key", "", "`file` of its key")
			f.Var(&o.interval, "interval", "`duration` between two looks for changes")
			f.BoolVar(&o.print, "print", false, "print what would be served")
			program.Format(f, &o.format, "json")
		},
		Run: func(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
			return run(ctx, o, stdout, stderr)
		},
	}
}

// run loads the graph, and prints or serves it.
func run(ctx context.Context, o options, stdout, stderr io.Writer) error {
	from := source.New(o.Options)
	signatures, err := o.OpenSignatures()
	if err != nil {
		return err
	}
	handler, err := policyengine.New(policyengine.Options{
		Prefix: prefix, Mandatory: []string{"channel"}, Compat: o.Compat,
		GraphData: from.GraphData, Signatures: signatures,
	})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	show := func(e clusterapi.Event) {
		if e.Type == policyengine.EventUnchanged {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case o.format == "json":
			json.NewEncoder(stdout).Encode(e)
		case e.Err != nil:
			fmt.Fprintln(stdout, e)
		default:
			load := e.Data.(*policyengine.Load)
			fmt.Fprintf(stdout, "%s: %d releases, revision %s\n", e.Type, load.Nodes, load.Revision)
		}
	}
	refresher, err := policyengine.NewRefresher(handler, policyengine.RefresherOptions{Load: from.Load, Interval: time.Duration(o.interval), Observe: show})
	if err != nil {
		return err
	}
	if err := refresher.Refresh(ctx); err != nil {
		return source.Refused(err)
	}
	if o.print {
		for _, p := range from.Last().Problems {
			fmt.Fprintln(stderr, p)
		}
		return from.Last().WriteText(stdout)
	}
	mux := http.NewServeMux()
	mux.Handle("/", page.New(page.Options{Graph: prefix + "/v1/graph", State: from.Last}))
	mux.Handle(prefix+"/", handler)
	reload := func() {
		e := clusterapi.Event{Type: policyengine.EventChanged, Time: time.Now()}
		e.Err = refresher.Refresh(ctx)
		if e.Err != nil {
			e.Type = policyengine.EventFailed
		}
		e.Data = &policyengine.Load{Nodes: from.Last().Snapshot.Nodes(), Revision: handler.Revision()}
		show(e)
	}
	reload() // nothing has changed, but now there is an observer
	return serve(ctx, o, stdout, reload, refresher.Process(), mux, handler.Status())
}

// serve serves until the context ends, and loads again at intervals and by SIGHUP.
func serve(ctx context.Context, o options, stdout io.Writer, reload func(), process reconcile.Process, public, status http.Handler) error {
	servers, err := server.Listen(
		server.Site{Address: o.listen, Handler: public, Cert: o.cert, Key: o.key},
		server.Site{Address: o.status, Handler: status},
	)
	if err != nil {
		return err
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	fmt.Fprintf(stdout, "page:   %s/\ngraph:  %[1]s%s/v1/graph\nstatus: %s/readyz\n", servers.URLs[0], prefix, servers.URLs[1])
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return servers.Run(ctx) })
	g.Go(func() error { return reconcile.Run(ctx, reconcile.Options{Resync: reconcile.Never}, process) })
	g.Go(func() error {
		for {
			select {
			case <-hangup:
				reload()
			case <-ctx.Done():
				return nil
			}
		}
	})
	return g.Wait()
}
