package plan_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// A plan in which all is wrong makes no more of an error than people can read.
func TestErrorsAreBounded(t *testing.T) {
	head := `{"version":` + fmt.Sprint(plan.Format) + `,"id":"p","kind":"Custom","steps":[`
	most := 2 * limit.Heap
	if israce.Enabled {
		most *= 2 // the race detector allocates itself
	}
	for name, item := range map[string]string{
		"empty steps":    `{},`,
		"unknown kinds":  `{"id":"a","kind":"b"},`,
		"unknown fields": `{"id":"a","x":0,"y":0},`,
		"other types":    `0,`,
		"types inside":   `{"id":0,"kind":0},`,
	} {
		t.Run(name, func(t *testing.T) {
			text := head + strings.TrimSuffix(strings.Repeat(item, 880_000/len(item)), ",") + `]}`
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := plan.Decode([]byte(text))
			runtime.ReadMemStats(&after)
			if err == nil || len(err.Error()) > 64<<10 {
				t.Errorf("an error of %d bytes: %.200v", len(err.Error()), err)
			}
			if made := after.TotalAlloc - before.TotalAlloc; made > uint64(most) {
				t.Errorf("%d bytes allocated", made)
			}
		})
	}
}
