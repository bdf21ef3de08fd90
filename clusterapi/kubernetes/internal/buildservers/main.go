// Command buildservers builds the kube-apiserver and the etcd that the tests start,
// if that has not been done yet, and prints their paths. Run it in the folder of
// the module clusterapi/kubernetes:
//
//	go run ./internal/buildservers
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver/programs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p, err := programs.Build(ctx)
	if err != nil {
		stop()
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(p.Etcd)
	fmt.Println(p.APIServer)
}
