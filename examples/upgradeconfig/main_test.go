package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
)

func TestUsage(t *testing.T) { programtest.Usage(t, command) }

// played runs the program and checks that its output has lines with these
// texts, in this order.
func played(t *testing.T, want []string, args ...string) {
	t.Helper()
	code, out, errs := programtest.Run(t, command(), args...)
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s\n%s", code, errs, out)
	}
	left := out
	for _, text := range want {
		_, after, ok := strings.Cut(left, text)
		if !ok {
			t.Fatalf("no %q after what came before:\n%s", text, out)
		}
		left = after
	}
}

func TestGit(t *testing.T) {
	t.Parallel()
	played(t, []string{
		"git        commit: upgrade in two hours",
		"config     Created: ",
		"git        commit: upgrade in fifteen minutes already",
		"config     Replaced: the UpgradeConfig differs from the policy; upgradeAt: ",
		"4.21.1: Upgrading",
		"StateStarted: Cluster is currently being upgraded to version 4.21.1",
		"ComputeCapacityReserved still in progress",
		"ComputeCapacityReserved is completed",
		"UpgradeCommenced is completed",
		"Done applying 4.21.1",
		"WorkerNodesUpgraded is completed",
		"4.21.1: Upgraded",
		"StateCompleted: Cluster has been successfully upgraded to version 4.21.1",
		"git        commit: done",
		"config     Deleted: there is no policy",
	})
}

func TestLocal(t *testing.T) {
	t.Parallel()
	played(t, []string{
		"admin      creates an UpgradeConfig: 4.21.1 at 00:1",
		"4.21.1: Upgrading",
		"4.21.1: Upgraded",
	}, "-local")
}

func TestOCM(t *testing.T) {
	t.Parallel()
	played(t, []string{
		"policy p-1 is scheduled",
		"config     Created: ",
		"policy p-1 is scheduled",
		"config     Replaced: ",
		"is down; the UpgradeConfig stays",
		"failed, again in ",
		"unable to retrieve upgrade spec: ",
		"is up again",
		"policy p-1 is cancelled",
		"config     Deleted: ",
		"policy p-2 is scheduled",
		"config     Created: ",
		"4.21.1: Upgrading",
		"4.21.1: Upgraded",
		"config     Deleted: ",
		"in the end policy p-1 is cancelled",
		"in the end policy p-2 is completed: Cluster has been successfully upgraded to version 4.21.1",
	}, "-ocm")
}

// until ends a run once its output has a text.
type until struct {
	bytes.Buffer
	text string
	end  func()
}

func (u *until) Write(p []byte) (int, error) {
	n, err := u.Buffer.Write(p)
	if strings.Contains(u.String(), u.text) {
		u.end()
	}
	return n, err
}

// Live, a second of work is ten minutes of the cluster: how an upgrade goes on
// depends on what else the machine does, but not that it begins.
func TestLive(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &until{text: "4.21.1: Upgrading", end: cancel}
	var errs bytes.Buffer
	code := command().Execute(ctx, []string{"-local", "-speed", "600"}, out, &errs)
	if code != 1 || !strings.Contains(errs.String(), context.Canceled.Error()) || !strings.Contains(out.String(), "admin      creates an UpgradeConfig: 4.21.1 at ") {
		t.Errorf("exit %d: %s\n%s", code, errs.String(), out.String())
	}
}

// In virtual time every run is the same.
func TestRepeats(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"-ocm"}} {
		var runs [2]string
		for i := range runs {
			code, out, errs := programtest.Run(t, command(), args...)
			if code != 0 {
				t.Fatalf("%v: exit %d: %s", args, code, errs)
			}
			runs[i] = out
		}
		checktest.SameIn(t, fmt.Sprintf("%v: (-first +second)", args), runs[0], runs[1])
	}
}
