package must_test

import (
	"errors"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/must"
)

// fatal notes what ends a test, and lets it go on.
type fatal struct {
	testing.TB
	why []any
}

func (*fatal) Helper() {}

func (f *fatal) Fatal(why ...any) { f.why = append(f.why, why...) }

func Test(t *testing.T) {
	f, err := &fatal{TB: t}, errors.New("out of order")
	if must.Do(f, nil); must.Get(1, nil)(f) != 1 || len(f.why) > 0 {
		t.Errorf("without an error: %v", f.why)
	}
	must.Do(f, err)
	if must.Get(1, err)(f); len(f.why) != 2 || f.why[0] != err || f.why[1] != err {
		t.Errorf("with an error: %v", f.why)
	}
}
