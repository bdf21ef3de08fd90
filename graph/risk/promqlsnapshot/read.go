package promqlsnapshot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/options"
)

// readAll reads an input to its end.
func (s *Snapshot) readAll(r io.Reader) ([]byte, error) {
	if err := options.NonNegative(s); err != nil {
		return nil, err
	}
	limit := cmp.Or(s.MaxBytes, 256<<20)
	var text bytes.Buffer
	_, err := text.ReadFrom(io.LimitReader(r, limit+1))
	if err == nil && int64(text.Len()) > limit {
		err = fmt.Errorf("%w: the input has more than %d bytes", ErrLimit, limit)
	}
	return text.Bytes(), err
}

// read adds a sample within the limits.
func (s *Snapshot) read(set labels.Labels, t int64, value float64) error {
	series, samples := cmp.Or(s.MaxSeries, 500_000), cmp.Or(s.MaxRecorded, 2_000_000)
	switch s.add(set, t, value); {
	case len(s.series) > series:
		return fmt.Errorf("%w: more than %d series", ErrLimit, series)
	case s.recorded > samples:
		return fmt.Errorf("%w: more than %d samples", ErrLimit, samples)
	}
	return nil
}

// ReadText adds samples in the Prometheus text format. Those without a time of
// their own are of the time recorded. Native histograms are left out.
func (s *Snapshot) ReadText(r io.Reader, recorded time.Time) error {
	text, err := s.readAll(r)
	if err != nil {
		return err
	}
	p, err := textparse.New(text, "text/plain", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return err
	}
	for i := 1; ; {
		entry, err := p.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("sample %d: %w", i, err)
		case entry != textparse.EntrySeries:
			continue
		}
		_, at, value := p.Series()
		var set labels.Labels
		p.Labels(&set)
		t := recorded.UnixMilli()
		if at != nil {
			t = *at
		}
		if err := s.read(set, t, value); err != nil {
			return fmt.Errorf("sample %d: %w", i, err)
		}
		i++
	}
}

// ReadJSON adds the samples of an answer of the HTTP API to a query whose
// result is a vector or a matrix, such as /api/v1/query?query={__name__=~".+"}.
func (s *Snapshot) ReadJSON(r io.Reader) error {
	text, err := s.readAll(r)
	if err != nil {
		return err
	}
	var answer struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   struct {
			ResultType string          `json:"resultType"`
			Result     json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return err
	}
	switch {
	case answer.Status != "success":
		return fmt.Errorf("the answer's status is %q: %s", bounded.Text(answer.Status, maxWords), bounded.Text(answer.Error, maxWords))
	case answer.Data.ResultType != "vector" && answer.Data.ResultType != "matrix":
		return fmt.Errorf("data.resultType is %q, not vector or matrix", bounded.Text(answer.Data.ResultType, maxWords))
	}
	// Series by series and sample by sample: all at once would take many
	// times the input's size.
	return each(answer.Data.Result, "data.result", func(i int, d *json.Decoder) error {
		var one struct {
			Metric json.RawMessage     `json:"metric"`
			Value  *[2]json.RawMessage `json:"value"`
			Values json.RawMessage     `json:"values"`
		}
		if err := d.Decode(&one); err != nil {
			return fmt.Errorf("data.result[%d]: %w", i, err)
		}
		set, err := decodeMetric(one.Metric)
		if err != nil {
			return fmt.Errorf("data.result[%d].metric: %w", i, err)
		}
		add := func(j int, sample [2]json.RawMessage) error {
			t, value, err := decodeSample(sample)
			if err == nil {
				err = s.read(set, t, value)
			}
			if err != nil {
				return fmt.Errorf("data.result[%d], sample %d: %w", i, j, err)
			}
			return nil
		}
		n := 0
		err = each(one.Values, fmt.Sprintf("data.result[%d].values", i), func(j int, d *json.Decoder) error {
			var sample [2]json.RawMessage
			if err := d.Decode(&sample); err != nil {
				return fmt.Errorf("data.result[%d].values[%d]: %w", i, j, err)
			}
			n++
			return add(j, sample)
		})
		if err == nil && one.Value != nil {
			err = add(n, *one.Value)
		}
		return err
	})
}

const (
	maxWords  = 4 << 10  // bytes of a text that errors repeat
	maxLabels = 64 << 10 // bytes of a series' labels
)

// each calls f for each element of a JSON array, null or nothing; f decodes it.
func each(array json.RawMessage, path string, f func(i int, d *json.Decoder) error) error {
	if len(array) == 0 || string(array) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(array))
	if start, err := d.Token(); err != nil || start != json.Delim('[') {
		return fmt.Errorf("%s is not an array", path)
	}
	for i := 0; d.More(); i++ {
		if err := f(i, d); err != nil {
			return err
		}
	}
	return nil
}

func decodeMetric(text json.RawMessage) (labels.Labels, error) {
	if len(text) > maxLabels {
		return labels.EmptyLabels(), fmt.Errorf("%w: more than %d bytes of labels", ErrLimit, maxLabels)
	}
	var set map[string]string
	if len(text) > 0 {
		if err := json.Unmarshal(text, &set); err != nil {
			return labels.EmptyLabels(), err
		}
	}
	return labels.FromMap(set), nil
}

func decodeSample(sample [2]json.RawMessage) (t int64, value float64, err error) {
	var seconds float64
	if err := json.Unmarshal(sample[0], &seconds); err != nil {
		return 0, 0, fmt.Errorf("time: %w", err)
	}
	var text string
	if err := json.Unmarshal(sample[1], &text); err != nil {
		return 0, 0, fmt.Errorf("value: %w", err)
	}
	value, err = strconv.ParseFloat(text, 64)
	return int64(math.Round(seconds * 1000)), value, err
}
