package mcp_test

import (
	"errors"
	"math"
	"testing"

	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/mcp"
)

func TestMaxUnavailable(t *testing.T) {
	i, s := func(n int) *intstr.IntOrString { v := intstr.FromInt32(int32(n)); return &v },
		func(v string) *intstr.IntOrString { x := intstr.FromString(v); return &x }
	for _, tt := range []struct {
		pool     string
		value    *intstr.IntOrString
		nodes    int
		want     int
		warnings int
		err      string
	}{
		{"worker", nil, 5, 1, 0, ""},
		{"worker", nil, 1, 1, 0, ""},
		{"arbiter", i(3), 5, 1, 0, ""},
		{"arbiter", i(-3), 5, 1, 0, ""},
		{"worker", i(3), 5, 3, 0, ""},
		{"worker", i(3), 2, 3, 1, ""},
		{"worker", i(3), 3, 3, 1, ""},
		{"master", i(2), 3, 2, 1, ""},
		{"master", i(3), 3, 3, 2, ""},
		{"worker", i(0), 5, 1, 0, ""},
		{"worker", s("0%"), 5, 1, 0, ""},
		{"worker", s("10%"), 5, 1, 0, ""},
		{"worker", s("10%"), 10, 1, 0, ""},
		{"worker", s("10%"), 19, 1, 0, ""},
		{"worker", s("10%"), 20, 2, 0, ""},
		{"worker", s("33%"), 3, 1, 0, ""}, // 0.99, rounded down to 0, made 1
		{"worker", s("33%"), 5, 1, 0, ""},
		{"worker", s("33%"), 10, 3, 0, ""},
		{"worker", s("200%"), 5, 10, 1, ""},
		{"worker", s("9223372036854775807%"), 1000, math.MaxInt32, 1, ""},
		{"worker", s("4294967296%"), 100, math.MaxInt32, 1, ""},
		{"worker", s("-9223372036854775808%"), 1000, 0, 0, "maxUnavailable: -9223372036854775808% is negative: the pool would never update"},
		{"worker", s("%"), 5, 0, 0, `maxUnavailable: invalid value for IntOrString: invalid value "%": strconv.Atoi: parsing "": invalid syntax`},
		{"worker", s(""), 5, 0, 0, "maxUnavailable: invalid value for IntOrString: invalid type: string is not a percentage"},
		{"worker", i(-1), 5, 0, 0, "maxUnavailable: -1 is negative: the pool would never update"},
		{"worker", s("-10%"), 5, 0, 0, "maxUnavailable: -10% is negative: the pool would never update"},
		{"worker", s("-10%"), 0, 0, 0, "maxUnavailable: -10% is negative: the pool would never update"},
		{"worker", s("3"), 5, 0, 0, "maxUnavailable: invalid value for IntOrString: invalid type: string is not a percentage"},
		{"worker", s("abc%"), 5, 0, 0, `maxUnavailable: invalid value for IntOrString: invalid value "abc%": strconv.Atoi: parsing "abc": invalid syntax`},
	} {
		p := mcptest.Pool(tt.pool, "N")
		p.Spec.MaxUnavailable = tt.value
		got, warnings, err := mcp.MaxUnavailable(&p, tt.nodes)
		text := ""
		if err != nil {
			text = err.Error()
			if !errors.Is(err, mcp.ErrInvalidMaxUnavailable) {
				t.Errorf("%v of %d: %v is not ErrInvalidMaxUnavailable", tt.value, tt.nodes, err)
			}
		}
		if got != tt.want || len(warnings) != tt.warnings || text != tt.err {
			t.Errorf("%s: %v of %d: %d, %q, %q", tt.pool, tt.value, tt.nodes, got, warnings, text)
		}
	}
}
