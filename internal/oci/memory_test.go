package oci_test

import (
	"archive/tar"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
)

// What is kept of an entry holds no more in memory than it counts: not the header
// that its name stood in, nor the name of its directory.
func TestKeptMemory(t *testing.T) {
	if israce.Enabled {
		t.Skip("the race detector has memory of its own")
	}
	const n, size = 100, 100 << 10
	records := files{"comment": strings.Repeat("x", size)}
	long := strings.Repeat("n", 200)
	var entries entries
	for i := range n {
		for _, e := range []ocitest.Entry{
			file(fmt.Sprintf("manifests/%s/%d", long, i), "1"), dir(fmt.Sprintf("manifests/%s/d%d", long, i)), symlink(fmt.Sprintf("manifests/%d", i), long),
		} {
			e.PAXRecords, e.Format = records, tar.FormatPAX
			entries = append(entries, e)
		}
	}
	l := ocitest.NewLayout()
	d := l.Layer(entries...)
	data := ocitest.Tar(entries...)
	inUse := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for name, read := range map[string]func() (any, error){
		"layer": func() (any, error) {
			return oci.Unpack(t.Context(), in(l.FS), []oci.Descriptor{d}, kept, oci.Limits{})
		},
		"archive": func() (any, error) { return openTar(data, oci.Limits{}) },
	} {
		before := inUse()
		read := checktest.Get(read())(t)
		more := inUse() - before
		checktest.FailIf(t, more > 2<<20, "%s: %d MiB for %d entries", name, more>>20, len(entries))
		runtime.KeepAlive(read)
	}
	runtime.KeepAlive(data)
}
