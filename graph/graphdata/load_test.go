package graphdata_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestLoad(t *testing.T) {
	tree, problems := load(t, treeOf(map[string]string{
		"version":                      " 1.1.0 ",
		"channels/fast-4.30.yaml":      "# why not 4.30.1\n---\nname: fast-4.30\nfeeder: {name: fast, delay: PT0H, filter: '4[.].*', errata: public}\ntombstones: [4.29.7]\nversions:\n- 4.29.7\n- 4.2.10-s390x\n- 4.30.0+amd64\n",
		"channels/new.yaml":            "name: new-4.31\nversions:\n",
		"channels/stable-4.1.yaml":     "-",
		"internal-channels/fast.yaml":  "{name: fast, versions: []}",
		"blocked-edges/a.yaml":         "to: 4.3.29+s390x\nfrom: 4\nfixedIn: 4.3.30\nautoExtend: https://example.com/2\n",
		"blocked-edges/b.yaml":         "to: 4.30.3\nfrom: 4[.]29[.].*\nfixedIn: 4.30.4\nurl: https://example.com/1\nname: SlowDisks\nmessage: |\n  It is slow.\nmatchingRules:\n- type: PromQL\n  promql:\n    promql: up > 0\n- {type: Always}\n",
		"raw/metadata.json":            "{\n\"4.1.0\": {\n\"b\": \"2\",\n\"a\": \"1\"}}",
		"build-suggestions/4.30.yaml":  "s390x: {minor_min: 4.29.1, minor_max: 4.29.9999, minor_block_list: [4.29.5], z_min: 4.30.0, z_max: 4.30.9999, z_block_list: []}\ndefault: {minor_min: 4.29.0, minor_max: 4.29.9999, minor_block_list: [], z_min: 4.30.0, z_max: 4.30.9999, z_block_list: }\n",
		"build-suggestions/README.md":  "",
		"signatures/sha256/ab/ignored": "",
	}), graphdata.LoadOptions{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := &graphdata.Tree{
		SchemaVersion: "1.1.0",
		Channels: []graphdata.Channel{{
			File: "channels/fast-4.30.yaml", Name: "fast-4.30",
			Versions:   []graphdata.Entry{{Version: "4.29.7", Line: 7}, {Version: "4.2.10-s390x", Line: 8}, {Version: "4.30.0+amd64", Line: 9}},
			Feeder:     &graphdata.Feeder{Name: "fast", Delay: "PT0H", Errata: "public", Filter: "4[.].*"},
			Tombstones: []graphdata.Entry{{Version: "4.29.7", Line: 5}},
			Lines:      map[string]int{"name": 3, "feeder": 4, "feeder.name": 4, "feeder.delay": 4, "feeder.errata": 4, "feeder.filter": 4, "tombstones": 5, "versions": 6},
		}, {
			File: "channels/new.yaml", Name: "new-4.31", Versions: []graphdata.Entry{}, Lines: map[string]int{"name": 1, "versions": 2},
		}},
		Internal: []graphdata.Channel{{File: "internal-channels/fast.yaml", Name: "fast", Versions: []graphdata.Entry{}, Lines: map[string]int{"name": 1, "versions": 1}}},
		Drops: []graphdata.BlockedEdge{{File: "blocked-edges/a.yaml", Line: 2, To: "4.3.29+s390x", From: "4", FixedIn: "4.3.30", AutoExtend: "https://example.com/2",
			Lines: map[string]int{"to": 1, "from": 2, "fixedIn": 3, "autoExtend": 4}}},
		Risks: []graphdata.BlockedEdge{{File: "blocked-edges/b.yaml", Line: 2, To: "4.30.3", From: "4[.]29[.].*", FixedIn: "4.30.4", Risk: &configv1.ConditionalUpdateRisk{
			URL: "https://example.com/1", Name: "SlowDisks", Message: "It is slow.\n",
			MatchingRules: []configv1.ClusterCondition{{Type: "PromQL", PromQL: &configv1.PromQLClusterCondition{PromQL: "up > 0"}}, {Type: "Always"}},
		}, Lines: map[string]int{"to": 1, "from": 2, "fixedIn": 3, "url": 4, "name": 5, "message": 6, "matchingRules": 8}}},
		Raw: []graphdata.RawEntry{{Line: 3, Version: "4.1.0", Key: "b", Value: "2"}, {Line: 4, Version: "4.1.0", Key: "a", Value: "1"}},
		Suggestions: []graphdata.Suggestion{
			{File: "build-suggestions/4.30.yaml", Line: 2, Minor: "4.30", Arch: "default", MinorMin: "4.29.0", MinorMax: "4.29.9999", ZMin: "4.30.0", ZMax: "4.30.9999"},
			{File: "build-suggestions/4.30.yaml", Line: 1, Minor: "4.30", Arch: "s390x", MinorMin: "4.29.1", MinorMax: "4.29.9999", MinorBlockList: []string{"4.29.5"}, ZMin: "4.30.0", ZMax: "4.30.9999"},
		},
	}
	checktest.Same(t, want, tree)
}

// TestMissing: without these parts not even an update service builds a graph.
func TestMissing(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"version", map[string]string{"version": "-"}, []string{`version: Reading "version": open version: file does not exist [read]`}},
		{"raw metadata", map[string]string{"raw/metadata.json": "-"}, []string{"raw/metadata.json: open raw/metadata.json: file does not exist [read]"}},
		{"channels", map[string]string{"channels/stable-4.1.yaml": "-"}, []string{"channels: open channels: file does not exist [read]"}},
		{"blocked edges", map[string]string{"blocked-edges/README.md": "-"}, []string{"blocked-edges: open blocked-edges: file does not exist [read]"}},
		{"internal channels", map[string]string{"internal-channels/OWNERS": "-", "internal-channels/.ignored": "-"}, nil},
		{"all", map[string]string{"version": "-", "raw/metadata.json": "[]", "channels/stable-4.1.yaml": "-"}, []string{
			"channels: open channels: file does not exist [read]",
			"raw/metadata.json:1: expected an object, found an array [raw-metadata]",
			`version: Reading "version": open version: file does not exist [read]`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, compat := range []bool{false, true} {
				tree, problems := load(t, treeOf(c.files), graphdata.LoadOptions{Compat: compat})
				if diff := cmp.Diff(c.want, problems); diff != "" || (tree == nil) != (c.want != nil) {
					t.Errorf("compat %v: -want +got\n%s", compat, diff)
				}
			}
		})
	}
}

