package simulation

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/clusterupdate/clusterupdate/manifest"
)

func TestDbg(t *testing.T) {
	p, err := manifest.Load(context.Background(), os.DirFS("/work/shared/data/payload-4.18.15"), manifest.LoadOptions{Image: "x", Filter: manifest.DefaultFilter()})
	if err != nil { t.Fatal(err) }
	for _, o := range p.Operators() {
		for _, w := range o.Workloads {
			for k, v := range w.Object.GetAnnotations() {
				if k == "release.openshift.io/delete" || k=="release.openshift.io/create-only" {
				fmt.Println(o.Name, w.String(), k, v)
				}
			}
		}
	}
}
