package vsphere_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/hosts"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/action"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/vmhardware"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/vsphere"
)

const secret = "correct horse"

// vcenter is a simulated vCenter on the loopback interface, and one machine of it.
// The simulator lets any guest shut down, so the machine adds that the guest's
// tools have to run.
type vcenter struct {
	*simulator.VirtualMachine
	model  *simulator.Model
	server *simulator.Server
	node   *corev1.Node
	host   types.ManagedObjectReference

	mu     sync.Mutex
	faults map[string]types.BaseMethodFault // by call
	calls  []string
}

func (v *vcenter) call(name string) types.BaseMethodFault {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls = append(v.calls, name)
	return v.faults[name]
}

func (v *vcenter) ShutdownGuest(ctx *simulator.Context, req *types.ShutdownGuest) soap.HasFault {
	if f := v.call("ShutdownGuest"); f != nil {
		return &methods.ShutdownGuestBody{Fault_: simulator.Fault("", f)}
	}
	if v.Guest.ToolsRunningStatus != string(types.VirtualMachineToolsRunningStatusGuestToolsRunning) {
		return &methods.ShutdownGuestBody{Fault_: simulator.Fault("", &types.ToolsUnavailable{})}
	}
	return v.VirtualMachine.ShutdownGuest(ctx, req)
}

func (v *vcenter) UpgradeVMTask(ctx *simulator.Context, req *types.UpgradeVM_Task) soap.HasFault {
	if f := v.call("Upgrade"); f != nil {
		task := simulator.CreateTask(req.This, "upgradeVm", func(*simulator.Task) (types.AnyType, types.BaseMethodFault) { return nil, f })
		return &methods.UpgradeVM_TaskBody{Res: &types.UpgradeVM_TaskResponse{Returnval: task.Run(ctx)}}
	}
	return v.VirtualMachine.UpgradeVMTask(ctx, req)
}

func (v *vcenter) PowerOnVMTask(ctx *simulator.Context, req *types.PowerOnVM_Task) soap.HasFault {
	if f := v.call("PowerOn"); f != nil {
		task := simulator.CreateTask(req.This, "powerOn", func(*simulator.Task) (types.AnyType, types.BaseMethodFault) { return nil, f })
		return &methods.PowerOnVM_TaskBody{Res: &types.PowerOnVM_TaskResponse{Returnval: task.Run(ctx)}}
	}
	return v.VirtualMachine.PowerOnVMTask(ctx, req)
}

func (v *vcenter) ReconfigVMTask(ctx *simulator.Context, req *types.ReconfigVM_Task) soap.HasFault {
	v.call(fmt.Sprintf("%+v", *req.Spec.ScheduledHardwareUpgradeInfo))
	return v.VirtualMachine.ReconfigVMTask(ctx, req)
}

// PowerOffVMTask must not be called: guests are shut down.
func (v *vcenter) PowerOffVMTask(ctx *simulator.Context, req *types.PowerOffVM_Task) soap.HasFault {
	v.call("PowerOff")
	return v.VirtualMachine.PowerOffVMTask(ctx, req)
}

// update changes properties of an object of vCenter.
func (v *vcenter) update(changes ...types.PropertyChange) {
	ctx := v.model.Service.Context
	v.model.Map().AtomicUpdate(ctx, v, changes)
}

// now is how the machine is.
type now struct {
	version  string
	power    types.VirtualMachinePowerState
	template bool
}

func (v *vcenter) now() (n now) {
	v.model.Map().WithLock(v.model.Service.Context, v, func() {
		n = now{v.Config.Version, v.Runtime.PowerState, v.Config.Template}
	})
	return n
}

// fail makes a call fail; nil: it does not any more.
func (v *vcenter) fail(call string, f types.BaseMethodFault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faults[call] = f
}

// called are the calls so far.
func (v *vcenter) called() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return strings.Join(v.calls, " ")
}

