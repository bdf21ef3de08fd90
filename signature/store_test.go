package signature_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
)

// collect lists what a store yields, in short: signatures as they are, errors
// in brackets, those that end the search with a "!".
func collect(ctx context.Context, s signature.Store, digest string) []string {
	var out []string
	for sig, err := range signatures(s.Candidates(ctx, digest)) {
		var end *signature.StoreError
		switch {
		case errors.As(err, &end):
			out = append(out, "!["+err.Error()+"]")
		case err != nil:
			out = append(out, "["+err.Error()+"]")
		default:
			out = append(out, string(sig))
		}
	}
	return out
}

const noMore = ": no more signatures to check]"

func TestMemoryStore(t *testing.T) {
	s := signature.MemoryStore{digestA: {[]byte("a"), nil, []byte("b")}}
	want := []string{"a", "b", "[in-memory signature store " + digestA + noMore}
	checktest.Same(t, want, collect(t.Context(), s, digestA))
}

// No store builds a path out of what is not a digest.
func TestStoresCheckDigests(t *testing.T) {
	h := must(signature.NewHTTPStore("http://h.example", signature.HTTPOptions{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		t.Errorf("asked for %s", r.URL)
		return nil, errors.New("no")
	})}))
	stores := []signature.Store{
		signature.MemoryStore{}, h, dirStore("/"), &cluster.ConfigMapStore{Reader: fakeReader{}},
	}
	for digest, text := range map[string]string{
		"sha256:../../x": "the provided release image digest has an invalid format: \"sha256:../../x\"",
		"sha256":         "the provided digest must be of the form ALGO:HASH",
		"sha256:":        "the provided digest must be of the form ALGO:HASH",
		"a:b:c":          "the provided digest must be of the form ALGO:HASH",
	} {
		for _, s := range stores {
			checktest.SameIn(t, fmt.Sprint(s), []string{"![" + text + "]"}, collect(t.Context(), s, digest))
		}
	}
}

func TestSerial(t *testing.T) {
	mem := func(sigs ...string) signature.MemoryStore {
		m := signature.MemoryStore{}
		for _, s := range sigs {
			m[digestA] = append(m[digestA], []byte(s))
		}
		return m
	}
	end := &signature.StoreError{Err: errors.New("broken")}
	inMem := "[in-memory signature store " + digestA + noMore
	for _, tt := range []struct {
		name  string
		store signature.Store
		want  []string
	}{
		{"empty", signature.Serial(), []string{"[serial signature store wrapping no stores" + noMore}},
		{"two", signature.Serial(mem("a"), mem("b")), []string{"a", inMem, "b", inMem, "[serial signature store wrapping in-memory signature store, in-memory signature store" + noMore}},
		{"ended", signature.Serial(mem("a"), &fakeStore{name: "f", items: []any{errors.New("x"), []byte("c"), end}}, mem("b")), []string{"a", inMem, "[x]", "c", "![broken]"}},
		{"no parallel stores", signature.Parallel(), []string{"[parallel signature store wrapping no stores" + noMore}},
		{"one parallel store", signature.Parallel(mem("a", "b")), []string{"a", "b", inMem, "[parallel signature store wrapping in-memory signature store" + noMore}},
		{"parallel ended", signature.Parallel(&fakeStore{name: "f", items: []any{[]byte("a"), end}}), []string{"a", "![broken]"}},
	} {
		checktest.SameIn(t, tt.name, tt.want, collect(t.Context(), tt.store, digestA))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, s := range map[string]signature.Store{
		"serial": signature.Serial(mem()), "parallel": signature.Parallel(&fakeStore{name: "f", items: []any{time.Hour}}),
		"file": dirStore("/nowhere"), "memory": mem("a"),
	} {
		got := collect(ctx, s, digestA)
		if len(got) == 0 || got[len(got)-1] != "![context canceled]" {
			t.Errorf("%s, canceled: %v", name, got)
		}
	}
}

// Every result of every member reaches a slow consumer; one that leaves stops
// all of them, and nothing is left running (synctest waits for that).
func TestParallelDeliversEverything(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			var stores []signature.Store
			for i := range 3 {
				stores = append(stores, &fakeStore{name: "f", items: []any{fmt.Appendf(nil, "%d1", i), fmt.Appendf(nil, "%d2", i)}})
			}
			got := map[string]bool{}
			for sig, err := range signatures(signature.Parallel(stores...).Candidates(t.Context(), digestA)) {
				time.Sleep(time.Millisecond)
				if err == nil {
					got[string(sig)] = true
				}
			}
			if len(got) != 6 {
				t.Fatalf("%d of 6 signatures: %v", len(got), got)
			}
			start := time.Now()
			hang := &fakeStore{name: "hang", items: []any{time.Hour}}
			for range signature.Parallel(append(stores, hang)...).Candidates(t.Context(), digestA) {
				break
			}
			checktest.Equal(t, 0, time.Since(start), "waited for a store that hangs")
		})
	}
}

