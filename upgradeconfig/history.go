package upgradeconfig

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// Entry returns a copy of the history entry of a version, the first one if
// there are several. A change of it counts once [Status.SetEntry] has set it.
func (s *Status) Entry(version string) (HistoryEntry, bool) {
	i := s.index(version)
	if i < 0 {
		return HistoryEntry{}, false
	}
	return s.History[i].clone(), true
}

// maxHistory is how many entries a history keeps, as the ClusterVersion's does.
// maxMessage is the most bytes of a condition's message.
const (
	maxHistory = 100
	maxMessage = 32 << 10
)

// SetEntry replaces the entry of that version in place, or puts a new one
// first. It keeps a copy of e. Of more than 100 entries the last ones, which
// are the oldest, are dropped.
func (s *Status) SetEntry(e HistoryEntry) {
	e = e.clone()
	if i := s.index(e.Version); i >= 0 {
		s.History[i] = e
		return
	}
	s.History = slices.Insert(s.History, 0, e)
	if len(s.History) > maxHistory {
		s.History = slices.Delete(s.History, maxHistory, len(s.History))
	}
}

// Phase returns the phase of the entry of a version, [PhaseUnknown] if there is
// none.
func (s *Status) Phase(version string) Phase {
	i := s.index(version)
	if i < 0 {
		return PhaseUnknown
	}
	return s.History[i].Phase
}

func (s *Status) index(version string) int {
	return slices.IndexFunc(s.History, func(e HistoryEntry) bool { return e.Version == version })
}

// Condition returns a copy of the condition of a type, the first one if there
// are several. A change of it counts once [HistoryEntry.SetCondition] has set
// it.
func (e *HistoryEntry) Condition(t ConditionType) (Condition, bool) {
	i := e.index(t)
	if i < 0 {
		return Condition{}, false
	}
	return e.Conditions[i].clone(), true
}

// SetCondition replaces the condition of that type in place, or puts a new
// one first. It sets LastProbeTime to now, and LastTransitionTime to now or, if
// the status stays as it was, to what it was. It reports whether the condition
// is new or its status, reason or message changed. A message of more than 32
// KiB is cut and says so.
func (e *HistoryEntry) SetCondition(c Condition, now time.Time) (changed bool) {
	c = c.clone()
	c.Message = bounded.Text(c.Message, maxMessage)
	c.LastProbeTime = seconds(now)
	c.LastTransitionTime = seconds(now)
	i := e.index(c.Type)
	if i < 0 {
		e.Conditions = slices.Insert(e.Conditions, 0, c)
		return true
	}
	old := e.Conditions[i]
	if old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	e.Conditions[i] = c
	return c.differs(old)
}

// differs reports whether the condition changed in more than its times.
func (c Condition) differs(old Condition) bool {
	return old.Status != c.Status || old.Reason != c.Reason || old.Message != c.Message
}

// IsTrue reports whether there is a condition of the type, and its status is True.
func (e *HistoryEntry) IsTrue(t ConditionType) bool { return e.has(t, metav1.ConditionTrue) }

// IsFalse reports whether there is a condition of the type, and its status is
// False.
func (e *HistoryEntry) IsFalse(t ConditionType) bool { return e.has(t, metav1.ConditionFalse) }

// IsUnknown reports whether there is no condition of the type, or its status is
// Unknown.
func (e *HistoryEntry) IsUnknown(t ConditionType) bool {
	return e.index(t) < 0 || e.has(t, metav1.ConditionUnknown)
}

func (e *HistoryEntry) has(t ConditionType, status metav1.ConditionStatus) bool {
	i := e.index(t)
	return i >= 0 && e.Conditions[i].Status == status
}

func (e *HistoryEntry) index(t ConditionType) int {
	return slices.IndexFunc(e.Conditions, func(c Condition) bool { return c.Type == t })
}

// seconds is a time as the API keeps it.
func seconds(t time.Time) *metav1.Time {
	return &metav1.Time{Time: t.UTC().Truncate(time.Second)}
}

// DeepCopy returns a copy that shares nothing with s.
func (s Status) DeepCopy() Status {
	s.History = slices.Clone(s.History)
	for i := range s.History {
		s.History[i] = s.History[i].clone()
	}
	return s
}

func (e HistoryEntry) clone() HistoryEntry {
	for _, t := range []**metav1.Time{&e.StartTime, &e.CompleteTime, &e.WorkerStartTime, &e.WorkerCompleteTime} {
		*t = (*t).DeepCopy()
	}
	e.Conditions = slices.Clone(e.Conditions)
	for i := range e.Conditions {
		e.Conditions[i] = e.Conditions[i].clone()
	}
	return e
}

func (c Condition) clone() Condition {
	for _, t := range []**metav1.Time{&c.LastProbeTime, &c.LastTransitionTime, &c.StartTime, &c.CompleteTime} {
		*t = (*t).DeepCopy()
	}
	return c
}
