package bounded_test

import (
	"errors"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestAggregate(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	for want, errs := range map[string][]error{
		"a":      {a},
		"[a, b]": {a, b, errors.New("a")},
		"b":      {b, errors.New("b")},
	} {
		err := bounded.Aggregate(errs)
		checktest.FailIf(t, err.Error() != want || !errors.Is(err, errs[len(errs)-1]),
			"%v: %q, want %q", errs, err, want)
	}
	checktest.Good(t, bounded.Aggregate(nil))
}
