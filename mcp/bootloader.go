package mcp

import (
	"encoding/json"
	"fmt"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
)

// bootloaderUnit is the unit bootupctl-update.service.
const bootloaderUnit = `[Unit]
Description=Bootupd automatic update

[Service]
ExecStart=/usr/bin/bootupctl update
RemainAfterExit=yes

[Install]
WantedBy=multi-user.target
`

// BootloaderMachineConfig returns the MachineConfig by which all nodes of a role,
// such as worker or master, update their boot loader at each start. Applying it
// drains and reboots the pool, since no policy is for its unit. It is not made by
// default: a node that is interrupted while its boot loader is written may never
// boot again.
//
// See "Updating the boot loader on RHCOS nodes" in https://docs.openshift.com/.
func BootloaderMachineConfig(role string) *mcfgv1.MachineConfig {
	m := &mcfgv1.MachineConfig{}
	m.APIVersion, m.Kind = mcfgv1.GroupVersion.String(), "MachineConfig"
	m.Name = fmt.Sprintf("99-%s-bootupctl-update", role)
	m.Labels = map[string]string{LabelRole: role}
	raw, err := json.Marshal(map[string]any{
		"ignition": map[string]any{"version": "3.2.0"},
		"systemd": map[string]any{"units": []any{map[string]any{
			"name": "bootupctl-update.service", "enabled": true, "contents": bootloaderUnit,
		}}},
	})
	if err != nil {
		panic(err) // strings and maps
	}
	m.Spec.Config.Raw = raw
	return m
}