// A time-out within one member is not an error of the whole.
func TestParallelSwallowsContextErrorsOfMembers(t *testing.T) {
	own := &signature.StoreError{Err: context.DeadlineExceeded}
	late := &signature.StoreError{Err: errors.New("late")}
	got := collect(t.Context(), signature.Parallel(&fakeStore{name: "f", items: []any{own}}), digestA)
	checktest.Same(t, []string{"[parallel signature store wrapping f" + noMore}, got)
	got = collect(t.Context(), signature.Parallel(&fakeStore{name: "f", items: []any{own}}, &fakeStore{name: "g", items: []any{late}}), digestA)
	checktest.Same(t, []string{"![late]"}, got)
}

func TestFileStore(t *testing.T) {
	dir := "sha256=" + digestA[7:]
	file := func(n int) string { return fmt.Sprintf("%s/signature-%d", dir, n) }
	full := fstest.MapFS{}
	for n := 1; n <= 12; n++ {
		full[file(n)] = &fstest.MapFile{Data: fmt.Appendf(nil, "%d", n)}
	}
	big := bytes.Repeat([]byte("x"), maxSignature)
	for _, tt := range []struct {
		name string
		fs   fstest.MapFS
		want []string
	}{
		{"none", fstest.MapFS{}, []string{"[unable to retrieve signature from file://x/" + file(1) + noMore}},
		{"a gap ends it", fstest.MapFS{file(1): {Data: []byte("a")}, file(3): {Data: []byte("c")}}, []string{"a", "[unable to retrieve signature from file://x/" + file(2) + noMore}},
		{"nine at most", full, []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "[file://x has been asked for 9 signatures" + noMore}},
		{"empty file", fstest.MapFS{file(1): {}, file(2): {Data: []byte("b")}}, []string{"b", "[unable to retrieve signature from file://x/" + file(3) + noMore}},
		{"directory", fstest.MapFS{file(1) + "/x": {}, file(2): {Data: []byte("b")}}, []string{"[unable to retrieve signature from file://x/" + file(1) + ": not a regular file]", "b", "[unable to retrieve signature from file://x/" + file(3) + noMore}},
		{"size", fstest.MapFS{file(1): {Data: append(bytes.Clone(big), 'y')}, file(2): {Data: big}}, []string{"[unable to retrieve signature from file://x/" + file(1) + ": signature is too large: more than 51200 bytes]", string(big), "[unable to retrieve signature from file://x/" + file(3) + noMore}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checktest.Same(t, tt.want, collect(t.Context(), &signature.FileStore{FS: tt.fs, Name: "x"}, digestA))
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// serve answers by a handler without a network.
func serve(h http.HandlerFunc) signature.HTTPOptions {
	return signature.HTTPOptions{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		h(w, r)
		resp := w.Result()
		resp.Request = r
		return resp, nil
	})}
}

