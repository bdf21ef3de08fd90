package olm

import (
	"context"
	"slices"
	"strings"

	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// CycleError reports that updates lead in a circle: through skips or skipRanges an
// operator would be replaced by one that was there before.
type CycleError struct {
	// Operators are the sets of installed operators, each sorted by name, that
	// repeat; the first follows the last.
	Operators [][]string
}

// Error names the operators that change in the circle.
func (e *CycleError) Error() string {
	texts := make([]string, 0, len(e.Operators)+1)
	for i := range e.Operators {
		last := e.Operators[(i+len(e.Operators)-1)%len(e.Operators)]
		var changed []string
		for _, name := range e.Operators[i] {
			if !slices.Contains(last, name) {
				changed = append(changed, name)
			}
		}
		texts = append(texts, strings.Join(changed, ", "))
	}
	texts = append(texts, texts[0])
	return "updates lead in a circle: " + strings.Join(texts, " -> ")
}

// Sequence resolves, applies the generation to the snapshot, and resolves again
// until nothing changes. The last generation is the one that changes nothing; it
// reports what is still held back. The error is from [Resolve], or a [*CycleError];
// the generations before it are returned, too.
//
// With the catalogs unchanged, each generation is the result of the namespace once
// the one before has been installed, and updates in progress have come to their end.
func Sequence(ctx context.Context, s Snapshot, o Options) ([]*Generation, error) {
	var out []*Generation
	var states [][]string
	seen := map[string]int{}
	for {
		state := installedState(&s)
		key := strings.Join(state, "\n")
		if at, ok := seen[key]; ok {
			return out, &CycleError{states[at:]}
		}
		seen[key] = len(states)
		states = append(states, installedNames(&s))
		g, err := Resolve(ctx, s, o)
		if err != nil {
			return out, err
		}
		out = append(out, g)
		if len(g.Operators) == 0 && len(s.ending(g)) == 0 {
			return out, nil
		}
		s, err = s.Apply(g)
		if err != nil {
			return out, err
		}
	}
}

// ending returns the updates in progress that come to an end by themselves: the operator
// that is last neither failed nor is on its way out.
func (s *Snapshot) ending(g *Generation) []InProgressUpdate {
	return slices.DeleteFunc(slices.Clone(g.InProgress), func(u InProgressUpdate) bool {
		return slices.ContainsFunc(s.PresentCSVs(), func(csv *olmapi.ClusterServiceVersion) bool {
			return csv.Name == u.Last && (isLeaving(csv) || csv.Status.Phase == olmapi.CSVPhaseFailed)
		})
	})
}

// Apply returns the snapshot as it is once a generation has been installed:
// operators replaced and added, updates in progress at their end, Subscriptions at
// what they got, and new Subscriptions created. The snapshot is not changed; its
// catalogs are shared. The error is about properties of a bundle that cannot be
// written as JSON.
func (s Snapshot) Apply(g *Generation) (Snapshot, error) {
	leaving := map[string]bool{}
	gets := map[string]string{} // by Subscription
	var added []olmapi.ClusterServiceVersion
	for i := range g.Slots {
		slot := &g.Slots[i]
		if slot.Operator == nil {
			continue
		}
		if slot.Previous != nil {
			leaving[slot.Previous.Name] = true
		}
		for _, b := range slot.AlsoReplaced {
			leaving[b.Name] = true
		}
		csv, err := installedCSV(s.Namespace, slot.Operator)
		if err != nil {
			return Snapshot{}, err
		}
		added = append(added, csv)
		for _, name := range slot.Subscriptions {
			gets[name] = slot.Operator.Name
		}
	}
	for _, u := range s.ending(g) {
		leaving[u.Old] = true
		for _, name := range u.Subscriptions {
			gets[name] = u.Last
		}
	}
	dropFailedForward(&s, leaving)
	out := s
	out.Installed = nil
	for _, csv := range s.Installed {
		if !leaving[csv.Name] {
			out.Installed = append(out.Installed, csv)
		}
	}
	out.Installed = append(out.Installed, added...)
	out.Subscriptions = slices.Clone(s.Subscriptions)
	for _, n := range g.NewSubscriptions {
		// One of that name that asks for something else stays as it is.
		if !slices.ContainsFunc(out.Subscriptions, func(sub olmapi.Subscription) bool { return sub.Name == n.Name }) {
			out.Subscriptions = append(out.Subscriptions, n)
		}
	}
	for i := range out.Subscriptions {
		sub := &out.Subscriptions[i]
		name, ok := gets[sub.Name]
		if i >= len(s.Subscriptions) {
			name, ok = sub.Spec.StartingCSV, true
		}
		if ok {
			sub.Status.CurrentCSV, sub.Status.InstalledCSV, sub.Status.State = name, name, olmapi.StateAtLatestKnown
		}
	}
	return out, nil
}

// dropFailedForward adds to the leaving operators what a failed one was to replace,
// and what that was to replace: they leave together.
func dropFailedForward(s *Snapshot, leaving map[string]bool) {
	for _, failed := range s.Installed {
		if !leaving[failed.Name] || failed.Status.Phase != olmapi.CSVPhaseFailed {
			continue
		}
		for replaced := failed.Spec.Replaces; replaced != "" && !leaving[replaced]; {
			i := slices.IndexFunc(s.Installed, func(csv olmapi.ClusterServiceVersion) bool {
				return csv.Name == replaced && csv.Status.Phase == olmapi.CSVPhaseReplacing
			})
			if i < 0 {
				break
			}
			leaving[replaced] = true
			replaced = s.Installed[i].Spec.Replaces
		}
	}
}

// installedCSV is the ClusterServiceVersion that an operator becomes, with the
// properties of its bundle.
func installedCSV(namespace string, op *Operator) (olmapi.ClusterServiceVersion, error) {
	properties, err := op.Bundle.Annotation()
	if err != nil {
		return olmapi.ClusterServiceVersion{}, err
	}
	csv := olmapi.ClusterServiceVersion{}
	csv.APIVersion, csv.Kind = olmapi.Group+"/v1alpha1", "ClusterServiceVersion"
	csv.Namespace, csv.Name = namespace, op.Name
	csv.Annotations = map[string]string{olmapi.AnnotationProperties: properties}
	csv.Spec.Version, csv.Spec.Replaces = op.Version, op.Replaces
	csv.Status.Phase = olmapi.CSVPhaseSucceeded
	return csv, nil
}

func installedNames(s *Snapshot) []string {
	var names []string
	for i := range s.Installed {
		if !s.Installed[i].IsCopied() {
			names = append(names, s.Installed[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// installedState distinguishes the snapshots of one sequence.
func installedState(s *Snapshot) []string {
	state := installedNames(s)
	for i := range s.Subscriptions {
		sub := &s.Subscriptions[i]
		state = append(state, sub.Name+" "+sub.Status.InstalledCSV)
	}
	slices.Sort(state)
	return state
}
