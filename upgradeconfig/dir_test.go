package upgradeconfig

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func tree(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func TestGitDir(t *testing.T) {
	got := checktest.Must(GitDir{Dir: "clusters/a", Tree: tree(map[string]string{
		".git/index":               "",
		"clusters/a/late.yaml":     "id: ''\nstate: ''\ntype: ''\nversion: 4.21.1\nupgradeAt: 2031-03-04T03:00:00Z\n---\n# nothing\n",
		"clusters/a/next.yml":      "id: p-7\nversion: 4.20.3\nchannelGroup: eus\nupgradeAt: 2031-02-04T03:00:00+01:00\ndrainMinutes: 45\ntype: ARO\ncapacityReservation: true\n",
		"clusters/a/old.yaml":      "version: 4.20.1\nupgradeAt: 2031-01-04T03:00:00Z\nstate: Completed\n",
		"clusters/a/idea.yaml":     "state: pending\n",
		"clusters/a/README.md":     "not a policy",
		"clusters/a/sub/more.yaml": "not looked at",
		"clusters/b/other.yaml":    "not looked at",
	})}.Policies(t.Context()))
	next := time.Date(2031, 2, 4, 2, 0, 0, 0, time.UTC)
	want := []Policy{
		{ID: "p-7", State: "scheduled", NextRun: next, Spec: Spec{
			Desired:   Update{Version: "4.20.3", Channel: "eus-4.20"},
			UpgradeAt: "2031-02-04T03:00:00+01:00", PDBForceDrainTimeout: 45, Type: ARO, CapacityReservation: true,
		}},
		{ID: "late.yaml", State: "scheduled", NextRun: next.AddDate(0, 1, 0).Add(time.Hour), Spec: Spec{
			Desired: Update{Version: "4.21.1", Channel: "stable-4.21"}, UpgradeAt: "2031-03-04T03:00:00Z", Type: OSD,
		}},
	}
	checktest.Same(t, want, got)
}

// Nothing that is not a complete answer may read as "no policy".
func TestGitDirFaults(t *testing.T) {
	const fine = "version: 4.21.1\nupgradeAt: 2031-03-04T03:00:00Z\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"no directory", map[string]string{"x": ""}, "p: file does not exist"},
		{"checkout under way", map[string]string{".git/index.lock": "", "p/a.yaml": fine}, "Git is changing the working tree"},
		{"no YAML", map[string]string{"p/a.yaml": "version: ["}, "p/a.yaml: "},
		{"unknown key", map[string]string{"p/a.yaml": fine + "upgradeat: x\n"}, `p/a.yaml: unknown field "upgradeat"`},
		{"a second document", map[string]string{"p/a.yaml": "state: cancelled\n---\n" + fine}, "p/a.yaml: it has more than one document"},
		{"a broken second document", map[string]string{"p/a.yaml": fine + "---\n["}, "p/a.yaml: it has more than one document"},
		{"merge conflict", map[string]string{"p/a.yaml": "<<<<<<< HEAD\n" + fine + "=======\n>>>>>>> x\n"}, "p/a.yaml: "},
		{"no time", map[string]string{"p/a.yaml": "version: 4.21.1\n"}, "p/a.yaml: upgradeAt: "},
		{"no version at all", map[string]string{"p/a.yaml": "upgradeAt: 2031-03-04T03:00:00Z\n"}, "p/a.yaml: unable to determine channel"},
		{"no version", map[string]string{"p/a.yaml": "version: v4.21\nupgradeAt: 2031-03-04T03:00:00Z\n"}, "p/a.yaml: unable to determine channel from channel group 'stable' and version 'v4.21'"},
		{"type", map[string]string{"p/a.yaml": fine + "type: osd\n"}, `p/a.yaml: type: "osd" is neither OSD nor ARO`},
		{"negative", map[string]string{"p/a.yaml": fine + "drainMinutes: -1\n"}, "p/a.yaml: drainMinutes: -1 is negative"},
		{"too large a number", map[string]string{"p/a.yaml": fine + "drainMinutes: 2147483648\n"}, "p/a.yaml: "},
		{"too large a file", map[string]string{"p/a.yaml": fine + strings.Repeat("#", maxPolicyFileSize)}, "p/a.yaml: larger than 65536 bytes"},
		{"one of several", map[string]string{"p/a.yaml": fine, "p/b.yaml": "-"}, "p/b.yaml: "},
	} {
		got, err := GitDir{Tree: tree(tt.files), Dir: "p"}.Policies(t.Context())
		if err == nil || got != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v", tt.name, got, err)
		}
	}
	if got, err := (GitDir{Tree: tree(map[string]string{"p/README.md": ""}), Dir: "p"}).Policies(t.Context()); err != nil || got != nil {
		t.Errorf("empty: %v, %v", got, err)
	}
	// A checkout in the middle of reading.
	files := tree(map[string]string{".git/index": "", "a.yaml": fine})
	_, err := GitDir{Tree: touching{files}}.Policies(t.Context())
	if err != errBusy {
		t.Errorf("%v", err)
	}
}

// touching changes the index when a policy is read.
type touching struct{ fstest.MapFS }

func (f touching) Open(name string) (fs.File, error) {
	if name == "a.yaml" {
		f.MapFS[".git/index"].ModTime = time.Unix(1, 0)
	}
	return f.MapFS.Open(name)
}

// A file is refused, or is a policy that can be carried out, or one that its
// state takes out.
func FuzzPolicyFile(f *testing.F) {
	f.Add([]byte("id: p-7\nversion: 4.20.3\nchannelGroup: eus\nupgradeAt: 2031-02-04T03:00:00+01:00\ndrainMinutes: 45\ntype: ARO\n"))
	f.Add([]byte("state: pending\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, counts, err := GitDir{Tree: fstest.MapFS{"a.yaml": &fstest.MapFile{Data: data}}}.policy("a.yaml")
		if err != nil || !counts {
			return
		}
		if ok, _, err := p.Counts(); !ok || err != nil || (p.NextRun.IsZero() && !strings.HasPrefix(p.Spec.UpgradeAt, "0001-") || p.Spec.Desired.Channel == "" || p.Spec.PDBForceDrainTimeout < 0) {
			t.Fatalf("%+v", p)
		}
	})
}
