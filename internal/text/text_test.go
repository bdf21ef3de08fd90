package text_test

import (
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"

	"github.com/clusterupdate/clusterupdate/internal/text"
)

func TestShort(t *testing.T) {
	const s, m, h = time.Second, time.Minute, time.Hour
	for d, want := range map[time.Duration]string{
		0: "now", h: "1h", 10 * h: "10h", 10*h + 10*m: "10h10m", h + 10*s: "1h0m10s", 45 * s: "45s", 10 * s: "10s",
		2*m + 54*s: "2m54s", 10 * m: "10m", h + 20*m: "1h20m", 100 * h: "100h", 100*h + s: "100h0m1s",
		45*s + 300*time.Millisecond: "45s", m + 999*time.Millisecond: "1m", 59*m + 59999*time.Millisecond: "59m59s", h + 999*time.Millisecond: "1h",
		368975 * time.Nanosecond: "now", 512300 * time.Microsecond: "now", time.Nanosecond: "now", -999 * time.Millisecond: "now",
		-45 * s: "-45s", -h: "-1h", -1500 * time.Millisecond: "-1s", -(2*m + 500*time.Millisecond): "-2m",
	} {
		checktest.Equal(t, want, text.Short(d), "%d", d)
	}
}

func TestWrap(t *testing.T) {
	for in, want := range map[string][]string{
		"":                   {""},
		"one":                {"one"},
		"one two":            {"one two"},
		"one  two\nthree":    {"one two", "three"},
		"abcdefghij":         {"abcdefgh", "ij"},
		"a bcdefghijklmnopq": {"a", "bcdefghi", "jklmnopq"},
		"ü ö ä ü ö":          {"ü ö ä ü", "ö"},
	} {
		checktest.Same(t, want, text.Wrap(in, 8))
	}
}
