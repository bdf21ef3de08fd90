package graphdata_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
)

// texts shows files by name.
func texts(files []graphdata.File) map[string]string {
	all := map[string]string{}
	for _, f := range files {
		all[f.Name] = string(f.Text)
	}
	return all
}

const lifeStable = "name: stable\n# They are ripe.\nversions:\n# the first\n- 4.29.0\n"

// lifeTree is a tree before a minor becomes generally available.
func lifeTree(files map[string]string) fstest.MapFS {
	all := map[string]string{
		"channels/stable-4.1.yaml":           "-",
		"channels/candidate-4.30.yaml":       "name: candidate-4.30\nversions: [4.29.0, 4.30.0-ec.0, 4.30.0-rc.0, 4.30.0, 4.30.1-rc.0]\n",
		"channels/stable-4.29.yaml":          "name: stable-4.29\nfeeder: {name: stable, delay: PT0H}\nversions: [4.29.0]\n",
		"internal-channels/candidate.yaml":   "name: candidate\nversions: [4.29.0, 4.30.0-ec.0, 4.30.0-rc.0, 4.30.0, 4.30.1]\n",
		"internal-channels/fast.yaml":        "name: fast\nversions: [4.29.0, 4.30.1, 4.30.0]\n",
		"internal-channels/stable.yaml":      lifeStable,
		"build-suggestions/4.30.yaml":        "# of the minor\ndefault: {minor_min: 4.29.0-rc.0, minor_max: 4.29.9999, minor_block_list: [], z_min: 4.30.0-ec.0, z_max: 4.30.9999, z_block_list: []}\n",
		"blocked-edges/4.30.0-ec.0-Pre.yaml": "to: 4.30.0-ec.0\nfrom: .*\nfixedIn: 4.30.0\nurl: https://example.com/pre\nname: PreRelease\nmessage: This is a pre-release.\nmatchingRules: [{type: Always}]\n",
	}
	maps.Copy(all, files)
	return treeOf(all)
}

func channelText(kind, minor, feeder, filter, versions string) string {
	return "feeder:\n  delay: PT0H\n  filter: " + filter + "\n  name: " + feeder + "\nname: " + kind + "-" + minor + "\nversions:" + versions + "\n"
}

