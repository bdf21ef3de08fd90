package clusterapi

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Sample is one value of a metric, as plain data: the caller publishes it. Times
// are in seconds since 1970. It can be read concurrently.
type Sample struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// String is the sample in the text format of Prometheus, its labels by name.
// See https://prometheus.io/docs/instrumenting/exposition_formats/.
func (s Sample) String() string {
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		value := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s.Labels[name])
		labels = append(labels, name+`="`+value+`"`)
	}
	text := s.Name
	if len(labels) > 0 {
		text += "{" + strings.Join(labels, ",") + "}"
	}
	return text + " " + strconv.FormatFloat(s.Value, 'g', 15, 64)
}

// Compare orders samples by their text: by name, then by labels.
func (s Sample) Compare(o Sample) int { return strings.Compare(s.String(), o.String()) }
