package source

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
)

// repository is where releases are published.
const repository = "quay.io/openshift-release-dev/ocp-release"

// sources opens the places of releases. The function closes them.
func (o Options) sources(tree fs.FS) (list []graphdata.ReleaseSource, closeAll func(), err error) {
	var files []*os.File
	closeAll = func() {
		for _, f := range files {
			f.Close()
		}
	}
	if o.Tree == "" && len(o.Releases) == 0 {
		return []graphdata.ReleaseSource{graphdata.Lines{FS: tree, Name: "releases.jsonl"}}, closeAll, nil
	}
	for _, place := range o.Releases {
		name, repo := cutRepository(place)
		info, err := os.Stat(name)
		if err != nil {
			closeAll()
			return nil, nil, fmt.Errorf("-releases: %w", err)
		}
		dir, base := os.DirFS(filepath.Dir(name)), filepath.Base(name)
		layout := graphdata.Layout{Name: base, Repository: cmp.Or(repo, repository)}
		switch {
		case info.IsDir():
			layout.FS = os.DirFS(name)
			if isMirror(layout.FS) {
				list = append(list, layout)
			} else {
				list = append(list, graphdata.Payloads{FS: layout.FS, Describe: o.describe})
			}
		case filepath.Ext(name) == ".tar":
			f, err := os.Open(name)
			if err == nil {
				files = append(files, f)
				layout.FS, err = graphdata.OpenLayout(f, info.Size())
			}
			if err != nil {
				closeAll()
				return nil, nil, fmt.Errorf("%s: %w", name, err)
			}
			list = append(list, layout)
		case filepath.Ext(name) == ".json":
			list = append(list, graphdata.Stored{FS: dir, Name: base, Options: graphdata.RawOptions{Compat: o.Compat}})
		default:
			list = append(list, graphdata.Lines{FS: dir, Name: base})
		}
	}
	return list, closeAll, nil
}

// isMirror reports whether a directory has images in one of the forms that mirror
// tools write, rather than payloads.
func isMirror(fsys fs.FS) bool {
	for _, name := range []string{"index.json", "v2", "docker/registry/v2"} {
		if _, err := fs.Stat(fsys, name); err == nil {
			return true
		}
	}
	archives, _ := fs.Glob(fsys, "mirror_*.tar")
	return len(archives) > 0
}

// cutRepository splits PLACE=REPOSITORY.
func cutRepository(place string) (name, repo string) {
	name, repo, _ = strings.Cut(place, "=")
	return name, repo
}

// describe adds to the release in a directory what its files do not say.
func (o Options) describe(_ string, r *graphdata.Release) error {
	r.Arch, r.Image = o.Arch, published(r.Version, o.Arch)
	return nil
}

// published is the name by which the image of a release is published.
func published(version, arch string) string {
	if name, ok := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]; ok {
		arch = name
	}
	return repository + ":" + version + "-" + arch
}

// approximate makes up the releases that channels name and that are not known. The
// updates to them are those that the build suggestions of the tree ask for. The tree
// does not say their digests, nor what else is in their metadata.
func approximate(tree *graphdata.Tree, known []graphdata.Release, arch string) (made []graphdata.Release, problems []graphdata.Problem) {
	have := map[string]bool{}
	var versions []string
	for _, r := range known {
		version, _, _ := strings.Cut(r.Version, "+")
		if r.Arch == arch || r.Arch == "" {
			have[version] = true
			versions = append(versions, version)
		}
	}
	files := map[string]string{}
	for _, c := range tree.Channels {
		for _, e := range c.Versions {
			version, build, _ := strings.Cut(e.Version, "+")
			if have[version] || build != "" && build != arch {
				continue
			}
			if _, err := graph.ParseVersion(version); err != nil {
				continue // a problem of the tree
			}
			have[version], files[version] = true, fmt.Sprintf("%s:%d", c.File, e.Line)
			versions = append(versions, version)
		}
	}
	slices.SortFunc(versions, graph.CompareVersions)
	lonely := 0
	for _, version := range versions {
		if files[version] == "" {
			continue
		}
		r := graphdata.Release{
			Version: version, Arch: arch, Image: published(version, arch), Source: "made up of " + files[version],
			Previous: tree.Suggested(version, arch, versions),
		}
		if len(r.Previous) == 0 {
			lonely++
		}
		made = append(made, r)
	}
	if len(made) > 0 {
		message := fmt.Sprintf("%d releases for %s are made up: images have no digest, and updates to them are those of the build suggestions", len(made), arch)
		if lonely > 0 {
			message += fmt.Sprintf("; there are none for %d", lonely)
		}
		problems = append(problems, graphdata.Problem{File: "channels", Message: message, Warning: true})
	}
	return made, problems
}