func TestLifeCycle(t *testing.T) {
	type files = map[string]string
	suggestion := func(minorMin, minorMax, zMin, zMax string) string {
		return "default:\n  minor_min: " + minorMin + "\n  minor_max: " + minorMax + "\n  minor_block_list: []\n  z_min: " + zMin + "\n  z_max: " + zMax + "\n  z_block_list: []\n"
	}
	fed := func(kind, minor, filter string) string {
		return channelText(kind, minor, "stable", filter, " []")
	}
	ga := func(version string) func(context.Context, fs.FS, string) ([]graphdata.File, error) {
		return func(ctx context.Context, fsys fs.FS, minor string) ([]graphdata.File, error) {
			return graphdata.GA(ctx, fsys, minor, graphdata.GAOptions{URL: version, Message: "From the options."})
		}
	}
	for _, c := range []struct {
		name  string
		step  func(context.Context, fs.FS, string) ([]graphdata.File, error)
		minor string
		files files
		want  files
		err   string
	}{
		{"open", graphdata.Open, "4.31", nil, files{
			"build-suggestions/4.31.yaml":  suggestion("4.30.0-rc.0", "4.30.9999", "4.31.0-ec.0", "4.31.9999"),
			"channels/candidate-4.31.yaml": channelText("candidate", "4.31", "candidate", "4[.](30|31)[.][0-9].*", " []"),
		}, ""},
		{"open a major", graphdata.Open, "5.0", nil, files{
			"build-suggestions/5.0.yaml":  suggestion("4.22.0-rc.0", "4.22.9999", "5.0.0-ec.0", "5.0.9999"),
			"channels/candidate-5.0.yaml": channelText("candidate", "5.0", "candidate", "(5[.]0|4[.]22)[.][0-9].*", " []"),
		}, ""},
		{"open 5.1", graphdata.Open, "5.1", nil, nil, "5.1 cannot be opened"},
		{"open an unknown major", graphdata.Open, "6.0", nil, nil, "which minor comes before 6.0 is not known"},
		{"open no minor", graphdata.Open, "4", nil, nil, `minor version "4" is not of the form 4.16`},
		{"open again", graphdata.Open, "4.30", nil, nil, "create build-suggestions/4.30.yaml: file already exists"},
		{"open with the channel there", graphdata.Open, "4.31", files{"channels/x.yaml": "name: candidate-4.31\nversions: []\n"}, nil, "create channels/x.yaml: file already exists"},

		{"ga of an even minor", ga("x"), "4.30", nil, files{
			"channels/fast-4.30.yaml":                   channelText("fast", "4.30", "fast", "4[.](28|29|30)[.][0-9].*", "\n- 4.30.0\n- 4.30.1"),
			"channels/stable-4.30.yaml":                 channelText("stable", "4.30", "stable", "4[.]30[.][0-9].*", "\n- 4.30.0\n- 4.30.1"),
			"channels/eus-4.30.yaml":                    channelText("eus", "4.30", "stable", "4[.]30[.][0-9].*", "\n- 4.30.0\n- 4.30.1"),
			"internal-channels/stable.yaml":             lifeStable + "- 4.30.0\n- 4.30.1\n",
			"build-suggestions/4.30.yaml":               "# of the minor\ndefault: {minor_min: 4.29.0-rc.0, minor_max: 4.29.9999, minor_block_list: [], z_min: 4.30.0, z_max: 4.30.9999, z_block_list: []}\n",
			"blocked-edges/4.30.0-rc.0-PreRelease.yaml": "to: 4.30.0-rc.0\nfrom: .*\nfixedIn: 4.30.0\nurl: https://example.com/pre\nname: PreRelease\nmessage: This is a pre-release.\nmatchingRules:\n- type: Always\n",
		}, ""},
		{"ga of an odd minor", ga("https://example.com/new"), "4.29", files{
			"channels/stable-4.29.yaml": "-", "build-suggestions/4.30.yaml": suggestion("4.29.0-rc.0", "4.29.9999", "4.30.0-ec.0", "4.30.9999") + strings.ReplaceAll(suggestion("4.29.0-rc.0", "4.29.9999", "4.30.0-ec.0", "4.30.9999"), "default", "s390x"),
			"blocked-edges/4.30.0-ec.0-Pre.yaml": "-", "channels/candidate-4.29.yaml": "name: candidate-4.29\nversions: [4.29.0-rc.0]\n",
		}, files{
			"channels/fast-4.29.yaml":                   channelText("fast", "4.29", "fast", "4[.](28|29)[.][0-9].*", "\n- 4.29.0"),
			"channels/stable-4.29.yaml":                 channelText("stable", "4.29", "stable", "4[.]29[.][0-9].*", "\n- 4.29.0"),
			"build-suggestions/4.30.yaml":               suggestion("4.29.0", "4.29.9999", "4.30.0-ec.0", "4.30.9999") + strings.ReplaceAll(suggestion("4.29.0", "4.29.9999", "4.30.0-ec.0", "4.30.9999"), "default", "s390x"),
			"blocked-edges/4.29.0-rc.0-PreRelease.yaml": "to: 4.29.0-rc.0\nfrom: .*\nfixedIn: 4.29.0\nurl: https://example.com/new\nname: PreRelease\nmessage: From the options.\nmatchingRules:\n- type: Always\n",
		}, ""},
		{"ga with a pre-release", ga("x"), "4.29", files{
			"channels/stable-4.29.yaml": "-", "internal-channels/fast.yaml": "name: fast\nversions: [4.29.0-rc.1, 4.29.1, 4.29.0]\n", "build-suggestions/4.30.yaml": suggestion("4.29.0-rc.0", "4.29.9999", "4.30.0-ec.0", "4.30.9999"),
			"channels/candidate-4.29.yaml": "name: candidate-4.29\nversions: [4.29.0-rc.1]\n", "internal-channels/stable.yaml": "name: stable\nversions: []\n",
		}, files{
			"channels/fast-4.29.yaml":                   channelText("fast", "4.29", "fast", "4[.](28|29)[.][0-9].*", "\n- 4.29.0\n- 4.29.0-rc.1\n- 4.29.1"),
			"channels/stable-4.29.yaml":                 channelText("stable", "4.29", "stable", "4[.]29[.][0-9].*", "\n- 4.29.0\n- 4.29.0-rc.1\n- 4.29.1"),
			"internal-channels/stable.yaml":             "name: stable\nversions:\n- 4.29.0\n- 4.29.0-rc.1\n- 4.29.1\n",
			"build-suggestions/4.30.yaml":               suggestion("4.29.0", "4.29.9999", "4.30.0-ec.0", "4.30.9999"),
			"blocked-edges/4.29.0-rc.1-PreRelease.yaml": "to: 4.29.0-rc.1\nfrom: .*\nfixedIn: 4.29.0\nurl: https://example.com/pre\nname: PreRelease\nmessage: This is a pre-release.\nmatchingRules:\n- type: Always\n",
		}, ""},
		{"ga of an even minor of another numbering", ga("x"), "1.2", files{
			"internal-channels/fast.yaml": "name: fast\nversions: [1.2.0]\n", "channels/candidate-1.2.yaml": "name: candidate-1.2\nversions: [1.2.0]\n", "internal-channels/stable.yaml": "name: stable\nversions: []\n",
		}, files{
			"channels/fast-1.2.yaml":        channelText("fast", "1.2", "fast", "1[.](0|1|2)[.][0-9].*", "\n- 1.2.0"),
			"channels/stable-1.2.yaml":      channelText("stable", "1.2", "stable", "1[.]2[.][0-9].*", "\n- 1.2.0"),
			"channels/eus-1.2.yaml":         channelText("eus", "1.2", "stable", "1[.]2[.][0-9].*", "\n- 1.2.0"),
			"internal-channels/stable.yaml": "name: stable\nversions:\n- 1.2.0\n",
		}, ""},
		{"ga without a text", ga(""), "4.30", files{"blocked-edges/4.30.0-ec.0-Pre.yaml": "-"}, nil, "the tree has no risk PreRelease, and the options have no URL or message for it"},
		{"ga without releases", ga("x"), "4.31", nil, nil, "channel fast has no release of 4.31"},
		{"ga without candidates", ga("x"), "4.29", files{"channels/stable-4.29.yaml": "-"}, nil, "channel candidate-4.29: file does not exist"},
		{"ga without internal channels", ga("x"), "4.30", files{"internal-channels/fast.yaml": "-"}, nil, "channel fast: file does not exist"},
		{"ga without an internal stable", ga("x"), "4.30", files{"internal-channels/stable.yaml": "-"}, nil, "channel stable: file does not exist"},
		{"ga again", ga("x"), "4.30", files{"channels/stable-4.30.yaml": "name: stable-4.30\nversions: []\n"}, nil, "create channels/stable-4.30.yaml: file already exists"},
		{"ga, the risk's file there", ga("x"), "4.30", files{"blocked-edges/4.30.0-rc.0-PreRelease.yaml": smallDrop}, nil, "create blocked-edges/4.30.0-rc.0-PreRelease.yaml: file already exists"},

		{"stable, even", graphdata.StableMinor, "4.30", files{"channels/stable-4.30.yaml": "# about\n" + fed("stable", "4.30", "4[.]30[.][0-9].*"), "channels/eus-4.30.yaml": "name: eus-4.30\nversions: [4.30.0]\nfeeder: {name: stable, delay: PT0H} # without delay\n"}, files{
			"channels/stable-4.30.yaml": "# about\n" + fed("stable", "4.30", "4[.](28|29|30)[.][0-9].*"),
			"channels/eus-4.30.yaml":    "name: eus-4.30\nversions: [4.30.0]\nfeeder: {name: stable, delay: PT0H, filter: '4[.](28|29|30)[.][0-9].*'} # without delay\n",
		}, ""},
		{"stable, odd", graphdata.StableMinor, "4.31", files{"channels/stable-4.31.yaml": fed("stable", "4.31", "4[.]31[.][0-9].*")}, files{"channels/stable-4.31.yaml": fed("stable", "4.31", "4[.](30|31)[.][0-9].*")}, ""},
		{"stable, already", graphdata.StableMinor, "4.31", files{"channels/stable-4.31.yaml": "# about\n---\n" + fed("stable", "4.31", "4[.](30|31)[.][0-9].*")}, files{}, ""},
		{"stable, a major", graphdata.StableMinor, "5.0", files{"channels/stable-5.0.yaml": fed("stable", "5.0", "5[.]0[.][0-9].*")}, files{"channels/stable-5.0.yaml": fed("stable", "5.0", "(5[.]0|4[.]22)[.][0-9].*")}, ""},
		{"stable, missing", graphdata.StableMinor, "4.31", nil, nil, "channel stable-4.31: file does not exist"},

		{"end, even", graphdata.EndOfMaintenance, "4.28", files{
			"channels/stable-4.28.yaml": "# about\nname: stable-4.28\n# fed\nfeeder: {name: stable, delay: PT0H}\n# old\nversions: [4.28.0]\n",
			"channels/stable-4.29.yaml": fed("stable", "4.29", "4[.](28|29)[.][0-9].*"), "channels/stable-4.30.yaml": fed("stable", "4.30", "4[.](28|29|30)[.][0-9].*"),
		}, files{
			"channels/stable-4.28.yaml": "# about\nname: stable-4.28\n# old\nversions: [4.28.0]\n",
			"channels/stable-4.29.yaml": fed("stable", "4.29", "4[.]29[.][0-9].*"), "channels/stable-4.30.yaml": fed("stable", "4.30", "4[.](29|30)[.][0-9].*"),
		}, ""},
		{"end, odd", graphdata.EndOfMaintenance, "4.29", files{"channels/stable-4.30.yaml": fed("stable", "4.30", "4[.](29|30)[.][0-9].*"), "channels/stable-4.31.yaml": fed("stable", "4.31", "4[.](30|31)[.][0-9].*")}, files{
			"channels/stable-4.29.yaml": "name: stable-4.29\nversions: [4.29.0]\n", "channels/stable-4.30.yaml": fed("stable", "4.30", "4[.]30[.][0-9].*"),
		}, ""},
		{"end of a major's last minor", graphdata.EndOfMaintenance, "4.22", files{"channels/stable-4.22.yaml": fed("stable", "4.22", "x"), "channels/stable-5.0.yaml": fed("stable", "5.0", "x"), "channels/stable-5.1.yaml": fed("stable", "5.1", "x")}, files{
			"channels/stable-4.22.yaml": "name: stable-4.22\nversions: []\n", "channels/stable-5.0.yaml": fed("stable", "5.0", "5[.]0[.][0-9].*"), "channels/stable-5.1.yaml": fed("stable", "5.1", "5[.](0|1)[.][0-9].*"),
		}, ""},
		{"end, the next one not fed either", graphdata.EndOfMaintenance, "4.29", files{"channels/stable-4.30.yaml": "name: stable-4.30\nversions: []\n"}, files{"channels/stable-4.29.yaml": "name: stable-4.29\nversions: [4.29.0]\n"}, ""},
		{"end, missing", graphdata.EndOfMaintenance, "4.31", nil, nil, "channel stable-4.31: file does not exist"},
		{"a tree with a fault", graphdata.StableMinor, "4.29", files{"channels/x.yaml": "name: x\n"}, nil, "channels/x.yaml:1:1: versions: is a required property"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := lifeTree(c.files)
			got, err := c.step(t.Context(), fsys, c.minor)
			if c.err != "" {
				if err == nil || err.Error() != c.err || got != nil {
					t.Errorf("%v, want %s; %v", err, c.err, texts(got))
				}
				if strings.HasSuffix(c.err, "exists") && !errors.Is(err, fs.ErrExist) || strings.HasSuffix(c.err, "not exist") && !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%v is of another kind", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, texts(got)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if !slices.IsSortedFunc(got, func(a, b graphdata.File) int { return strings.Compare(a.Name, b.Name) }) {
				t.Error("the files are not sorted")
			}
			for _, f := range got {
				fsys[f.Name] = &fstest.MapFile{Data: f.Text}
			}
			if _, problems := load(t, fsys, graphdata.LoadOptions{}); len(problems) > 0 {
				t.Errorf("the files make a tree with %v", problems)
			}
		})
	}
}

