package maintain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// patchConcerns determines which versions of the highest minor of a channel have no
// unconditional update within the channel, by node. The highest version needs none,
// nor do pre-releases. A version that leads only to a reported one needs no finding
// of its own.
func (c *connectivity) patchConcerns(channel graphdata.Channel) map[int32]string {
	in := c.members(channel.Versions)
	highest := -1
	for i := range in {
		if in[i] {
			highest = i
		}
	}
	if highest < 0 {
		return nil
	}
	updates := make(map[int32]bool)
	exposed := make(map[int32][]conditionalTarget)
	for i := range in {
		if !in[i] {
			continue
		}
		for _, f := range c.snap.In[i] {
			updates[f] = true
		}
		for _, p := range c.snap.Pairs[i] {
			exposed[p.From] = append(exposed[p.From], conditionalTarget{int32(i), p.List})
		}
	}
	concerns := map[int32]string{}
	top := openshift.MinorOf(c.snap.Nodes[highest].SemVer)
	for i := int32(highest) - 1; i >= 0; i-- {
		v := c.snap.Nodes[i].SemVer
		if !in[i] || updates[i] || v.Prerelease() != "" || openshift.MinorOf(v) != top {
			continue
		}
		version := servedVersion(&c.snap.Nodes[i], c.arch)
		if len(exposed[i]) == 0 {
			concerns[i] = fmt.Sprintf("%s has no patch updates in %s", version, channel.Name)
			continue
		}
		if slices.ContainsFunc(exposed[i], func(t conditionalTarget) bool { return concerns[t.to] != "" }) {
			continue
		}
		var names []string
		for _, t := range exposed[i] {
			for _, r := range c.snap.Lists[t.list] {
				names = append(names, r.Name)
			}
		}
		slices.Sort(names)
		concerns[i] = fmt.Sprintf("%s has patch updates in %s, but they are exposed to risks: %s", version, channel.Name, strings.Join(slices.Compact(names), ", "))
	}
	return concerns
}

// conditionalTarget is an update under a list of risks.
type conditionalTarget struct{ to, list int32 }
