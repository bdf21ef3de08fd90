package contracts_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// A program that updates a cluster links at most 30 packages of this module, and none
// that only shows, plans, simulates or mends.
func TestRootLinksFewPackages(t *testing.T) {
	out := checktest.Get(exec.Command("go", "list", "-deps", module).Output())(t)
	linked := slices.DeleteFunc(strings.Fields(string(out)), func(p string) bool {
		return p != module && !strings.HasPrefix(p, module+"/")
	})
	checktest.FailIf(t, len(linked) > 30,
		"the root package links %d packages of the module:\n%s", len(linked), strings.Join(linked, "\n"))
	for _, not := range []string{
		"clusterapi/memory", "clusterapi/timeline", "clusterapi/view", "mcp", "mcp/plan", "mcp/rollout", "olm",
		"preconditions/remedy", "preconditions/rules",
	} {
		checktest.Equal(t, false, slices.Contains(linked, module+"/"+not), "the root package links %s", not)
	}
}
