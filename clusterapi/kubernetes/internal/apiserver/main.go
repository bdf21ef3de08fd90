// Command apiserver is the real kube-apiserver, built from its published module. It
// ends when its standard input does, which is when the process that started it has
// ended, for whatever reason.
package main

import (
	"io"
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