func TestSchemaVersion(t *testing.T) {
	for _, c := range []struct {
		version, want, compat string // compat empty: as without
		malformed             bool
	}{
		{version: "1.1.0-rc.1+a"},
		{version: "1.1.0-01", want: "version: 1.1.0-01 is not a valid semver [schema]", compat: "fine", malformed: true},
		{version: "1.1.0-a--b", compat: "version: 1.1.0-a--b is not a valid semver [schema]", malformed: true},
		{version: "1.0.7"}, {version: "1.2.0\n"}, {version: "\t1.1.0\r\n"},
		{version: "1.3.0", want: "warning: version: 1.3.0 is newer than 1.2.0: what it adds is not understood [schema-newer]"},
		{version: "0.9.0", want: `version: unrecognized graph-data version 0.9.0; "1.2.0" and compatible versions are supported [schema]`},
		{version: "2.0.0\n", want: `version: unrecognized graph-data version 2.0.0; "1.2.0" and compatible versions are supported [schema]`},
		{version: "1.1", want: "version: 1.1 is not a valid semver [schema]", malformed: true},
		{version: "v1.1.0", want: "version: v1.1.0 is not a valid semver [schema]", malformed: true},
		{version: "", want: "version:  is not a valid semver [schema]", malformed: true},
	} {
		for _, compat := range []bool{false, true} {
			fsys := treeOf(map[string]string{"version": c.version})
			tree, problems := load(t, fsys, graphdata.LoadOptions{Compat: compat})
			text := c.want
			if compat && c.compat != "" {
				text = c.compat
			}
			want := []string{text}
			if text == "" || text == "fine" {
				want = nil
			}
			checktest.SameIn(t, fmt.Sprintf("%q", c.version), want, problems)
			if tree != nil {
				continue
			}
			_, err := graphdata.Load(t.Context(), fsys, graphdata.LoadOptions{Compat: compat})
			var schema *graphdata.SchemaError
			if !errors.As(err, &schema) || schema.Malformed != c.malformed {
				t.Errorf("%q: %#v", c.version, schema)
			}
		}
	}
}

