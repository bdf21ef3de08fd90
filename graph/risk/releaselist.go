package risk

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
)

// releaseList is a list of releases that is asked for images.
type releaseList struct {
	releases []configv1.Release
	removed  []bool
	at       map[string][]int // image → places of nodes that are not removed
}

func newReleaseList(releases []configv1.Release) *releaseList {
	l := &releaseList{releases: slices.Clone(releases), removed: make([]bool, len(releases)), at: make(map[string][]int, len(releases))}
	for i := range releases {
		l.at[releases[i].Image] = append(l.at[releases[i].Image], i)
	}
	return l
}

// add appends a release unless its image is in the list.
func (l *releaseList) add(r configv1.Release) {
	if len(l.at[r.Image]) == 0 {
		l.at[r.Image] = []int{len(l.releases)}
		l.releases, l.removed = append(l.releases, *r.DeepCopy()), append(l.removed, false)
	}
}

// remove takes all releases of an image off the list.
func (l *releaseList) remove(image string) {
	for _, i := range l.at[image] {
		l.removed[i] = true
	}
	delete(l.at, image)
}

// kept returns the releases that are not removed, in order.
func (l *releaseList) kept() []configv1.Release {
	var kept []configv1.Release
	for i := range l.releases {
		if !l.removed[i] {
			kept = append(kept, l.releases[i])
		}
	}
	return kept
}
