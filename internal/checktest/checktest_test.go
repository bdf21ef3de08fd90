package checktest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// notes notes what fails a test, and lets it continue.
type notes struct {
	testing.TB
	fatal, errors int
}

func (*notes) Helper() {}

func (n *notes) Fatal(...any) { n.fatal++ }

func (n *notes) Errorf(string, ...any) { n.errors++ }

func TestChecks(t *testing.T) {
	err := errors.New("out of order")
	for i, tt := range []struct {
		check         func(n *notes)
		fatal, errors int
	}{
		{func(n *notes) { checktest.OK(n, nil) }, 0, 0},
		{func(n *notes) { checktest.OK(n, err) }, 1, 0},
		{func(n *notes) { checktest.Get(1, nil)(n) }, 0, 0},
		{func(n *notes) { checktest.Get(1, err)(n) }, 1, 0},
		{func(n *notes) { checktest.Good(n, nil) }, 0, 0},
		{func(n *notes) { checktest.Good(n, err) }, 0, 1},
		{func(n *notes) { checktest.Same(n, "a", "a") }, 0, 0},
		{func(n *notes) { checktest.Same(n, "a", "b") }, 0, 1},
		{func(n *notes) { checktest.SameIn(n, "x", 1, 2) }, 0, 1},
		{func(n *notes) { checktest.Equal(n, 1, 1, "x") }, 0, 0},
		{func(n *notes) { checktest.Equal(n, 1, 2, "x") }, 0, 1},
		{func(n *notes) { checktest.ErrorIs(n, err, fmt.Errorf("it is %w", err)) }, 0, 0},
		{func(n *notes) { checktest.ErrorIs(n, err, nil) }, 0, 1},
		{func(n *notes) { checktest.Fails(n, err, "x") }, 0, 0},
		{func(n *notes) { checktest.Fails(n, nil, "x") }, 0, 1},
		{func(n *notes) { checktest.Has(n, "abc", "a", "bc") }, 0, 0},
		{func(n *notes) { checktest.Has(n, "abc", "a", "x", "y") }, 0, 2},
		{func(n *notes) { checktest.ErrorHas(n, "order", err) }, 0, 0},
		{func(n *notes) { checktest.ErrorHas(n, "order", nil) }, 0, 1},
	} {
		n := &notes{TB: t}
		tt.check(n)
		if n.fatal != tt.fatal || n.errors != tt.errors {
			t.Errorf("check %d: %d fatal and %d other failures, want %d and %d", i, n.fatal, n.errors, tt.fatal, tt.errors)
		}
	}
}
