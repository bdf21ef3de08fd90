// Package programs builds the kube-apiserver and the etcd that tests start,
// once, and keeps them in the user's cache folder: see [Build].
package programs

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

// Programs are the paths of the programs that a test server runs.
type Programs struct{ APIServer, Etcd string }

// source is the package beside whose folder the programs' modules are.
const source = "github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"

// flags of the linker, by program.
var flags = map[string]string{
	// what /version says
	"apiserver": "-X k8s.io/component-base/version.gitVersion=v1.36.3",
}

// Build returns the programs in the folder clusterupdate-test of the user's
// cache folder. It builds those that are not there, which takes many minutes.
// Their names there hold a hash of the Go version, the linker's flags and the
// program's go.mod, go.sum and main.go, so a program that is found is always
// the right one. Processes that build the same program at the same time wait
// for one another, so it is built once. All waits end with ctx.
func Build(ctx context.Context) (p Programs, err error) {
	out, err := output(exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", source))
	if err != nil {
		return p, err
	}
	modules := filepath.Dir(strings.TrimSpace(out)) // etcd and apiserver are beside it
	cache, err := os.UserCacheDir()
	if err != nil {
		return p, err
	}
	cache = filepath.Join(cache, "clusterupdate-test")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return p, err
	}
	p.Etcd, err = build(ctx, cache, modules, "etcd")
	if err != nil {
		return p, err
	}
	p.APIServer, err = build(ctx, cache, modules, "apiserver")
	return p, err
}

func build(ctx context.Context, cache, modules, name string) (string, error) {
	dir := filepath.Join(modules, name)
	version, err := fingerprint(dir, flags[name])
	if err != nil {
		return "", err
	}
	program := filepath.Join(cache, name+"-"+version)
	unlock, err := lock(ctx, program+".lock")
	if err != nil {
		return "", fmt.Errorf("waiting for another process that builds %s: %w", name, err)
	}
	defer unlock()
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	// A builder that was killed may leave a compiler behind that still writes, so
	// each one has its own folder.
	tmp, err := os.MkdirTemp(cache, name+"-*.new")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags[name], "-o", filepath.Join(tmp, name), ".")
	cmd.Dir = dir
	if _, err := output(cmd); err != nil {
		return "", err
	}
	return program, os.Rename(filepath.Join(tmp, name), program)
}

// output runs a command. Its error has what the command said.
func output(cmd *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), nil
}

// fingerprint names all that a program is made of.
func fingerprint(dir, flags string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s/%s %q\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, flags)
	for _, file := range []string{"go.mod", "go.sum", "main.go"} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n", file, len(data))
		h.Write(data)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}
