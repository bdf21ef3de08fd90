package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

// The measures of the picture, in pixels before it is zoomed.
const (
	boxWidth, boxHeight   = 132, 22
	columnStep, rowStep   = 172, 30
	minorGap              = 90     // between the columns of two minors, beside columnStep
	top, margin           = 46, 24 // above the releases, where minors are named, and around all
	maxColumn             = 40     // releases in a column
	maxFaint              = 300    // updates of a channel that are all drawn
	maxNear               = 150    // updates around the version's neighbours that are drawn
	bendSide, bendForward = 34, 0.5
)

// chart is the graph of a channel.
type chart struct {
	versions []string // ascending
	places   map[string]int
	updates  []update // by From and To, ascending
	pairs    map[[2]string]int
	risks    map[[2]string][]configv1.ConditionalUpdateRisk
}

func newChart(g *graph.Graph, q query) *chart {
	c := &chart{places: map[string]int{}, pairs: map[[2]string]int{}, risks: map[[2]string][]configv1.ConditionalUpdateRisk{}}
	for _, n := range g.Nodes() {
		c.versions = append(c.versions, n.Version.Original())
	}
	slices.SortFunc(c.versions, graph.CompareVersions)
	for i, version := range c.versions {
		c.places[version] = i
	}
	add := func(from, to, kind string, risks []string) {
		c.updates = append(c.updates, update{From: from, To: to, Kind: kind, Risks: risks, Link: q.linkTo(from, to)})
	}
	for i, n := range g.Nodes() {
		for e := range g.Edges(i) {
			add(n.Version.Original(), g.Node(e.To).Version.Original(), recommended, nil)
		}
	}
	for _, group := range g.ConditionalEdges() {
		var names []string
		for _, r := range group.Risks {
			names = append(names, r.Name)
		}
		for _, pair := range group.Edges {
			c.risks[[2]string{pair.From, pair.To}] = group.Risks
			add(pair.From, pair.To, conditional, names)
		}
	}
	slices.SortStableFunc(c.updates, func(a, b update) int {
		return cmp.Or(c.places[a.From]-c.places[b.From], c.places[a.To]-c.places[b.To])
	})
	for i, u := range c.updates {
		c.pairs[[2]string{u.From, u.To}] = i
	}
	return c
}

// find returns the place of an update among those that are served.
func (c *chart) find(from, to string) (at int, ok bool) {
	at, ok = c.pairs[[2]string{from, to}]
	return at, ok
}

// start is the version to start with: the lowest with an update.
func (c *chart) start() string {
	if len(c.updates) > 0 {
		return c.updates[0].From
	}
	if len(c.versions) > 0 {
		return c.versions[0]
	}
	return ""
}

// rows are the updates of the channel by release.
func (c *chart) rows(q query) (rows []row) {
	for _, u := range c.updates {
		if len(rows) == 0 || rows[len(rows)-1].From != u.From {
			rows = append(rows, row{From: u.From, Link: query{channel: q.channel, arch: q.arch, version: u.From}.link("/")})
		}
		r := &rows[len(rows)-1]
		r.Updates = append(r.Updates, u)
	}
	return rows
}

// picture is what is drawn.
type picture struct {
	Width, Height int
	Minors        []heading
	Faint         string // one path of the updates that are neither the version's nor its neighbours'
	Near          string // and of its neighbours' updates
	Hidden        int    // updates that are not drawn
	Edges         []edge // of the version
	Nodes         []box
}

type heading struct {
	X    int
	Text string
}

type edge struct {
	update
	Class, D string
}

type box struct {
	Version, Class, Link, Label string
	X, Y, TextX, TextY          int
	Tab                         int // whether the keyboard reaches it; all versions are in a list, too
}

// draw lays releases out by version: columns for minors, from left to right, and in
// them patches from above to below. Updates of the version are drawn and can be
// chosen, those of its neighbours are drawn, others while they are few.
func (c *chart) draw(q query) picture {
	p := picture{}
	boxes := make([]box, len(c.versions))
	x, inColumn, last, bottom := margin-columnStep-minorGap, 0, "", 0
	for i, version := range c.versions {
		switch m := minorOf(version); {
		case m != last:
			x, inColumn, last = x+columnStep+minorGap, 0, m
			p.Minors = append(p.Minors, heading{x, m})
		case inColumn == maxColumn:
			x, inColumn = x+columnStep, 0
		}
		boxes[i] = box{Version: version, X: x, Y: top + inColumn*rowStep, Class: "node", Tab: -1}
		bottom = max(bottom, boxes[i].Y+boxHeight)
		inColumn++
	}
	p.Width, p.Height = x+boxWidth+margin+bendSide, bottom+margin
	near := map[string]bool{}
	counts := make([][2]int, len(boxes))
	for _, u := range c.updates {
		at := c.places[u.From]
		counts[at][map[string]int{recommended: 0, conditional: 1}[u.Kind]]++
		if u.From == q.version {
			near[u.To] = true
			boxes[c.places[u.To]].Class = "node target " + strings.ToLower(u.Kind)
		} else if u.To == q.version {
			near[u.From] = true
			boxes[at].Class = "node origin"
		}
	}
	var faint, close []string
	for _, u := range c.updates {
		d := path(boxes[c.places[u.From]], boxes[c.places[u.To]])
		switch {
		case u.From == q.version || u.To == q.version:
			e := edge{update: u, Class: "edge " + strings.ToLower(u.Kind), D: d}
			if u.To == q.version {
				e.Class += " incoming"
			}
			e.Chosen = u.From == q.version && u.To == q.to
			if e.Chosen {
				e.Class += " chosen"
			}
			p.Edges = append(p.Edges, e)
		case (near[u.From] || near[u.To]) && len(close) < maxNear && len(c.updates) > maxFaint:
			close = append(close, d)
		case len(c.updates) <= maxFaint:
			faint = append(faint, d)
		default:
			p.Hidden++
		}
	}
	p.Near, p.Faint = strings.Join(close, ""), strings.Join(faint, "")
	for i := range boxes {
		b := &boxes[i]
		b.TextX, b.TextY = b.X+boxWidth/2, b.Y+boxHeight/2+4
		b.Link = query{channel: q.channel, arch: q.arch, version: b.Version}.link("/")
		b.Label = fmt.Sprintf("%s, %s, %s", b.Version, text.Plural(counts[i][0], "recommended update"), text.Plural(counts[i][1], "conditional update"))
		if b.Version == q.version {
			b.Class = "node current"
		}
		if b.Version == q.version || near[b.Version] {
			b.Tab = 0
		}
	}
	p.Nodes = boxes
	return p
}

// path is the curve from a box to another: forward through the room between columns,
// and at the side of a column to what is in it.
func path(a, b box) string {
	x1, y1, y2 := a.X+boxWidth, a.Y+boxHeight/2, b.Y+boxHeight/2
	if b.X <= a.X {
		x2 := b.X + boxWidth
		out := max(x1, x2) + min(bendSide, 12+abs(y2-y1)/8)
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, out, y1, out, y2, x2, y2)
	}
	bend := int(float64(b.X-x1) * bendForward)
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+bend, y1, b.X-bend, y2, b.X, y2)
}

func abs(n int) int { return max(n, -n) }

// minorOf is the major and minor of a version.
func minorOf(version string) string {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	return major + "." + minor
}
