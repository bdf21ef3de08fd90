package vsphere

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/Masterminds/semver/v3"
	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/internal/redact"
	"github.com/clusterupdate/clusterupdate/mcp/hosts"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/vmhardware"
)

// Options are the options of [New].
type Options struct {
	// URL is the address of vCenter's API, such as "https://vcenter.example/sdk";
	// required, by https, and without a user and password.
	URL string
	// Credentials returns the user and password for each login; required.
	Credentials func(ctx context.Context) (*url.Userinfo, error)
	// Prepare changes the client before it is used: certificates to trust, a proxy.
	// nil: nothing. vCenter's certificate is always verified.
	Prepare func(c *soap.Client) error
}

// Machines are virtual machines in a vCenter. It is safe for concurrent use.
type Machines struct {
	o Options
	u *url.URL

	mu     sync.Mutex
	client *govmomi.Client // nil: not logged in
}

var _ vmhardware.Machines = (*Machines)(nil)

// New returns the machines, and an error for options that cannot work. It does
// not log in: the first call does.
func New(o Options) (*Machines, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return nil, errors.New("vsphere.Options: URL cannot be read") // whose error would show what it holds
	case u.User != nil:
		return nil, errors.New("vsphere.Options: URL has a user or password; Credentials is for them")
	case u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("vsphere.Options: URL is not one of https: %q", redact.URL(o.URL))
	case o.Credentials == nil:
		return nil, errors.New("vsphere.Options: Credentials is required")
	}
	return &Machines{o: o, u: u}, nil
}

// Close logs out. Its error is vCenter's. A call after it logs in again.
func (m *Machines) Close(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.client
	m.client = nil
	if c == nil {
		return nil
	}
	return c.Logout(ctx)
}

// login returns a client that is logged in.
func (m *Machines) login(ctx context.Context) (*govmomi.Client, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client != nil {
		return m.client, nil
	}
	user, err := m.o.Credentials(ctx)
	if err != nil {
		return nil, fmt.Errorf("credentials for vCenter %s: %w", m.u.Host, err)
	}
	plain := soap.NewClient(m.u, false)
	if m.o.Prepare != nil {
		if err := m.o.Prepare(plain); err != nil {
			return nil, err
		}
	}
	vim, err := vim25.NewClient(ctx, plain)
	if err != nil {
		return nil, fmt.Errorf("vCenter %s: %w", m.u.Host, err)
	}
	c := &govmomi.Client{Client: vim, SessionManager: session.NewManager(vim)}
	err = c.Login(ctx, user)
	if fault.Is(err, &types.InvalidLogin{}) || fault.Is(err, &types.NoPermission{}) {
		return nil, hosts.Permanent(fmt.Errorf("vCenter %s refuses the login", m.u.Host)) // again and again would lock the account
	}
	if err != nil {
		return nil, fmt.Errorf("vCenter %s: %w", m.u.Host, err)
	}
	m.client = c
	return c, nil
}

// with calls f with a client. If the session has ended, it logs in again, once.
func (m *Machines) with(ctx context.Context, f func(c *govmomi.Client) error) error {
	for again := false; ; again = true {
		c, err := m.login(ctx)
		if err != nil {
			return err
		}
		err = f(c)
		if !fault.Is(err, &types.NotAuthenticated{}) || again {
			return err
		}
		m.mu.Lock()
		if m.client == c {
			m.client = nil
		}
		m.mu.Unlock()
	}
}

// providerPrefix starts the provider IDs of vSphere's nodes.
const providerPrefix = "vsphere://"

// withMachine calls f with a client and the machine of a node.
func (m *Machines) withMachine(
	ctx context.Context, n *corev1.Node, f func(c *govmomi.Client, vm *object.VirtualMachine) error,
) error {
	return m.with(ctx, func(c *govmomi.Client) error {
		vm, err := find(ctx, c, n)
		if err != nil {
			return err
		}
		return f(c, vm)
	})
}

