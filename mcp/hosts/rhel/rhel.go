package rhel

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/mcp/hosts"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/action"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// Options are the options of [New].
type Options struct {
	// Hosts runs commands on the nodes; required.
	Hosts hosts.Runner
	// Version is the OpenShift version to update to, as in "4.18.15" or "4.18";
	// required. It names the repositories, and decides which kubelet is expected.
	Version string
	// Packages are what is updated; nil means defaultPackages. An empty list
	// updates all packages of the host.
	Packages []string
	// Repositories are enabled, and all others whose name starts with rhocp-4. are
	// disabled; nil means the one of the version for the host's release and
	// architecture. An empty list leaves repositories as they are, for hosts
	// without subscription-manager.
	Repositories []string
	// Transaction names the update; an update that is running, or has ended, is
	// recognised by it after a crash. Empty means the version.
	Transaction string
}

// defaultPackages are the packages of a compute machine that a release of
// OpenShift updates.
var defaultPackages = []string{"cri-o", "openshift-clients", "openshift-hyperkube", "openshift-kubelet"}

// repositoryPrefix starts the names of the repositories of OpenShift's releases.
const repositoryPrefix = "rhocp-4."

// name is the name of the action.
const name = "rhel"

// updater is an [action.Action] that updates the packages of a RHEL host. It is
// safe for concurrent use if its Hosts are.
type updater struct {
	o          Options
	version    *semver.Version
	kubernetes uint64 // its minor version of Kubernetes 1
}

