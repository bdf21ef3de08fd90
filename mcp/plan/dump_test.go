package plan_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// Plans for real clusters, as recorded: each builder makes one or says why not.
func TestRealClusters(t *testing.T) {
	dir := filepath.Join(testdata.Dir(t), "clusters")
	for name, want := range map[string]string{
		"not-upgrading": "",
		"4.14.1-workers-started-updating-multiple-pools": "is not complete",
		"4.14.1-degraded": "is not complete",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
				t.Skip("there is no such recording")
			}
			recording, err := dump.Open(context.Background(), os.DirFS(filepath.Join(dir, name)), dump.Options{})
			checktest.OK(t, err)
			c := checktest.Get(plan.ReadCluster(context.Background(), recording))(t)
			p, warnings, err := plan.PlanCanary(c, plan.CanaryOptions{ID: "real", Version: "4.99.0", Window: 4 * time.Hour, NodeTime: 10 * time.Minute, SparePercent: 34})
			t.Logf("%d pools, %d nodes, warnings %q\n%v", len(c.Pools), len(c.Nodes), warnings, err)
			if want != "" {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in %v", want, err)
				}
				return
			}
			checktest.OK(t, err)
			text := checktest.Get(plan.Encode(p))(t)
			checktest.Good(t, checktest.Err(plan.Decode(text)))
			_, _, err = plan.PlanWindows(c, plan.WindowsOptions{ID: "real", NodeTime: 10 * time.Minute, Windows: []plan.Window{{Start: time.Unix(1, 0), Duration: time.Hour}}})
			checktest.Good(t, err)
		})
	}
}