// find returns the machine of a node.
func find(ctx context.Context, c *govmomi.Client, n *corev1.Node) (*object.VirtualMachine, error) {
	id, ok := strings.CutPrefix(n.Spec.ProviderID, providerPrefix)
	if !ok || id == "" {
		return nil, hosts.Permanent(fmt.Errorf("node %s is not on vSphere: its provider ID is %q", n.Name, n.Spec.ProviderID))
	}
	ref, err := object.NewSearchIndex(c.Client).FindByUuid(ctx, nil, id, true, nil)
	if err != nil {
		return nil, err
	}
	vm, ok := ref.(*object.VirtualMachine)
	if !ok {
		return nil, hosts.Permanent(fmt.Errorf("vCenter has no virtual machine of node %s, %s", n.Name, id))
	}
	return vm, nil
}

// State implements [vmhardware.Machines].
func (m *Machines) State(ctx context.Context, n *corev1.Node) (s vmhardware.State, err error) {
	err = m.withMachine(ctx, n, func(c *govmomi.Client, vm *object.VirtualMachine) (err error) {
		s, err = stateOf(ctx, c, vm)
		return err
	})
	return s, err
}

func stateOf(ctx context.Context, c *govmomi.Client, vm *object.VirtualMachine) (vmhardware.State, error) {
	var p mo.VirtualMachine
	collector := property.DefaultCollector(c.Client)
	if err := collector.RetrieveOne(ctx, vm.Reference(), []string{"name", "runtime", "config.version", "guest.toolsRunningStatus"}, &p); err != nil {
		return vmhardware.State{}, err
	}
	s := vmhardware.State{Name: p.Name}
	switch p.Runtime.PowerState {
	case types.VirtualMachinePowerStatePoweredOn:
		s.Power = vmhardware.On
	case types.VirtualMachinePowerStatePoweredOff:
		s.Power = vmhardware.Off
	case types.VirtualMachinePowerStateSuspended:
		s.Power = vmhardware.Suspended
	}
	if p.Config == nil {
		return s, fmt.Errorf("vCenter does not know the configuration of virtual machine %s now", p.Name)
	}
	version, err := types.ParseHardwareVersion(p.Config.Version)
	if err != nil {
		return s, fmt.Errorf("virtual machine %s: %w", p.Name, err)
	}
	s.Hardware = int(version)
	s.Tools = p.Guest != nil && p.Guest.ToolsRunningStatus == string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)
	if p.Runtime.Host == nil {
		return s, nil // decided when it is started
	}
	var host mo.HostSystem
	if err := collector.RetrieveOne(ctx, *p.Runtime.Host, []string{"name", "config.product"}, &host); err != nil {
		return s, err
	}
	if host.Config != nil {
		s.Problem = tooOld(host.Name, host.Config.Product.Version)
	}
	return s, nil
}

// minESXi is 7.0 Update 2.
var minESXi = semver.New(7, 0, 2, "", "")

// tooOld describes what is wrong with a host's version; "": nothing.
func tooOld(host, version string) string {
	v, err := semver.NewVersion(version)
	if err != nil || !v.LessThan(minESXi) {
		return ""
	}
	return fmt.Sprintf("its host %s has ESXi %s; 7.0 Update 2 or later is needed", host, version)
}

// ShutDownGuest implements [vmhardware.Machines].
func (m *Machines) ShutDownGuest(ctx context.Context, n *corev1.Node) error {
	return m.withMachine(ctx, n, func(_ *govmomi.Client, vm *object.VirtualMachine) error {
		return vm.ShutdownGuest(ctx)
	})
}

// PowerOn implements [vmhardware.Machines].
func (m *Machines) PowerOn(ctx context.Context, n *corev1.Node) error {
	return m.withMachine(ctx, n, func(_ *govmomi.Client, vm *object.VirtualMachine) error {
		task, err := vm.PowerOn(ctx)
		if err != nil {
			return err
		}
		return task.Wait(ctx)
	})
}

// Upgrade implements [vmhardware.Machines]. A fault of the upgrade itself is
// permanent.
func (m *Machines) Upgrade(ctx context.Context, n *corev1.Node, version int) error {
	return m.withMachine(ctx, n, func(c *govmomi.Client, vm *object.VirtualMachine) error {
		return upgrade(ctx, c, vm, version)
	})
}