func TestHTTPStore(t *testing.T) {
	base := "http://h.example/sigs"
	at := func(n int) string { return fmt.Sprintf("%s/sha256=%s/signature-%d", base, digestA[7:], n) }
	failed := func(n int, text string) string {
		return fmt.Sprintf("[unable to retrieve signature from %s: %s]", at(n), text)
	}
	const missing = "no more signatures to check"
	type answers map[int]func(w http.ResponseWriter)
	body := func(status int, text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.WriteHeader(status); fmt.Fprint(w, text) }
	}
	for _, tt := range []struct {
		name    string
		answers answers // others: 404
		want    []string
	}{
		{"none", nil, []string{failed(1, missing)}},
		{"two", answers{1: body(200, "a"), 2: body(206, "b")}, []string{"a", "b", failed(3, missing)}},
		{"a gap ends it", answers{1: body(200, "a"), 3: body(200, "c")}, []string{"a", failed(2, missing)}},
		{"empty is skipped", answers{1: body(200, ""), 2: body(200, "b")}, []string{"b", failed(3, missing)}},
		{"other status", answers{1: body(403, "no"), 2: body(500, ""), 3: body(304, ""), 4: body(400, ""), 5: body(200, "e")}, []string{failed(1, "response status 403"), failed(2, "response status 500"), failed(3, "response status 304"), failed(4, "response status 400"), "e", failed(6, missing)}},
		{"too large", answers{1: body(200, strings.Repeat("x", 51201)), 2: body(200, strings.Repeat("x", 51201)), 3: body(200, strings.Repeat("y", 51200))}, []string{failed(1, "signature is too large: more than 51200 bytes"), failed(2, "signature is too large: more than 51200 bytes"), strings.Repeat("y", 51200), failed(4, missing)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := must(signature.NewHTTPStore(base, serve(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.Header.Get("Accept-Encoding") == "gzip" {
					t.Errorf("%s %v", r.Method, r.Header)
				}
				var n int
				if _, err := fmt.Sscanf(r.URL.Path, "/sigs/sha256="+digestA[7:]+"/signature-%d", &n); err != nil {
					t.Errorf("asked for %s", r.URL)
				}
				if a := tt.answers[n]; a != nil {
					a(w)
				} else {
					w.WriteHeader(404)
				}
			})))
			checktest.Same(t, tt.want, collect(t.Context(), s, digestA))
		})
	}
}

// A dead server is given up after two attempts.
func TestHTTPStoreEnds(t *testing.T) {
	asked := 0
	dead := must(signature.NewHTTPStore("http://h.example", signature.HTTPOptions{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		asked++
		return nil, errors.New("dead")
	})}))
	got := collect(t.Context(), dead, digestA)
	if asked != 2 || len(got) != 3 || !strings.HasSuffix(got[0], "dead]") || strings.HasPrefix(got[0], "[unable") || !strings.HasSuffix(got[2], "given up after 2 transport errors in a row"+noMore) {
		t.Errorf("asked %d times: %v", asked, got)
	}

	// A failure in between starts the count again.
	asked = 0
	flaky := must(signature.NewHTTPStore("http://h.example", signature.HTTPOptions{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if asked++; asked%2 == 1 {
			return nil, errors.New("flaky")
		}
		w := httptest.NewRecorder()
		w.WriteHeader(503)
		resp := w.Result()
		resp.Request = r
		return resp, nil
	})}))
	if got = collect(t.Context(), flaky, digestA); asked != 9 {
		t.Errorf("asked %d times: %v", asked, got)
	}
}

func TestHTTPStoreURLs(t *testing.T) {
	path := "/sha256=" + digestA[7:] + "/signature-1"
	for _, tt := range []struct{ base, url, description string }{
		{"http://h.example", "http://h.example" + path, "http://h.example"},
		{"http://h.example/", "http://h.example" + path, "http://h.example/"},
		{"http://h.example//a//b/", "http://h.example/a/b" + path, "http://h.example//a//b/"},
		{"http://h.example/a/../b", "http://h.example/b" + path, "http://h.example/a/../b"},
		{"http://h.example/a%2Fb", "http://h.example/a/b" + path, "http://h.example/a%2Fb"},
		{"http://h.example/a?x=1&y=%20", "http://h.example/a" + path + "?x=1&y=%20", "http://h.example/a?(redacted)"},
		{"HTTP://h.example/a", "http://h.example/a" + path, "http://h.example/a"},
		{"http://h.example/a#frag", "http://h.example/a" + path, "http://h.example/a#(redacted)"},
		{"http://user:secret@h.example:8080/a", "http://h.example:8080/a" + path, "http://h.example:8080/a"},
	} {
		t.Run(tt.base, func(t *testing.T) {
			var got, user string
			s := must(signature.NewHTTPStore(tt.base, serve(func(w http.ResponseWriter, r *http.Request) {
				got = r.URL.String()
				name, password, _ := r.BasicAuth()
				user = name + ":" + password
				w.WriteHeader(404)
			})))
			out := collect(t.Context(), s, digestA)
			checktest.Equal(t, tt.url, got, "asked for")
			checktest.Equal(t, "containers/image signature store under "+tt.description, s.String(), "described as %s", s)
			checktest.Equal(t, user == "user:secret", strings.Contains(tt.base, "@"), "authenticated as %q", user)
			if strings.Contains(fmt.Sprint(s, out), "secret") {
				t.Error(s, out)
			}
			checktest.Equal(t, strings.Contains(out[0], "#(redacted)"), strings.Contains(tt.base, "#"), "%v", out)
		})
	}
	for base, text := range map[string]string{
		"ftp://h.example":              "the store ftp://h.example scheme is unrecognized",
		"http:":                        "has no host",
		"https:///path":                "has no host",
		"http://user:secret@h.x/%zz":   "cannot be parsed",
		"ssh://user:secret@h.example/": "the store ssh://h.example/ scheme is unrecognized",
	} {
		_, err := signature.NewHTTPStore(base, signature.HTTPOptions{})
		if err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", base, err)
		}
	}
}

