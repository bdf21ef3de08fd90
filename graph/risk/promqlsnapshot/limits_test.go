package promqlsnapshot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"

	"github.com/clusterupdate/clusterupdate/graph/risk/promqlsnapshot"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
)

func TestLimits(t *testing.T) {
	wantLimit := func(t *testing.T, err error, text string) {
		t.Helper()
		if !errors.Is(err, promqlsnapshot.ErrLimit) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want a limit with %q", err, text)
		}
	}
	var series bytes.Buffer
	for i := range 500_001 {
		fmt.Fprintf(&series, "a%d 1\n", i)
	}
	samples := []byte(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"a"},"values":[` +
		strings.Repeat(`[1,"1"],`, 2_000_000) + `[1,"1"]]}]}}`)
	long := `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"` + strings.Repeat("x", 64<<10) + `"},"value":[1,"1"]}]}}`
	many := &promqlsnapshot.Snapshot{}
	for i := range 1_001 {
		for j := range 1_000 {
			many.Add(map[string]string{"__name__": "a", "i": fmt.Sprint(i)}, time.UnixMilli(int64(j)), 1)
		}
	}
	limittest.Walk(t, []limittest.Case{
		{Limit: "bytes of an input", Default: 256 << 20, Bytes: 1100 << 20, Run: func(t *testing.T) int64 {
			wantLimit(t, new(promqlsnapshot.Snapshot).ReadText(io.LimitReader(blanks{}, 256<<20+1), recorded), "more than 268435456 bytes")
			return 0
		}},
		{Limit: "series", Default: 500_000, Bytes: 400 << 20, Run: func(t *testing.T) int64 {
			wantLimit(t, new(promqlsnapshot.Snapshot).ReadText(bytes.NewReader(series.Bytes()), recorded), "sample 500001: a limit of the snapshot is exceeded: more than 500000 series")
			return 0
		}},
		{Limit: "samples", Default: 2_000_000, Bytes: 1000 << 20, Run: func(t *testing.T) int64 {
			wantLimit(t, new(promqlsnapshot.Snapshot).ReadJSON(bytes.NewReader(samples)), "data.result[0], sample 2000000: a limit of the snapshot is exceeded: more than 2000000 samples")
			return 0
		}},
		{Limit: "bytes of labels in JSON", Default: 64 << 10, Bytes: 2 << 20, Run: func(t *testing.T) int64 {
			wantLimit(t, new(promqlsnapshot.Snapshot).ReadJSON(strings.NewReader(long)), "data.result[0].metric: a limit of the snapshot is exceeded: more than 65536 bytes")
			return 0
		}},
		{Limit: "samples of a query", Default: 1_000_000, Bytes: 200 << 20, Run: func(t *testing.T) int64 {
			checktest.ErrorHas(t, "too many samples", checktest.Err(many.Query(context.Background(), "a[1h]")))
			return 0
		}},
		{Limit: "steps of subqueries", Default: 1_000_000, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			for _, query := range []string{"count_over_time(vector(1)[100y:1ms])", "max_over_time(max_over_time(vector(1)[1h:1s])[1h:1s])", "max_over_time(vector(1)[2y:])"} {
				_, err := many.Query(context.Background(), query)
				wantLimit(t, err, "at most 1000000 are allowed")
			}
			return 0
		}},
		{Limit: "time of a query", Default: int64(time.Minute), Bytes: 64 << 20, Run: func(t *testing.T) int64 {
			// Less than the default, which would take a minute of computing.
			s := &promqlsnapshot.Snapshot{Timeout: time.Nanosecond}
			checktest.ErrorHas(t, "timed out", checktest.Err(
				s.Query(context.Background(), "max_over_time(vector(1)[100000m:1m])")))
			return 0
		}},
	})
}

type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '\n'
	}
	return len(p), nil
}