// start starts a vCenter whose machine has hardware 13 and is on.
func start(t testing.TB) *vcenter {
	t.Helper()
	model := simulator.VPX()
	checktest.OK(t, model.Create())
	t.Cleanup(model.Remove)
	model.Service.TLS = new(tls.Config)
	model.Service.Listen = &url.URL{Host: "127.0.0.1:0", User: url.UserPassword("updater", secret)}
	server := model.Service.NewServer()
	t.Cleanup(server.Close)
	vm := model.Map().Any("VirtualMachine").(*simulator.VirtualMachine)
	v := &vcenter{VirtualMachine: vm, model: model, server: server, faults: map[string]types.BaseMethodFault{}}
	model.Map().Put(v)
	v.update(types.PropertyChange{Name: "config.version", Val: "vmx-13"},
		types.PropertyChange{Name: "guest.toolsRunningStatus", Val: string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)})
	v.host = *vm.Runtime.Host
	v.node = &corev1.Node{}
	v.node.Name, v.node.Spec.ProviderID = "w0", "vsphere://"+vm.Config.Uuid
	v.node.Status.NodeInfo.BootID = "boot-1"
	v.ready(true)
	return v
}

func (v *vcenter) ready(is bool) {
	status := corev1.ConditionUnknown
	if is {
		status = corev1.ConditionTrue
	}
	v.node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
}

// machines is a client of the vCenter.
func (v *vcenter) machines(t testing.TB, change ...func(*vsphere.Options)) *vsphere.Machines {
	t.Helper()
	u := *v.server.URL
	u.User = nil
	o := vsphere.Options{
		URL:         u.String(),
		Credentials: func(context.Context) (*url.Userinfo, error) { return url.UserPassword("updater", secret), nil },
		Prepare: func(c *soap.Client) error {
			pool := x509.NewCertPool()
			pool.AddCert(v.server.Certificate())
			c.DefaultTransport().TLSClientConfig.RootCAs = pool
			return nil
		},
	}
	for _, f := range change {
		f(&o)
	}
	m := checktest.Get(vsphere.New(o))(t)
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

// play steps the action until it is done, fails, or waits for the same thing for
// ten steps. The node goes with its machine.
func (v *vcenter) play(t testing.TB, a action.Action) (waits []string, err error) {
	t.Helper()
	progress := ""
	same := 0
	for {
		step, err := a.Step(t.Context(), v.node, progress)
		if err != nil {
			return waits, err
		}
		if step.Done {
			return waits, nil
		}
		progress = step.Progress
		if step.Waiting != "" && (len(waits) == 0 || waits[len(waits)-1] != step.Waiting) {
			waits, same = append(waits, step.Waiting), 0
		} else if same++; same > 10 {
			return waits, errors.New("it waits for ever")
		}
		on := v.now().power == types.VirtualMachinePowerStatePoweredOn
		if wasReady, _ := action.Started(v.node, ""); on && !wasReady {
			v.node.Status.NodeInfo.BootID = "boot-2"
		}
		v.ready(on)
	}
}

func newAction(t testing.TB, m vmhardware.Machines) action.Action {
	t.Helper()
	return action.Of(checktest.Get(vmhardware.New(vmhardware.Options{Machines: m}))(t))
}

func TestUpgrade(t *testing.T) {
	v := start(t)
	a := newAction(t, v.machines(t))
	if needed, err := a.(action.Checker).Needed(t.Context(), v.node); err != nil || !needed {
		t.Fatal(needed, err)
	}
	waits, err := v.play(t, a)
	if err != nil {
		t.Fatal(err, waits)
	}
	want := []string{"the guest of virtual machine " + v.Name + " to shut down", "virtual machine " + v.Name + " to start"}
	if fmt.Sprint(waits) != fmt.Sprint(want) {
		t.Errorf("waited for %q", waits)
	}
	if n := v.now(); n.version != "vmx-15" || n.power != types.VirtualMachinePowerStatePoweredOn {
		t.Errorf("%+v", n)
	}
	if got := v.called(); got != "ShutdownGuest Upgrade PowerOn" {
		t.Errorf("calls %s", got)
	}
	if needed, err := a.(action.Checker).Needed(t.Context(), v.node); err != nil || needed {
		t.Error(needed, err)
	}
}

// What fails at each step, and whether trying again may help.
func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		name      string
		set       func(v *vcenter)
		mend      func(v *vcenter)
		err       string
		permanent bool
	}{
		{name: "the tools stop", set: func(v *vcenter) {
			v.update(types.PropertyChange{Name: "guest.toolsRunningStatus", Val: string(types.VirtualMachineToolsRunningStatusGuestToolsNotRunning)})
		}, mend: func(v *vcenter) {
			v.update(types.PropertyChange{Name: "guest.toolsRunningStatus", Val: string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)})
		}, err: "it waits for ever"},
		{name: "the shutdown is refused", set: failing("ShutdownGuest", &types.InvalidState{}), err: "InvalidState"},
		{name: "the upgrade fails", set: failing("Upgrade", &types.NotSupported{}), err: "NotSupported", permanent: true},
		{name: "another task is running", set: failing("Upgrade", &types.TaskInProgress{}), err: "TaskInProgress"},
		{name: "power on fails", set: failing("PowerOn", &types.InsufficientResourcesFault{}), err: "InsufficientResources"},
		{name: "the host is too old", set: hostVersion("7.0.1"), mend: hostVersion("7.0.2"), err: "has ESXi 7.0.1; 7.0 Update 2 or later is needed", permanent: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := start(t)
			a := newAction(t, v.machines(t))
			tt.set(v)
			_, err := v.play(t, a)
			if err == nil || !strings.Contains(fmt.Sprintf("%v %#v", err, errors.Unwrap(err)), tt.err) || hosts.IsPermanent(err) != tt.permanent {
				t.Fatalf("%v, permanent %v", err, hosts.IsPermanent(err))
			}
			for _, call := range []string{"ShutdownGuest", "Upgrade", "PowerOn"} {
				v.fail(call, nil)
			}
			if tt.mend != nil {
				tt.mend(v)
			}
			if _, err := v.play(t, a); err != nil {
				t.Fatal("after it was mended: ", err)
			}
			if n := v.now(); n.version != "vmx-15" || strings.Contains(v.called(), "PowerOff") {
				t.Errorf("%+v, calls %s", n, v.called())
			}
		})
	}
}

