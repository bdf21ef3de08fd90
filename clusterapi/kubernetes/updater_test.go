package kubernetes_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/signature"
)

// updaterEnv makes this program an updater: it holds its orders.
const updaterEnv = "CLUSTERUPDATE_TEST_UPDATER"

// orders of an updater process.
type orders struct {
	Kubeconfig string
	Data       string // folder of the payloads
}

// newUpdater makes an Updater whose waits are short, since time passes faster
// for it. A pass may take two intervals.
func newUpdater(api clusterapi.ClusterAPI, payloads releases, faster float64, interval time.Duration, log *slog.Logger, observe func(clusterapi.Event)) (*clusterupdate.Updater, error) {
	return clusterupdate.New(clusterupdate.Options{
		API: api, Payloads: payloads, Verifier: signature.Insecure(), Clock: simulation.ScaledClock(faster),
		Interval: interval, RetrieveTimeout: time.Hour, Logger: log, Observe: observe,
	})
}

// updaterMain updates a cluster until the process is killed, and writes what
// happens as lines of JSON.
func updaterMain(ctx context.Context, text string, out io.Writer) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return err
	}
	api, err := kubernetes.New(config, kubernetes.Options{})
	if err != nil {
		return err
	}
	payloads, _, err := realReleases(ctx, o.Data)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(out)
	u, err := newUpdater(api, payloads, 5, 5*time.Minute, nil, func(e clusterapi.Event) { _ = enc.Encode(line(e)) })
	if err != nil {
		return err
	}
	return u.Run(ctx)
}

// progress is one line of an updater process.
type progress struct {
	Type, Step, Version, Task, Message, Error string
	Done, Total                               int
}

func line(e clusterapi.Event) progress {
	p := progress{Type: string(e.Type), Version: e.Data.(*clusterupdate.EventData).Release.Version, Message: e.Message}
	err := e.Err
	if r := e.Data.(*clusterupdate.EventData).Pass; r != nil {
		at := r.Data.(*runlevel.Progress)
		p.Step, p.Done, p.Total, p.Message = string(r.Type), at.Done+at.Skipped, at.Total, r.Message
		if at.Task != nil {
			p.Task = at.Task.String()
		}
		if err == nil {
			err = r.Err
		}
	}
	if err != nil {
		p.Error = err.Error()
	}
	return p
}

// updaterProcess is an updater that can be killed.
type updaterProcess struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.Closer

	mu      sync.Mutex
	cond    *sync.Cond
	last    progress // of those with a step
	ended   bool
	warned  map[string]bool
	elapsed time.Time
}

func startUpdater(t testing.TB, o orders) *updaterProcess {
	t.Helper()
	text, err := json.Marshal(o)
	checktest.OK(t, err)
	exe := checktest.Get(os.Executable())(t)
	p := &updaterProcess{t: t, cmd: exec.Command(exe), warned: map[string]bool{}, elapsed: time.Now()}
	p.cond = sync.NewCond(&p.mu)
	p.cmd.Env = append(os.Environ(), updaterEnv+"="+string(text))
	p.cmd.Stderr = t.Output()
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out := checktest.Get(p.cmd.StdoutPipe())(t)
	checktest.OK(t, p.cmd.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.read(out)
	}()
	t.Cleanup(func() {
		p.kill()
		<-done
		_ = p.cmd.Wait()
	})
	return p
}

func (p *updaterProcess) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l progress
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			p.t.Logf("updater: %s", lines.Bytes())
			continue
		}
		p.mu.Lock()
		switch {
		case l.Type != string(clusterupdate.EventTask):
			p.t.Logf("%5.1fs updater: %s %s %s %s", time.Since(p.elapsed).Seconds(), l.Type, l.Version, l.Message, l.Error)
		case l.Step == string(runlevel.EventTaskFailed) || l.Step == string(runlevel.EventWarning) || l.Step == string(runlevel.EventTaskRetry):
			if key := l.Task + l.Message + l.Error; !p.warned[key] {
				p.warned[key] = true
				p.t.Logf("%5.1fs updater: %s %s %s %s", time.Since(p.elapsed).Seconds(), l.Step, l.Task, l.Message, l.Error)
			}
		}
		if l.Step != "" {
			p.last = l
			p.cond.Broadcast()
		}
		p.mu.Unlock()
	}
	p.mu.Lock()
	p.ended = true
	p.cond.Broadcast()
	p.mu.Unlock()
}

// reach waits until a part of the tasks of a release is done.
func (p *updaterProcess) reach(version string, part float64, limit time.Duration) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	deadline := time.Now().Add(limit)
	defer time.AfterFunc(limit, p.cond.Broadcast).Stop()
	for p.last.Version != version || float64(p.last.Done) < part*float64(p.last.Total) {
		if p.ended || !time.Now().Before(deadline) {
			p.t.Fatalf("waited in vain for %.0f%% of %s; the updater has ended: %t; last: %+v", part*100, version, p.ended, p.last)
		}
		p.cond.Wait()
	}
}

func (p *updaterProcess) kill() {
	_ = p.cmd.Process.Kill() // an error says that it has ended
}

// realReleases opens both real payloads, without what a plain API server
// cannot take; these manifests are the second result.
func realReleases(ctx context.Context, data string) (releases, []*unapplied, error) {
	var out releases
	var rest []*unapplied
	for _, name := range []string{"payload-4.17.30", "payload-4.18.15"} {
		r, skipped, err := realRelease(ctx, filepath.Join(data, name), unappliable)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, r)
		for _, m := range skipped {
			rest = append(rest, &unapplied{m, unappliable[nameOf(m)]})
		}
	}
	return out, rest, nil
}
