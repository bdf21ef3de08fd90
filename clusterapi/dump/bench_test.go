package dump_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"testing"
	"testing/fstest"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// generated is a must-gather of n pods, a fifth as many ConfigMaps in files of
// their own, and some nodes and operators: in the sizes that these have.
func generated(tb testing.TB, n int) (tree fstest.MapFS, objects int, size int64) {
	tb.Helper()
	tree = fstest.MapFS{}
	add := func(name string, text []byte) {
		size += int64(len(text))
		tree["must-gather.local.1/image/"+name] = &fstest.MapFile{Data: text}
	}
	const perSpace = 50
	for ns := range (n + perSpace - 1) / perSpace {
		name := fmt.Sprintf("ns%05d", ns)
		var pods bytes.Buffer
		pods.WriteString("---\napiVersion: v1\nitems:\n")
		for i := range min(perSpace, n-ns*perSpace) {
			objects++
			pods.Write(indented(podOf(tb, name, i)))
			if i%5 == 0 {
				objects++
				add(fmt.Sprintf("namespaces/%s/core/configmaps/c%d.yaml", name, i),
					fmt.Appendf(nil, "---\napiVersion: v1\ndata:\n  ca.crt: |\n    -----BEGIN CERTIFICATE-----\n    %064d\n    %064d\n  key: value\nkind: ConfigMap\nmetadata:\n  creationTimestamp: \"2026-01-01T00:00:00Z\"\n  name: c%d\n  namespace: %s\n  resourceVersion: \"%d\"\n  uid: 00000000-0000-0000-%04d-%012d\n", i, ns, i, name, i, i, ns))
			}
		}
		pods.WriteString("kind: PodList\nmetadata: {}\n")
		add("namespaces/"+name+"/core/pods.yaml", pods.Bytes())
	}
	for i := range 30 {
		objects++
		add(fmt.Sprintf("cluster-scoped-resources/config.openshift.io/clusteroperators/op%d.yaml", i),
			fmt.Appendf(nil, "---\napiVersion: config.openshift.io/v1\nkind: ClusterOperator\nmetadata:\n  name: op%d\nstatus:\n  conditions:\n  - lastTransitionTime: \"2026-01-01T00:00:00Z\"\n    status: \"True\"\n    type: Available\n", i))
	}
	return tree, objects, size
}

var podText []byte

// podOf returns a pod as an API server has it, with managedFields.
func podOf(tb testing.TB, namespace string, i int) []byte {
	if podText == nil {
		env := []any{}
		for e := range 12 {
			env = append(env, map[string]any{"name": fmt.Sprintf("VARIABLE_%d", e), "value": "quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:0123456789abcdef"})
		}
		data := checktest.Must(yaml.Marshal(map[string]any{
			"metadata": map[string]any{
				"name": "POD", "namespace": "NAMESPACE", "uid": "01234567-89ab-cdef-0123-456789abcdef", "resourceVersion": "123456", "creationTimestamp": "2026-01-01T00:00:00Z",
				"labels": map[string]any{"app": "a", "pod-template-hash": "5d8d6b"}, "annotations": map[string]any{"k8s.ovn.org/pod-networks": `{"default":{"ip_addresses":["10.128.0.5/23"]}}`},
				"managedFields": []any{map[string]any{"manager": "kubelet", "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{
					"f:status": map[string]any{"f:conditions": map[string]any{`k:{"type":"Ready"}`: map[string]any{".": map[string]any{}, "f:status": map[string]any{}, "f:type": map[string]any{}}}}}}},
			},
			"spec": map[string]any{"nodeName": "worker-0", "containers": []any{map[string]any{
				"name": "c", "image": "quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:0123", "env": env,
				"resources": map[string]any{"requests": map[string]any{"cpu": "10m", "memory": "50Mi"}}, "args": []any{"--v=2", "--config=/etc/config.yaml"},
			}}},
			"status": map[string]any{"phase": "Running", "podIP": "10.128.0.5", "conditions": []any{
				map[string]any{"type": "Ready", "status": "True", "lastProbeTime": nil, "lastTransitionTime": "2026-01-01T00:00:00Z"},
				map[string]any{"type": "Initialized", "status": "True", "lastProbeTime": nil, "lastTransitionTime": "2026-01-01T00:00:00Z"},
			}},
		}))
		podText = data
	}
	text := bytes.ReplaceAll(podText, []byte("POD"), fmt.Appendf(nil, "p%d", i))
	return bytes.ReplaceAll(text, []byte("NAMESPACE"), []byte(namespace))
}

// indented makes a document an item of a list.
func indented(text []byte) []byte {
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	return append([]byte("- "), append(bytes.Join(lines, []byte("\n  ")), '\n')...)
}

var sizes = []int{1_000, 10_000, 100_000}

// BenchmarkOpen tells objects a second, and the memory that a recording takes when
// it has been opened, against the size of its files.
func BenchmarkOpen(b *testing.B) {
	for _, n := range sizes {
		tree, objects, size := generated(b, n)
		dir := b.TempDir()
		checktest.OK(b, os.CopyFS(dir, tree))
		b.Run(fmt.Sprintf("objects=%d", n), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			var r *dump.Recording
			before := heap()
			for b.Loop() {
				var err error
				if r, err = dump.Open(b.Context(), os.DirFS(dir), dump.Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(objects)*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
			b.ReportMetric(float64(heap()-before)/float64(size), "memory/size")
			runtime.KeepAlive(r)
		})
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkOpenArchive is BenchmarkOpen for a compressed archive.
func BenchmarkOpenArchive(b *testing.B) {
	for _, n := range sizes {
		tree, objects, size := generated(b, n)
		archive := pack(b, tree, true, false)
		b.Run(fmt.Sprintf("objects=%d", n), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				checktest.Must(dump.OpenArchive(b.Context(), bytes.NewReader(archive), dump.Options{}))
			}
			b.ReportMetric(float64(objects)*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
		})
	}
}

// BenchmarkGet reads one pod of many, to keep and to look at.
func BenchmarkGet(b *testing.B) {
	for _, n := range sizes {
		tree, _, _ := generated(b, n)
		r := mustOpen(b, tree, dump.Options{})
		key := clusterapi.Key("ns00003", "p7")
		b.Run(fmt.Sprintf("objects=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				checktest.Must(r.Get(b.Context(), gvk("v1 Pod"), key))
			}
		})
		b.Run(fmt.Sprintf("objects=%d/shared", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				checktest.Must(r.GetShared(b.Context(), gvk("v1 Pod"), key))
			}
		})
	}
}

// BenchmarkOpenReal opens a real dump.
func BenchmarkOpenReal(b *testing.B) {
	dir := dataFolder(b, "clusters/4.14.1-degraded")
	for b.Loop() {
		r := checktest.Must(dump.Open(b.Context(), os.DirFS(dir), dump.Options{}))
		checktest.Must(clusterapi.ReadAll[configv1.ClusterOperator](b.Context(), r, clusterapi.ListOptions{}))
	}
}
