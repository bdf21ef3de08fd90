package rules

import (
	"cmp"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/preconditions"
)

// findings are what a check finds.
type findings []preconditions.Finding

// add adds a finding about objects, if there are any, which it sorts. The message is
// what it means, every object, and the remedy.
func (f *findings) add(s preconditions.Severity, reason, meaning string, objects []preconditions.Object, remedy string) {
	if len(objects) > 0 {
		sortObjects(objects)
		*f = append(*f, newFinding(s, reason, meaning, objects, remedy))
	}
}

// addAt adds a finding whose message does not name its objects.
func (f *findings) addAt(s preconditions.Severity, reason, meaning, remedy string, objects ...preconditions.Object) {
	*f = append(*f, findingAt(s, reason, meaning, remedy, objects...))
}

// newFinding words a finding: what it means, every object at fault, the remedy.
func newFinding(s preconditions.Severity, reason, meaning string, objects []preconditions.Object, remedy string) preconditions.Finding {
	message := meaning
	if len(objects) > 0 {
		names := make([]string, len(objects))
		for i, o := range objects {
			names[i] = fullName(o)
			if o.Note != "" {
				names[i] += " (" + o.Note + ")"
			}
		}
		if !strings.HasSuffix(message, ".") {
			message += ":"
		}
		message += " " + strings.Join(names, ", ")
	}
	return preconditions.Finding{Severity: s, Reason: reason, Message: strings.TrimSuffix(message, ".") + ". " + remedy, Remedy: remedy, Objects: objects}
}

// findingAt is newFinding for objects that the meaning names, or that go without saying.
func findingAt(s preconditions.Severity, reason, meaning, remedy string, objects ...preconditions.Object) preconditions.Finding {
	f := newFinding(s, reason, meaning, nil, remedy)
	f.Objects = objects
	return f
}

// fullName is the name of an object with the namespace, if there is one.
func fullName(o preconditions.Object) string {
	return strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
}

// sortObjects orders objects by namespace and name; the note distinguishes several
// places of one object.
func sortObjects(objects []preconditions.Object) {
	slices.SortStableFunc(objects, func(a, b preconditions.Object) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Note, b.Note))
	})
}

// object points at an object of type T.
func object[T any](namespace, name, field, value, note string) preconditions.Object {
	return preconditions.Object{GVK: gvkOf[T](), Namespace: namespace, Name: name, FieldPath: field, Value: value, Note: note}
}

// blockMinor is the severity of findings that stop only other minor and major
// versions.
func blockMinor(t preconditions.Transition) preconditions.Severity {
	if leavesMinor(t) {
		return preconditions.Blocking
	}
	return preconditions.Warning
}
