package ocmtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxBody is the largest request that is read.
const maxBody = 1 << 20

// ServeHTTP answers a request, or fails as its faults demand.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	seen := Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header.Clone(), Body: string(body)}
	seen.Header.Del("Authorization")

	s.mu.Lock()
	n := len(s.requests)
	fault := s.fault(seen)
	reply := reply{status: http.StatusOK}
	if fault == nil || fault.regular() {
		reply = s.answer(r.Header.Get("Authorization"), seen)
	}
	reply.operation = fmt.Sprintf("operation-%d", n+1)
	if fault != nil {
		reply = fault.spoil(reply)
	}
	if !reply.fault.Abort {
		seen.Status = reply.status
	}
	s.requests = append(s.requests, seen)
	s.mu.Unlock()

	reply.write(w, r)
}

// answer is what a healthy OCM says. The caller holds the lock.
func (s *Server) answer(authorization string, r Request) reply {
	if s.Token != "" && !s.known(authorization) {
		return problem(http.StatusUnauthorized, "the request is not authenticated")
	}
	path := strings.Split(strings.Trim(r.Path, "/"), "/")
	switch {
	case r.Path == "" || r.Path == "/":
		if len(s.clusters) == 0 {
			return problem(http.StatusNotFound, "there is no cluster")
		}
		return readOnly(r, document(s.clusters[0].document()))
	case r.Path == "/api/service_logs/v1/cluster_logs":
		return s.postLog(r)
	case len(path) < 4 || strings.Join(path[:4], "/") != "api/clusters_mgmt/v1/clusters":
		return problem(http.StatusNotFound, "there is no "+r.Path)
	case len(path) == 4:
		return s.listClusters(r)
	}
	i := s.index(path[4])
	if i < 0 {
		return problem(http.StatusNotFound, fmt.Sprintf("Cluster '%s' not found", path[4]))
	}
	c, rest := &s.clusters[i], path[5:]
	if len(rest) == 0 {
		return readOnly(r, document(c.document()))
	}
	hosted := rest[0] == "control_plane"
	if hosted {
		rest = rest[1:]
	}
	if len(rest) == 0 || rest[0] != "upgrade_policies" || hosted != c.Hosted {
		return problem(http.StatusNotFound, "there is no "+r.Path)
	}
	return s.policies(c, rest[1:], r)
}

func (s *Server) known(authorization string) bool {
	return slices.ContainsFunc(s.clusters, func(c Cluster) bool {
		return authorization == "AccessToken "+c.ExternalID+":"+s.Token
	})
}

var search = regexp.MustCompile(`^\s*external_id\s*=\s*'([^']*)'\s*$`)

func (s *Server) listClusters(r Request) reply {
	var items []any
	wanted := search.FindStringSubmatch(r.Query.Get("search"))
	if wanted == nil && r.Query.Get("search") != "" {
		return problem(http.StatusBadRequest, "the search is not understood")
	}
	for _, c := range s.clusters {
		if wanted == nil || wanted[1] == c.ExternalID {
			items = append(items, c.document())
		}
	}
	return readOnly(r, s.page("ClusterList", items, r))
}

// policies serves what is below upgrade_policies.
func (s *Server) policies(c *Cluster, path []string, r Request) reply {
	if len(path) == 0 {
		var items []any
		for _, p := range c.Policies {
			items = append(items, p.document(*c))
		}
		kind := "UpgradePolicyList"
		if c.Hosted {
			kind = "ControlPlaneUpgradePolicyList"
		}
		return readOnly(r, s.page(kind, items, r))
	}
	i := slices.IndexFunc(c.Policies, func(p Policy) bool { return p.ID == path[0] })
	if i < 0 {
		return problem(http.StatusNotFound, fmt.Sprintf("Upgrade policy '%s' not found", path[0]))
	}
	p := &c.Policies[i]
	inState := len(path) == 2 && path[1] == "state" && !c.Hosted
	switch {
	case len(path) > 1 && !inState:
		return problem(http.StatusNotFound, "there is no "+r.Path)
	case r.Method == http.MethodGet && inState:
		return document(p.state())
	case r.Method == http.MethodGet:
		return document(p.document(*c))
	case r.Method == http.MethodPatch && inState:
		return p.patch([]byte(r.Body), p.state)
	case r.Method == http.MethodPatch && c.Hosted:
		var change struct {
			State json.RawMessage `json:"state"`
		}
		if err := json.Unmarshal([]byte(r.Body), &change); err != nil {
			return problem(http.StatusBadRequest, err.Error())
		}
		return p.patch(change.State, func() map[string]any { return p.document(*c) })
	}
	return notAllowed(r)
}

