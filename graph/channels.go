package graph

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/openshift"

	configv1 "github.com/openshift/api/config/v1"
)

// Channel is a name of the form <type>-<major>.<minor>, e.g. eus-4.16: releases
// that lead to that minor, as soon as they are ripe enough for the type.
type Channel struct {
	// Type is candidate, fast, stable or eus today.
	Type         string
	Major, Minor uint64
}

// ParseChannel splits a name at its last hyphen. Names of other forms
// (stable-4, stable-scos-4) are legal channels that say nothing about a minor:
// ok is false.
func ParseChannel(name string) (c Channel, ok bool) {
	at := strings.LastIndexByte(name, '-')
	if at <= 0 {
		return Channel{}, false
	}
	majorText, minorText, found := strings.Cut(name[at+1:], ".")
	if !found {
		return Channel{}, false
	}
	c.Type = name[:at]
	var okMajor, okMinor bool
	c.Major, okMajor = openshift.Number(majorText)
	c.Minor, okMinor = openshift.Number(minorText)
	if !okMajor || !okMinor {
		return Channel{}, false
	}
	return c, true
}

// String is the name: stable-4.18.
func (c Channel) String() string { return fmt.Sprintf("%s-%d.%d", c.Type, c.Major, c.Minor) }

// CompareChannels puts channel names into the order that people expect: by
// version, where stable-4.9 comes before stable-4.10, then by type. Names
// without a version come first, bytewise.
func CompareChannels(a, b string) int {
	ca, okA := ParseChannel(a)
	cb, okB := ParseChannel(b)
	switch {
	case okA != okB:
		if okB {
			return -1
		}
		return 1
	case !okA:
		return cmp.Compare(a, b)
	}
	return cmp.Or(cmp.Compare(ca.Major, cb.Major), cmp.Compare(ca.Minor, cb.Minor), cmp.Compare(ca.Type, cb.Type))
}

// OfferedChannels returns the channels that a cluster can choose: those that
// the metadata of its current release name, in natural order.
func OfferedChannels(current configv1.Release) []string {
	return slices.SortedFunc(slices.Values(current.Channels), CompareChannels)
}

// maxDiscovered bounds [DiscoverChannels]: more channels than there are.
const maxDiscovered = 500

// DiscoverChannels lists the channels of a source, in natural order, starting with
// q's: those that the releases of its graph name, those that the releases of their
// graphs name, and so on. A channel that shares no release with any of them is not
// found; one whose graph is empty is left out. The error names each channel that
// could not be fetched; what was found still counts.
func DiscoverChannels(ctx context.Context, s Source, q Query) ([]string, error) {
	var found []string
	var errs []error
	seen := map[string]bool{q.Channel: true}
	queue := []string{q.Channel}
	for at := 0; at < len(queue); at++ {
		if at == maxDiscovered {
			errs = append(errs, &LimitError{What: "channels", Max: maxDiscovered})
			break
		}
		q.Channel = queue[at]
		g, err := s.Fetch(ctx, q)
		if err != nil {
			errs = append(errs, fmt.Errorf("channel %q: %w", q.Channel, err))
			if ctx.Err() != nil {
				break
			}
			continue
		}
		if g.Len() > 0 {
			found = append(found, q.Channel)
		}
		for _, name := range g.Channels() {
			if !seen[name] {
				seen[name] = true
				queue = append(queue, name)
			}
		}
	}
	slices.SortFunc(found, CompareChannels)
	return found, bounded.Errors(errs...)
}
