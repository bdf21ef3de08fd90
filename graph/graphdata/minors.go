package graphdata

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph/internal/minor"
)

// The last minor of a major and the first of the next one.
var (
	lastOfFour  = minor.Minor{Major: 4, Minor: 22}
	firstOfFive = minor.Minor{Major: 5, Minor: 0}
)

// before returns the minor before one. The error says that it is not known.
func before(m minor.Minor) (minor.Minor, error) {
	switch {
	case m == firstOfFive:
		return lastOfFour, nil
	case m.Minor == 0:
		return minor.Minor{}, fmt.Errorf("which minor comes before %s is not known", m)
	}
	return minor.Minor{Major: m.Major, Minor: m.Minor - 1}, nil
}

func after(m minor.Minor) minor.Minor {
	if m == lastOfFour {
		return firstOfFive
	}
	return minor.Minor{Major: m.Major, Minor: m.Minor + 1}
}

// window returns the minors that lead to one by a step, and itself, ascending: an
// even one can be reached from the even one before it.
func window(m minor.Minor) ([]minor.Minor, error) {
	previous, err := before(m)
	if err != nil {
		return nil, err
	}
	list := []minor.Minor{previous, m}
	if m.Minor%2 == 0 && m.Minor > 0 {
		list = slices.Insert(list, 0, minor.Minor{Major: m.Major, Minor: m.Minor - 2})
	}
	return list, nil
}

// minorFilter returns the filter of a feeder for minors, which ascend.
func minorFilter(minors ...minor.Minor) string {
	const patch = "[.][0-9].*"
	first, last := minors[0], minors[len(minors)-1]
	if len(minors) == 1 {
		return fmt.Sprintf("%d[.]%d%s", first.Major, first.Minor, patch)
	}
	var parts []string
	if first.Major == last.Major {
		for _, m := range minors {
			parts = append(parts, fmt.Sprint(m.Minor))
		}
		return fmt.Sprintf("%d[.](%s)%s", first.Major, strings.Join(parts, "|"), patch)
	}
	for _, m := range slices.Backward(minors) {
		parts = append(parts, fmt.Sprintf("%d[.]%d", m.Major, m.Minor))
	}
	return fmt.Sprintf("(%s)%s", strings.Join(parts, "|"), patch)
}
