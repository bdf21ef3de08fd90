package graph

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/internal/redact"
)

// DefaultUpstream is the public update service.
const DefaultUpstream = "https://api.openshift.com/api/upgrades_info/v1/graph"

// Query asks a [Source] for the graph of a channel.
type Query struct {
	// Channel is ClusterVersion's spec.channel.
	Channel string
	// Arch is the desired architecture: "Multi" (or "multi"), or Go's name of
	// one, such as amd64.
	Arch string
	// Version is what the cluster reconciles now.
	Version string
	// ClusterID is ClusterVersion's spec.clusterID, a UUID.
	ClusterID string
}

// check looks for what no graph can be asked without.
func (q Query) check() error {
	if q.Arch == "" {
		return &Error{Reason: string(ErrNoArchitecture), Message: "Architecture has not been configured."}
	}
	if q.Version == "" {
		_, err := parseCurrent("")
		return err
	}
	if q.Channel == "" {
		return &Error{Reason: string(ErrNoChannel), Message: "The update channel has not been configured."}
	}
	_, err := parseCurrent(q.Version)
	return err
}

// Architecture is the architecture as an update service names it.
func (q Query) Architecture() string {
	if strings.EqualFold(q.Arch, "multi") {
		return "multi"
	}
	return q.Arch
}

// requestURL returns the address to ask, or the [*Error] that explains why there is
// none: InvalidURI, InvalidID, NoArchitecture, NoCurrentVersion, NoChannel or
// InvalidCurrentVersion, the first that holds. It writes the parameters arch,
// channel, id and version by set; others of the upstream survive.
func requestURL(upstream string, q Query, set func(url.Values, string, string)) (*url.URL, error) {
	u, err := url.Parse(upstream)
	if err != nil {
		return nil, &Error{Reason: string(ErrInvalidURI), Message: fmt.Sprintf("failed to parse update service URL: %s", redact.Error(err)), Err: redact.Error(err)}
	}
	id, err := openshift.ParseUUID(q.ClusterID)
	if err != nil {
		return nil, &Error{Reason: string(ErrInvalidID), Message: fmt.Sprintf("invalid cluster ID: %s", err), Err: err}
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	query := u.Query()
	set(query, "arch", q.Architecture())
	set(query, "channel", q.Channel)
	set(query, "id", id.String())
	set(query, "version", q.Version)
	u.RawQuery = query.Encode()
	return u, nil
}
