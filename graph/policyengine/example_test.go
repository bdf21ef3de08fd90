package policyengine_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"testing/fstest"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/policyengine"
)

// load makes a graph; a program would read a checkout by os.DirFS, and releases
// from a file.
func load(ctx context.Context) (*graphdata.Snapshot, error) {
	tree, err := graphdata.Load(ctx, fstest.MapFS{
		"version":                 {Data: []byte("1.1.0\n")},
		"raw/metadata.json":       {Data: []byte("{}")},
		"channels/fast-4.30.yaml": {Data: []byte("name: fast-4.30\nversions: [4.29.8, 4.30.0]\n")},
		"blocked-edges/README.md": {Data: []byte("Updates that nobody should make.\n")},
	}, graphdata.LoadOptions{})
	if err != nil {
		return nil, err
	}
	return graphdata.Build(tree, []graphdata.Release{
		{Version: "4.29.8", Arch: "amd64", Image: "registry.example/release@sha256:a"},
		{Version: "4.30.0", Arch: "amd64", Image: "registry.example/release@sha256:b", Previous: []string{"4.29.8"}},
	}, graphdata.BuildOptions{})
}

func ExampleNew() {
	handler, err := policyengine.New(policyengine.Options{Prefix: "/api/upgrades_info", Mandatory: []string{"channel"}})
	if err != nil {
		log.Fatal(err)
	}
	snapshot, err := load(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	handler.Set(snapshot)
	server := httptest.NewServer(handler)
	defer server.Close()

	client := graph.Client{Upstream: server.URL + "/api/upgrades_info/v1/graph", Transport: http.DefaultTransport}
	g, err := client.Fetch(context.Background(), graph.Query{Channel: "fast-4.30", Arch: "amd64", Version: "4.29.8", ClusterID: "3c5a1b2e-6f1d-4c7f-9a60-2b9d3c1e8f00"})
	if err != nil {
		log.Fatal(err)
	}
	for i, node := range g.Nodes() {
		for e := range g.Edges(i) {
			fmt.Println(node.Version, "→", g.Node(e.To).Version)
		}
	}
	// Output:
	// 4.29.8 → 4.30.0
}

// A server on two addresses: one for clusters, one for those who run it.
func ExampleHandler_Status() {
	handler, err := policyengine.New(policyengine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	public := &http.Server{
		Addr: "127.0.0.1:8081", Handler: handler, MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
	}
	status := &http.Server{Addr: "127.0.0.1:9081", Handler: handler.Status(), ReadHeaderTimeout: 5 * time.Second}
	fmt.Println(public.Addr, status.Addr)

	ready := httptest.NewRecorder()
	status.Handler.ServeHTTP(ready, httptest.NewRequest("GET", "/readyz", nil))
	fmt.Println(ready.Code)
	// Output:
	// 127.0.0.1:8081 127.0.0.1:9081
	// 503
}

func ExampleRefresher() {
	handler, err := policyengine.New(policyengine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	refresher, err := policyengine.NewRefresher(handler, policyengine.RefresherOptions{
		Load:     load,
		Interval: time.Minute,
		Observe: func(e clusterapi.Event) {
			fmt.Println(e.Type, e.Data.(*policyengine.Load).Nodes)
			cancel() // a program goes on
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(refresher.Run(ctx))
	// Output:
	// GraphChanged 2
	// context canceled
}