// Time-outs, slow bodies, redirects: over a real connection. TestLimitsOnWhatIsRead
// has what does not end.
func TestHTTPStoreAgainstBadServers(t *testing.T) {
	mux := http.NewServeMux()
	release := make(chan struct{})
	mux.HandleFunc("/slow/", func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("x"))
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/to/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("u"), http.StatusFound)
	})
	plain := httptest.NewServer(mux)
	defer plain.Close()
	secure := httptest.NewTLSServer(mux)
	defer secure.Close()
	defer close(release)
	var seen atomic.Value
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Header.Get("Authorization") + r.Header.Get("Referer"))
		w.Write([]byte("from elsewhere"))
	}))
	defer elsewhere.Close()

	get := func(base string, o signature.HTTPOptions) []string {
		s := must(signature.NewHTTPStore(base, o))
		defer s.CloseIdleConnections()
		return collect(t.Context(), s, digestA)
	}
	got := get(plain.URL+"/slow", signature.HTTPOptions{Timeout: 50 * time.Millisecond})
	if len(got) != 3 || !strings.Contains(got[0], "time-out of 50ms") || !strings.Contains(got[2], "given up") {
		t.Error(got)
	}
	got = get(secure.URL+"/to?u="+plain.URL, signature.HTTPOptions{Transport: secure.Client().Transport})
	if len(got) != 3 || !strings.Contains(got[0], "redirect from https to another scheme refused") {
		t.Error(got)
	}
	got = get(strings.Replace(plain.URL, "http://", "http://user:secret@", 1)+"/to?u="+elsewhere.URL, signature.HTTPOptions{})
	if got[0] != "from elsewhere" || seen.Load() != "" {
		t.Errorf("the other host saw %q: %v", seen.Load(), got)
	}
}

func TestHTTPStoreHonoursItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		s := must(signature.NewHTTPStore("http://h.example", signature.HTTPOptions{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			asked++
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		got := collect(ctx, s, digestA)
		if diff := cmp.Diff([]string{"![context deadline exceeded]"}, got); diff != "" || asked != 1 || time.Since(start) != time.Second {
			t.Errorf("asked %d times, %s: %s", asked, time.Since(start), diff)
		}

		asked = 0
		if got := collect(ctx, s, digestA); asked != 0 || len(got) != 1 {
			t.Errorf("asked %d times after the end: %v", asked, got)
		}

		// Without one, each request has its own time-out: 30 s.
		start = time.Now()
		got = collect(t.Context(), s, digestA)
		if len(got) != 3 || time.Since(start) != time.Minute {
			t.Errorf("%s: %v", time.Since(start), got)
		}
	})
}

func TestOpenStore(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	checktest.OK(t, os.WriteFile(file, nil, 0o600))
	for _, tt := range []struct{ place, want, err string }{
		{"https://mirror.example/s", "containers/image signature store under https://mirror.example/s", ""},
		{"HTTP://mirror.example/s", "containers/image signature store under http://mirror.example/s", ""},
		{"file://" + dir, fmt.Sprint(dirStore(dir)), ""},
		{"ftp://user:secret@x", "", "store ftp://…: a store is a URL with scheme http, https or file, or a directory"},
		{file, "", "store " + file + " is not a directory"},
		{filepath.Join(dir, "none"), "", "store " + filepath.Join(dir, "none") + ": no such file or directory"},
	} {
		s, err := signature.OpenStore(tt.place, signature.HTTPOptions{})
		switch {
		case tt.err != "":
			if err == nil || err.Error() != tt.err {
				t.Errorf("%s: %v, want %s", tt.place, err, tt.err)
			}
		case err != nil || fmt.Sprint(s) != tt.want:
			t.Errorf("%s: %v %v, want %s", tt.place, s, err, tt.want)
		}
	}
}

