package install_test

import (
	"context"
	"fmt"
	"testing"
)

// A pass over a namespace in which nothing is to be done.
func BenchmarkControllerIdle(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		var lines []string
		var objects []any
		for i := range n {
			line := fmt.Sprintf("p%d.v1 X%d", i, i)
			lines = append(lines, line)
			objects = append(objects, ptr(installed(line)[0]), ptr(sub(fmt.Sprintf("p%d", i), fmt.Sprintf("p%d.v1", i))))
		}
		w := manage(b, contents(b, lines...), objects...)
		w.settle()
		c := w.controller()
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := c.Sync(context.Background(), ns)
				if err != nil || r.Changed {
					b.Fatal(r, err)
				}
			}
		})
	}
}
