package graph

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	configv1 "github.com/openshift/api/config/v1"
)

// Release returns the node as ClusterVersion status shows a release. The error
// joins everything that is wrong with the metadata; what could be read is
// filled in nevertheless. Channels are sorted bytewise, which puts stable-4.10
// before stable-4.9: see [CompareChannels] for people's order.
func (n Node) Release() (configv1.Release, error) { return n.release(splitChannels) }

// release does Release's work with a way to read the list of channels.
func (n Node) release(split func(string) ([]string, []error)) (configv1.Release, error) {
	r := configv1.Release{Version: n.Version.Original(), Image: n.Image}
	var errs []error
	if e := n.Metadata.find(MetadataURL); e != nil {
		if e.json {
			errs = append(errs, fmt.Errorf("URL is not a string: %v", e.any()))
		} else if _, err := url.Parse(e.value); err != nil {
			errs = append(errs, fmt.Errorf("invalid release URL: %w", err))
		} else {
			r.URL = configv1.URL(e.value)
		}
	}
	if e := n.Metadata.find(MetadataArchitecture); e != nil {
		if e.json {
			errs = append(errs, fmt.Errorf("%s is not a string: %v", MetadataArchitecture, e.any()))
		} else if e.value != "multi" {
			errs = append(errs, fmt.Errorf("unrecognized %s value %s", MetadataArchitecture, bounded.Quote(e.value)))
		} else {
			r.Architecture = configv1.ClusterVersionArchitectureMulti
		}
	}
	if e := n.Metadata.find(MetadataChannels); e != nil {
		if e.json {
			errs = append(errs, fmt.Errorf("%s is not a string: %v", MetadataChannels, e.any()))
		} else {
			channels, channelErrs := split(e.value)
			r.Channels, errs = channels, append(errs, channelErrs...)
		}
	}
	return r, bounded.Errors(errs...)
}

// splitChannels reads the value of [MetadataChannels]: trimmed, sorted, each
// name once.
func splitChannels(value string) ([]string, []error) { return splitList(value, false) }

// splitList reports empty items from the last to the first, as the operator
// removes them; of many, the first few.
func splitList(value string, compat bool) (channels []string, errs []error) {
	if value == "" {
		return nil, []error{fmt.Errorf("%s is an empty string", MetadataChannels)}
	}
	channels = strings.Split(value, ",")
	empty := 0
	for i := len(channels) - 1; i >= 0; i-- {
		if !compat {
			channels[i] = strings.TrimSpace(channels[i])
		}
		if channels[i] == "" {
			empty++
			if empty <= maxEmptyChannels {
				errs = append(errs, fmt.Errorf("%s entry %d is an empty string: %s", MetadataChannels, i, bounded.Quote(value)))
			}
			channels = slices.Delete(channels, i, i+1)
		}
	}
	if empty > maxEmptyChannels {
		errs = append(errs, fmt.Errorf("%s has %d more empty strings", MetadataChannels, empty-maxEmptyChannels))
	}
	if len(channels) == 0 {
		return nil, append(errs, fmt.Errorf("no non-empty channels in %s []", MetadataChannels))
	}
	slices.Sort(channels)
	if !compat {
		channels = slices.Compact(channels)
	}
	return channels, errs
}

// maxEmptyChannels is how many empty channel names an error lists.
const maxEmptyChannels = 10

// compareReleases orders releases: highest version first, then by image.
func compareReleases(a, b configv1.Release) int {
	return cmp.Or(CompareVersions(b.Version, a.Version), cmp.Compare(a.Image, b.Image))
}

// SameDigest reports whether two pull specs name the same image: they are equal, or
// each has exactly one @ and the text after it is equal. A tag alone never equals
// anything but itself.
func SameDigest(a, b string) bool {
	if a == b {
		return true
	}
	_, da, okA := strings.Cut(a, "@")
	_, db, okB := strings.Cut(b, "@")
	return okA && okB && da == db && !strings.Contains(da, "@")
}

// FillRelease completes what the running release says about itself with what
// the graph knows: version, URL, architecture and channels, each where r has
// none. The source is the current node if its image has r's digest, else the
// first available update that has it. An equal version with another digest
// fills nothing; conditional updates are not looked at.
func FillRelease(r, current configv1.Release, available []configv1.Release) configv1.Release {
	fill := func(from configv1.Release) configv1.Release {
		r.Version = cmp.Or(r.Version, from.Version)
		r.URL = cmp.Or(r.URL, from.URL)
		r.Architecture = cmp.Or(r.Architecture, from.Architecture)
		if len(r.Channels) == 0 {
			r.Channels = slices.Clone(from.Channels)
		}
		return r
	}
	if r.Image == "" {
		return r
	}
	if SameDigest(r.Image, current.Image) {
		return fill(current)
	}
	for _, update := range available {
		if SameDigest(r.Image, update.Image) {
			return fill(update)
		}
	}
	return r
}
