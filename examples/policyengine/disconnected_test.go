package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/examples/internal/rehearsal"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/manifest/image"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/signaturetest"
)

const (
	repository = "registry.example/ocp/release"
	site       = "0bd2a4f6-7a0c-4d5e-9b1f-3c6e8a1d2f40" // the ID of the cluster
)

// mirror is a directory as oc adm release mirror --to-dir writes it.
type mirror struct {
	dir    string
	images payload.Images
	key    *signaturetest.Key
}

func newMirror(t *testing.T) *mirror {
	t.Helper()
	m := &mirror{dir: filepath.Join(t.TempDir(), "mirror"), key: checktest.Get(signaturetest.NewKey(signaturetest.KeyOptions{}))(t)}
	m.images = checktest.Get(rehearsal.Open(t.Context(), "", ""))(t)
	return m
}

// add copies an image into the mirror, and names it as there.
func (m *mirror) add(t *testing.T, i *payload.Image) {
	t.Helper()
	l := ocitest.NewLayout()
	config := l.Blob("application/vnd.oci.image.config.v1+json", []byte(`{"architecture": "amd64"}`))
	d := l.JSON(oci.TypeManifest, oci.Manifest{MediaType: oci.TypeManifest, Config: &config, Layers: []oci.Descriptor{l.Layer(ocitest.Files(i.FS)...)}})
	m.write(t, l.Mirror("openshift/release", ":", i.Version()+"-x86_64", d.Digest))
	i.PullSpec = repository + "@" + d.Digest
	o := manifest.LoadOptions{Image: i.PullSpec, Filter: manifest.DefaultFilter()}
	i.Payload = checktest.Get(manifest.Load(t.Context(), i.FS, o))(t)
}

// sign adds a signature of an image, in a ConfigMap as the tool leaves it.
func (m *mirror) sign(t *testing.T, i *payload.Image) {
	t.Helper()
	message := checktest.Get(m.key.SignRelease(i.Digest(), i.Tag(), signaturetest.Shape{}))(t)
	name := strings.Replace(i.Digest(), ":", "-", 1)
	text := checktest.Get(json.Marshal(map[string]any{"kind": "ConfigMap", "binaryData": map[string][]byte{name + "-1": message}}))(t)
	m.write(t, fstest.MapFS{"config/signature-" + name[:23] + ".json": {Data: text}})
}

// write adds files, but for those that are there.
func (m *mirror) write(t *testing.T, files fstest.MapFS) {
	t.Helper()
	maps.DeleteFunc(files, func(name string, _ *fstest.MapFile) bool {
		_, err := os.Lstat(filepath.Join(m.dir, name))
		return err == nil
	})
	checktest.OK(t, os.CopyFS(m.dir, files))
}

// certificate writes the certificate of a test server of the standard library and its
// key, and returns who trusts it.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	pair := s.TLS.Certificates[0]
	private := checktest.Get(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))(t)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	pool = x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return cert, key, pool
}

// diary is what happens, by the cluster's time.
type diary struct {
	mu    sync.Mutex
	now   func() time.Time
	start time.Time
	lines []string
	last  string
}

func (d *diary) say(who, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	line := fmt.Sprintf("%-8s %s", who, text)
	if line != d.last {
		d.last = line
		d.lines = append(d.lines, fmt.Sprintf("%9s  %s", d.now().Sub(d.start).Truncate(time.Minute), line))
	}
}

// updater keeps what a person would want to know.
func (d *diary) updater(e clusterapi.Event) {
	kept := []clusterapi.EventType{
		clusterupdate.EventRetrievePayloadFailed, clusterupdate.EventSignatureVerified, clusterupdate.EventPayloadLoaded, clusterupdate.EventCompleted,
	}
	if slices.Contains(kept, e.Type) {
		d.say("updater", fmt.Sprintf("%s: %s", e.Type, e.Message))
	}
}

