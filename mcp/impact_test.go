package mcp_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	opv1 "github.com/openshift/api/operator/v1"

	"github.com/clusterupdate/clusterupdate/mcp"
)

// object is a part of an Ignition config.
type object = map[string]any

// merge adds fields to an object, deeply.
func merge(into, from object) object {
	for k, v := range from {
		if a, ok := into[k].(object); ok {
			if b, ok := v.(object); ok {
				into[k] = merge(a, b)
				continue
			}
		}
		into[k] = v
	}
	return into
}

// rendered is a rendered config with parts of an Ignition config.
func rendered(name string, parts ...object) *mcfgv1.MachineConfig {
	m := &mcfgv1.MachineConfig{}
	m.Name = name
	m.Spec.OSImageURL = "os@1"
	ign := object{"ignition": object{"version": "3.5.0"}}
	for _, p := range parts {
		ign = merge(ign, p)
	}
	raw, err := json.Marshal(ign)
	if err != nil {
		panic(err)
	}
	m.Spec.Config.Raw = raw
	return m
}

func storage(kind string, v ...any) object { return object{"storage": object{kind: v}} }

func plainFile(path, text string) object {
	return object{"path": path, "mode": 0o644, "contents": object{"source": "data:," + text}}
}

func files(pathsAndTexts ...string) object {
	var all []any
	for i := 0; i < len(pathsAndTexts); i += 2 {
		all = append(all, plainFile(pathsAndTexts[i], pathsAndTexts[i+1]))
	}
	return storage("files", all...)
}

func units(namesAndContents ...string) object {
	var all []any
	for i := 0; i < len(namesAndContents); i += 2 {
		all = append(all, object{"name": namesAndContents[i], "enabled": true, "contents": namesAndContents[i+1]})
	}
	return object{"systemd": object{"units": all}}
}

func users(u ...any) object { return object{"passwd": object{"users": u}} }

func core(keys ...string) object { return object{"name": "core", "sshAuthorizedKeys": keys} }

