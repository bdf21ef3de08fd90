package ocm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// policy is a policy as OCM has it.
type policy struct {
	wire    wirePolicy
	nextRun time.Time
	// noRun is why nextRun is zero.
	noRun error
}

// pageSize is how many policies are asked for at once: as many as OCM gives.
const pageSize = 100

// maxReads is how often a list is read that changes while it is read.
const maxReads = 3

// errChanged reports that two pages are not of the same list.
var errChanged = errors.New("the list changed while it was read")

// policies lists the upgrade policies of a cluster in OCM's order, all pages.
// Those of add-ons and node pools are not about the cluster, and left out.
func (p *Provider) policies(ctx context.Context, c *connection, cl *cluster) ([]policy, error) {
	for n := 1; ; n++ {
		items, err := p.pages(ctx, c, cl)
		if errors.Is(err, errChanged) && n < maxReads {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%w: can't pull upgrade policies for cluster ID: %w", ErrRetrievingPolicies, err)
		}
		return items, nil
	}
}

// hosted determines which policies count.
func (p *Provider) hosted(cl *cluster) bool {
	return p.o.Kind == HostedControlPlane || p.o.Kind == Auto && cl.hosted
}

func (p *Provider) policiesPath(cl *cluster) string {
	if p.hosted(cl) {
		return cl.path + "/control_plane/upgrade_policies"
	}
	return cl.path + "/upgrade_policies"
}

// pages reads a list to its end.
func (p *Provider) pages(ctx context.Context, c *connection, cl *cluster) ([]policy, error) {
	kind := kindPolicies
	if p.hosted(cl) {
		kind = kindHostedPolicies
	}
	r := pageReader{clusterID: cl.id, max: p.o.MaxPolicies, total: -1, ids: map[string]bool{}}
	for page := 1; r.total < 0 || r.read < r.total; page++ {
		list := wireList{want: kind}
		query := url.Values{"page": {strconv.Itoa(page)}, "size": {strconv.Itoa(pageSize)}}
		operation, err := c.get(ctx, p.policiesPath(cl), query, &list)
		if err == nil {
			err = withOperation(operation, r.add(c, page, list))
		}
		if err != nil {
			return nil, err
		}
	}
	return r.policies, nil
}

// pageReader puts pages together, and sees that they are of one list.
type pageReader struct {
	clusterID   string // whose policies they are
	max         int
	total, read int64 // total is -1 before the first page
	ids         map[string]bool
	policies    []policy
}

func (r *pageReader) add(c *connection, page int, list wireList) error {
	total, read := *list.Total, r.read+int64(len(list.Items))
	switch {
	case max(total, read) > int64(r.max):
		return &limit.LimitError{Limit: "MaxPolicies", Max: int64(r.max), What: "policies"}
	case r.total >= 0 && total != r.total:
		return fmt.Errorf("%w: page %d counts %d policies, the one before %d", errChanged, page, total, r.total)
	case total > 0 && len(list.Items) == 0:
		return fmt.Errorf("page %d is empty, after %d of %d policies", page, read, total)
	}
	r.total, r.read = total, read
	for i, raw := range list.Items {
		w, err := c.item(raw)
		if err != nil {
			return fmt.Errorf("item %d of page %d: %w", i, page, err)
		}
		if w.ClusterID != "" && w.ClusterID != r.clusterID {
			return fmt.Errorf("item %d of page %d: policy %q is of cluster %q", i, page, w.ID, w.ClusterID)
		}
		if w.ID != "" && r.ids[w.ID] {
			return fmt.Errorf("%w: policy %q is listed twice", errChanged, w.ID)
		}
		r.ids[w.ID] = true
		if w.UpgradeType != "ADDON" && w.UpgradeType != "NodePool" {
			r.policies = append(r.policies, newPolicy(w))
		}
	}
	return nil
}

func (c *connection) item(raw json.RawMessage) (wirePolicy, error) {
	var w wirePolicy
	if !given(raw) {
		return w, errors.New("no policy")
	}
	if err := decode(raw, &w); err != nil {
		return w, fmt.Errorf("malformed policy: %w", c.secrets.Error(err))
	}
	for _, s := range []*string{&w.ID, &w.ClusterID, &w.Version} {
		*s = c.secrets.Echo(*s)
	}
	return w, nil
}