// What mirror tools leave on disk is a store.
func TestMirrorStore(t *testing.T) {
	a, b := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("a", 16)+strings.Repeat("b", 48)
	key := func(digest string) string { return strings.Replace(digest, ":", "-", 1) }
	configMap := func(kind string, data map[string][]byte) *fstest.MapFile {
		text := must(json.Marshal(map[string]any{"apiVersion": "v1", "kind": kind, "binaryData": data}))
		return &fstest.MapFile{Data: text}
	}
	many := map[string][]byte{}
	for i := range 65 {
		many[fmt.Sprintf("%s-%d", key(a), i)] = []byte("x")
	}
	name := "config/signature-" + key(a)[:len("sha256-")+16] + ".json"
	const working = "working-dir/signatures/"
	for _, tt := range []struct {
		name   string
		files  fstest.MapFS
		digest string
		want   []string
	}{
		{"of oc", fstest.MapFS{name: configMap("ConfigMap", map[string][]byte{
			key(a) + "-10": []byte("ten"), key(a) + "-2": []byte("two"), key(a) + "-x": []byte("x"), key(a) + "-3": nil, key(b) + "-1": []byte("b"),
		})}, a, []string{"two " + name + " key " + key(a) + "-2", "ten " + name + " key " + key(a) + "-10", "none"}},
		{"of oc, in the folder itself", fstest.MapFS{filepath.Base(name): configMap("ConfigMap", map[string][]byte{key(a) + "-010": []byte("ten"), key(a) + "-9": []byte("nine")})},
			a, []string{"nine " + filepath.Base(name) + " key " + key(a) + "-9", "ten " + filepath.Base(name) + " key " + key(a) + "-010", "none"}},
		{"of oc, one that begins alike", fstest.MapFS{name: configMap("ConfigMap", map[string][]byte{key(b) + "-1": []byte("b")})}, b, []string{"b " + name + " key " + key(b) + "-1", "none"}},
		{"of oc, another digest", fstest.MapFS{name: configMap("ConfigMap", map[string][]byte{key(a) + "-1": []byte("a")})}, "sha256:" + strings.Repeat("c", 64), []string{"none"}},
		{"no ConfigMap", fstest.MapFS{name: configMap("Secret", nil)}, a, []string{"error no ConfigMap", "none"}},
		{"no JSON", fstest.MapFS{name: {Data: []byte("{")}}, a, []string{"error unexpected end of JSON input", "none"}},
		{"large ConfigMap", fstest.MapFS{name: {Data: make([]byte, 2<<20+1)}}, a, []string{"error more than 2097152 bytes", "none"}},
		{"many", fstest.MapFS{name: configMap("ConfigMap", many)}, a, nil},
		{"of oc-mirror", fstest.MapFS{working + "4.21.1-x86_64-" + key(a): {Data: []byte("one")}, working + "4.21.1-x86_64-" + key(b): {Data: []byte("b")}, working + "x" + key(a): {Data: []byte("x")}},
			a, []string{"one " + working + "4.21.1-x86_64-" + key(a), "none"}},
		{"of oc-mirror, large", fstest.MapFS{working + key(a): {Data: make([]byte, 50<<10+1)}}, a, []string{"error more than 51200 bytes", "none"}},
		{"a digest that leads out", fstest.MapFS{working + "x": {}}, "sha256:../x", []string{"store error"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			checktest.OK(t, os.CopyFS(dir, tt.files))
			s := checktest.Get(signature.OpenStore(dir, signature.HTTPOptions{}))(t)
			checktest.Equal(t, "file://"+dir, fmt.Sprint(s), "fmt.Sprint(s) of %v", s)
			var got []string
			for c, err := range s.Candidates(t.Context(), tt.digest) {
				switch {
				case errors.As(err, new(*signature.StoreError)):
					got = append(got, "store error")
				case errors.Is(err, signature.ErrNotFound):
					got = append(got, "none")
				case err != nil:
					text := err.Error()
					got = append(got, "error "+text[strings.LastIndex(text, ": ")+2:])
				default:
					place, _ := strings.CutPrefix(c.Location, "file://"+dir+string(filepath.Separator))
					got = append(got, string(c.Signature)+" "+place)
				}
			}
			if tt.want == nil {
				if len(got) != 65 || !strings.Contains(got[64], "than the limit of 64") {
					t.Error(len(got), got[len(got)-1])
				}
			} else if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			for _, err := range s.Candidates(ctx, a) {
				checktest.ErrorIs(t, context.Canceled, err)
			}
		})
	}
}