func upgrade(ctx context.Context, c *govmomi.Client, vm *object.VirtualMachine, version int) error {
	res, err := methods.UpgradeVM_Task(ctx, c.Client, &types.UpgradeVM_Task{This: vm.Reference(), Version: types.HardwareVersion(version).String()})
	if err != nil {
		return err
	}
	err = object.NewTask(c.Client, res.Returnval).Wait(ctx)
	switch {
	case err == nil, fault.Is(err, &types.AlreadyUpgraded{}):
		return nil
	case ctx.Err() != nil, fault.Is(err, &types.TaskInProgress{}), fault.Is(err, &types.InvalidPowerState{}), fault.Is(err, &types.NotAuthenticated{}):
		return err
	}
	return hosts.Permanent(err)
}

// Schedule lets vCenter upgrade the hardware of a node's machine by itself when its
// guest restarts or shuts down the next time, as in the next update of the cluster:
// the alternative to doing it now. A version of 0 means [vmhardware.MinVersion]. It
// fails if there is no such machine, if its host is too old, and with the faults
// of vCenter.
func (m *Machines) Schedule(ctx context.Context, n *corev1.Node, version int) error {
	if version == 0 {
		version = vmhardware.MinVersion
	}
	return m.withMachine(ctx, n, func(c *govmomi.Client, vm *object.VirtualMachine) error {
		s, err := stateOf(ctx, c, vm)
		switch {
		case err != nil || s.Hardware >= version:
			return err
		case s.Problem != "":
			return hosts.Permanent(fmt.Errorf("the hardware of virtual machine %s cannot be upgraded: %s", s.Name, s.Problem))
		}
		task, err := vm.Reconfigure(ctx, types.VirtualMachineConfigSpec{ScheduledHardwareUpgradeInfo: &types.ScheduledHardwareUpgradeInfo{
			UpgradePolicy: string(types.ScheduledHardwareUpgradeInfoHardwareUpgradePolicyOnSoftPowerOff),
			VersionKey:    types.HardwareVersion(version).String(),
		}})
		if err != nil {
			return err
		}
		return task.Wait(ctx)
	})
}

// UpgradeTemplate upgrades the hardware of a template, by its inventory path: it is
// converted to a virtual machine, which is not powered on, upgraded, and converted
// back. One that was left converted is continued with. A version of 0 means
// [vmhardware.MinVersion]. It fails if there is no such template, if the machine
// is on, and with the faults of vCenter.
func (m *Machines) UpgradeTemplate(ctx context.Context, path string, version int) error {
	if version == 0 {
		version = vmhardware.MinVersion
	}
	return m.with(ctx, func(c *govmomi.Client) error {
		ref, err := object.NewSearchIndex(c.Client).FindByInventoryPath(ctx, path)
		if err != nil {
			return err
		}
		vm, ok := ref.(*object.VirtualMachine)
		if !ok {
			return fmt.Errorf("vCenter has no template %s", path)
		}
		s, err := stateOf(ctx, c, vm)
		switch {
		case err != nil:
			return err
		case s.Power != vmhardware.Off:
			return fmt.Errorf("%s is not a template that is off: it is %s", path, s.Power)
		case s.Hardware < version && s.Problem != "":
			return fmt.Errorf("template %s cannot be upgraded: %s", path, s.Problem)
		}
		template, err := vm.IsTemplate(ctx)
		if err != nil {
			return err
		}
		if s.Hardware < version {
			if template {
				if err := convert(ctx, vm); err != nil {
					return err
				}
				template = false
			}
			if err := upgrade(ctx, c, vm, version); err != nil {
				return fmt.Errorf("template %s, which is left as a virtual machine: %w", path, err)
			}
		}
		if template {
			return nil
		}
		return vm.MarkAsTemplate(ctx)
	})
}

// convert makes a template a virtual machine on its host.
func convert(ctx context.Context, vm *object.VirtualMachine) error {
	host, err := vm.HostSystem(ctx)
	if err != nil {
		return err
	}
	pool, err := host.ResourcePool(ctx)
	if err != nil {
		return err
	}
	return vm.MarkAsVirtualMachine(ctx, *pool, host)
}
