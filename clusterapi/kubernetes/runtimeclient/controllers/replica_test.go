package controllers_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/runtimeclient/controllers"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// orderEnv makes this program a replica: it holds its orders.
const orderEnv = "CLUSTERUPDATE_TEST_REPLICA"

// order is what a replica is told.
type order struct {
	Kubeconfig string
	Name       string
	Process    string // a name of processes
	Account    string // a ServiceAccount to act as; "" means an administrator
}

// processes are what replicas can run.
var processes = map[string]func(order, func(line)) (reconcile.Process, error){
	"counter": counter,
}

// line is what a replica says.
type line struct{ Type, Text string }

// TestMain lets a test run this program again as another process, which ends
// when its standard input does: with the one that started it at the latest.
func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	text := os.Getenv(orderEnv)
	if text == "" {
		os.Exit(m.Run())
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = replicaMain(o)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

const (
	lease     = 3 * time.Second
	namespace = "clusterupdate" // of hosts, in the manifests
)

// permit applies what a host may do, for one more account, and rules of its
// own.
func permit(t testing.TB, api clusterapi.ClusterAPI, account string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	const file = "../../rbac/hosting.yaml"
	data := checktest.Get(os.ReadFile(file))(t)
	objects := checktest.Get(manifest.Parse(file, data, manifest.Limits{}))(t)
	for _, m := range objects {
		subjects, ok := m.Object().Object["subjects"].([]any)
		if ok {
			m.Object().Object["subjects"] = append(subjects, map[string]any{"kind": "ServiceAccount", "namespace": namespace, "name": account})
		}
		_, err := api.Apply(t.Context(), m.Object(), clusterapi.ApplyOptions{FieldManager: "test"})
		checktest.FatalIf(t, err != nil, "%s: %v", m, err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test"}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "test"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "test"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: account}}}
	checktest.OK(t, checktest.Err(clusterapi.Create(t.Context(), api, role, clusterapi.CreateOptions{})))
	checktest.OK(t, checktest.Err(clusterapi.Create(t.Context(), api, binding, clusterapi.CreateOptions{})))
}

// newManager makes a Manager whose lease is short.
func newManager(o order) (manager.Manager, error) {
	c, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	if o.Account != "" {
		c.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":" + o.Account}
	}
	c.QPS = -1
	return manager.New(c, manager.Options{
		LeaderElection: true, LeaderElectionID: "replicas", LeaderElectionNamespace: namespace,
		LeaseDuration: ptr.To(lease), RenewDeadline: ptr.To(2 * time.Second), RetryPeriod: ptr.To(500 * time.Millisecond),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
}

// replicaMain runs a process where it is the leader, until it is no more.
func replicaMain(o order) error {
	enc := json.NewEncoder(os.Stdout)
	var mu sync.Mutex
	say := func(l line) {
		mu.Lock()
		defer mu.Unlock()
		_ = enc.Encode(l)
	}
	p, err := processes[o.Process](o, say)
	if err != nil {
		return err
	}
	mgr, err := newManager(o)
	if err != nil {
		return err
	}
	go func() {
		<-mgr.Elected()
		say(line{"elected", o.Name})
	}()
	options := controllers.Options{MaxPause: 2500 * time.Millisecond, Driver: reconcile.Options{Observe: func(e clusterapi.Event) {
		a := e.Data.(*reconcile.Attempt)
		say(line{string(e.Type), fmt.Sprint(a.Reconciler, a.Watch, " ", a.Key, " ", e.Err)})
	}}}
	if err := controllers.Add(mgr, options, p); err != nil {
		return err
	}
	return mgr.Start(context.Background())
}

// replica is a process that can be stopped and killed.
type replica struct {
	t     testing.TB
	name  string
	cmd   *exec.Cmd
	in    io.Closer
	ended chan struct{}

	mu    sync.Mutex
	lines []line
}

func startReplica(t testing.TB, o order) *replica {
	t.Helper()
	text, err := json.Marshal(o)
	checktest.OK(t, err)
	exe := checktest.Get(os.Executable())(t)
	r := &replica{t: t, name: o.Name, cmd: exec.Command(exe), ended: make(chan struct{})}
	r.cmd.Env = append(os.Environ(), orderEnv+"="+string(text))
	r.cmd.Stderr = t.Output()
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out := checktest.Get(r.cmd.StdoutPipe())(t)
	checktest.OK(t, r.cmd.Start())
	go func() {
		defer close(r.ended)
		for in := bufio.NewScanner(out); in.Scan(); {
			var l line
			if json.Unmarshal(in.Bytes(), &l) == nil {
				r.mu.Lock()
				r.lines = append(r.lines, l)
				r.mu.Unlock()
			}
		}
		_ = r.cmd.Wait()
	}()
	t.Cleanup(r.kill)
	return r
}

// kill ends the process as a crash does.
func (r *replica) kill() {
	_ = r.cmd.Process.Kill() // an error says that it has ended
	<-r.ended
}

func (r *replica) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatalf("%s: %v", r.name, err)
	}
}

// said returns the lines of a type.
func (r *replica) said(what string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var texts []string
	for _, l := range r.lines {
		if l.Type == what {
			texts = append(texts, l.Text)
		}
	}
	return texts
}

func (r *replica) elected() bool { return len(r.said("elected")) > 0 }

// await waits until cond holds.
func await(t testing.TB, what string, limit time.Duration, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !cond(); time.Sleep(20 * time.Millisecond) {
		checktest.FatalIf(t, time.Now().After(end), "not within %s: %s", limit, what)
	}
}

// replicas keeps two replicas of a process: one leads, the other waits.
type replicas struct {
	t       testing.TB
	order   order
	n       int
	running []*replica
}

func newReplicas(t testing.TB, o order) *replicas {
	t.Helper()
	r := &replicas{t: t, order: o}
	r.start()
	r.start()
	return r
}

func (r *replicas) start() {
	r.n++
	o := r.order
	o.Name = fmt.Sprint("replica-", r.n)
	r.running = append(r.running, startReplica(r.t, o))
}

// leader waits for a leader other than those that led before.
func (r *replicas) leader() *replica {
	r.t.Helper()
	var found *replica
	await(r.t, "a leader", time.Minute, func() bool {
		for _, one := range r.running {
			if one.elected() {
				found = one
			}
		}
		return found != nil
	})
	return found
}

// drop forgets a replica and starts another one in its place.
func (r *replicas) drop(gone *replica) {
	for i, one := range r.running {
		if one == gone {
			r.running = append(r.running[:i:i], r.running[i+1:]...)
			r.start()
			return
		}
	}
}
