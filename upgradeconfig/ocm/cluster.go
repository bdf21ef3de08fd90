package ocm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
)

// cluster is what OCM knows about the cluster.
type cluster struct {
	id           string // OCM's own
	path         string // of its resources
	channelGroup string
	hosted       bool
	drainPeriod  json.RawMessage
}

// cluster looks the cluster up by the ID that it gives itself.
func (c *connection) cluster(ctx context.Context) (*cluster, error) {
	w, operation, err := c.lookUp(ctx)
	if err != nil {
		return nil, withOperation(operation, err)
	}
	if err := checkKind(w.Kind, kindCluster); err != nil {
		return nil, withOperation(operation, fmt.Errorf("%w: %w", ErrNoClusterID, err))
	}
	if w.ID == "" {
		return nil, withOperation(operation, ErrNoClusterID)
	}
	if w.ExternalID != "" && !strings.EqualFold(w.ExternalID, c.externalID) {
		err := fmt.Errorf("%w: %w: the answer is about external_id '%s'", ErrNoClusterID, ErrClusterNotFound, c.secrets.Echo(w.ExternalID))
		return nil, withOperation(operation, err)
	}
	w.ID = c.secrets.Echo(w.ID)
	id, err := segment(w.ID)
	if err != nil {
		return nil, withOperation(operation, fmt.Errorf("%w: %w", ErrNoClusterID, err))
	}
	return &cluster{
		id: w.ID, path: api + "/" + id,
		channelGroup: c.secrets.Echo(w.Version.ChannelGroup),
		hosted:       w.Hypershift.Enabled,
		drainPeriod:  w.DrainGracePeriod,
	}, nil
}

// lookUp asks for the cluster. The OCM agent serves that one only, and needs no
// search.
func (c *connection) lookUp(ctx context.Context) (w wireCluster, operation string, err error) {
	if c.agent {
		operation, err = c.get(ctx, "/", nil, &w)
		if err != nil {
			return w, "", c.unavailable(err)
		}
		return w, operation, nil
	}
	list := wireList{want: kindClusters}
	query := url.Values{"search": {"external_id = '" + c.externalID + "'"}, "size": {"1"}}
	operation, err = c.get(ctx, api, query, &list)
	switch {
	case err != nil:
		return w, "", c.unavailable(err)
	case *list.Total != 1:
		return w, operation, fmt.Errorf("%w: %w: %d clusters have external_id '%s'", ErrNoClusterID, ErrClusterNotFound, *list.Total, c.externalID)
	case len(list.Items) != 1:
		return w, operation, fmt.Errorf("%w: the answer counts 1 cluster and has %d", ErrNoClusterID, len(list.Items))
	}
	if err := decode(list.Items[0], &w); err != nil {
		return w, operation, c.unavailable(fmt.Errorf("malformed cluster: %w", c.secrets.Error(err)))
	}
	return w, operation, nil
}

func (c *connection) unavailable(err error) error {
	return fmt.Errorf("%w: can't query OCM cluster service for external_id '%s': %w", ErrProviderUnavailable, c.externalID, err)
}

// drainMinutes is after how many minutes a node is drained by force: the
// cluster's grace period, without what is less than a minute; 0 if it has none.
func (c *cluster) drainMinutes() (int32, error) {
	if !given(c.drainPeriod) {
		return 0, nil
	}
	var p wirePeriod
	if err := decode(c.drainPeriod, &p); err != nil {
		return 0, fmt.Errorf("malformed node_drain_grace_period: %w", err)
	}
	if p.Unit != "" && p.Unit != "minutes" {
		return 0, fmt.Errorf("node_drain_grace_period has unit %q, not minutes", p.Unit)
	}
	if p.Value == "" {
		return 0, nil
	}
	minutes, err := strconv.ParseFloat(p.Value.String(), 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("malformed node_drain_grace_period: %w", err)
	case minutes < 0 || minutes >= math.MaxInt32+1:
		return 0, fmt.Errorf("node_drain_grace_period of %s minutes is not between 0 and %d", p.Value, math.MaxInt32)
	}
	return int32(minutes), nil
}