// copyTree is a tree in memory, which can be changed.
func copyTree(t *testing.T, fsys fs.FS) fstest.MapFS {
	t.Helper()
	all := fstest.MapFS{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(fsys, name)
		all[name] = &fstest.MapFile{Data: text}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// onlyAdds checks that a file has all lines that it had, in their order.
func onlyAdds(t *testing.T, old string, f graphdata.File) {
	t.Helper()
	lines := strings.Split(string(f.Text), "\n")
	for line := range strings.SplitSeq(old, "\n") {
		at := slices.Index(lines, line)
		if at < 0 {
			t.Errorf("%s: %q is gone", f.Name, line)
			return
		}
		lines = lines[at+1:]
	}
}

// TestLifeCycleRealTree: the steps that the maintainers took last are those that
// are proposed.
func TestLifeCycleRealTree(t *testing.T) {
	fsys := copyTree(t, realTree(t))
	var took []string
	for name, step := range map[string]func(context.Context, fs.FS, string) ([]graphdata.File, error){"channels/stable-4.17.yaml": graphdata.EndOfMaintenance, "channels/stable-4.20.yaml": graphdata.StableMinor} {
		if _, err := fs.Stat(fsys, name); err != nil {
			continue
		}
		took = append(took, name)
		minor := map[string]string{"channels/stable-4.17.yaml": "4.16", "channels/stable-4.20.yaml": "4.20"}[name]
		files, err := step(t.Context(), fsys, minor)
		if err != nil {
			t.Error(err)
		}
		if len(files) > 0 {
			t.Errorf("%s: it changes %s, but was done already", minor, slices.Sorted(maps.Keys(texts(files))))
		}
	}
	if len(took) == 0 {
		t.Skip("the tree is another one")
	}
	before := maps.Clone(fsys)
	for _, name := range []string{"build-suggestions/4.20.yaml", "channels/candidate-4.20.yaml"} {
		delete(fsys, name)
	}
	files, err := graphdata.Open(t.Context(), fsys, "4.20")
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %d files", err, len(files))
	}
	for _, f := range files {
		if before[f.Name] == nil {
			t.Errorf("%s is a new file", f.Name)
		}
	}
	for _, name := range []string{"channels/fast-4.20.yaml", "channels/stable-4.20.yaml", "channels/eus-4.20.yaml"} {
		delete(fsys, name)
		delete(before, name)
	}
	fsys = copyTree(t, before)
	files, err = graphdata.GA(t.Context(), fsys, "4.20", graphdata.GAOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		switch {
		case strings.HasPrefix(f.Name, "channels/"):
		case f.Name == "internal-channels/stable.yaml": // what is too young for it
			onlyAdds(t, string(fsys[f.Name].Data), f)
		case f.Name == "build-suggestions/4.21.yaml": // it begins later since then
		default:
			t.Errorf("%s changes, but was as it should be", f.Name)
		}
	}
}