// patch sets the state of a policy.
func (p *Policy) patch(body []byte, result func() map[string]any) reply {
	var change struct {
		Value, Description *string
	}
	if err := json.Unmarshal(body, &change); err != nil {
		return problem(http.StatusBadRequest, err.Error())
	}
	if change.Value != nil {
		switch *change.Value {
		case "pending", "scheduled", "started", "delayed", "completed", "failed", "cancelled":
		default:
			return problem(http.StatusBadRequest, fmt.Sprintf("'%s' is not a state", *change.Value))
		}
		p.State = *change.Value
	}
	if change.Description != nil {
		p.Description = *change.Description
	}
	return document(result())
}

func (s *Server) postLog(r Request) reply {
	if r.Method != http.MethodPost {
		return notAllowed(r)
	}
	var l ServiceLog
	if err := json.Unmarshal([]byte(r.Body), &l); err != nil {
		return problem(http.StatusBadRequest, err.Error())
	}
	if s.index(l.ClusterID) < 0 {
		return problem(http.StatusNotFound, fmt.Sprintf("Cluster '%s' not found", l.ClusterID))
	}
	s.logs = append(s.logs, l)
	created := document(map[string]any{
		"kind": "ClusterLog", "id": fmt.Sprintf("log-%d", len(s.logs)), "cluster_id": l.ClusterID,
		"severity": l.Severity, "service_name": l.ServiceName, "log_type": l.LogType,
		"summary": l.Summary, "description": l.Description, "internal_only": l.InternalOnly,
	})
	created.status = http.StatusCreated
	return created
}

// page cuts the page that was asked for out of a list.
func (s *Server) page(kind string, items []any, r Request) reply {
	size, most := 100, 100
	if s.PageSize > 0 {
		most = s.PageSize
	}
	number := 1
	for _, p := range []struct {
		name  string
		value *int
	}{{"page", &number}, {"size", &size}} {
		if text := r.Query.Get(p.name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > 1<<20 {
				return problem(http.StatusBadRequest, fmt.Sprintf("%s '%s' is not a positive number", p.name, text))
			}
			*p.value = n
		}
	}
	size = min(size, most)
	total := len(items)
	from := min((number-1)*size, total)
	items = items[from:min(from+size, total)]
	return document(map[string]any{
		"kind": kind, "page": number, "size": len(items), "total": total, "items": append([]any{}, items...),
	})
}

func (c Cluster) document() map[string]any {
	version := map[string]any{"channel_group": c.ChannelGroup}
	if c.Version != "" {
		version["id"] = "openshift-v" + c.Version
	}
	d := map[string]any{
		"kind": "Cluster", "id": c.ID, "external_id": c.ExternalID, "version": version,
		"hypershift": map[string]any{"enabled": c.Hosted},
	}
	if c.DrainMinutes != 0 {
		d["node_drain_grace_period"] = map[string]any{"value": c.DrainMinutes, "unit": "minutes"}
	}
	maps.Copy(d, c.Extra)
	return d
}

func (p Policy) document(c Cluster) map[string]any {
	d := map[string]any{
		"kind": "UpgradePolicy", "id": p.ID, "cluster_id": c.ID,
		"schedule_type": "manual", "upgrade_type": "OSD", "enable_minor_version_upgrades": false,
	}
	if c.Hosted {
		d["kind"], d["upgrade_type"], d["state"] = "ControlPlaneUpgradePolicy", "ControlPlane", p.state()
	}
	if p.UpgradeType != "" {
		d["upgrade_type"] = p.UpgradeType
	}
	if p.Schedule != "" {
		d["schedule_type"], d["schedule"] = "automatic", p.Schedule
	}
	if p.Version != "" {
		d["version"] = p.Version
	}
	if p.NextRun != "" {
		d["next_run"] = p.NextRun
	}
	if p.CapacityReservation != nil {
		d["capacity_reservation"] = *p.CapacityReservation
	}
	maps.Copy(d, p.Extra)
	return d
}

func (p Policy) state() map[string]any {
	value := cmp.Or(p.State, "scheduled")
	return map[string]any{"kind": "UpgradePolicyState", "value": value, "description": p.Description}
}
