package olm_test

import (
	"errors"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/olm"
)

// TestLimitsTable walks the table of docs/limits.md.
func TestLimitsTable(t *testing.T) {
	places := pigeons(t, 14)
	limittest.Walk(t, []limittest.Case{
		{Limit: "conflicts of a choice", Default: 10000, Bytes: 64 << 20, Run: func(t *testing.T) int64 {
			_, err := olm.Resolve(t.Context(), places, olm.Options{AllOrNothing: true, MaxConflicts: 1000})
			if past := (*olm.LimitError)(nil); !errors.As(err, &past) || past.Max != 1000 {
				t.Errorf("%v", err)
			}
			return 0
		}},
	})
}
