package view

import (
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/text"
)

// Release is a release that a cluster can update to. It is plain data.
type Release struct {
	Version  string   `json:"version"`
	Image    string   `json:"image"`
	URL      string   `json:"url,omitempty"`
	Channels []string `json:"channels,omitempty"`
	// Recommended reports whether the cluster should update to it. Updates without
	// risks have none.
	Recommended *Condition `json:"recommended,omitempty"`
	Risks       []Risk     `json:"risks,omitempty"`
}

// Risk is a known issue of an update. It is plain data.
type Risk struct {
	Name    string `json:"name"`
	URL     string `json:"url,omitempty"`
	Message string `json:"message,omitempty"`
}

// Channel is where a cluster looks for updates. It is plain data.
type Channel struct {
	Name      string   `json:"name,omitempty"`
	Available []string `json:"available,omitempty"` // those that have the cluster's release
	Upstream  string   `json:"upstream,omitempty"`  // the update service; empty means the default one
}

// releaseOf copies a release, and conditionalOf one with its risks.
func releaseOf(r *configv1.Release) Release {
	return Release{Version: r.Version, Image: r.Image, URL: string(r.URL), Channels: slices.Clone(r.Channels)}
}

func conditionalOf(u *configv1.ConditionalUpdate) Release {
	r := releaseOf(&u.Release)
	r.Recommended = recommendedOf(u.Conditions)
	for _, risk := range u.Risks {
		r.Risks = append(r.Risks, Risk{risk.Name, risk.URL, risk.Message})
	}
	return r
}

func channelOf(cv *configv1.ClusterVersion) Channel {
	return Channel{
		Name:      cv.Spec.Channel,
		Available: slices.Clone(cv.Status.Desired.Channels),
		Upstream:  string(cv.Spec.Upstream),
	}
}

// write says where updates come from; upstream is what that is called. Nothing is
// written without a channel.
func (c *Channel) write(out *text.Writer, upstream string) {
	if c.Name == "" {
		return
	}
	if c.Upstream == "" {
		out.Print(upstream, " is unset, so the cluster will use an appropriate default.\n")
	} else {
		out.Print(upstream, ": ", c.Upstream, "\n")
	}
	out.Print("Channel: ", c.Name)
	if len(c.Available) > 0 {
		out.Print(" (available channels: ", strings.Join(c.Available, ", "), ")")
	}
	out.Print("\n")
}

// writeNotRecommended describes a release and why not to update to it.
func writeNotRecommended(out *text.Writer, r *Release, why *Condition) {
	out.Print("  Version: ", r.Version, "\n  Image: ", r.Image, "\n  Reason: ", why.Reason,
		"\n  Message: ", text.Indent(strings.TrimSpace(why.Message)), "\n")
}

// writeRefresh warns that the list of updates is not fresh.
func writeRefresh(warn *text.Writer, what string, retrieved *Condition) {
	warn.Print("warning: Cannot ", what, " available updates:\n", retrieved.why(), "\n")
}

// noUpdates is what views say without updates.
func noUpdates(docs418 bool) string {
	if docs418 {
		return "No updates available. You may force an update to a specific release image, but doing so might not be supported and might result in downtime or data loss.\n"
	}
	return "No updates available. You may still upgrade to a specific release image with --to-image or wait for new updates to be available.\n"
}