func newPolicy(w wirePolicy) policy {
	p := policy{wire: w}
	p.nextRun, p.noRun = parseNextRun(w.NextRun)
	return p
}

// parseNextRun keeps the zone as it was sent. A time that is missing must not
// become one that is long past: the upgrade would start at once.
func parseNextRun(raw json.RawMessage) (time.Time, error) {
	if !given(raw) {
		return time.Time{}, errors.New("it has no next_run")
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return time.Time{}, errors.New("its next_run is not a text")
	}
	t, err := time.ParseInLocation(time.RFC3339, text, time.UTC)
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("its next_run %q is not a time in RFC 3339", text)
	case t.IsZero():
		return time.Time{}, fmt.Errorf("its next_run %q is a zero time", text)
	}
	return t, nil
}

// inOrder sorts policies by their time, the earliest first, those without one
// last.
func inOrder(list []policy) []policy {
	slices.SortStableFunc(list, func(a, b policy) int {
		return upgradeconfig.Policy{NextRun: a.nextRun}.Compare(upgradeconfig.Policy{NextRun: b.nextRun})
	})
	return list
}

// state returns the state of a policy: in the policy itself for hosted control
// planes, else by a request.
func (p *Provider) state(ctx context.Context, c *connection, cl *cluster, pol policy) (value, description string, err error) {
	var s wireState
	if p.hosted(cl) {
		if !given(pol.wire.State) {
			return "", "", fmt.Errorf("can't pull upgrade policy state: policy %q has none", pol.wire.ID)
		}
		if err := decode(pol.wire.State, &s); err != nil {
			return "", "", fmt.Errorf("can't pull upgrade policy state: policy %q: malformed state: %w", pol.wire.ID, c.secrets.Error(err))
		}
	} else {
		path, err := p.statePath(cl, pol)
		if err == nil {
			_, err = c.get(ctx, path, nil, &s)
		}
		if err != nil {
			return "", "", fmt.Errorf("can't pull upgrade policy state: %w", err)
		}
	}
	return c.secrets.Echo(*s.Value), c.secrets.Echo(s.Description), nil
}

func (p *Provider) statePath(cl *cluster, pol policy) (string, error) {
	path, err := p.policyPath(cl, pol)
	return path + "/state", err
}

func (p *Provider) policyPath(cl *cluster, pol policy) (string, error) {
	id, err := segment(pol.wire.ID)
	if err != nil {
		return "", fmt.Errorf("a policy for version %q: %w", pol.wire.Version, err)
	}
	return p.policiesPath(cl) + "/" + id, nil
}

// convert returns the spec that a policy makes.
func (p *Provider) convert(cl *cluster, pol policy) (upgradeconfig.Spec, error) {
	if cl.channelGroup == "" && p.o.Type != upgradeconfig.ARO {
		return upgradeconfig.Spec{}, errors.New("the cluster has no version.channel_group, so its channel is not known")
	}
	channel, err := upgradeconfig.InferChannel(cl.channelGroup, pol.wire.Version)
	if e, ok := errors.AsType[*upgradeconfig.ChannelError](err); ok {
		e.PolicyID = pol.wire.ID
	}
	drain, drainErr := cl.drainMinutes()
	reserve, reserveErr := capacityReservation(pol.wire.CapacityReservation)
	if err := errors.Join(err, pol.noRun, drainErr, reserveErr); err != nil {
		return upgradeconfig.Spec{}, err
	}
	return upgradeconfig.Spec{
		Desired:              upgradeconfig.Update{Version: pol.wire.Version, Channel: channel},
		UpgradeAt:            pol.nextRun.Format(time.RFC3339),
		PDBForceDrainTimeout: drain,
		Type:                 p.o.Type,
		CapacityReservation:  reserve,
	}, nil
}

// capacityReservation is on unless a policy says no.
func capacityReservation(raw json.RawMessage) (bool, error) {
	if !given(raw) {
		return true, nil
	}
	var on bool
	if json.Unmarshal(raw, &on) != nil {
		return false, errors.New("its capacity_reservation is neither true nor false")
	}
	return on, nil
}
