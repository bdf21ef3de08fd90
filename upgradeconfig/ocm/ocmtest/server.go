package ocmtest

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
)

// Server is the fake. The zero value has no clusters and lets everybody in. It
// is safe for concurrent use, but for its fields, which are set before the
// first request, and must not be copied.
type Server struct {
	// Token, if set, is what requests have to bring, after the external ID of
	// a cluster: header Authorization "AccessToken EXTERNALID:TOKEN". Others
	// are answered with 401.
	Token string
	// PageSize is the largest page of a list; zero means 100.
	PageSize int

	mu       sync.Mutex
	clusters []Cluster
	faults   []*Fault
	requests []Request
	logs     []ServiceLog
}

// Cluster is a cluster that OCM knows.
type Cluster struct {
	// ID is OCM's own, and ExternalID the UUID that the cluster calls itself.
	ID, ExternalID string
	// Version is what it runs, such as 4.17.3; may be empty.
	Version string
	// ChannelGroup such as stable; may be empty.
	ChannelGroup string
	// DrainMinutes is the node drain grace period; zero leaves it out.
	DrainMinutes float64
	// Hosted reports that its control plane is a hosted one: its policies are
	// served as those of the control plane.
	Hosted bool
	// Policies in the order in which OCM lists them.
	Policies []Policy
	// Extra keys of the JSON document; they go before the ones made of the
	// fields above. A nil value is null.
	Extra map[string]any
}

// Policy is an upgrade policy.
type Policy struct {
	ID string
	// Version and NextRun, in RFC 3339; left out where empty.
	Version, NextRun string
	// State is the value of its state; empty means scheduled.
	State string
	// Description of its state.
	Description string
	// UpgradeType; empty means OSD, or ControlPlane of a hosted cluster.
	UpgradeType string
	// Schedule is the cron text of an automatic policy; empty: a manual one.
	Schedule string
	// CapacityReservation; nil leaves it out.
	CapacityReservation *bool
	// Extra keys of the JSON document; they go before the ones made of the
	// fields above. A nil value is null.
	Extra map[string]any
}

// Request is a received request. Its credentials are not kept.
type Request struct {
	Method string
	// Path without the query.
	Path   string
	Query  url.Values
	Header http.Header // without Authorization
	Body   string
	// Status that was answered, 0 if the connection was broken instead.
	Status int
}

// String is the method and the path.
func (r Request) String() string { return r.Method + " " + r.Path }

// ServiceLog is an entry of the service log, as it was posted.
type ServiceLog struct {
	Severity      string   `json:"severity"`
	ServiceName   string   `json:"service_name"`
	LogType       string   `json:"log_type"`
	ClusterID     string   `json:"cluster_id"`
	Summary       string   `json:"summary"`
	Description   string   `json:"description"`
	DocReferences []string `json:"doc_references"`
	InternalOnly  bool     `json:"internal_only"`
}

// SetCluster adds a cluster, or replaces the one of that ID.
func (s *Server) SetCluster(c Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.index(c.ID); i >= 0 {
		s.clusters[i] = c.clone()
		return
	}
	s.clusters = append(s.clusters, c.clone())
}

// Cluster returns a copy of the cluster of an ID, and whether there is one.
func (s *Server) Cluster(id string) (Cluster, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.index(id); i >= 0 {
		return s.clusters[i].clone(), true
	}
	return Cluster{}, false
}

// SetPolicy adds a policy to a cluster, or replaces the one of that ID. It reports
// whether there is such a cluster.
func (s *Server) SetPolicy(clusterID string, p Policy) bool {
	return s.update(clusterID, func(c *Cluster) {
		if i := slices.IndexFunc(c.Policies, func(old Policy) bool { return old.ID == p.ID }); i >= 0 {
			c.Policies[i] = p.clone()
			return
		}
		c.Policies = append(c.Policies, p.clone())
	})
}

// RemovePolicy removes a policy of a cluster, if there is one. It reports whether
// there is such a cluster.
func (s *Server) RemovePolicy(clusterID, id string) bool {
	return s.update(clusterID, func(c *Cluster) {
		c.Policies = slices.DeleteFunc(c.Policies, func(p Policy) bool { return p.ID == id })
	})
}

// Policy returns a copy of a policy, and whether there is one.
func (s *Server) Policy(clusterID, id string) (Policy, bool) {
	c, _ := s.Cluster(clusterID)
	for _, p := range c.Policies {
		if p.ID == id {
			return p, true
		}
	}
	return Policy{}, false
}

// Requests returns the requests so far, in the order of their answers.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServiceLogs returns the entries of the service log.
func (s *Server) ServiceLogs() []ServiceLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.logs)
}

// Forget empties the lists of requests and service logs, and drops the failures
// that are still to come.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.logs, s.faults = nil, nil, nil
}

func (s *Server) update(clusterID string, f func(*Cluster)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.index(clusterID)
	if i >= 0 {
		f(&s.clusters[i])
	}
	return i >= 0
}

func (s *Server) index(id string) int {
	return slices.IndexFunc(s.clusters, func(c Cluster) bool { return c.ID == id })
}

func (c Cluster) clone() Cluster {
	c.Policies = slices.Clone(c.Policies)
	for i, p := range c.Policies {
		c.Policies[i] = p.clone()
	}
	c.Extra = maps.Clone(c.Extra)
	return c
}

func (p Policy) clone() Policy {
	if p.CapacityReservation != nil {
		v := *p.CapacityReservation
		p.CapacityReservation = &v
	}
	p.Extra = maps.Clone(p.Extra)
	return p
}
