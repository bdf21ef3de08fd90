package testserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// flags of the linker, by program.
var flags = map[string]string{
	// what /version says
	"apiserver": "-X k8s.io/component-base/version.gitVersion=v1.36.3",
}

// build returns the path of a program, which it builds unless that has been
// done before. Tests that run at the same time wait for one another here.
func build(ctx context.Context, name string) (string, error) {
	gomod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	source := filepath.Join(filepath.Dir(strings.TrimSpace(string(gomod))), "internal", name)
	version, err := fingerprint(source, flags[name])
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "clusterupdate-test")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", err
	}
	program := filepath.Join(cache, name+"-"+version)
	unlock, err := lock(program + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", flags[name], "-o", program+".new", ".")
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, bytes.TrimSpace(out))
	}
	return program, os.Rename(program+".new", program)
}

// fingerprint names all that a program is made of.
func fingerprint(source, flags string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s/%s %q\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, flags)
	for _, file := range []string{"go.mod", "go.sum", "main.go"} {
		data, err := os.ReadFile(filepath.Join(source, file))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n", file, len(data))
		h.Write(data)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}
