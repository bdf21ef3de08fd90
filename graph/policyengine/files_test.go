package policyengine_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/clusterupdate/clusterupdate/graph/policyengine"
)

// TestSignatures: which signatures are served, in both modes.
func TestSignatures(t *testing.T) {
	digest, large := strings.Repeat("0a", 32), strings.Repeat("0b", 32)
	files := fstest.MapFS{
		"sha256/" + digest + "/signature-1":     {Data: []byte("signed"), ModTime: start},
		"sha256/" + digest + "/signature-12":    {Data: []byte("again")},
		"sha256/" + digest + "/signature-0":     {Data: []byte("no")},
		"sha256/" + digest + "/other":           {Data: []byte("no")},
		"sha256/" + large + "/signature-1":      {Data: make([]byte, 50<<10)},
		"sha256/" + large + "/signature-2":      {Data: make([]byte, 50<<10+1)},
		"sha256/" + large + "/signature-3/a":    {Data: []byte("no")},
		"sha512/" + digest + "/signature-1":     {Data: []byte("no")},
		"secret":                                {Data: []byte("no")},
		"sha256/" + digest + "x/signature-1":    {Data: []byte("no")},
		"sha256/" + digest[1:] + "/signature-1": {Data: []byte("no")},
	}
	absent := func(path string) (int, string) {
		return 404, failed("does_not_exist", "does not exist: signature "+path)
	}
	invalid := func(text string) (int, string) {
		return 400, failed("invalid_params", "invalid client parameters: "+text)
	}
	for _, tt := range []struct {
		path   string
		body   string               // served in both modes
		compat func() (int, string) // nil: as without
	}{
		{"sha256=" + digest + "/signature-1", "signed", nil},
		{"sha256=" + digest + "/signature-12", "again", nil},
		{"sha256=" + large + "/signature-1", string(make([]byte, 50<<10)), nil},
		{"sha256=" + digest + "/signature-2", "", nil},
		{"sha256=" + digest + "/signature-0", "", nil},
		{"sha256=" + digest + "/signature-01", "", nil},
		{"sha256=" + digest + "/signature-", "", nil},
		{"sha256=" + digest + "/signature-1234567890", "", nil},
		{"sha256=" + digest + "/other", "", nil},
		{"sha256=" + large + "/signature-3", "", nil},
		{"sha256=" + digest[1:] + "/signature-1", "", nil},
		{"sha256=" + digest + "x/signature-1", "", nil},
		{"sha256=" + strings.ToUpper(digest) + "/signature-1", "", nil},
		{"sha=" + digest + "/signature-1", "", nil},
		{"sha512=" + digest + "/signature-1", "", func() (int, string) { return invalid("algo not supported: sha512") }},
		{"sha256/" + digest, "", func() (int, string) { return invalid("provided digest is in incorrect format: sha256") }},
		{"sha256=" + digest + "=/signature-1", "", func() (int, string) { return invalid("provided digest is in incorrect format: sha256=" + digest + "=") }},
	} {
		for _, compat := range []bool{false, true} {
			s := serve(t, policyengine.Options{Signatures: files, Compat: compat}, nil)
			got := s.get(t, "/api/signatures/"+tt.path)
			if tt.body != "" {
				if got.code != 200 || got.body != tt.body || got.Get("Cache-Control") != "public, max-age=86400, immutable" || got.Get("Content-Type") != "application/octet-stream" {
					t.Errorf("%s: %d %v", tt.path, got.code, got.Header)
				}
				if again := s.get(t, "/api/signatures/"+tt.path, "If-None-Match", got.Get("ETag")); again.code != 304 {
					t.Errorf("%s: %d for its tag", tt.path, again.code)
				}
				continue
			}
			code, body := absent(tt.path)
			if compat && tt.compat != nil {
				code, body = tt.compat()
			}
			if got.code != code || got.body != body || got.Get("Cache-Control") != "no-store" {
				t.Errorf("%s, compat %v: %d %s", tt.path, compat, got.code, got.body)
			}
		}
	}
	s := serve(t, policyengine.Options{Signatures: files}, nil)
	for _, path := range []string{"sha256=../secret", "sha256=%2e%2e/secret", "sha256=..%2Fsecret", "../secret"} {
		if got := s.get(t, "/api/signatures/"+path); got.code == 200 || strings.Contains(got.body, "no\n") {
			t.Errorf("%s: %d %s", path, got.code, got.body)
		}
	}
	if got := s.get(t, "/api/signatures/sha256="+digest+"/signature-12"); got.Get("Last-Modified") != "" {
		t.Errorf("modified without a time: %v", got.Header)
	}
	path := "sha256=" + large + "/signature-2"
	if got := s.get(t, "/api/signatures/"+path); got.code != 500 || got.body != failed("file_open_err", "failed to open file: unable to open signature "+path) {
		t.Errorf("%d %s", got.code, got.body)
	}
	path = "/api/signatures/sha256=" + digest + "/signature-1"
	if got := s.get(t, path, "Range", "bytes=1-2"); got.code != 206 || got.body != "ig" {
		t.Errorf("%d %s", got.code, got.body)
	}
	if got := s.get(t, path, "If-Modified-Since", "Tue, 04 Feb 2031 08:30:00 GMT"); got.code != 304 {
		t.Errorf("%d %v", got.code, got.Header)
	}
}

