package bootloader

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestParseStatus(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       status
		needed     bool
		err        string
	}{
		{name: "up to date", text: "Component EFI\n  Installed: grub2-efi-x64-1:2.04-31.el8_4.1.x86_64,shim-x64-15-8.el8_1.x86_64\n  Update: At latest version\nNo components are adoptable.\nCoreOS aleph image ID: rhcos-48.84.202109241901-0-qemu.x86_64.qcow2\nBoot method: EFI\n",
			want: status{Components: []component{{Name: "EFI", Installed: "grub2-efi-x64-1:2.04-31.el8_4.1.x86_64,shim-x64-15-8.el8_1.x86_64"}}}},
		{name: "no heading of what is adoptable", text: "Component EFI\n  Installed: grub2-efi-aa64-1:2.02-99.el8_4.1.aarch64,shim-aa64-15.4-2.el8_1.aarch64\n  Update: At latest version\n",
			want: status{Components: []component{{Name: "EFI", Installed: "grub2-efi-aa64-1:2.02-99.el8_4.1.aarch64,shim-aa64-15.4-2.el8_1.aarch64"}}}},
		{name: "an update", text: "Component BIOS\n  Installed: grub2-tools-1:2.02\n  Update: Available: grub2-tools-1:2.04\nComponent EFI\n  Installed: a\n  Update: No update found\n",
			needed: true, want: status{Components: []component{{Name: "BIOS", Installed: "grub2-tools-1:2.02", Update: "grub2-tools-1:2.04"}, {Name: "EFI", Installed: "a"}}}},
		{name: "interrupted", text: "Component EFI\n  Installed: a\n  WARNING: Previous update to b was interrupted\n  Update: At latest version\n",
			needed: true, want: status{Components: []component{{Name: "EFI", Installed: "a", Interrupted: "b"}}}},
		{name: "adoptable", text: "No components installed.\nAdoptable: EFI: grub2-efi-x64-1:2.04\nBoot method: EFI\n",
			needed: true, want: status{Adoptable: []adoptable{{Name: "EFI", Version: "grub2-efi-x64-1:2.04"}}}},
		{name: "detected", text: "No components installed.\nDetected: BIOS: grub2\n", needed: true, want: status{Adoptable: []adoptable{{Name: "BIOS", Version: "grub2"}}}},
		{name: "older than installed", text: "Component EFI\n  Installed: b\n  Update: Ignoring downgrade\n", want: status{Components: []component{{Name: "EFI", Installed: "b"}}}},
		{name: "nothing", text: "No components installed.\nNo components are adoptable.\n"},
		{name: "empty", err: `not the output of bootupctl status: ""`},
		{name: "something else", text: "error: permission denied", err: `not the output of bootupctl status: "error: permission denied"`},
		{name: "not understood", text: "Component EFI\n  Update: Perhaps", err: `component EFI: its update is not understood: "Perhaps"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseStatus(tt.text)
			if text := errorText(err); text != tt.err {
				t.Fatalf("error %q, want %q", text, tt.err)
			}
			checktest.Same(t, tt.want, got)
			if got.Needed() != tt.needed {
				t.Errorf("needed %v", got.Needed())
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func FuzzParseStatus(f *testing.F) {
	f.Add("Component EFI\n  Installed: a\n  Update: Available: b\nAdoptable: BIOS: c\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseStatus(text)
		if err != nil {
			if s.Components != nil || s.Adoptable != nil {
				t.Error("a status with an error")
			}
			return
		}
		again, err := parseStatus(text + "\nBoot method: EFI\n")
		if err != nil || again.Needed() != s.Needed() {
			t.Errorf("%v, %v", again, err)
		}
	})
}

func TestOptions(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("no hosts")
	}
}
