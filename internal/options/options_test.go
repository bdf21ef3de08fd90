package options_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"

	"github.com/clusterupdate/clusterupdate/internal/options"
)

type retry struct {
	Count int
	Rate  float64
}

type clientOptions struct {
	Timeout time.Duration
	Limit   int64
	Name    string
	At      time.Time
	Retry   retry
	hidden  int
}

func TestNonNegative(t *testing.T) {
	tests := []struct {
		name   string
		o      any
		except []string
		want   string
	}{
		{"zero", clientOptions{}, nil, ""},
		{"positive", clientOptions{Timeout: 1, Limit: 2, Retry: retry{Count: 1, Rate: 0.5}}, nil, ""},
		{"unexported", clientOptions{hidden: -1}, nil, ""},
		{"nil pointer", (*clientOptions)(nil), nil, ""},
		{"duration", clientOptions{Timeout: -time.Second}, nil, "options_test.clientOptions: Timeout is negative: -1s"},
		{"pointer", &clientOptions{Limit: -3}, nil, "options_test.clientOptions: Limit is negative: -3"},
		{"nested", clientOptions{Retry: retry{Count: -1}}, nil, "options_test.clientOptions: Retry.Count is negative: -1"},
		{"not a number", clientOptions{Retry: retry{Rate: math.NaN()}}, nil, "options_test.clientOptions: Retry.Rate is not a finite number: NaN"},
		{"rate", clientOptions{Retry: retry{Rate: -0.5}}, nil, "options_test.clientOptions: Retry.Rate is negative: -0.5"},
		{"excepted", clientOptions{Timeout: -1}, []string{"Timeout"}, ""},
		{"all of them", clientOptions{Timeout: -1, Limit: -1}, nil, "options_test.clientOptions: Timeout is negative: -1ns\noptions_test.clientOptions: Limit is negative: -1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if err := options.NonNegative(test.o, test.except...); err != nil {
				got = err.Error()
			}
			checktest.Equal(t, test.want, strings.TrimSpace(got), "NonNegative")
		})
	}
}
