package timeline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
)

func TestDecodeErrors(t *testing.T) {
	entry := func(fields string) string {
		return `{"formatVersion":1,"entries":[{"start":"2026-01-01T08:00:00Z"` + fields + `}]}`
	}
	for _, tt := range []struct{ json, want string }{
		{``, "timeline: unexpected end of JSON input"},
		{`[]`, "timeline: json: cannot unmarshal array into Go value"},
		{`{}`, "timeline: formatVersion is missing"},
		{`{"FormatVersion":1}`, "timeline: formatVersion is missing"},
		{`{"formatVersion":2,"lanes":[]}`, "timeline: formatVersion 2 is not known, only 1"},
		{`{"formatVersion":1,"entries":[],"lanes":[]}`, `timeline: unknown field "lanes"`},
		{`{"formatVersion":1,"entries":[],"title":"a","title":"b"}`, `timeline: duplicate field "title"`},
		{`{"formatVersion":1,"entries":[{}]}`, `timeline: entry 0, of lane "", has no start`},
		{`{"formatVersion":1,"entries":[{"start":"yesterday"}]}`, `cannot parse "yesterday"`},
		{`{"formatVersion":1,"start":"2026-01-01","entries":[]}`, `cannot parse "" as "T"`},
		{`{"formatVersion":1,"entries":[],"omitted":-1}`, "timeline: Omitted is negative: -1"},
		{entry(`,"end":"2026-01-01T07:00:00Z"`), "ends before it starts"},
		{entry(`,"end":"0001-01-01T00:00:00Z"`), "timeline: entry 0: its end is in the year 1"},
		{entry(`,"duration":"1s"`), "timeline: entry 0: it has a duration and no end"},
		{entry(`,"end":"2026-01-01T09:00:00Z","duration":"1s"`), "timeline: entry 0: its duration is 1s, and from start to end it is 1h0m0s"},
		{entry(`,"end":"2026-01-01T09:00:00Z","duration":"an hour"`), `timeline: entry 0: time: invalid duration "an hour"`},
	} {
		_, err := timeline.Decode(strings.NewReader(tt.json), timeline.DecodeOptions{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s:\n got %v\nwant %s", tt.json, err, tt.want)
		}
		var tl timeline.Timeline
		if err := json.Unmarshal([]byte(tt.json), &tl); err == nil {
			t.Errorf("%s: Unmarshal takes it", tt.json)
		}
	}
	for _, o := range []timeline.DecodeOptions{{MaxBytes: -1}, {MaxEntries: -1}} {
		if _, err := timeline.Decode(strings.NewReader(`{"formatVersion":1,"entries":[]}`), o); err == nil || !strings.Contains(err.Error(), " is negative: -1") {
			t.Error(err)
		}
	}
	broken := errors.New("broken")
	if _, err := timeline.Decode(iotest.ErrReader(broken), timeline.DecodeOptions{}); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := json.Marshal(timeline.Timeline{Entries: []timeline.Entry{{}}}); err == nil || !strings.Contains(err.Error(), "has no start") {
		t.Error(err)
	}
}

// Times of other zones and without the duration are read too, and come out in UTC.
func TestDecodeZones(t *testing.T) {
	const text = `{"formatVersion":1,"entries":[{"start":"2026-01-01T10:00:00.25+02:00","end":"2026-01-01T03:00:00-05:30","lane":"80"}]}`
	var tl timeline.Timeline
	if err := json.Unmarshal([]byte(text), &tl); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(tl)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"formatVersion":1,"entries":[{"start":"2026-01-01T08:00:00.25Z","end":"2026-01-01T08:30:00Z","duration":"29m59.75s","lane":"80"}]}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
	}
}

// FuzzDecode: what is read can be shown in every form, and written and read again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"formatVersion":1,"entries":[]}`))
	f.Add([]byte(`{"formatVersion":1,"title":"x","start":"2026-01-01T08:00:00Z","end":"2026-01-02T08:00:00Z","phases":["a"],"omitted":2,"entries":[` +
		`{"start":"2026-01-01T08:00:00Z","end":"2026-01-01T08:30:00Z","duration":"30m0s","group":"g","lane":"l","phase":"a","text":"t","trouble":true},` +
		`{"start":"2026-01-01T08:10:00Z","group":"g","lane":"l","phase":"b"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tl, err := timeline.Decode(bytes.NewReader(data), timeline.DecodeOptions{MaxBytes: 1 << 16, MaxEntries: 200})
		if err != nil {
			return
		}
		for _, lanes := range []int{1, 300} {
			if err := tl.WriteText(io.Discard, timeline.TextOptions{MaxLanes: lanes}); err != nil {
				t.Fatal(err)
			}
			picture := svgOf(t, tl, timeline.SVGOptions{MaxLanes: lanes})
			if _, _, err := svgBars(picture); err != nil {
				t.Fatalf("%v\n%s", err, picture)
			}
		}
		written, err := json.Marshal(tl)
		if err != nil {
			t.Fatal(err)
		}
		again, err := timeline.Decode(bytes.NewReader(written), timeline.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tl, again); diff != "" {
			t.Fatal(diff)
		}
	})
}
