package graphdata

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/clusterupdate/clusterupdate/graph/internal/minor"
)

// Open returns the files with which the development of a minor, e.g. "4.31",
// begins: its build suggestions, and a candidate channel that is fed by the
// internal one.
//
// The errors of this and of the other steps in the life of a minor are those of
// [Load]; [fs.ErrExist] where a file is there that the step would make, and
// [fs.ErrNotExist] where a channel is not that it would change; or say that the
// text is no minor, or one whose predecessor is not known. The maintainers open no
// 5.1, and so does this function.
func Open(ctx context.Context, fsys fs.FS, minorVersion string) ([]File, error) {
	l, err := newLifeCycle(ctx, fsys, minorVersion)
	if err != nil {
		return nil, err
	}
	if l.minor == after(firstOfFive) {
		return nil, fmt.Errorf("%s cannot be opened", l.minor)
	}
	previous, err := before(l.minor)
	if err != nil {
		return nil, err
	}
	suggestions := yamlMap(yamlText("default"), yamlMap(
		yamlText("minor_min"), yamlText(previous.String()+".0-rc.0"),
		yamlText("minor_max"), yamlText(previous.String()+".9999"),
		yamlText("minor_block_list"), yamlList(),
		yamlText("z_min"), yamlText(l.minor.String()+".0-ec.0"),
		yamlText("z_max"), yamlText(l.minor.String()+".9999"),
		yamlText("z_block_list"), yamlList(),
	))
	if err := l.create("build-suggestions/"+l.minor.String()+".yaml", suggestions); err != nil {
		return nil, err
	}
	if err := l.channel("candidate", "candidate", minorFilter(previous, l.minor), nil); err != nil {
		return nil, err
	}
	return l.done()
}

// GAOptions describe the risk of pre-releases, for trees that do not have it yet.
type GAOptions struct {
	// URL and Message are those of the risk PreRelease. A tree that has one decides
	// by itself: all files of a risk say the same.
	URL, Message string
}

// GA returns the files that change when a minor becomes generally available, with
// the releases of the internal channel fast: the channels fast, stable and, for
// even minors, eus; the internal channel stable; where build suggestions of the
// minor and the next one begin; and a risk for each pre-release of x.y.0 in the
// candidate channel. The errors are those of [Open], or say that there is no
// release of the minor, or no text for the risk.
func GA(ctx context.Context, fsys fs.FS, minorVersion string, opts GAOptions) ([]File, error) {
	l, err := newLifeCycle(ctx, fsys, minorVersion)
	if err != nil {
		return nil, err
	}
	wide, err := window(l.minor)
	if err != nil {
		return nil, err
	}
	versions, err := l.released()
	if err != nil {
		return nil, err
	}
	for _, c := range []struct{ kind, feeder, filter string }{
		{"fast", "fast", minorFilter(wide...)},
		{"stable", "stable", minorFilter(l.minor)},
		{"eus", "stable", minorFilter(l.minor)},
	} {
		if c.kind == "eus" && l.minor.Minor%2 != 0 {
			continue
		}
		if err := l.channel(c.kind, c.feeder, c.filter, versions); err != nil {
			return nil, err
		}
	}
	stable, err := l.find("stable")
	if err != nil {
		return nil, err
	}
	if err := l.addVersions(stable.File, versions, nil); err != nil {
		return nil, err
	}
	first := versions[0] // of the channel as it is written, where pre-releases come after their release
	if err := l.suggestFrom(l.minor, "z_min", first); err != nil {
		return nil, err
	}
	if err := l.suggestFrom(after(l.minor), "minor_min", first); err != nil {
		return nil, err
	}
	if err := l.preReleases(first, opts); err != nil {
		return nil, err
	}
	return l.done()
}

// StableMinor returns the files that change when clusters may update to a minor in
// its channels stable and, for even minors, eus: their filters let the minors
// before it in. The errors are those of [Open].
func StableMinor(ctx context.Context, fsys fs.FS, minorVersion string) ([]File, error) {
	l, err := newLifeCycle(ctx, fsys, minorVersion)
	if err != nil {
		return nil, err
	}
	wide, err := window(l.minor)
	if err != nil {
		return nil, err
	}
	if err := l.filter("stable", l.minor, minorFilter(wide...)); err != nil {
		return nil, err
	}
	if err := l.filter("eus", l.minor, minorFilter(wide...)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return l.done()
}

// EndOfMaintenance returns the files that change when no more releases of a minor
// are made: its stable channel is no longer fed, and the stable channels of later
// minors, as far as there are any, no longer let it in. The errors are those of
// [Open].
func EndOfMaintenance(ctx context.Context, fsys fs.FS, minorVersion string) ([]File, error) {
	l, err := newLifeCycle(ctx, fsys, minorVersion)
	if err != nil {
		return nil, err
	}
	c, err := l.find("stable-" + l.minor.String())
	if err != nil {
		return nil, err
	}
	channel, err := l.open(c.File)
	if err != nil {
		return nil, err
	}
	removeKey(channel, "feeder")
	next := after(l.minor)
	later := map[minor.Minor]string{next: minorFilter(next)}
	if l.minor.Minor%2 == 0 {
		later[after(next)] = minorFilter(next, after(next))
	}
	for m, filter := range later {
		if err := l.filter("stable", m, filter); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return l.done()
}