// TestDisconnected: a cluster whose only access is a mirror on disk and this server is
// updated. What the mirror lacks is told before the update starts.
func TestDisconnected(t *testing.T) {
	m := newMirror(t)
	from, to := m.images[0], m.images[1]
	m.add(t, from)
	m.sign(t, from)
	cert, key, pool := certificate(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	go func() {
		args := []string{"-tree", sampleTree(t), "-releases", m.dir + "=" + repository, "-interval", "20ms", "-tls-cert", cert, "-tls-key", key}
		command().Execute(ctx, args, w, io.Discard)
		w.Close()
	}()
	upstream := ""
	lines := bufio.NewScanner(r)
	for upstream == "" && lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), "graph:"); ok {
			upstream = strings.TrimSpace(address)
		}
	}
	go io.Copy(io.Discard, r)
	if !strings.HasPrefix(upstream, "https://") {
		t.Fatalf("upstream is %q", upstream)
	}
	client := &graph.Client{Upstream: upstream, RootCAs: pool}
	store := checktest.Get(signature.NewHTTPStore(strings.TrimSuffix(upstream, "/v1/graph")+"/signatures", signature.HTTPOptions{RootCAs: pool}))(t)
	keyring := checktest.Get(signature.ParseKeyring("mirror", m.key.Public()))(t)
	source := checktest.Get(image.Open(m.dir, image.Options{}))(t)
	defer source.Close()

	d := &diary{start: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	cluster := checktest.Get(rehearsal.New(rehearsal.Options{
		Cluster: simulation.Options{ControlPlane: 3, ClusterVersion: simulation.ClusterVersion{Channel: "stable-4.21", ClusterID: site}},
		Images:  m.images, Channel: "stable-4.21", Graph: client, Payloads: source, Start: d.start,
		Verifier: signature.NewVerifier([]*signature.Keyring{keyring}, store), Updater: d.updater,
	}))(t)
	d.now = cluster.Clock.Now
	// served waits until the server has read the mirror again.
	served := func(version string) error {
		for {
			g, err := client.Fetch(ctx, graph.Query{Channel: "stable-4.21", Arch: "amd64", Version: from.Version(), ClusterID: site})
			if err != nil {
				return err
			}
			for _, n := range g.Nodes() {
				if n.Version.Original() == version {
					return nil
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	offered := func() error {
		cv, err := clusterapi.Get[configv1.ClusterVersion](ctx, cluster, clusterapi.Key("", "version"))
		if err != nil {
			return err
		}
		var versions []string
		for _, u := range cv.Status.AvailableUpdates {
			versions = append(versions, u.Version)
		}
		d.say("cluster", fmt.Sprintf("%s %s; updates offered: %v", cv.Status.History[0].State, cv.Status.History[0].Version, versions))
		return nil
	}
	err := cluster.Play(ctx, func(ctx context.Context, wait func(time.Duration) error) error {
		d.say("mirror", "has "+from.Version()+" and its signature")
		request := rehearsal.Request{API: cluster, Version: to.Version(), Now: cluster.Clock.Now, Wait: wait}
		steps := []func() error{
			func() error { return wait(3 * time.Hour) }, offered,
			func() error {
				m.add(t, to)
				d.say("mirror", "has "+to.Version()+" without a signature")
				for _, p := range loaded(t, m.dir) {
					d.say("server", p)
				}
				return served(to.Version())
			},
			func() error { return wait(3 * time.Hour) }, offered,
			func() error { return request.Start(ctx) },
			func() error { return wait(20 * time.Minute) },
			func() error {
				m.sign(t, to)
				d.say("mirror", "has a signature of "+to.Version())
				return nil
			},
			func() error { return wait(4 * time.Hour) }, offered,
		}
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
	checktest.OK(t, err)
	text := strings.Join(d.lines, "\n") + "\n"
	text = strings.NewReplacer(strings.TrimSuffix(upstream, "/api/upgrades_info/v1/graph"), "https://server", m.dir, "mirror").Replace(text)
	text = regexp.MustCompile(`key [0-9A-F]{40}`).ReplaceAllString(text, "key of the test")
	programtest.Golden(t, "disconnected.txt", text)

	// The archive is the tree that the graph was made of.
	web := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer web.CloseIdleConnections()
	answer := checktest.Get(web.Get(strings.TrimSuffix(upstream, "/v1/graph") + "/graph-data"))(t)
	defer answer.Body.Close()
	tree := checktest.Get(graphdata.OpenArchive(answer.Body, graphdata.Limits{}))(t)
	checktest.OK(t, checktest.Err(fs.Stat(tree, "channels/stable-4.21.yaml")))
}

// loaded are the problems that the server finds in a mirror.
func loaded(t *testing.T, dir string) (texts []string) {
	t.Helper()
	code, _, errs := programtest.Run(t, command(), "-print", "-tree", sampleTree(t), "-releases", dir+"="+repository)
	checktest.Equal(t, 0, code, "%s: exit code", errs)
	for line := range strings.Lines(errs) {
		texts = append(texts, strings.TrimSpace(line))
	}
	return texts
}
