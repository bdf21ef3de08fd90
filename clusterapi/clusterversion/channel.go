package clusterversion

import (
	"net/url"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/redact"
)

// ChannelRequest selects the channel that updates come from, as oc adm upgrade
// channel does. It is plain data.
type ChannelRequest struct {
	Name string // empty clears the channel
	// AllowExplicit accepts a channel that the release is not known to be in, or
	// leaving one that it is in.
	AllowExplicit bool
}

func (r ChannelRequest) failed() string { return "unable to set channel" }
func (r ChannelRequest) replaces() bool { return false }

const allowChannel = "--allow-explicit-channel"

// Edit implements [Request].
func (r ChannelRequest) Edit(cv *configv1.ClusterVersion) (Answer, error) {
	var out Answer
	if cv == nil {
		return out, noVersion("no", "OpenShift version 4")
	}
	current, known := cv.Spec.Channel, cv.Status.Desired.Channels
	names := strings.Join(known, ", ")
	switch {
	case r.Name == current && current == "":
		out.printf("info: Cluster channel is already clear (no change)")
		return out, nil
	case r.Name == current:
		out.printf("info: Cluster is already in %s (no change)", current)
		return out, nil
	case r.Name == "" && slices.Contains(known, current) && !r.AllowExplicit:
		return out, refuse(RefusedChannel, allowChannel, "You are requesting to clear the update channel. The current channel %q is one of the available channels, you must pass --allow-explicit-channel to continue\n", current)
	case r.Name == "":
		out.warnf("Clearing channel %q; cluster will no longer request available update recommendations.", current)
	case len(known) == 0:
		out.warnf("No channels known to be compatible with the current version %q; unable to validate %q. Setting the update channel to %q anyway.", cv.Status.Desired.Version, r.Name, r.Name)
	case !slices.Contains(known, r.Name) && !r.AllowExplicit:
		return out, refuse(RefusedChannel, allowChannel, "the requested channel %q is not one of the available channels (%s), you must pass --allow-explicit-channel to continue\n", r.Name, names)
	case !slices.Contains(known, r.Name):
		out.warnf("The requested channel %q is not one of the available channels (%s). You have used --allow-explicit-channel to proceed anyway. Setting the update channel to %q.", r.Name, names, r.Name)
	}
	out.ClusterVersion = cv.DeepCopy()
	out.ClusterVersion.Spec.Channel = r.Name
	return out, nil
}

// UpstreamRequest sets the update service that the cluster asks. It is plain data.
type UpstreamRequest struct {
	URL string // empty: an appropriate default
}

func (r UpstreamRequest) failed() string { return "unable to set upstream" }
func (r UpstreamRequest) replaces() bool { return false }

// Edit implements [Request].
func (r UpstreamRequest) Edit(cv *configv1.ClusterVersion) (Answer, error) {
	var out Answer
	if r.URL != "" {
		u, err := url.Parse(r.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return out, refuse(RefusedUsage, "", "the requested upstream %q is not an absolute http or https URL", redact.URL(r.URL))
		}
	}
	if cv == nil {
		return out, noVersion("no", "OpenShift version 4")
	}
	current := string(cv.Spec.Upstream)
	switch {
	case r.URL == current && current == "":
		out.printf("info: Cluster upstream is already clear (no change)")
		return out, nil
	case r.URL == current:
		out.printf("info: Cluster upstream is already %s (no change)", redact.URL(current))
		return out, nil
	case r.URL == "":
		out.warnf("Clearing upstream %q; the cluster will use an appropriate default.", redact.URL(current))
	}
	out.ClusterVersion = cv.DeepCopy()
	out.ClusterVersion.Spec.Upstream = configv1.URL(r.URL)
	return out, nil
}
