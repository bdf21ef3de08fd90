// Command etcd is the store behind the API server that the tests start. It ends
// when its standard input does, which is when the process that started it has
// ended, for whatever reason.
package main

import (
	"io"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	etcdmain.Main(os.Args)
}
