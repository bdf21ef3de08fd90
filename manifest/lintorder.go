package manifest

// places are where an update applies the manifests of a payload.
type places map[*Manifest]graphPlace

// graphPlace is a place in a graph of the order of an update. There, a node
// follows all nodes of lower depth, and has no order with those of its own.
type graphPlace struct{ depth, node, index int }

// places works out the places, once.
func (l *linter) places() places {
	if l.order != nil {
		return l.order
	}
	g := UpdateGraph(l.payload.Tasks())
	l.order = make(places, len(l.payload.Manifests))
	depths, _ := g.depths()
	for i, n := range g.Nodes {
		for j, t := range n.Tasks {
			l.order[t.Manifest] = graphPlace{depth: depths[i], node: i, index: j}
		}
	}
	return l.order
}

// before reports whether an update applies p before q, whatever its workers do.
func (p graphPlace) before(q graphPlace) bool {
	if p.node == q.node {
		return p.index < q.index
	}
	return p.depth < q.depth
}

// check reports a manifest that needs one of others, if there are any, and that
// none of them comes before.
func (p places) check(l *linter, m *Manifest, needs []*Manifest) {
	if len(needs) == 0 {
		return
	}
	at, parallel := p[m], false
	for _, n := range needs {
		if p[n].before(at) || n == m {
			return
		}
		parallel = parallel || !at.before(p[n])
	}
	if parallel {
		l.report(m, "may be applied before %s, with which it has no order", needs[0].Filename)
	} else {
		l.report(m, "is applied before %s", needs[0].Filename)
	}
}
