package risk

import (
	"cmp"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
)

// versionOrder compares versions as [graph.CompareVersions] does and parses each
// once. Those that do not parse are nil.
type versionOrder map[string]*semver.Version

func (o versionOrder) compare(a, b string) int {
	if a == b {
		return 0
	}
	va, vb := o.parse(a), o.parse(b)
	if va == nil || vb == nil {
		return graph.CompareVersions(a, b)
	}
	return va.Compare(vb)
}

func (o versionOrder) parse(text string) *semver.Version {
	v, ok := o[text]
	if !ok {
		v, _ = graph.ParseVersion(text)
		o[text] = v
	}
	return v
}

// releases orders releases: the highest version first, then by image.
func (o versionOrder) releases(a, b configv1.Release) int {
	return cmp.Or(o.compare(b.Version, a.Version), cmp.Compare(a.Image, b.Image))
}
