// Package regular opens files that are nothing else. To open a pipe that nobody
// writes to takes as long as nobody does, and a device never ends.
package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// ErrNotRegular is in the error of [Open] for a directory, pipe, device or socket.
var ErrNotRegular = errors.New("not a regular file")

type notRegular string

func (e notRegular) Error() string { return string(e) + " is not a regular file" }
func (e notRegular) Unwrap() error { return ErrNotRegular }

// Open opens a file if it is a regular one, or a link that leads to one. It looks
// before it opens, as far as fsys can tell: of one that has neither Stat nor Lstat
// it opens the file first. Other errors are those of fsys.
func Open(fsys fs.FS, name string) (fs.File, error) {
	mode, err := Mode(fsys, name)
	if err != nil {
		return nil, err
	}
	if !mode.IsRegular() {
		return nil, notRegular(name)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Mode returns the mode of a file, or of a link's target, without opening it: zero,
// as if it were a regular file, if fsys has neither Stat nor Lstat. The file system
// of [fs.Sub] has no Stat: there, a link out of it is an error.
func Mode(fsys fs.FS, name string) (mode fs.FileMode, err error) {
	switch fsys := fsys.(type) {
	case fs.StatFS:
		info, err := fsys.Stat(name)
		if err != nil {
			return 0, err
		}
		return info.Mode(), nil
	case fs.ReadLinkFS:
		info, err := fsys.Lstat(name)
		if err != nil {
			return 0, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return info.Mode(), nil
		}
		_, mode, err = Resolve(fsys, name)
		return mode, err
	}
	return 0, nil
}

// Resolve returns where a path leads when each of its links is followed, and
// what is there. A link out of the tree is an error.
func Resolve(fsys fs.FS, name string) (real string, mode fs.FileMode, err error) {
	const most = 40 // links, as systems have it
	links := 0
	at := "."
	rest := strings.Split(name, "/")
	for len(rest) > 0 {
		step := rest[0]
		rest = rest[1:]
		switch step {
		case "", ".":
			continue
		case "..":
			if at == "." {
				return "", 0, errors.New("a link out of the tree")
			}
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, step)
		info, err := fs.Lstat(fsys, next)
		if err != nil {
			return "", 0, fmt.Errorf("a link to what cannot be read: %w", err)
		}
		mode = info.Mode()
		if mode&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > most {
			return "", 0, errors.New("a link that leads in a circle")
		}
		target, err := fs.ReadLink(fsys, next)
		if err != nil {
			return "", 0, fmt.Errorf("a link that cannot be read: %w", err)
		}
		if path.IsAbs(target) {
			return "", 0, errors.New("a link out of the tree")
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	if at == "." {
		mode = fs.ModeDir
	} else if info, err := fs.Lstat(fsys, at); err != nil {
		return "", 0, err
	} else {
		mode = info.Mode()
	}
	return at, mode, nil
}
