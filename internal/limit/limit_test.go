package limit_test

import (
	"errors"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limit"
)

func TestLimitError(t *testing.T) {
	for _, tt := range []struct {
		err  limit.LimitError
		want string
	}{
		{limit.LimitError{Max: 5, What: "files"}, "more than 5 files"},
		{limit.LimitError{Limit: "MaxFiles", Max: 5, What: "files"}, "more than 5 files (limit MaxFiles)"},
		{limit.LimitError{Where: "a.tar", Limit: "MaxFiles", Max: 5, What: "files"}, "a.tar: more than 5 files (limit MaxFiles)"},
	} {
		checktest.Equal(t, tt.want, tt.err.Error(), "text")
	}
}

func TestMeter(t *testing.T) {
	m := limit.Meter{Budget: limit.Budget{
		Bytes:  limit.Limit{Max: 100, Name: "MaxBytes", What: "bytes"},
		Values: limit.Limit{Max: 10, Name: "MaxValues", What: "values"},
		Depth:  limit.Limit{Max: 3, Name: "MaxDepth", What: "levels"},
	}}
	for _, tt := range []struct {
		use  limit.Usage
		want string // name of the limit that is passed
	}{
		{limit.Usage{Bytes: 60, Values: 5, Depth: 3, Entries: 1000, Aliases: 1000}, ""},
		{limit.Usage{Bytes: 40, Values: 5, Depth: 3}, ""},
		{limit.Usage{Values: 1}, "MaxValues"},
		{limit.Usage{Bytes: 1}, "MaxBytes"}, // the first of several
	} {
		err := m.Spend(tt.use)
		var passed *limit.LimitError
		if got := errors.As(err, &passed); got != (tt.want != "") || got && passed.Limit != tt.want {
			t.Errorf("Spend(%+v) = %v, want %q", tt.use, err, tt.want)
		}
	}
	if got, want := m.Used(), (limit.Usage{Bytes: 101, Values: 11, Entries: 1000, Depth: 3, Aliases: 1000}); got != want {
		t.Errorf("used %+v, want %+v", got, want)
	}
}
