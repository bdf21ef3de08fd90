package preview

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// Components returns a function for [view.StatusOptions] and [view.FollowOptions]: it
// returns the parts of a release that belong on the cluster of a ClusterVersion, in their
// order. It can be called concurrently.
func Components(p *manifest.Payload) func(*configv1.ClusterVersion) []view.Component {
	return func(cv *configv1.ClusterVersion) []view.Component {
		filter := manifest.Filter{Overrides: cv.Spec.Overrides}
		if c := cv.Status.Capabilities; len(c.EnabledCapabilities) > 0 || len(c.KnownCapabilities) > 0 {
			filter.Capabilities = &manifest.Capabilities{Known: names(c.KnownCapabilities), Enabled: names(c.EnabledCapabilities)}
			filter.AllowUnknownCapabilities = true
		}
		included, _ := p.Included(filter)
		var all []view.Component
		for _, m := range included {
			level, name, ok := manifest.ParseName(m.Filename)
			id := m.Identity()
			if !ok || id.Kind != "ClusterOperator" && id.Kind != "Deployment" && id.Kind != "DaemonSet" {
				continue
			}
			i := slices.IndexFunc(all, func(c view.Component) bool { return c.Runlevel == level && c.Name == name })
			if i < 0 {
				i = len(all)
				all = append(all, view.Component{Runlevel: level, Name: name})
			}
			object := view.Resource{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
			all[i].Objects = append(all[i].Objects, object)
		}
		return all
	}
}

func names(all []configv1.ClusterVersionCapability) sets.Set[string] {
	names := sets.New[string]()
	for _, c := range all {
		names.Insert(string(c))
	}
	return names
}
