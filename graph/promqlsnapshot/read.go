package promqlsnapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// MaxBytes is the largest input of ReadText and ReadJSON.
const MaxBytes = 256 << 20

func readAll(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err == nil && len(text) > MaxBytes {
		err = fmt.Errorf("the input exceeds the limit of %d bytes", MaxBytes)
	}
	return text, err
}

// ReadText adds samples in the Prometheus text format. Those without a time of
// their own are of the time recorded. Native histograms are left out.
func (s *Snapshot) ReadText(r io.Reader, recorded time.Time) error {
	text, err := readAll(r)
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
		s.add(set, t, value)
		i++
	}
}

// ReadJSON adds the samples of an answer of the HTTP API to a query whose
// result is a vector or a matrix, such as /api/v1/query?query={__name__=~".+"}.
func (s *Snapshot) ReadJSON(r io.Reader) error {
	text, err := readAll(r)
	if err != nil {
		return err
	}
	var answer struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   struct {
			ResultType string `json:"resultType"`
			Result     []struct {
				Metric map[string]string    `json:"metric"`
				Value  *[2]json.RawMessage  `json:"value"`
				Values [][2]json.RawMessage `json:"values"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return err
	}
	switch {
	case answer.Status != "success":
		return fmt.Errorf("the answer's status is %q: %s", answer.Status, answer.Error)
	case answer.Data.ResultType != "vector" && answer.Data.ResultType != "matrix":
		return fmt.Errorf("data.resultType is %q, not vector or matrix", answer.Data.ResultType)
	}
	for i, series := range answer.Data.Result {
		samples := series.Values
		if series.Value != nil {
			samples = append(samples, *series.Value)
		}
		for j, sample := range samples {
			t, value, err := decodeSample(sample)
			if err != nil {
				return fmt.Errorf("data.result[%d], sample %d: %w", i, j, err)
			}
			s.add(labels.FromMap(series.Metric), t, value)
		}
	}
	return nil
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
