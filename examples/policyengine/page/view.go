package page

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/examples/policyengine/source"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	ways "github.com/clusterupdate/clusterupdate/graph/path"
)

const (
	maxRows     = 400 // updates in the table of the page; more are on a page of their own
	maxProblems = 100
	maxBlocked  = 250 // releases of a channel in which blocked updates are looked for
)

type query struct{ channel, arch, version, to string }

// link is the address of the page that shows what a query asks for.
func (q query) link(path string) string {
	values := url.Values{}
	for key, value := range map[string]string{"channel": q.channel, "arch": q.arch, "version": q.version, "to": q.to} {
		if value != "" {
			values.Set(key, value)
		}
	}
	return path + "?" + values.Encode()
}

// view is what the templates show.
type view struct {
	Ready                       bool
	Failure                     string   // why the last load failed
	Missing                     []string // what was asked for and does not exist
	Revision, Age, Loaded       string
	Releases                    int
	Edges, Conditional, Removed int
	Arches                      []choice
	Channels                    []channel
	Versions                    []choice
	Channel, Arch, Version      string
	GraphURL, AllURL, BackURL   string
	Updates                     []update // of the version
	From                        []update // to the version
	Blocked                     []update
	Picture                     picture
	Rows                        []row
	Total                       int // updates in the channel
	Detail                      *detail
	Targets                     []choice // higher versions of the channel
	Findings                    []string // about the version and the one to update to
	Problems                    []string
	MoreProblems                int
}

// Counted returns the sum of a kind of updates.
func (v *view) Counted(kind string) (n int) {
	for _, u := range v.Updates {
		if u.Kind == kind {
			n++
		}
	}
	return n
}

type choice struct {
	Name     string
	Selected bool
	Link     string
}

type channel struct {
	choice
	Releases, Recommended, Conditional int
}

// The kinds of updates.
const (
	recommended = "Recommended"
	conditional = "Conditional"
	blocked     = "Blocked"
)

// update is one from a release to another.
type update struct {
	From, To, Kind string
	Risks          []string
	Link           string // shows why it is there
	Chosen         bool
}

// Text describes what the update is, for people who do not see the picture.
func (u update) Text() string {
	text := u.From + " → " + u.To + ", " + strings.ToLower(u.Kind)
	if len(u.Risks) > 0 {
		text += ": " + strings.Join(u.Risks, ", ")
	}
	return text
}

// row holds the updates of one release.
type row struct {
	From, Link string
	Updates    []update
}

// detail is what there is to say about an update.
type detail struct {
	update
	Risks  []risk
	Causes []graphdata.Cause
	// Reason explains why the update is not available in one step, and Way is the
	// updates that lead to it.
	Reason string
	Way    []update
}

type risk struct {
	Name, Message, URL string
	Linked             bool
	Rules              []string
}

// view makes what the page shows. It shows something else than what was asked for
// if that does not exist, and says so.
func (h *Handler) view(s source.Last, q query, all bool) *view {
	v := &view{}
	if s.Err != nil {
		v.Failure = s.Err.Error()
	}
	for i, p := range s.Problems {
		if i == maxProblems {
			v.MoreProblems = len(s.Problems) - i
			break
		}
		v.Problems = append(v.Problems, p.String())
	}
	if s.Snapshot == nil {
		return v
	}
	v.Ready, v.Revision = true, s.Revision
	v.Loaded, v.Age = s.Loaded.UTC().Format("2006-01-02 15:04:05 UTC"), h.o.Now().Sub(s.Loaded).Round(time.Second).String()
	v.Releases = s.Snapshot.Nodes()
	report := s.Snapshot.Report()
	v.Edges, v.Conditional, v.Removed = report.Edges, report.Conditional, report.Removed

	arches := s.Snapshot.Arches()
	q.arch = v.choose("architecture", q.arch, arches, "amd64")
	channels := h.counts(s.Snapshot, q.arch)
	var names []string
	for _, c := range channels {
		names = append(names, c.Name)
	}
	q.channel = v.choose("channel", q.channel, names, first(channels))
	g := s.Snapshot.Graph(q.channel, q.arch)
	c := newChart(g, q)
	q.version = v.choose("version", q.version, c.versions, c.start())
	v.Channel, v.Arch, v.Version = q.channel, q.arch, q.version
	for _, arch := range arches {
		v.Arches = append(v.Arches, choice{Name: arch, Selected: arch == q.arch, Link: query{channel: q.channel, arch: arch}.link("/")})
	}
	for _, c := range channels {
		c.Selected, c.Link = c.Name == q.channel, query{channel: c.Name, arch: q.arch}.link("/")
		v.Channels = append(v.Channels, c)
	}
	for _, version := range slices.Backward(c.versions) {
		v.Versions = append(v.Versions, choice{Name: version, Selected: version == q.version})
	}
	if h.o.Graph != "" {
		v.GraphURL = query{channel: q.channel, arch: q.arch}.link(h.o.Graph)
	}
	v.AllURL = query{channel: q.channel, arch: q.arch}.link("/updates")
	v.BackURL = query{channel: q.channel, arch: q.arch, version: q.version}.link("/")
	v.Total = len(c.updates)
	if all || v.Total <= maxRows {
		v.Rows = c.rows(q)
	}
	if all || q.version == "" {
		return v
	}
	v.choices(s.Snapshot, c, q)
	v.Findings = about(s.Findings, q)
	v.Picture = c.draw(q)
	return v
}

