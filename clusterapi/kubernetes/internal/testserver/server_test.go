package testserver_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// crashEnv says how the process of TestCrash ends.
const crashEnv = "CLUSTERUPDATE_TEST_CRASH"

// TestCrash is run by TestEndsWithItsProcess, in a process of its own.
func TestCrash(t *testing.T) {
	how := os.Getenv(crashEnv)
	if how == "" {
		t.Skip("part of TestEndsWithItsProcess")
	}
	s := testserver.Start(t)
	fmt.Println("listening", strings.Join(s.Addresses(), " "))
	if how == "panic" {
		go panic("in another goroutine, so that no clean-up runs")
	}
	select {}
}

// The servers end with the process that started them, even when that has no
// chance to end them.
func TestEndsWithItsProcess(t *testing.T) {
	testserver.Start(t) // what is to be built is built by now
	for _, how := range []string{"panic", "kill", "interrupt"} {
		t.Run(how, func(t *testing.T) {
			exe, err := os.Executable()
			checktest.OK(t, err)
			cmd := exec.Command(exe, "-test.run=^TestCrash$")
			cmd.Env = append(os.Environ(), crashEnv+"="+how)
			out := checktest.Get(cmd.StdoutPipe())(t)
			checktest.OK(t, cmd.Start())
			defer cmd.Wait()
			defer cmd.Process.Kill()
			var addresses []string
			for lines := bufio.NewScanner(out); addresses == nil && lines.Scan(); {
				if rest, ok := strings.CutPrefix(lines.Text(), "listening "); ok {
					addresses = strings.Fields(rest)
				}
			}
			checktest.FatalIf(t, len(addresses) != 2, "listening on %v", addresses)
			switch how {
			case "kill":
				err = cmd.Process.Kill()
			case "interrupt":
				err = cmd.Process.Signal(os.Interrupt)
			}
			checktest.OK(t, err)
			for _, address := range addresses {
				deadline := time.Now().Add(30 * time.Second)
				for {
					conn, err := net.Dial("tcp", address)
					if err != nil {
						break
					}
					_ = conn.Close()
					checktest.FatalIf(t, time.Now().After(deadline), "somebody still listens on %s", address)
					time.Sleep(50 * time.Millisecond)
				}
			}
		})
	}
}
