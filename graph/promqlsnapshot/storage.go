package promqlsnapshot

import (
	"cmp"
	"context"
	"slices"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// series are the samples of one set of labels, in the order of time.
type series struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// sample is one value at one time.
type sample struct {
	t int64
	v float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) F() float64                    { return s.v }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

func (s *Snapshot) add(set labels.Labels, t int64, value float64) {
	if s.byHash == nil {
		s.byHash = map[uint64][]*series{}
	}
	s.latest = max(s.latest, t)
	hash := set.Hash()
	var of *series
	for _, known := range s.byHash[hash] {
		if labels.Equal(known.labels, set) {
			of = known
		}
	}
	if of == nil {
		of = &series{labels: set}
		s.series = append(s.series, of)
		s.byHash[hash] = append(s.byHash[hash], of)
	}
	at, found := slices.BinarySearchFunc(of.samples, t, func(s chunks.Sample, t int64) int { return cmp.Compare(s.T(), t) })
	if found {
		of.samples[at] = sample{t, value}
	} else {
		of.samples = slices.Insert(of.samples, at, chunks.Sample(sample{t, value}))
	}
}

func (s *Snapshot) querier(mint, maxt int64) (storage.Querier, error) {
	return &querier{s, mint, maxt}, nil
}

// querier reads the samples of a span of time.
type querier struct {
	s          *Snapshot
	mint, maxt int64
}

func (q *querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, one := range q.s.series {
		if slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.labels.Get(m.Name)) }) {
			continue
		}
		first, _ := slices.BinarySearchFunc(one.samples, q.mint, func(s chunks.Sample, t int64) int { return cmp.Compare(s.T(), t) })
		end, _ := slices.BinarySearchFunc(one.samples, q.maxt+1, func(s chunks.Sample, t int64) int { return cmp.Compare(s.T(), t) })
		if first < end {
			found = append(found, storage.NewListSeries(one.labels, one.samples[first:end]))
		}
	}
	slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &seriesSet{all: found, at: -1}
}

// LabelValues and LabelNames are asked by no query.
func (q *querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (q *querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (q *querier) Close() error { return nil }

type seriesSet struct {
	all []storage.Series
	at  int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.all) }
func (s *seriesSet) At() storage.Series                { return s.all[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