var validPackage = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+*:~-]*$`)

// New returns the action, and an error for options that cannot work.
func New(o Options) (plan.Action, error) {
	if o.Hosts == nil {
		return nil, errors.New("rhel.Options: Hosts is required")
	}
	version, err := semver.NewVersion(o.Version)
	if err != nil {
		return nil, fmt.Errorf("rhel.Options: Version is not one of OpenShift 4: %q", o.Version)
	}
	minor := openshift.MinorOf(version)
	kubernetes, known := minor.Kubernetes()
	if !known || !minor.PackageBased() {
		return nil, fmt.Errorf("rhel.Options: Version %s: nodes that run Red Hat Enterprise Linux end with OpenShift 4.18", version)
	}
	if o.Packages == nil {
		o.Packages = defaultPackages
	}
	for _, name := range slices.Concat(o.Packages, o.Repositories) {
		if !validPackage.MatchString(name) {
			return nil, fmt.Errorf("rhel.Options: not the name of a package or repository: %q", name)
		}
	}
	if o.Transaction == "" {
		o.Transaction = version.String()
	}
	if !validPackage.MatchString(o.Transaction) {
		return nil, fmt.Errorf("rhel.Options: Transaction is not a name: %q", o.Transaction)
	}
	return action.New(&updater{o, version, kubernetes}), nil
}

// Name implements [action.Action].
func (a *updater) Name() string { return name }

// The progress of an update: which part comes next.
const (
	prepare  = ""        // the release, the firewall, the repositories
	update   = "update"  // the packages
	restart  = "reboot " // with the boot ID before
	poll     = 15 * time.Second
	unitName = "rhel-"
)

// Step implements [action.Action]. Its errors are permanent if a command
// ran and failed, or the host cannot be updated.
func (a *updater) Step(ctx context.Context, n *corev1.Node, progress string) (action.Step, error) {
	step, err := a.step(ctx, n, progress)
	return step, action.PermanentExit(err)
}

func (a *updater) step(ctx context.Context, n *corev1.Node, progress string) (action.Step, error) {
	if before, ok := strings.CutPrefix(progress, restart); ok {
		return a.restart(ctx, n, before, progress)
	}
	switch progress {
	case prepare:
		if err := a.prepare(ctx, n); err != nil {
			return action.Step{}, err
		}
		return action.Step{Progress: update}, nil
	case update:
		return a.update(ctx, n)
	}
	return action.Step{}, hosts.Permanent(fmt.Errorf("the recorded progress is not known: %q", progress))
}

// prepare makes the host ready for the update.
func (a *updater) prepare(ctx context.Context, n *corev1.Node) error {
	text, err := a.o.Hosts.Run(ctx, n, "cat", "/etc/os-release")
	if err != nil {
		return err
	}
	release, err := parseRelease(text)
	if err != nil {
		return hosts.Permanent(err)
	}
	if err := release.Supported(); err != nil {
		return hosts.Permanent(err)
	}
	if err := a.stopFirewall(ctx, n); err != nil {
		return err
	}
	return a.switchRepositories(ctx, n, release)
}

// stopFirewall disables firewalld, which OpenShift's networks do not bear.
func (a *updater) stopFirewall(ctx context.Context, n *corev1.Node) error {
	out, err := a.o.Hosts.Run(ctx, n, "systemctl", "show", "firewalld.service", "--property=LoadState,ActiveState,UnitFileState")
	if err != nil {
		return err
	}
	if strings.Contains(out, "LoadState=not-found") || strings.Contains(out, "ActiveState=inactive") && !strings.Contains(out, "UnitFileState=enabled") {
		return nil
	}
	_, err = a.o.Hosts.Run(ctx, n, "systemctl", "disable", "--now", "firewalld.service")
	return err
}

// switchRepositories enables the repositories of the release and disables those
// of others.
func (a *updater) switchRepositories(ctx context.Context, n *corev1.Node, release release) error {
	want := a.o.Repositories
	if want == nil {
		arch, err := a.o.Hosts.Run(ctx, n, "uname", "-m")
		if err != nil {
			return err
		}
		want = []string{fmt.Sprintf("%s%d-for-rhel-%d-%s-rpms", repositoryPrefix, a.version.Minor(), release.Version.Major(), strings.TrimSpace(arch))}
	}
	if len(want) == 0 {
		return nil
	}
	out, err := a.o.Hosts.Run(ctx, n, "subscription-manager", "repos", "--list-enabled")
	if err != nil {
		return err
	}
	argv := []string{"subscription-manager", "repos"}
	enabled := parseRepositories(out)
	for _, id := range enabled {
		if strings.HasPrefix(id, repositoryPrefix) && !slices.Contains(want, id) {
			argv = append(argv, "--disable="+id)
		}
	}
	for _, id := range want {
		if !slices.Contains(enabled, id) {
			argv = append(argv, "--enable="+id)
		}
	}
	if len(argv) == 2 {
		return nil
	}
	_, err = a.o.Hosts.Run(ctx, n, argv...)
	return err
}

// update updates the packages.
func (a *updater) update(ctx context.Context, n *corev1.Node) (action.Step, error) {
	argv := append([]string{"yum", "--assumeyes", "update"}, a.o.Packages...)
	done, err := action.RunDetached(ctx, a.o.Hosts, n, unitName+a.o.Transaction, argv...)
	if err != nil {
		return action.Step{}, err
	}
	if !done {
		return action.Step{Progress: update, After: poll, Waiting: "its packages to be updated"}, nil
	}
	out, err := a.o.Hosts.Run(ctx, n, "kubelet", "--version")
	if err != nil {
		return action.Step{}, err
	}
	if version := strings.TrimPrefix(strings.TrimSpace(out), "Kubernetes "); !a.expected(version) {
		if err := action.Forget(ctx, a.o.Hosts, n, unitName+a.o.Transaction); err != nil {
			return action.Step{}, err
		}
		return action.Step{}, hosts.Permanent(fmt.Errorf("the packages were updated, and the kubelet is %s; %s is expected: are the repositories right?", version, a.kubelet()))
	}
	boot, err := action.BootID(ctx, a.o.Hosts, n)
	return action.Step{Progress: restart + boot}, err
}

// expected reports whether a kubelet is one of the version to update to.
func (a *updater) expected(kubelet string) bool {
	v, err := semver.NewVersion(kubelet)
	return err == nil && v.Major() == 1 && v.Minor() == a.kubernetes
}

func (a *updater) kubelet() string { return fmt.Sprintf("1.%d", a.kubernetes) }

// restart restarts the host, and waits for its kubelet to be the expected one.
func (a *updater) restart(ctx context.Context, n *corev1.Node, before, progress string) (action.Step, error) {
	step, err := action.Reboot(ctx, a.o.Hosts, n, before, progress)
	if err != nil || !step.Done {
		return step, err
	}
	if !a.expected(n.Status.NodeInfo.KubeletVersion) {
		return action.Step{Progress: progress, After: poll, Waiting: "a kubelet of " + a.kubelet()}, nil
	}
	return step, nil
}