// panicking is a file system that does not work.
type panicking struct{}

func (panicking) Open(string) (fs.File, error) { panic("it broke") }

// archive is a file that notes that it was closed.
type archive struct {
	*bytes.Reader
	closed *int
}

func (a archive) Close() error { *a.closed++; return nil }

// TestGraphData: the archive is served with validators and ranges, and closed.
func TestGraphData(t *testing.T) {
	closed, changed := 0, start
	var err error
	s := serve(t, policyengine.Options{GraphData: func() (io.ReadSeeker, time.Time, error) {
		return archive{bytes.NewReader([]byte("an archive")), &closed}, changed, err
	}, Signatures: panicking{}}, nil)
	const path = "/api/graph-data"
	first := s.get(t, path)
	if first.code != 200 || first.body != "an archive" || first.Get("Content-Type") != "application/gzip" || !strings.HasPrefix(first.Get("Content-Disposition"), "attachment") || first.Get("Content-Length") != "10" {
		t.Errorf("%d %v", first.code, first.Header)
	}
	for _, tt := range []struct {
		name, value string
		code        int
		body        string
	}{
		{"If-None-Match", first.Get("ETag"), 304, ""},
		{"If-None-Match", `"x"`, 200, "an archive"},
		{"If-Modified-Since", first.Get("Last-Modified"), 304, ""},
		{"Range", "bytes=3-5", 206, "arc"},
		{"Range", "bytes=99-", 416, "invalid range: failed to overlap\n"},
	} {
		if got := s.get(t, path, tt.name, tt.value); got.code != tt.code || got.body != tt.body {
			t.Errorf("%s: %d %q", tt.name, got.code, got.body)
		}
	}
	if closed != 6 {
		t.Errorf("closed %d times", closed)
	}
	changed = changed.Add(time.Millisecond)
	if got := s.get(t, path); got.Get("ETag") == first.Get("ETag") {
		t.Error("the tag stayed")
	}
	if got := s.ask(t, "HEAD", path); got.code != 200 || got.body != "" || got.Get("Content-Length") != "10" {
		t.Errorf("%d %v", got.code, got.Header)
	}
	changed = start.Add(time.Hour)
	if got := s.get(t, path); got.code != 200 || got.Get("Last-Modified") != "" {
		t.Errorf("modified ahead of the clock: %d %v", got.code, got.Header)
	}
	err = errors.New("/secret/path is not there")
	if got := s.get(t, path); got.code != 500 || got.body != failed("file_open_err", "failed to open file: unable to open the graph data") {
		t.Errorf("%d %s", got.code, got.body)
	}
	for _, f := range []func() (io.ReadSeeker, time.Time, error){
		func() (io.ReadSeeker, time.Time, error) { return nil, start, nil },
		func() (io.ReadSeeker, time.Time, error) { panic("it broke") },
	} {
		if got := serve(t, policyengine.Options{GraphData: f}, nil).get(t, path); got.code != 500 {
			t.Errorf("%d %s", got.code, got.body)
		}
	}
	if got := s.get(t, "/api/signatures/sha256="+strings.Repeat("a", 64)+"/signature-1"); got.code != 500 {
		t.Errorf("%d %s", got.code, got.body)
	}
}

// TestNobodyLogsClusters: whatever goes wrong, neither logs nor metrics have the ID
// of a cluster, or anything else of a query that is not known.
func TestNobodyLogsClusters(t *testing.T) {
	var log bytes.Buffer
	s := serve(t, policyengine.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		GraphData:  func() (io.ReadSeeker, time.Time, error) { return nil, start, errors.New("no") },
		Signatures: panicking{}, Mandatory: []string{"id"}}, broken{})
	for _, query := range []string{"channel=bad-1", "channel=nil-1", "channel=none", "channel=" + clusterID + "&x=y", "arch=" + clusterID, "channel=B", ""} {
		for _, path := range []string{"/api/graph", "/api/openapi", "/api/graph-data", "/api/" + clusterID, "/api/signatures/sha256=" + strings.Repeat("a", 64) + "/signature-1"} {
			s.get(t, path+"?id="+clusterID+"&"+query)
			s.get(t, path+"?id="+clusterID+"&"+query, "Accept", "x")
		}
	}
	s.Set(nil)
	s.get(t, "/api/graph?channel=bad-1&id="+clusterID)
	status := &service{Handler: s.Handler, Server: serveStatus(t, s)}
	for name, text := range map[string]string{"log": log.String(), "metrics": status.get(t, "/metrics").body} {
		if len(text) < 100 || strings.Contains(text, clusterID) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