// TestNewerSchema: keys that a newer schema may have added are no errors.
func TestNewerSchema(t *testing.T) {
	tree, problems := load(t, treeOf(map[string]string{
		"version":                  "1.9.0",
		"channels/stable-4.1.yaml": smallChannel + "since: 2030\n",
		"blocked-edges/a.yaml":     smallDrop + "until: 4.2.0\n",
		"blocked-edges/b.yaml":     smallRisk + "  weight: 3\n",
	}), graphdata.LoadOptions{})
	want := []string{
		"warning: blocked-edges/a.yaml:3:1: until: is not a known key [unknown-key]",
		"warning: blocked-edges/b.yaml:8:3: matchingRules[0].weight: is not a known key [unknown-key]",
		"warning: channels/stable-4.1.yaml:3:1: since: is not a known key [unknown-key]",
		"warning: version: 1.9.0 is newer than 1.2.0: what it adds is not understood [schema-newer]",
	}
	checktest.Same(t, want, problems)
	if tree == nil || len(tree.Channels) != 1 || len(tree.Drops) != 1 || len(tree.Risks) != 1 {
		t.Errorf("%+v", tree)
	}
}

// TestSelection: which files of a directory are read. In channels and
// blocked-edges the others are errors.
func TestSelection(t *testing.T) {
	files := map[string]string{}
	for name, text := range map[string]string{
		"a.yml":           smallChannel,
		"b.xyaamlz":       smallChannel,
		"c.yaml.bak":      smallChannel,
		"d":               smallChannel,
		"e.YAML":          smallChannel,
		".yaml":           smallChannel,
		".f.swp":          smallChannel,
		"OWNERS":          "approvers: []\n",
		"README.md":       "# About",
		"old/e.yaml":      smallChannel,
		"old/f/g.yaml":    smallChannel,
		"old/notes.txt":   "",
		".old/h.yaml":     smallChannel,
		"stable-4.1.yaml": smallChannel,
	} {
		files["channels/"+name] = text
		files["internal-channels/"+name] = text
		files["blocked-edges/"+name] = strings.ReplaceAll(text, smallChannel, smallDrop)
	}
	problemsOf := func(dir, severity string, compat bool) []string {
		out := []string{"warning: " + dir + "/.old/h.yaml: is not read, since it lies in a directory below [below-directory]"}
		for _, p := range []string{
			`a.yml: has an invalid extension "yml" [invalid-extension]`,
			`b.xyaamlz: has an invalid extension "xyaamlz" [invalid-extension]`,
			`c.yaml.bak: has an invalid extension "bak" [invalid-extension]`,
			"d: is missing an extension [missing-extension]",
			`e.YAML: has an invalid extension "YAML" [invalid-extension]`,
			"old: is a directory, whose files are not read [directory]",
			"old/e.yaml: is not read, since it lies in a directory below [below-directory]",
			"old/f/g.yaml: is not read, since it lies in a directory below [below-directory]",
		} {
			if !compat || !strings.Contains(p, "xyaamlz") {
				out = append(out, severity+dir+"/"+p)
			}
		}
		return out
	}
	for _, compat := range []bool{false, true} {
		want := slices.Concat(problemsOf("blocked-edges", "", compat), problemsOf("channels", "", compat), problemsOf("internal-channels", "warning: ", compat))
		tree, problems := load(t, treeOf(files), graphdata.LoadOptions{Compat: compat})
		checktest.SameIn(t, fmt.Sprintf("compat %v", compat), want, problems)
		if (tree != nil) != compat {
			t.Errorf("compat %v: loaded: %v", compat, tree != nil)
		}
	}
	tree, _ := load(t, treeOf(files), graphdata.LoadOptions{Compat: true})
	var read []string
	for _, ch := range tree.Channels {
		read = append(read, ch.File)
	}
	for _, d := range tree.Drops {
		read = append(read, d.File)
	}
	want := []string{"channels/b.xyaamlz", "channels/stable-4.1.yaml", "blocked-edges/b.xyaamlz", "blocked-edges/stable-4.1.yaml"}
	checktest.Same(t, want, read)

	for name := range files { // what is harmless
		switch path.Base(name) {
		case ".yaml", ".f.swp", "OWNERS", "README.md", "stable-4.1.yaml":
		default:
			delete(files, name)
		}
	}
	if _, problems := load(t, treeOf(files), graphdata.LoadOptions{}); len(problems) > 0 {
		t.Error(problems)
	}
}

