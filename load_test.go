package clusterupdate_test

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
)

// brokenSource serves the sample, and acts where the second release's payload
// is asked for, read or discarded.
type brokenSource struct {
	ask, read, discard func()
	discards           int
}

func call(f func()) {
	if f != nil {
		f()
	}
}

func (b *brokenSource) Payload(ctx context.Context, r configv1.Release) (fs.FS, error) {
	fsys, err := sampleSource().Payload(ctx, r)
	if err != nil || r.Image != sample.ToImage {
		return fsys, err
	}
	call(b.ask)
	return brokenFS{fsys, b}, nil
}

func (b *brokenSource) Discard(context.Context, configv1.Release) error {
	b.discards++
	call(b.discard)
	return nil
}

type brokenFS struct {
	fs.FS
	b *brokenSource
}

func (f brokenFS) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, ".yaml") {
		call(f.b.read)
	}
	return f.FS.Open(name)
}

// TestPanicsInAPayloadSource: whatever a source and an observer do, the Updater goes on with
// what the cluster runs, says what happened, and tries again.
func TestPanicsInAPayloadSource(t *testing.T) {
	lost := errors.New("the registry's client is broken")
	panics := func() { panic(lost) }
	for name, tc := range map[string]struct {
		source brokenSource
		step   clusterupdate.Step
		is     error
	}{
		"Payload panics":         {brokenSource{ask: panics}, clusterupdate.RetrievePayload, lost},
		"Payload ends":           {brokenSource{ask: runtime.Goexit}, clusterupdate.RetrievePayload, nil},
		"the file system panics": {brokenSource{read: panics, discard: panics}, clusterupdate.LoadPayload, lost},
		"the file system ends":   {brokenSource{read: runtime.Goexit, discard: runtime.Goexit}, clusterupdate.LoadPayload, nil},
	} {
		t.Run(name, func(t *testing.T) {
			source := tc.source
			withSample(t, func(o *clusterupdate.Options) {
				o.Payloads = &source
				o.Observe = func(clusterapi.Event) { panic("out of paper") } // which changes nothing
			}, func(s *sampleTest) {
				s.sync()
				s.request(s.T, configv1.Update{Version: sample.ToVersion})
				for range 2 {
					time.Sleep(10 * time.Minute)
					r := s.sync()
					var load *clusterupdate.LoadError
					var caught *clusterapi.PanicError
					if !errors.As(r.Failure, &load) || load.Step != tc.step || !errors.As(r.Failure, &caught) {
						s.Fatalf("failure is %v, want a panic of %s", r.Failure, tc.step)
					}
					if tc.is != nil && (!errors.Is(r.Failure, tc.is) || !strings.Contains(string(caught.Stack), "TestPanicsInAPayloadSource")) {
						s.Errorf("%v\n%s", r.Failure, caught.Stack)
					}
				}
				if loads := tc.step == clusterupdate.LoadPayload; loads != (source.discards > 0) {
					s.Errorf("discarded %d times", source.discards)
				}
				if h := s.version(s.T).Status.History; h[0].Image != sample.FromImage {
					s.Errorf("%+v", h)
				}
				source = brokenSource{}
				time.Sleep(time.Hour)
				if r := s.syncs(100); !r.Done {
					s.Errorf("the update is not done: %v", r.Failure)
				}
			})
		})
	}
}
