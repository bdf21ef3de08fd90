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
	s.recorded++
	switch last := len(of.samples) - 1; {
	case last < 0 || of.samples[last].T() < t:
		of.samples = append(of.samples, sample{t, value})
	case of.samples[last].T() == t:
		of.samples[last] = sample{t, value}
	default:
		// Sorted before the first query: a place for each at once would take as
		// long as all before it.
		of.samples = append(of.samples, sample{t, value})
		s.unsorted = append(s.unsorted, of)
	}
}

// sort brings the samples of each series into the order of time, the last of
// several for one time in the place of all.
func (s *Snapshot) sort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.unsorted {
		if of.sorted() {
			continue // it was listed for each sample
		}
		slices.SortStableFunc(of.samples, func(a, b chunks.Sample) int { return cmp.Compare(a.T(), b.T()) })
		kept := of.samples[:0]
		for i, one := range of.samples {
			if i+1 == len(of.samples) || of.samples[i+1].T() != one.T() {
				kept = append(kept, one)
			}
		}
		of.samples = kept
	}
	s.unsorted = nil
}

func (s *series) sorted() bool {
	for i := 1; i < len(s.samples); i++ {
		if s.samples[i-1].T() >= s.samples[i].T() {
			return false
		}
	}
	return true
}

func (s *series) matches(matchers []*labels.Matcher) bool {
	return !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) })
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
		if !one.matches(matchers) {
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