// TestContext: an ended context ends the reading.
func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(nil)
	checktest.ErrorIs(t, context.Canceled, checktest.Err(graphdata.Load(ctx, treeOf(nil), graphdata.LoadOptions{})))
	if _, err := graphdata.Load(t.Context(), treeOf(nil), graphdata.LoadOptions{Limits: graphdata.Limits{MaxFiles: -1}}); err == nil {
		t.Error("a negative limit is accepted")
	}
}

// unreadable fails to open one file.
type unreadable struct {
	fstest.MapFS
	name string
}

func (u unreadable) Open(name string) (fs.File, error) {
	if name == u.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return u.MapFS.Open(name)
}

// TestUnreadable: a file that cannot be read fails a strict Load alone.
func TestUnreadable(t *testing.T) {
	fsys := unreadable{treeOf(nil), "channels/stable-4.1.yaml"}
	_, err := graphdata.Load(t.Context(), fsys, graphdata.LoadOptions{})
	if !errors.Is(err, fs.ErrPermission) || err.Error() != "channels/stable-4.1.yaml: open channels/stable-4.1.yaml: permission denied" {
		t.Error(err)
	}
	tree, problems := load(t, fsys, graphdata.LoadOptions{Compat: true})
	if len(problems) != 1 || len(tree.Channels) != 0 {
		t.Error(problems)
	}
}

// breaking is a file system whose blocked edges break off after some bytes.
type breaking struct{ fstest.MapFS }

type breakingFile struct {
	fs.File
	left int
}

func (b breaking) Open(name string) (fs.File, error) {
	f, err := b.MapFS.Open(name)
	if err != nil || !strings.HasPrefix(name, "blocked-edges/broken") {
		return f, err
	}
	return &breakingFile{f, 1000}, nil
}

func (f *breakingFile) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, errors.New("broken off")
	}
	n := min(f.left, len(p))
	f.left -= n
	return n, nil
}

// TestBrokenFilesCount: what is read of files that cannot be used counts.
func TestBrokenFilesCount(t *testing.T) {
	files := map[string]string{}
	for n := range 100 {
		files[fmt.Sprintf("blocked-edges/broken%d.yaml", n)] = ""
		files[fmt.Sprintf("channels/large%d.yaml", n)] = strings.Repeat("#", 2000)
	}
	for name, fsys := range map[string]fs.FS{"broken": breaking{treeOf(files)}, "large": treeOf(files)} {
		_, err := graphdata.Load(t.Context(), fsys, graphdata.LoadOptions{Limits: graphdata.Limits{MaxTreeBytes: 50_000, MaxFileBytes: 1500}})
		var failed *graphdata.LoadError
		if !errors.As(err, &failed) || !slices.ContainsFunc(failed.Problems, func(p graphdata.Problem) bool {
			limit, ok := p.Err.(*graphdata.LimitError)
			return ok && limit.What == "bytes of all files"
		}) {
			t.Errorf("%s: %.500v", name, err)
		}
	}
}
