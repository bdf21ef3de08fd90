package panics_test

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

func TestCatch(t *testing.T) {
	for _, tc := range []struct {
		name string
		f    func() error
		text string
		is   error
	}{
		{"no error", func() error { return nil }, "", nil},
		{"an error", func() error { return io.EOF }, "EOF", io.EOF},
		{"a panic", func() error { panic("no such node") }, "panic: no such node", nil},
		{"a panic with an error", func() error { panic(io.EOF) }, "panic: EOF", io.EOF},
	} {
		for way, call := range map[string]func(func() error) error{"Catch": panics.Catch, "Isolate": panics.Isolate} {
			t.Run(tc.name+" "+way, func(t *testing.T) {
				err := call(tc.f)
				if tc.text == "" {
					checktest.OK(t, err)
					return
				}
				checktest.FatalIf(t, err == nil || err.Error() != tc.text || tc.is != nil && !errors.Is(err, tc.is),
					"got %v, want %s", err, tc.text)
				if caught := new(panics.Error); strings.HasPrefix(tc.text, "panic") && (!errors.As(err, &caught) || !strings.Contains(string(caught.Stack), "TestCatch")) {
					t.Errorf("no stack of the test in %#v", err)
				}
			})
		}
	}
}

func TestIsolateSurvivesGoexit(t *testing.T) {
	err := panics.Isolate(func() error { runtime.Goexit(); return nil })
	caught := new(panics.Error)
	checktest.FatalIf(t, !errors.As(err, &caught) || !strings.Contains(err.Error(), "Goexit"), "got %v", err)
}
