package mcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	opv1 "github.com/openshift/api/operator/v1"

	"github.com/clusterupdate/clusterupdate/mcp/internal/ignition"
)

// Impact is what the way from one rendered config to another does to a node.
type Impact struct {
	// Drain says that the node's pods are evicted first, and Reboot that it is
	// restarted. A reboot always comes with a drain. Nodes of a cluster with
	// [TopologySingleReplica] are never drained all the same.
	Drain, Reboot bool
	// Actions are what the node's daemon does once the files are written, in this
	// order: files by path, then units by name, then SSH keys. A reboot is the only
	// one. None at all, unlike one None, means that nothing has to be done.
	Actions []opv1.NodeDisruptionPolicyStatusAction
	// Reasons say what decided, one text each.
	Reasons []string
}

// ErrUnreconcilable: a node cannot go from one config to another in place. Its
// daemon reports the state [StateUnreconcilable], and only a new target helps.
var ErrUnreconcilable = errors.New("config cannot be reconciled")

// UnreconcilableError says why; it is [ErrUnreconcilable].
type UnreconcilableError struct {
	Old, New string // names of configs
	Err      error
}

func (e *UnreconcilableError) Error() string {
	return fmt.Sprintf("can't reconcile config %s with %s: %v", e.Old, e.New, e.Err)
}

func (e *UnreconcilableError) Unwrap() []error { return []error{ErrUnreconcilable, e.Err} }

// ForceFile is the file on a node by which a person makes its daemon skip its
// checks, write everything again and reboot. This library never writes it.
const ForceFile = "/run/machine-config-daemon-force"

// ImpactOptions is what else decides about an [Impact]. The zero value is a node of a
// pool without image builds.
type ImpactOptions struct {
	// Overrides are those of the MachineConfiguration named cluster,
	// spec.irreconcilableValidationOverrides: which parts of the storage may differ
	// although no node changes them any more.
	Overrides opv1.IrreconcilableValidationOverrides
	// OldImage and NewImage are the OS images of a layered pool.
	OldImage, NewImage string
	// ForceFile says that [ForceFile] is on the node.
	ForceFile bool
	// FIPS says whether the node runs in FIPS mode; nil: not known.
	FIPS *bool
}

// NodeImpact says what a node goes through on its way from one rendered config to
// another, as for "what would unpausing this pool do". p are the cluster's policies, as
// [PoliciesOf] returns them, or [NodeDisruptionPolicies] where no cluster tells. They are
// taken as given: what no policy is for reboots.
//
// An error that is [ErrUnreconcilable] says that the way cannot be gone; any other
// one that it is not known what is needed, and the daemon would be Degraded. A nil
// config is one without anything in it.
func NodeImpact(old, new *mcfgv1.MachineConfig, p opv1.NodeDisruptionPolicyClusterStatus) (Impact, error) {
	return NodeImpactWith(old, new, p, ImpactOptions{})
}

// NodeImpactWith is [NodeImpact] with options, and has the same errors.
func NodeImpactWith(old, new *mcfgv1.MachineConfig, p opv1.NodeDisruptionPolicyClusterStatus, o ImpactOptions) (Impact, error) {
	if old == nil {
		old = &mcfgv1.MachineConfig{}
	}
	if new == nil {
		new = &mcfgv1.MachineConfig{}
	}
	d, err := newConfigDiff(old, new, o)
	if err != nil {
		return Impact{}, &UnreconcilableError{Old: old.Name, New: new.Name, Err: err}
	}
	if reasons := d.reboots(o); len(reasons) > 0 {
		return reboot(reasons...), nil
	}
	if len(d.changed) == 0 {
		return Impact{Actions: []opv1.NodeDisruptionPolicyStatusAction{{Type: opv1.NoneStatusAction}}, Reasons: []string{"nothing differs that the node has to act on"}}, nil
	}
	return d.byPolicy(p)
}

func reboot(reasons ...string) Impact {
	return Impact{Drain: true, Reboot: true, Actions: []opv1.NodeDisruptionPolicyStatusAction{{Type: opv1.RebootStatusAction}}, Reasons: reasons}
}

// configDiff is how two configs differ.
type configDiff struct {
	old, new       *mcfgv1.MachineConfig
	oldIgn, newIgn *ignition.Config
	changed        []string // of files, units, passwd: those that differ
}

// newConfigDiff compares two configs that can be reconciled.
func newConfigDiff(old, new *mcfgv1.MachineConfig, o ImpactOptions) (*configDiff, error) {
	d := &configDiff{old: old, new: new}
	var err error
	d.oldIgn, err = ignition.Parse(old.Spec.Config.Raw)
	if err != nil {
		return nil, fmt.Errorf("parsing old Ignition config failed with error: %w", err)
	}
	d.newIgn, err = ignition.Parse(new.Spec.Config.Raw)
	if err != nil {
		return nil, fmt.Errorf("parsing new Ignition config failed with error: %w", err)
	}
	if err := d.reconcilable(o); err != nil {
		return nil, err
	}
	note := func(what string, same bool) {
		if !same {
			d.changed = append(d.changed, what)
		}
	}
	note("files", ignition.Equal(d.oldIgn.Storage.Files, d.newIgn.Storage.Files))
	note("units", ignition.Equal(d.oldIgn.Systemd.Units, d.newIgn.Systemd.Units))
	note("passwd", ignition.Equal(d.oldIgn.Passwd, d.newIgn.Passwd))
	return d, nil
}