func failing(call string, f types.BaseMethodFault) func(v *vcenter) {
	return func(v *vcenter) { v.fail(call, f) }
}

func hostVersion(version string) func(v *vcenter) {
	return func(v *vcenter) {
		host := v.model.Map().Get(v.host).(*simulator.HostSystem)
		v.model.Map().WithLock(v.model.Service.Context, host, func() {
			config := *host.Config
			config.Product.Version = version
			host.Config = &config
		})
	}
}

func TestLogin(t *testing.T) {
	v := start(t)
	logins := 0
	m := v.machines(t, func(o *vsphere.Options) {
		o.Credentials = func(context.Context) (*url.Userinfo, error) {
			logins++
			return url.UserPassword("updater", "wrong "+secret), nil
		}
	})
	_, err := m.State(t.Context(), v.node)
	if !hosts.IsPermanent(err) || !strings.Contains(err.Error(), "refuses the login") || strings.Contains(err.Error(), secret) {
		t.Errorf("refused login: %v", err)
	}
	if logins != 1 {
		t.Errorf("%d logins", logins)
	}

	// The certificate is verified.
	m = v.machines(t, func(o *vsphere.Options) { o.Prepare = nil })
	if _, err := m.State(t.Context(), v.node); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("unknown certificate: %v", err)
	}

	// A session that has ended is begun again.
	m = v.machines(t)
	for range 2 {
		if s, err := m.State(t.Context(), v.node); err != nil || s.Hardware != 13 || s.Power != vmhardware.On || !s.Tools || s.Problem != "" {
			t.Fatalf("%+v, %v", s, err)
		}
		checktest.OK(t, m.Close(t.Context()))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	cancel()
	if _, err := m.State(ctx, v.node); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
}

