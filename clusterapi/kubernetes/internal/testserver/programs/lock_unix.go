//go:build unix

package programs

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// lock waits until no other process has the file locked, or ctx ends. The lock
// ends with the process at the latest.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			break
		}
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
			continue
		}
		break
	}
	_ = f.Close()
	return nil, err
}
