package forecast

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
)

// Distribution describes how long work takes: half of it at most Median, nine of
// ten at most P90. Times are log-normal, from Median/4 to 4×P90. A zero P90 means
// Median.
type Distribution struct {
	Median time.Duration `json:"median"`
	P90    time.Duration `json:"p90"`
	// Source says where the figures come from.
	Source string `json:"source,omitempty"`
}

// around is a distribution of the same shape about another median.
func (d Distribution) around(median time.Duration, source string) Distribution {
	p90 := float64(median) * float64(d.P90) / float64(d.Median)
	return Distribution{Median: median, P90: time.Duration(p90).Round(time.Second), Source: source}
}

// Timing describes how long each kind of work takes. A zero Distribution means the
// one in [DefaultTiming].
type Timing struct {
	// Operator is an operator's work on a new release; Operators has those of
	// operators by name.
	Operator  Distribution            `json:"operator"`
	Operators map[string]Distribution `json:"operators,omitempty"`
	// Drain is how long a pod takes to end, and a whole drain if no pods are known.
	Drain Distribution `json:"drain"`
	// Pull is how long a node takes to write its new configuration and to pull its
	// new operating system.
	Pull Distribution `json:"pull"`
	// Reboot is how long a node is not ready; Reboots has those of pools by name.
	Reboot  Distribution            `json:"reboot"`
	Reboots map[string]Distribution `json:"reboots,omitempty"`
}

// DefaultTiming returns figures that agree with the documentation's formula; each
// names its source.
func DefaultTiming() Timing {
	return Timing{
		Operator: Distribution{Median: 6 * time.Minute, P90: 7 * time.Minute,
			Source: "documentation: 60 minutes for the operators, which a minor update passes in ten stages"},
		Drain: Distribution{Median: 5 * time.Second, P90: 30 * time.Second,
			Source: "assumed: few pods need their grace period of 30 seconds"},
		Pull: Distribution{Median: time.Minute, P90: 2 * time.Minute,
			Source: "documentation: 5 minutes a node, less its reboot and drain"},
		Reboot: Distribution{Median: 3 * time.Minute, P90: 5 * time.Minute,
			Source: "documentation: 5 minutes a node; bare metal takes 15 and more"},
	}
}

// draw returns how long work takes in the run of a seed.
func (s *scene) draw(seed uint64) func(simulation.Work) time.Duration {
	t := s.o.Timing.withDefaults()
	return func(w simulation.Work) time.Duration {
		pool := s.poolOf[w.Name]
		switch w.Kind {
		case simulation.WorkOperator:
			return t.of(t.Operators, w.Name, t.Operator).draw(seed, w)
		case simulation.WorkPodStop:
			return t.Drain.draw(seed, w)
		case simulation.WorkApply:
			d := t.Pull.draw(seed, w)
			if s.podless {
				w.Kind = simulation.WorkPodStop
				d += t.Drain.draw(seed, w)
			}
			return d
		case simulation.WorkReboot:
			return t.of(t.Reboots, pool, t.Reboot).draw(seed, w)
		}
		return 0
	}
}

// of is the distribution of that name, or the general one.
func (t *Timing) of(names map[string]Distribution, name string, general Distribution) Distribution {
	if d, ok := names[name]; ok && d.Median > 0 {
		return d
	}
	return general
}

// withDefaults fills in what is zero.
func (t Timing) withDefaults() Timing {
	d := DefaultTiming()
	for _, f := range []struct{ field, value *Distribution }{
		{&t.Operator, &d.Operator}, {&t.Drain, &d.Drain}, {&t.Pull, &d.Pull}, {&t.Reboot, &d.Reboot},
	} {
		if f.field.Median == 0 {
			*f.field = *f.value
		}
	}
	return t
}

// z90 is how many standard deviations nine of ten are below.
const z90 = 1.2815515655446004

// draw draws the time of a piece of work: the same for the same seed and work, whatever
// else is drawn.
func (d Distribution) draw(seed uint64, w simulation.Work) time.Duration {
	if d.P90 <= d.Median || d.Median <= 0 {
		return d.Median
	}
	sigma := math.Log(float64(d.P90)/float64(d.Median)) / z90
	quantile := func(t time.Duration) float64 { // of a time
		z := math.Log(float64(t)/float64(d.Median)) / sigma
		return (1 + math.Erf(z/math.Sqrt2)) / 2
	}
	low, high := quantile(d.Median/4), quantile(4*d.P90)
	u := low + (high-low)*uniform(seed, w)
	z := math.Sqrt2 * math.Erfinv(2*u-1)
	return time.Duration(float64(d.Median) * math.Exp(sigma*z)).Round(time.Second)
}

// uniform is a number from 0 to 1 that follows from the seed and the work.
func uniform(seed uint64, w simulation.Work) float64 {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s\n%s\n%s\n", seed, w.Kind, w.Name, w.For)
	return float64(binary.BigEndian.Uint64(h.Sum(nil))>>11) / (1 << 53)
}