// choices fills in what there is to say about the version, and about one of its
// updates.
func (v *view) choices(s *graphdata.Snapshot, c *chart, q query) {
	for _, u := range c.updates {
		u.Chosen = u.From == q.version && u.To == q.to
		switch q.version {
		case u.From:
			v.Updates = append(v.Updates, u)
		case u.To:
			v.From = append(v.From, u)
		}
	}
	slices.Reverse(v.Updates) // the newest first
	slices.Reverse(v.From)
	at := slices.Index(c.versions, q.version)
	if len(c.versions) <= maxBlocked {
		for _, to := range slices.Backward(c.versions[at+1:]) {
			if _, served := c.find(q.version, to); !served && len(s.Why(q.version, to, q.arch)) > 0 {
				v.Blocked = append(v.Blocked, update{From: q.version, To: to, Kind: blocked, Chosen: to == q.to, Link: q.linkTo(q.version, to)})
			}
		}
	}
	for _, to := range slices.Backward(c.versions[at+1:]) {
		v.Targets = append(v.Targets, choice{Name: to, Selected: to == q.to})
	}
	if q.to == "" {
		return
	}
	d := &detail{update: update{From: q.version, To: q.to, Kind: blocked}, Causes: s.Why(q.version, q.to, q.arch)}
	if i, served := c.find(q.version, q.to); served {
		d.update = c.updates[i]
		for _, r := range c.risks[[2]string{q.version, q.to}] {
			d.Risks = append(d.Risks, shown(r))
		}
	} else if d.Reason, d.Way = c.way(s.Graph(q.channel, q.arch), q); len(d.Causes) == 0 && len(d.Way) == 0 {
		v.Missing = append(v.Missing, fmt.Sprintf("There is no update from %s to %s.", q.version, q.to))
		return
	}
	v.Detail = d
}

// way explains an update that is not served, and returns by which updates of the
// channel the version is reached all the same: without risks if that can be.
func (c *chart) way(g *graph.Graph, q query) (reason string, way []update) {
	own := ways.ChannelGraph{Channel: q.channel, Arch: q.arch, Graph: g}
	n, err := ways.NewNetwork(context.Background(), ways.NetworkOptions{}, own)
	if err != nil {
		return "", nil // the graph is empty
	}
	for _, edges := range []ways.Edges{ways.Recommended, ways.AnyEdge} {
		x, err := n.Explain(ways.ExplainQuery{From: q.version, To: q.to, Policy: ways.Policy{Edges: edges}})
		if err != nil {
			return "", nil
		}
		reason = x.String()
		if x.Via == nil {
			continue
		}
		for _, hop := range x.Via.Hops {
			if i, served := c.find(hop.From, hop.To); served {
				way = append(way, c.updates[i])
			}
		}
		break
	}
	return reason, way
}

// about returns the findings that name one of the versions in view.
func about(findings []graphdata.Problem, q query) (texts []string) {
	for _, p := range findings {
		text := p.String()
		named := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" /,:;\"", r) })
		inView := func(word string) bool { return names(word, q.version) || names(word, q.to) }
		if len(texts) < maxProblems && slices.ContainsFunc(named, inView) {
			texts = append(texts, text)
		}
	}
	return texts
}

// names reports whether a word is a version, alone or before a build, a risk or the
// suffix of a file.
func names(word, version string) bool {
	rest, ok := strings.CutPrefix(word, version)
	if !ok || version == "" {
		return false
	}
	return rest == "" || rest == ".yaml" || rest[0] == '+' || rest[0] == '-' && strings.HasSuffix(rest, ".yaml")
}

// linkTo is the address of an update.
func (q query) linkTo(from, to string) string {
	q.version, q.to = from, to
	return q.link("/")
}

func shown(r configv1.ConditionalUpdateRisk) risk {
	out := risk{Name: r.Name, Message: r.Message, URL: r.URL, Linked: isWeb(r.URL)}
	for _, rule := range r.MatchingRules {
		text := rule.Type
		if rule.PromQL != nil {
			text += ": " + rule.PromQL.PromQL
		}
		out.Rules = append(out.Rules, text)
	}
	return out
}

// choose returns what was asked for if it exists, and says so if not.
func (v *view) choose(what, asked string, known []string, instead string) string {
	if slices.Contains(known, asked) {
		return asked
	}
	if asked != "" {
		v.Missing = append(v.Missing, fmt.Sprintf("There is no %s %q here.", what, asked))
	}
	if slices.Contains(known, instead) || len(known) == 0 {
		return instead
	}
	return known[0]
}

// first is the channel to start with: the newest stable one, else the last.
func first(channels []channel) string {
	for _, c := range slices.Backward(channels) {
		if strings.HasPrefix(c.Name, "stable-") {
			return c.Name
		}
	}
	if len(channels) == 0 {
		return ""
	}
	return channels[len(channels)-1].Name
}

// counts returns the channels of an architecture, with what they hold. They are
// counted once for each snapshot.
func (h *Handler) counts(s *graphdata.Snapshot, arch string) []channel {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of != s {
		h.of, h.channels = s, map[string][]channel{}
	}
	if list, ok := h.channels[arch]; ok {
		return list
	}
	list := []channel{}
	for _, name := range s.Channels(arch) {
		g := s.Graph(name, arch)
		c := channel{choice: choice{Name: name}, Releases: g.Len(), Recommended: g.EdgeCount()}
		for _, group := range g.ConditionalEdges() {
			c.Conditional += len(group.Edges)
		}
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(a, b channel) int { return graph.CompareChannels(a.Name, b.Name) })
	if len(s.Arches()) > 0 && slices.Contains(s.Arches(), arch) {
		h.channels[arch] = list
	}
	return list
}

// Kinds are the kinds of arrows.
func (v *view) Kinds() []string { return []string{"recommended", "conditional", "incoming"} }
