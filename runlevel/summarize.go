package runlevel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/clusterupdate/clusterupdate/manifest"
)

// summarize puts the errors of a pass together to the one that is reported:
//
//   - errors that only say that the context ended are dropped;
//   - errors of ClusterOperators with the same reason become one, which names
//     the operators sorted and has the strongest of their effects;
//   - what is left, if more than one, becomes a [*TaskError] with the reason
//     MultipleErrors, a line for each distinct message, sorted, and all of
//     them as members. By itself it has no effect. Lines that do not fit in
//     a condition are counted.
//
// It returns nil when nothing is left.
func summarize(errs []error) error {
	errs = condense(dropContextErrors(errs))
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return multiple(errs)
}

// multiple joins two or more errors into one.
func multiple(errs []error) *TaskError {
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		texts = append(texts, "* "+err.Error())
	}
	slices.Sort(texts)
	texts = slices.Compact(texts)
	return &TaskError{
		Reason:  ReasonMultipleErrors,
		Message: lines("Multiple errors are preventing progress:", texts),
		Err:     errors.Join(errs...),
		Members: errs,
	}
}

// dropContextErrors leaves out what only reports that the context ended: errors of
// nodes, and "incomplete" followed by the error of the context.
func dropContextErrors(errs []error) []error {
	bare := slices.ContainsFunc(errs, isBareContextError)
	var out []error
	for _, err := range errs {
		if isBareContextError(err) {
			continue
		}
		if _, ok := errors.AsType[*TaskError](err); ok {
			out = append(out, err)
			continue
		}
		if _, ok := errors.AsType[*contextEnd](err); ok {
			continue
		}
		if _, ok := errors.AsType[*incompleteError](err); ok && bare {
			continue
		}
		out = append(out, err)
	}
	return out
}

// isBareContextError reports the error of a context itself, as
// schedule.Result returns it.
func isBareContextError(err error) bool {
	if _, ok := err.(*interruption); ok {
		return true
	}
	return err == context.Canceled || err == context.DeadlineExceeded
}

// condense groups the errors of ClusterOperators by reason. Afterwards come
// all other errors in their order, then the groups sorted by reason.
func condense(errs []error) []error {
	var out []error
	groups := make(map[string][]*TaskError)
	for _, err := range errs {
		te, ok := errors.AsType[*TaskError](err)
		if !ok || te.PluralReason == "" || te.Task == nil || !isClusterOperator(te.Task.Manifest) {
			out = append(out, err)
			continue
		}
		groups[te.Reason] = append(groups[te.Reason], te)
	}
	for _, reason := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, group(groups[reason]))
	}
	return out
}

// group makes one error of several ClusterOperators' errors.
func group(members []*TaskError) *TaskError {
	first := members[0]
	if len(members) == 1 {
		return first
	}
	names := make([]string, 0, len(members))
	nested := make([]error, 0, len(members))
	effect := first.Effect
	for _, m := range members {
		names = append(names, m.Name)
		nested = append(nested, m)
		if strength(m.Effect) > strength(effect) {
			effect = m.Effect
		}
	}
	slices.Sort(names)
	joined := list(names)
	return &TaskError{
		Effect:       effect,
		Reason:       first.PluralReason,
		PluralReason: first.PluralReason,
		PluralFormat: first.PluralFormat,
		Message:      fmt.Sprintf(first.PluralFormat, joined),
		Name:         joined,
		Names:        names,
		Err:          errors.Join(nested...),
		Members:      nested,
	}
}

// strength orders effects; the empty one is the weakest.
func strength(e Effect) int {
	switch e {
	case EffectReport:
		return 1
	case EffectNone:
		return 2
	case EffectFailAfterInterval:
		return 3
	case EffectFail:
		return 4
	}
	return 0
}

// isClusterOperator reports a ClusterOperator of config.openshift.io/v1.
func isClusterOperator(m *manifest.Manifest) bool {
	return m.GVK() == clusterOperatorKind
}
