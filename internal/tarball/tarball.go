// Package tarball has what every reader of tar files from outside checks.
package tarball

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The most bytes and levels of a name. The first is the systems' own; more levels
// than the second have only names that were made to cost time.
const (
	MaxName   = 4096
	MaxLevels = 256
)

// CheckName returns an error for the name of an entry that is too long or too
// deep. It does not repeat the name.
func CheckName(name string) error {
	if len(name) > MaxName {
		return fmt.Errorf("the name has more than %d bytes", MaxName)
	}
	if strings.Count(name, "/") >= MaxLevels {
		return fmt.Errorf("the name has more than %d levels", MaxLevels)
	}
	return nil
}

// End reads what follows the last entry of a tar, to the end of r: the checksum of
// a compressed file is behind all of it. Anything but zeros is an error, since
// nobody would read it.
func End(r io.Reader) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if len(bytes.TrimLeft(buf[:n], "\x00")) > 0 {
			return errors.New("something follows the end of the archive")
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
