package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
)

func TestUsage(t *testing.T) { programtest.Usage(t, command) }

func TestPrint(t *testing.T) {
	programtest.Test(t, command, []programtest.Case{{Args: "-print", Stdout: []string{
		": 27 releases; 104 updates recommended, 24 conditional, 2 blocked\n",
		"stable-4.21 amd64: 10 releases, 27 updates recommended, 10 conditional\n",
		"stable-4.20 arm64: 6 releases, 11 updates recommended, 4 conditional\n",
	}}})
}

func TestExits(t *testing.T) {
	empty := t.TempDir()
	bad := sampleTree(t)
	write(t, filepath.Join(bad, "channels", "bad.yaml"), "name: [\n")
	taken := checktest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	programtest.Test(t, command, []programtest.Case{
		{Args: "-tree " + empty, Code: 3, Stderr: "policyengine: "},
		{Args: "-tree " + bad, Code: 1, Stderr: "channels/bad.yaml:"},
		{Args: "-listen " + taken.Addr().String(), Code: 3, Stderr: "address already in use"},
	})
}

// TestServe serves a tree that changes, and ends.
func TestServe(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows sends no SIGHUP")
	}
	dir := sampleTree(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	ended := make(chan int, 1)
	var errs bytes.Buffer
	go func() {
		ended <- command().Execute(ctx, []string{"-tree", dir, "-interval", "1h"}, w, &errs)
		w.Close()
	}()
	lines := bufio.NewScanner(r)
	next := func(prefix string) string {
		t.Helper()
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), prefix) {
			t.Fatalf("%q, %v: want %s", lines.Text(), lines.Err(), prefix)
		}
		return strings.TrimSpace(strings.TrimPrefix(lines.Text(), prefix))
	}
	next("GraphChanged: 14 releases, revision ")
	pageURL, graphURL, status := next("page: "), next("graph: "), next("status: ")

	client := graph.Client{Upstream: graphURL}
	g := checktest.Get(client.Fetch(t.Context(),
		graph.Query{Channel: "stable-4.21", Arch: "amd64", Version: "4.20.3", ClusterID: "3c5a1b2e-6f1d-4c7f-9a60-2b9d3c1e8f00"}))(t)
	checktest.Equal(t, 10, g.Len(), "g.Len()")
	get(t, status, http.StatusOK, "")
	get(t, pageURL, http.StatusOK, "Updates of 4.20.0")
	get(t, graphURL, http.StatusBadRequest, "missing_params")
	get(t, pageURL+"nothing", http.StatusNotFound, "")

	hup := func() {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Signal(syscall.SIGHUP)
		}
		checktest.OK(t, err)
	}
	bad := filepath.Join(dir, "channels", "bad.yaml")
	write(t, bad, "name: [\n")
	hup()
	next("LoadFailed: channels/bad.yaml:")
	get(t, pageURL, http.StatusOK, "The last load failed.")
	write(t, bad, "name: other-4.21\nversions: [4.21.1]\n")
	hup()
	for !strings.HasPrefix(lines.Text(), "GraphChanged: 14 releases") && lines.Scan() {
	}
	get(t, pageURL, http.StatusOK, "other-4.21")

	cancel()
	go io.Copy(io.Discard, r)
	select {
	case code := <-ended:
		if code != 0 || errs.Len() > 0 {
			t.Errorf("exit %d: %s", code, &errs)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
}

// get asks for a page that has a text.
func get(t *testing.T, url string, code int, want string) {
	t.Helper()
	answer, err := http.Get(url)
	checktest.OK(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != code || !strings.Contains(string(text), want) {
		t.Errorf("%s: %v, %d, %s", url, err, answer.StatusCode, text)
	}
}

// sampleTree copies the sample, without its releases.
func sampleTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	checktest.OK(t, os.CopyFS(dir, os.DirFS("source/sample")))
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	checktest.OK(t, os.WriteFile(name, []byte(text), 0o644))
}
