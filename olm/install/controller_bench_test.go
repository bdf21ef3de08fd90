package install_test

import (
	"context"
	"fmt"
	"testing"
)

// A pass over a namespace in which nothing is to be done, and one in which nothing can be
// done: every update lacks an API.
func BenchmarkControllerIdle(b *testing.B) {
	for _, update := range []string{"", "p%[1]d.v2 X%[1]d -Missing >p%[1]d.v1"} {
		for _, n := range []int{1, 10, 100} {
			var lines []string
			var objects []any
			for i := range n {
				line := fmt.Sprintf("p%d.v1 X%d", i, i)
				lines = append(lines, line)
				if update != "" {
					lines = append(lines, fmt.Sprintf(update, i))
				}
				objects = append(objects, ptr(installed(line)[0]), ptr(sub(fmt.Sprintf("p%d", i), fmt.Sprintf("p%d.v1", i))))
			}
			w := manage(b, contents(lines...), objects...)
			w.settle()
			c := w.controller()
			name := fmt.Sprint(n)
			if update != "" {
				name = "held back/" + name
			}
			b.Run(name, func(b *testing.B) {
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
}
