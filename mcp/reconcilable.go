package mcp

import (
	"errors"
	"fmt"
	"slices"

	opv1 "github.com/openshift/api/operator/v1"

	"github.com/clusterupdate/clusterupdate/mcp/internal/ignition"
)

// reconcilable says why a node cannot go from one config to the other, in the order
// in which a daemon finds it out.
func (d *configDiff) reconcilable(o ImpactOptions) error {
	if err := d.newIgn.Validate(); err != nil {
		return fmt.Errorf("invalid ignition config found: %w", err)
	}
	if err := d.passwdReconcilable(); err != nil {
		return err
	}
	a, b := &d.oldIgn.Storage, &d.newIgn.Storage
	allowed := func(part opv1.IrreconcilableValidationOverridesStorage) bool {
		return slices.Contains(o.Overrides.Storage, part)
	}
	for _, section := range []struct {
		name string
		same bool
	}{
		{"kargs", ignition.Equal(d.oldIgn.KernelArguments, d.newIgn.KernelArguments)},
		{"disks", allowed(opv1.IrreconcilableValidationOverridesStorageDisks) || ignition.Equal(a.Disks, b.Disks)},
		{"filesystems", allowed(opv1.IrreconcilableValidationOverridesStorageFileSystems) || ignition.Equal(a.Filesystems, b.Filesystems)},
		{"raid", allowed(opv1.IrreconcilableValidationOverridesStorageRaid) || ignition.Equal(a.Raid, b.Raid)},
		{"directories", ignition.Equal(a.Directories, b.Directories)},
		{"links", len(b.Links) == 0 || ignition.Equal(a.Links, b.Links)},
	} {
		if !section.same {
			return fmt.Errorf("ignition %s section contains changes", section.name)
		}
	}
	for _, f := range b.Files {
		if len(f.Append) > 0 {
			return fmt.Errorf("ignition file %v includes append", f.Path)
		}
		if f.Path == ForceFile {
			return fmt.Errorf("cannot create %s via Ignition", f.Path)
		}
	}
	if d.old.Spec.FIPS != d.new.Spec.FIPS || o.FIPS != nil && *o.FIPS != d.new.Spec.FIPS {
		return errors.New("detected change to FIPS flag; refusing to modify FIPS on a running cluster")
	}
	return nil
}

// passwdReconcilable allows what can be changed of users: the keys and the password
// of core.
func (d *configDiff) passwdReconcilable() error {
	const core = "core"
	a, b := &d.oldIgn.Passwd, &d.newIgn.Passwd
	if !ignition.Equal(a.Groups, b.Groups) {
		return errors.New("ignition Passwd Groups section contains changes")
	}
	if ignition.Equal(a.Users, b.Users) {
		return nil
	}
	for _, u := range b.Users {
		if u.Name != core {
			return errors.New("ignition passwd user section contains unsupported changes: non-core user")
		}
	}
	if len(b.Users) == 0 {
		return nil // users are never removed
	}
	last := b.Users[len(b.Users)-1]
	if last.PasswordHash == nil && len(last.SSHAuthorizedKeys) == 0 {
		return errors.New("ignition passwd user section contains unsupported changes: user must be core and have 1 or more sshKeys")
	}
	if !ignition.Equal(last, ignition.User{Name: core, PasswordHash: last.PasswordHash, SSHAuthorizedKeys: last.SSHAuthorizedKeys}) {
		return errors.New("SSH keys and password hash are not the only changes")
	}
	return nil
}
