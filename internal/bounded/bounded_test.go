package bounded_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestText(t *testing.T) {
	for _, tc := range []struct {
		name  string
		text  string
		limit int
		want  string
	}{
		{"fits", "etcd is slow", 12, "etcd is slow"},
		{"cut", strings.Repeat("x", 100), 30, strings.Repeat("x", 10) + "... (90 more bytes)"},
		{"between characters", "ééééééééééééééééééééé", 24, "éé... (38 more bytes)"},
		{"no room for the note", "some long text", 4, "some"},
		{"nothing", "text", 0, ""},
		{"less than nothing", "text", -1, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			checktest.Equal(t, tc.want, bounded.Text(tc.text, tc.limit), "Text(%q, %d)", tc.text, tc.limit)
		})
	}
}

func TestTextStaysWithinItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		limit := rapid.IntRange(0, 60).Draw(t, "limit")
		got := bounded.Text(text, limit)
		checktest.FatalIf(t, len(got) > limit, "%d bytes, limit %d: %q", len(got), limit, got)
		checktest.FatalIf(t, !utf8.ValidString(got), "a character is cut in two: %q", got)
		checktest.FatalIf(t, len(text) <= limit && got != text, "%q fits, got %q", text, got)
	})
}

func TestJoin(t *testing.T) {
	for _, tc := range []struct {
		name  string
		items []string
		limit int
		want  string
	}{
		{"none", nil, 10, ""},
		{"fits", []string{"a", "b", "c"}, 7, "a, b, c"},
		{"last left out", []string{"alpha", "beta", "gamma, which is long"}, 30, "alpha, beta and 1 more"},
		{"a short one behind a long one is not taken", []string{"a", strings.Repeat("x", 40), "b"}, 20, "a and 2 more"},
		{"not even one", []string{strings.Repeat("x", 40), "b"}, 20, "2 in all"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			checktest.Equal(t, tc.want, bounded.Join(tc.items, ", ", tc.limit), "Join(%q, %d)", tc.items, tc.limit)
		})
	}
}

func TestJoinStaysWithinItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOf(rapid.String()).Draw(t, "items")
		limit := rapid.IntRange(0, 60).Draw(t, "limit")
		got := bounded.Join(items, ", ", limit)
		checktest.FatalIf(t, len(got) > limit, "%d bytes, limit %d: %q", len(got), limit, got)
		whole := strings.Join(items, ", ")
		checktest.FatalIf(t, len(whole) <= limit && got != whole, "%q fits, got %q", whole, got)
	})
}

func TestErrors(t *testing.T) {
	first := errors.New("first")
	checktest.Good(t, bounded.Errors(nil, nil))
	if err := bounded.Errors(nil, first, errors.New("second")); err.Error() != "first\nsecond" || !errors.Is(err, first) {
		t.Errorf("got %v", err)
	}
	errs := []error{first}
	for i := range 100_000 {
		errs = append(errs, fmt.Errorf("error %d", i))
	}
	last := errors.New(strings.Repeat("x", 1<<20))
	err := bounded.Errors(append(errs, last)...)
	if text := err.Error(); len(text) > bounded.MaxErrors || !strings.HasPrefix(text, "first\nerror 0\n") || !strings.HasSuffix(text, " more") {
		t.Errorf("%d bytes: %.100s", len(text), text)
	}
	checktest.ErrorIs(t, last, err)
	if text := bounded.Errors(last).Error(); len(text) > bounded.MaxError || !strings.HasSuffix(text, " more bytes)") {
		t.Errorf("%d bytes", len(text))
	}
}