// actions are the actions of an impact in words.
func actions(i mcp.Impact) string {
	var out []string
	for _, a := range i.Actions {
		s := string(a.Type)
		if a.Reload != nil {
			s += " " + string(a.Reload.ServiceName)
		}
		if a.Restart != nil {
			s += " " + string(a.Restart.ServiceName)
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func spec(m *mcfgv1.MachineConfig, change func(*mcfgv1.MachineConfigSpec)) *mcfgv1.MachineConfig {
	change(&m.Spec)
	return m
}

var defaults = mcp.NodeDisruptionPolicies(opv1.NodeDisruptionPolicyConfig{}, false)

func TestNodeImpact(t *testing.T) {
	const policyJSON, config = "/etc/containers/policy.json", "/var/lib/kubelet/config.json"
	type impact struct {
		Drain, Reboot bool
		Actions       string
	}
	reboot := impact{true, true, "Reboot"}
	withUser := mcp.NodeDisruptionPolicies(opv1.NodeDisruptionPolicyConfig{
		Files: []opv1.NodeDisruptionPolicySpecFile{
			{Path: "/etc/app", Actions: []opv1.NodeDisruptionPolicySpecAction{{Type: opv1.DaemonReloadSpecAction}}},
			{Path: "/etc/app/inner", Actions: []opv1.NodeDisruptionPolicySpecAction{{Type: opv1.DrainSpecAction}}},
			{Path: "/etc/app/inner/hard", Actions: []opv1.NodeDisruptionPolicySpecAction{{Type: opv1.RebootSpecAction}}},
			{Path: config, Actions: []opv1.NodeDisruptionPolicySpecAction{{Type: opv1.RestartSpecAction, Restart: &opv1.RestartService{ServiceName: "kubelet.service"}}}},
		},
		Units:  []opv1.NodeDisruptionPolicySpecUnit{{Name: "app.service", Actions: []opv1.NodeDisruptionPolicySpecAction{{Type: opv1.ReloadSpecAction, Reload: &opv1.ReloadService{ServiceName: "app.service"}}}}},
		SSHKey: opv1.NodeDisruptionPolicySpecSSHKey{Actions: []opv1.NodeDisruptionPolicySpecAction{{Type: opv1.DrainSpecAction}}},
	}, false)
	for _, c := range []struct {
		name     string
		old, new *mcfgv1.MachineConfig
		policies opv1.NodeDisruptionPolicyClusterStatus
		options  mcp.ImpactOptions
		want     impact
		reason   string
	}{
		{"nothing differs", rendered("O"), rendered("N"), defaults, mcp.ImpactOptions{}, impact{Actions: "None"}, "nothing differs"},
		{"both nil", nil, nil, defaults, mcp.ImpactOptions{}, impact{Actions: "None"}, ""},
		{"release", rendered("O"), spec(rendered("N"), func(s *mcfgv1.MachineConfigSpec) { s.OSImageURL = "os@2" }), defaults, mcp.ImpactOptions{}, reboot, "the OS image changes from os@1 to os@2"},
		{"layered image", rendered("O"), rendered("N"), defaults, mcp.ImpactOptions{NewImage: "i@1"}, reboot, "the OS image changes from none to i@1"},
		{"kernel arguments", rendered("O"), spec(rendered("N"), func(s *mcfgv1.MachineConfigSpec) { s.KernelArguments = []string{"a"} }), defaults, mcp.ImpactOptions{}, reboot, "kernel arguments"},
		{"no kernel arguments", rendered("O"), spec(rendered("N"), func(s *mcfgv1.MachineConfigSpec) { s.KernelArguments = []string{} }), defaults, mcp.ImpactOptions{}, impact{Actions: "None"}, ""},
		{"kernel type", rendered("O"), spec(rendered("N"), func(s *mcfgv1.MachineConfigSpec) { s.KernelType = "realtime" }), defaults, mcp.ImpactOptions{}, reboot, "from default to realtime"},
		{"default kernel", rendered("O"), spec(rendered("N"), func(s *mcfgv1.MachineConfigSpec) { s.KernelType = "default" }), defaults, mcp.ImpactOptions{}, impact{Actions: "None"}, ""},
		{"extensions", rendered("O"), spec(rendered("N"), func(s *mcfgv1.MachineConfigSpec) { s.Extensions = []string{"usbguard"} }), defaults, mcp.ImpactOptions{}, reboot, "extensions"},
		{"force file", rendered("O"), rendered("N"), defaults, mcp.ImpactOptions{ForceFile: true}, reboot, mcp.ForceFile},

		{"pull secret", rendered("O", files(config, "a")), rendered("N", files(config, "b")), defaults, mcp.ImpactOptions{}, impact{Actions: "None"}, "file " + config},
		{"ssh key", rendered("O", users(core("a"))), rendered("N", users(core("b"))), defaults, mcp.ImpactOptions{}, impact{Actions: "None"}, "SSH keys"},
		{"file without policy", rendered("O"), rendered("N", files("/etc/x", "a")), defaults, mcp.ImpactOptions{}, reboot, "file /etc/x changes, and no policy is for it"},
		{"file removed", rendered("O", files("/etc/x", "a")), rendered("N"), defaults, mcp.ImpactOptions{}, reboot, "/etc/x"},
		{"unit without policy", rendered("O"), rendered("N", units("x.service", "")), defaults, mcp.ImpactOptions{}, reboot, "unit x.service changes, and no policy is for it"},
		{"no policies at all", rendered("O"), rendered("N", files(config, "a")), opv1.NodeDisruptionPolicyClusterStatus{}, mcp.ImpactOptions{}, reboot, ""},
		{"none is dropped beside others", rendered("O"), rendered("N", files(config, "a", policyJSON, "b")), defaults, mcp.ImpactOptions{}, impact{Actions: "Reload crio.service"}, ""},
		{"by path, not deduplicated", rendered("O"),
			rendered("N", files("/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt", "a", "/etc/containers/registries.d/x", "b", policyJSON, "b")), defaults, mcp.ImpactOptions{},
			impact{Actions: "Reload crio.service, Reload crio.service, Restart coreos-update-ca-trust.service, Restart crio.service"}, ""},
		{"a path that only begins alike", rendered("O"), rendered("N", files("/etc/crio/policiesX", "a")), defaults, mcp.ImpactOptions{}, reboot, ""},
		{"a mode", rendered("O", files(policyJSON, "a")), rendered("N", storage("files", object{"path": policyJSON, "mode": 0o600, "contents": object{"source": "data:,a"}})), defaults, mcp.ImpactOptions{},
			impact{Actions: "Reload crio.service"}, ""},
		{"only the order of files", rendered("O", files(config, "a", policyJSON, "b")), rendered("N", files(policyJSON, "b", config, "a")), defaults, mcp.ImpactOptions{}, impact{}, "only the order"},
		{"only the order of units", rendered("O", units("a.service", "", "b.service", "")), rendered("N", units("b.service", "", "a.service", "")), defaults, mcp.ImpactOptions{}, impact{}, "only the order"},

		{"user's directory", rendered("O"), rendered("N", files("/etc/app/x", "a")), withUser, mcp.ImpactOptions{}, impact{Actions: "DaemonReload"}, "by the policy for /etc/app"},
		{"user's longest path", rendered("O"), rendered("N", files("/etc/app/inner/x", "a")), withUser, mcp.ImpactOptions{}, impact{Drain: true, Actions: "Drain"}, "by the policy for /etc/app/inner"},
		{"user's reboot", rendered("O"), rendered("N", files("/etc/app/inner/hard", "a", config, "b")), withUser, mcp.ImpactOptions{}, reboot, ""},
		{"user's path instead of a default", rendered("O"), rendered("N", files(config, "b")), withUser, mcp.ImpactOptions{}, impact{Actions: "Restart kubelet.service"}, ""},
		{"user's unit and key", rendered("O"), rendered("N", units("app.service", ""), users(core("a"))), withUser, mcp.ImpactOptions{}, impact{Drain: true, Actions: "Reload app.service, Drain"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := mcp.NodeImpactWith(c.old, c.new, c.policies, c.options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, impact{got.Drain, got.Reboot, actions(got)}); diff != "" {
				t.Errorf("%s\n%q", diff, got.Reasons)
			}
			if len(got.Reasons) == 0 || !strings.Contains(strings.Join(got.Reasons, "\n"), c.reason) {
				t.Errorf("reasons %q lack %q", got.Reasons, c.reason)
			}
		})
	}
}

// Later releases have more policies.
func TestNewerPolicies(t *testing.T) {
	newer := mcp.NodeDisruptionPolicies(opv1.NodeDisruptionPolicyConfig{}, true)
	for path, want := range map[string]string{
		"/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf": "DaemonReload, Restart kubelet.service",
		"/etc/iri-registry/x":                              "Restart iri-registry.service",
		"/etc/pki/ca-trust/source/anchors/iri-root-ca.crt": "Restart coreos-update-ca-trust.service",
	} {
		got, err := mcp.NodeImpact(rendered("O"), rendered("N", files(path, "a")), newer)
		if err != nil || actions(got) != want {
			t.Errorf("%s: %s, %v", path, actions(got), err)
		}
		if old, _ := mcp.NodeImpact(rendered("O"), rendered("N", files(path, "a")), defaults); !old.Reboot {
			t.Errorf("%s: no reboot in older releases", path)
		}
	}
	got, err := mcp.NodeImpact(rendered("O"), rendered("N", units("iri-registry.service", "x")), newer)
	if want := "DaemonReload, Restart iri-registry.service"; err != nil || actions(got) != want {
		t.Errorf("%s, %v", actions(got), err)
	}
}

// What a cluster says is taken once it has caught up with its spec.
func TestPoliciesOf(t *testing.T) {
	m := &opv1.MachineConfiguration{}
	m.Generation, m.Status.ObservedGeneration = 2, 1
	m.Status.NodeDisruptionPolicyStatus.ClusterPolicies = defaults
	for _, m := range []*opv1.MachineConfiguration{nil, m} {
		if _, err := mcp.PoliciesOf(m); !errors.Is(err, mcp.ErrPoliciesNotReady) || !strings.HasPrefix(err.Error(), "NodeDisruptionPolicyStatus was not ready: ") {
			t.Error(err)
		}
	}
	m.Status.ObservedGeneration = 2
	got, err := mcp.PoliciesOf(m)
	if diff := cmp.Diff(defaults, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestUnreconcilable(t *testing.T) {
	hash := "x"
	allowed := func(parts ...opv1.IrreconcilableValidationOverridesStorage) mcp.ImpactOptions {
		return mcp.ImpactOptions{Overrides: opv1.IrreconcilableValidationOverrides{Storage: parts}}
	}
	yes := true
	fips := func(m *mcfgv1.MachineConfig) *mcfgv1.MachineConfig {
		return spec(m, func(s *mcfgv1.MachineConfigSpec) { s.FIPS = true })
	}
	const fipsText = "detected change to FIPS flag; refusing to modify FIPS on a running cluster"
	for _, c := range []struct {
		name     string
		old, new *mcfgv1.MachineConfig
		options  mcp.ImpactOptions
		want     string // "": it can be reconciled
	}{
		{"version", rendered("O"), rendered("N", object{"ignition": object{"version": "2.2.0"}}), mcp.ImpactOptions{}, `parsing new Ignition config failed with error: unknown version "2.2.0": want 3.x.y`},
		{"old is not JSON", spec(rendered("O"), func(s *mcfgv1.MachineConfigSpec) { s.Config.Raw = []byte("{") }), rendered("N"), mcp.ImpactOptions{}, "parsing old Ignition config failed with error: unexpected end of JSON input"},
		{"invalid", rendered("O"), rendered("N", files("etc/x", "")), mcp.ImpactOptions{}, `invalid ignition config found: path "etc/x" is not absolute`},
		{"twice", rendered("O"), rendered("N", files("/a", "", "/a", "")), mcp.ImpactOptions{}, `invalid ignition config found: path "/a" is there twice`},
		{"unit name", rendered("O"), rendered("N", units("x", "")), mcp.ImpactOptions{}, `invalid ignition config found: unit "x" has a name that is not one of a unit`},
		{"groups", rendered("O"), rendered("N", object{"passwd": object{"groups": []any{object{"name": "g"}}}}), mcp.ImpactOptions{}, "ignition Passwd Groups section contains changes"},
		{"other user", rendered("O"), rendered("N", users(object{"name": "root", "sshAuthorizedKeys": []string{"a"}})), mcp.ImpactOptions{}, "ignition passwd user section contains unsupported changes: non-core user"},
		{"core without key", rendered("O"), rendered("N", users(core())), mcp.ImpactOptions{}, "ignition passwd user section contains unsupported changes: user must be core and have 1 or more sshKeys"},
		{"core with a shell", rendered("O"), rendered("N", users(merge(core("a"), object{"shell": "/bin/sh"}))), mcp.ImpactOptions{}, "SSH keys and password hash are not the only changes"},
		{"core with a password", rendered("O"), rendered("N", users(object{"name": "core", "passwordHash": hash})), mcp.ImpactOptions{}, ""},
		{"users removed", rendered("O", users(core("a"))), rendered("N"), mcp.ImpactOptions{}, ""},
		{"ignition kernel arguments", rendered("O"), rendered("N", object{"kernelArguments": object{"shouldExist": []string{"a"}}}), mcp.ImpactOptions{}, "ignition kargs section contains changes"},
		{"disks", rendered("O"), rendered("N", storage("disks", object{"device": "/dev/sda"})), mcp.ImpactOptions{}, "ignition disks section contains changes"},
		{"disks allowed", rendered("O"), rendered("N", storage("disks", object{"device": "/dev/sda"})), allowed(opv1.IrreconcilableValidationOverridesStorageDisks), ""},
		{"file systems", rendered("O"), rendered("N", storage("filesystems", object{"device": "/dev/sda"})), allowed(opv1.IrreconcilableValidationOverridesStorageDisks), "ignition filesystems section contains changes"},
		{"file systems allowed", rendered("O"), rendered("N", storage("filesystems", object{"device": "/dev/sda"})), allowed(opv1.IrreconcilableValidationOverridesStorageFileSystems), ""},
		{"raid", rendered("O"), rendered("N", storage("raid", object{"name": "r"})), mcp.ImpactOptions{}, "ignition raid section contains changes"},
		{"raid allowed", rendered("O"), rendered("N", storage("raid", object{"name": "r"})), allowed(opv1.IrreconcilableValidationOverridesStorageRaid), ""},
		{"directories", rendered("O"), rendered("N", storage("directories", object{"path": "/d"})), mcp.ImpactOptions{}, "ignition directories section contains changes"},
		{"links", rendered("O"), rendered("N", storage("links", object{"path": "/l", "target": "/x"})), mcp.ImpactOptions{}, "ignition links section contains changes"},
		{"links removed", rendered("O", storage("links", object{"path": "/l", "target": "/x"})), rendered("N"), mcp.ImpactOptions{}, ""},
		{"append", rendered("O"), rendered("N", storage("files", object{"path": "/a", "append": []any{object{"source": "data:,x"}}})), mcp.ImpactOptions{}, "ignition file /a includes append"},
		{"force file", rendered("O"), rendered("N", files(mcp.ForceFile, "")), mcp.ImpactOptions{}, "cannot create /run/machine-config-daemon-force via Ignition"},
		{"FIPS", rendered("O"), fips(rendered("N")), mcp.ImpactOptions{}, fipsText},
		{"FIPS of the node", rendered("O"), rendered("N"), mcp.ImpactOptions{FIPS: &yes}, fipsText},
		{"FIPS is on", fips(rendered("O")), fips(rendered("N")), mcp.ImpactOptions{FIPS: &yes}, ""},
		{"users before storage", rendered("O"), fips(rendered("N", users(object{"name": "root"}), storage("disks", object{}))), mcp.ImpactOptions{}, "ignition passwd user section contains unsupported changes: non-core user"},
		{"an empty list is none", rendered("O"), rendered("N", storage("disks"), storage("links"), users()), mcp.ImpactOptions{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := mcp.NodeImpactWith(c.old, c.new, defaults, c.options)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if want := "can't reconcile config O with N: " + c.want; err == nil || err.Error() != want || !errors.Is(err, mcp.ErrUnreconcilable) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

// The drain that a change of registries.conf needs.
func TestRegistries(t *testing.T) {
	const reg = "[[registry]]\nlocation = \"a.io\"\n"
	const mirror = "[[registry.mirror]]\nlocation = \"m.io\"\n"
	const digest = "pull-from-mirror = \"digest-only\"\n"
	const other = "[[registry.mirror]]\nlocation = \"n.io\"\n"
	for _, c := range []struct {
		name, old, new string
		unsafe         string // why; "": no drain
	}{
		{"comment", reg, "# hello\n" + reg, ""},
		{"registry added by digest", "", reg + mirror + digest, ""},
		{"registry added with one mirror by tag", "", reg + mirror + digest + other, "registry a.io: it is added with mirror n.io, not for digests only"},
		{"registry added without mirrors", "", reg, "registry a.io: it is added, not for digests only"},
		{"registry added without mirrors by digest", "", reg + "mirror-by-digest-only = true\n", ""},
		{"the flag does not stand for mirrors of an added one", "", reg + "mirror-by-digest-only = true\n" + mirror, "registry a.io: it is added with mirror m.io, not for digests only"},
		{"registry removed", reg, "", "registry a.io is removed"},
		{"mirror added by digest", reg, reg + mirror + digest, ""},
		{"mirror added under the flag", reg, reg + "mirror-by-digest-only = true\n" + mirror, ""},
		{"mirror added by tag", reg, reg + mirror, "registry a.io: mirror m.io is added, not for digests only"},
		{"mirror removed", reg + mirror, reg, "registry a.io: mirror m.io is removed"},
		{"mirror to digests", reg + mirror, reg + mirror + digest, ""},
		{"mirror from digests", reg + mirror + digest, reg + mirror, "registry a.io: pull-from-mirror of mirror m.io changes"},
		{"mirror insecure", reg + mirror, reg + mirror + "insecure = true\n", "registry a.io: insecure of mirror m.io changes"},
		{"mirrors in another order", reg + mirror + other, reg + other + mirror, ""},
		{"flag", reg + mirror, reg + "mirror-by-digest-only = true\n" + mirror, ""},
		{"blocked", reg, reg + "blocked = true\n", "registry a.io: blocked changes"},
		{"insecure", reg, reg + "insecure = true\n", "registry a.io: insecure changes"},
		{"prefix", "[[registry]]\nprefix = \"p.io\"\nlocation = \"a.io\"\n", reg, "registry p.io is removed"},
		{"location", "[[registry]]\nprefix = \"p.io\"\nlocation = \"a.io\"\n", "[[registry]]\nprefix = \"p.io\"\nlocation = \"b.io\"\n", "registry p.io: its location changes"},
		{"search appended", "unqualified-search-registries = [\"a\"]\n", "unqualified-search-registries = [\"a\", \"b\"]\n", ""},
		{"search prepended", "unqualified-search-registries = [\"a\"]\n", "unqualified-search-registries = [\"b\", \"a\"]\n", "unqualified-search-registries are not only appended to"},
		{"search removed", "unqualified-search-registries = [\"a\"]\n", "", "unqualified-search-registries are not only appended to"},
		{"another setting", "", "short-name-mode = \"enforcing\"\n", "settings other than those of registries change"},
		{"twice", reg + reg, reg, "registry a.io is there twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for how, encode := range map[string]func(string) object{"base64": base64File, "gzip": gzipFile} {
				old, new := rendered("O", storage("files", encode(c.old))), rendered("N", storage("files", encode(c.new)))
				got, err := mcp.NodeImpact(old, new, defaults)
				if err != nil {
					t.Fatal(how, err)
				}
				text := strings.Join(got.Reasons, "\n")
				if got.Drain != (c.unsafe != "") || got.Reboot || actions(got) != "Special" || !strings.Contains(text, c.unsafe) {
					t.Errorf("%s: %+v", how, got)
				}
			}
		})
	}
	// A file that is new was empty.
	if got, err := mcp.NodeImpact(rendered("O"), rendered("N", storage("files", base64File(reg+mirror+digest))), defaults); err != nil || got.Drain {
		t.Errorf("%+v, %v", got, err)
	}
	for source, want := range map[string]string{
		"data:,[[":                     "new config: /etc/containers/registries.conf: ",
		"https://example.com/conf":     "new config: contents of /etc/containers/registries.conf: the source is not a data URL",
		"data:,%5B%5Bregistry%5D%5D%0": "invalid ignition config found",
	} {
		_, err := mcp.NodeImpact(rendered("O"), rendered("N", storage("files", object{"path": "/etc/containers/registries.conf", "contents": object{"source": source}})), defaults)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", source, err)
		}
	}
}

func base64File(text string) object {
	return object{"path": "/etc/containers/registries.conf", "contents": object{
		"source": "data:text/plain;charset=utf-8;base64," + base64.StdEncoding.EncodeToString([]byte(text)), "compression": ""}}
}

func gzipFile(text string) object {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		panic(err)
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return object{"path": "/etc/containers/registries.conf", "contents": object{
		"source": "data:;base64," + base64.StdEncoding.EncodeToString(b.Bytes()), "compression": "gzip"}}
}

// Whatever a config says, there is an answer: equal configs do nothing, and a reboot
// comes with a drain and alone.
func FuzzNodeImpact(f *testing.F) {
	for _, m := range []*mcfgv1.MachineConfig{
		rendered("", files("/etc/containers/policy.json", "a")), rendered("", users(core("a"))), rendered("", units("a.service", "b")),
		rendered("", storage("files", gzipFile("[[registry]]\nlocation=\"a\"\n"))), rendered("", storage("disks", object{"device": "x", "partitions": []any{object{"number": 1}}})),
	} {
		f.Add([]byte(rendered("").Spec.Config.Raw), []byte(m.Spec.Config.Raw))
		f.Add([]byte(m.Spec.Config.Raw), []byte(m.Spec.Config.Raw))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		old, new := &mcfgv1.MachineConfig{}, &mcfgv1.MachineConfig{}
		old.Spec.Config.Raw, new.Spec.Config.Raw = a, b
		got, err := mcp.NodeImpact(old, new, defaults)
		switch {
		case err != nil:
			if len(got.Actions) > 0 || got.Drain {
				t.Errorf("%+v with %v", got, err)
			}
		case got.Reboot && (!got.Drain || actions(got) != "Reboot"):
			t.Errorf("%+v", got)
		case bytes.Equal(a, b) && actions(got) != "None":
			t.Errorf("equal configs: %+v", got)
		case len(got.Reasons) == 0:
			t.Errorf("no reason: %+v", got)
		}
	})
}

// The boot loader's MachineConfig is what the documentation shows, and reboots nodes.
func TestBootloaderMachineConfig(t *testing.T) {
	m := mcp.BootloaderMachineConfig("worker")
	if m.Name != "99-worker-bootupctl-update" || m.Labels[mcp.LabelRole] != "worker" || m.Kind != "MachineConfig" || m.APIVersion != "machineconfiguration.openshift.io/v1" {
		t.Errorf("%+v", m)
	}
	var ign struct {
		Ignition struct{ Version string }
		Systemd  struct {
			Units []struct {
				Name, Contents string
				Enabled        bool
			}
		}
	}
	if err := json.Unmarshal(m.Spec.Config.Raw, &ign); err != nil {
		t.Fatal(err)
	}
	want := "[Unit]\nDescription=Bootupd automatic update\n\n[Service]\nExecStart=/usr/bin/bootupctl update\nRemainAfterExit=yes\n\n[Install]\nWantedBy=multi-user.target\n"
	if u := ign.Systemd.Units; len(u) != 1 || u[0].Name != "bootupctl-update.service" || !u[0].Enabled || u[0].Contents != want {
		t.Errorf("%+v", ign)
	}
	old := &mcfgv1.MachineConfig{}
	if got, err := mcp.NodeImpact(old, m, defaults); err != nil || !got.Reboot || !got.Drain {
		t.Errorf("%+v, %v", got, err)
	}
}