// reboots names what reboots whatever policies say.
func (d *configDiff) reboots(o ImpactOptions) (reasons []string) {
	a, b := &d.old.Spec, &d.new.Spec
	for _, r := range []struct {
		differs bool
		text    string
	}{
		{a.OSImageURL != b.OSImageURL, fmt.Sprintf("the OS image changes from %s to %s", orNone(a.OSImageURL), orNone(b.OSImageURL))},
		{o.OldImage != o.NewImage, fmt.Sprintf("the OS image changes from %s to %s", orNone(o.OldImage), orNone(o.NewImage))},
		{!slices.Equal(a.KernelArguments, b.KernelArguments), "kernel arguments change"},
		{a.FIPS != b.FIPS, "FIPS mode changes"},
		{kernelType(a.KernelType) != kernelType(b.KernelType), fmt.Sprintf("the kernel changes from %s to %s", kernelType(a.KernelType), kernelType(b.KernelType))},
		{!slices.Equal(a.Extensions, b.Extensions), "extensions change"},
		{o.ForceFile, "the force file " + ForceFile + " is there"},
	} {
		if r.differs {
			reasons = append(reasons, r.text)
		}
	}
	return reasons
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func kernelType(t string) string {
	if t == "" {
		return "default"
	}
	return t
}

// byPolicy looks up a policy for all that differs.
func (d *configDiff) byPolicy(p opv1.NodeDisruptionPolicyClusterStatus) (Impact, error) {
	var out Impact
	follow := func(what, policy string, actions []opv1.NodeDisruptionPolicyStatusAction) {
		out.Actions = append(out.Actions, actions...)
		out.Reasons = append(out.Reasons, fmt.Sprintf("%s: %s by the policy for %s", what, actionNames(actions), policy))
	}
	for _, path := range ignition.ChangedFiles(d.oldIgn, d.newIgn) {
		policy := closestPolicy(p.Files, path)
		if policy == nil {
			return reboot(fmt.Sprintf("file %s changes, and no policy is for it", path)), nil
		}
		follow("file "+path+" changes", policy.Path, policy.Actions)
	}
	for _, name := range ignition.ChangedUnits(d.oldIgn, d.newIgn) {
		at := slices.IndexFunc(p.Units, func(u opv1.NodeDisruptionPolicyStatusUnit) bool { return string(u.Name) == name })
		if at < 0 {
			return reboot(fmt.Sprintf("unit %s changes, and no policy is for it", name)), nil
		}
		follow("unit "+name+" changes", "that unit", p.Units[at].Actions)
	}
	if slices.Contains(d.changed, "passwd") {
		follow("SSH keys or the password change", "SSH keys", p.SSHKey.Actions)
	}
	has := func(t opv1.NodeDisruptionPolicyStatusActionType) bool {
		return slices.ContainsFunc(out.Actions, func(a opv1.NodeDisruptionPolicyStatusAction) bool { return a.Type == t })
	}
	switch {
	case len(out.Actions) == 0:
		if len(out.Reasons) == 0 {
			out.Reasons = []string{"only the order of files or units differs"}
		}
		return out, nil
	case has(opv1.RebootStatusAction):
		return reboot(out.Reasons...), nil
	}
	rest := slices.DeleteFunc(out.Actions, func(a opv1.NodeDisruptionPolicyStatusAction) bool { return a.Type == opv1.NoneStatusAction })
	if len(rest) == 0 {
		rest = []opv1.NodeDisruptionPolicyStatusAction{{Type: opv1.NoneStatusAction}}
	}
	out.Actions = rest
	out.Drain = has(opv1.DrainStatusAction)
	if has(opv1.SpecialStatusAction) && !out.Drain {
		unsafe, err := d.registriesUnsafe()
		if err != nil {
			return Impact{}, err
		}
		out.Drain = unsafe != ""
		if out.Drain {
			out.Reasons = append(out.Reasons, fmt.Sprintf("the change of %s needs a drain: %s", registriesPath, unsafe))
		}
	}
	return out, nil
}

// actionNames lists actions in words.
func actionNames(actions []opv1.NodeDisruptionPolicyStatusAction) string {
	if len(actions) == 0 {
		return "nothing"
	}
	names := make([]string, len(actions))
	for i, a := range actions {
		names[i] = string(a.Type)
		switch {
		case a.Reload != nil:
			names[i] += " " + string(a.Reload.ServiceName)
		case a.Restart != nil:
			names[i] += " " + string(a.Restart.ServiceName)
		}
	}
	return strings.Join(names, ", ")
}

// closestPolicy returns the policy with the longest path that is the file's or a
// directory above it; nil if there is none.
func closestPolicy(policies []opv1.NodeDisruptionPolicyStatusFile, path string) (closest *opv1.NodeDisruptionPolicyStatusFile) {
	for i := range policies {
		p := &policies[i]
		dir := strings.TrimRight(p.Path, "/")
		if p.Path != path && !strings.HasPrefix(path, dir+"/") {
			continue
		}
		if closest == nil || len(p.Path) > len(closest.Path) {
			closest = p
		}
	}
	return closest
}