func TestNoMachine(t *testing.T) {
	v := start(t)
	m := v.machines(t)
	for id, want := range map[string]string{"aws:///a/i-1": "is not on vSphere", "": "is not on vSphere", "vsphere://4237-none": "has no virtual machine"} {
		n := v.node.DeepCopy()
		n.Spec.ProviderID = id
		if _, err := m.State(t.Context(), n); err == nil || !strings.Contains(err.Error(), want) || !hosts.IsPermanent(err) {
			t.Errorf("%q: %v", id, err)
		}
		for _, call := range []func() error{
			func() error { return m.ShutDownGuest(t.Context(), n) },
			func() error { return m.Upgrade(t.Context(), n, 15) },
			func() error { return m.PowerOn(t.Context(), n) },
		} {
			if err := call(); err == nil {
				t.Errorf("%q: a call succeeds", id)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	credentials := func(context.Context) (*url.Userinfo, error) { return nil, errors.New("the vault is closed") }
	for name, o := range map[string]vsphere.Options{
		"http":           {URL: "http://vcenter.example/sdk", Credentials: credentials},
		"no host":        {URL: "https:///sdk", Credentials: credentials},
		"a password":     {URL: "https://a:" + "pw" + "@vcenter.example/sdk", Credentials: credentials},
		"not a URL":      {URL: "https://a:pw@vcenter.example:port/", Credentials: credentials},
		"no credentials": {URL: "https://vcenter.example/sdk"},
	} {
		if _, err := vsphere.New(o); err == nil || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v", name, err)
		}
	}
	m := checktest.Get(vsphere.New(vsphere.Options{URL: "https://vcenter.example/sdk", Credentials: credentials}))(t)
	if _, err := m.State(t.Context(), &corev1.Node{}); err == nil || !strings.Contains(err.Error(), "the vault is closed") {
		t.Error(err)
	}
}

// vCenter does it by itself at the next restart; the simulator only takes note.
func TestSchedule(t *testing.T) {
	v := start(t)
	m := v.machines(t)
	checktest.OK(t, m.Schedule(t.Context(), v.node, 0))
	if got := v.called(); !strings.Contains(got, "UpgradePolicy:onSoftPowerOff VersionKey:vmx-15") {
		t.Errorf("calls %s", got)
	}
	hostVersion("6.7.0")(v)
	if err := m.Schedule(t.Context(), v.node, 19); !hosts.IsPermanent(err) {
		t.Errorf("the host is too old: %v", err)
	}
}

func TestTemplate(t *testing.T) {
	v := start(t)
	m := v.machines(t)
	path := "/DC0/vm/" + v.Name
	if err := m.UpgradeTemplate(t.Context(), path, 0); err == nil || !strings.Contains(err.Error(), "is not a template that is off") {
		t.Errorf("a machine that is on: %v", err)
	}
	if err := m.UpgradeTemplate(t.Context(), "/DC0/vm/nothing", 0); err == nil {
		t.Error("no template")
	}
	v.update(types.PropertyChange{Name: "runtime.powerState", Val: types.VirtualMachinePowerStatePoweredOff},
		types.PropertyChange{Name: "config.template", Val: true}, types.PropertyChange{Name: "summary.config.template", Val: true})
	v.fail("Upgrade", &types.NotSupported{})
	if err := m.UpgradeTemplate(t.Context(), path, 0); err == nil || v.now().template {
		t.Errorf("the upgrade fails: %v, %+v", err, v.now())
	}
	v.fail("Upgrade", nil)
	for range 2 { // the second time nothing is left to do
		checktest.OK(t, m.UpgradeTemplate(t.Context(), path, 0))
		if n := v.now(); !n.template || n.version != "vmx-15" || n.power != types.VirtualMachinePowerStatePoweredOff {
			t.Errorf("%+v", n)
		}
	}
	if got := v.called(); got != "Upgrade Upgrade" {
		t.Errorf("calls %s", got)
	}
}
