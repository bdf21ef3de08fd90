package path

import "testing"

func TestNameOf(t *testing.T) {
	for name, want := range map[string][2]string{
		"a/stable-4.8_amd64.json": {"stable-4.8", "amd64"}, "arm64-fast-4.1.json": {"fast-4.1", "arm64"}, "mine.json": {"mine", ""}, "my-own.json": {"my-own", ""},
	} {
		if channel, arch := nameOf(name); channel != want[0] || arch != want[1] {
			t.Errorf("%s: %s %s", name, channel, arch)
		}
	}
}
