package graphdata

import (
	configv1 "github.com/openshift/api/config/v1"
	"go.yaml.in/yaml/v3"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// riskKeys make a file of blocked-edges a risk: all four, or none.
var riskKeys = []string{"url", "name", "message", "matchingRules"}

// loadBlockedEdge reads a file of blocked-edges.
func (l *loader) loadBlockedEdge(name string) error {
	f, root, err := l.open(name)
	if err != nil || root == nil {
		return err
	}
	b := f.blockedEdge(root)
	switch {
	case f.bad:
	case b.Risk != nil:
		l.tree.Risks = append(l.tree.Risks, b)
	default:
		l.tree.Drops = append(l.tree.Drops, b)
	}
	return nil
}

func (f *file) blockedEdge(root *yaml.Node) BlockedEdge {
	b := BlockedEdge{File: f.name}
	m := f.mapping(root, "", "to", "from", "url", "name", "message", "matchingRules", "fixedIn", "autoExtend")
	if m == nil {
		return b
	}
	b.Lines = m.lines
	if n := m.required("to"); n != nil {
		b.To, _ = f.version(n, "to")
	}
	if n := m.required("from"); n != nil {
		b.From, b.Line = f.expression(n), n.Line
	}
	f.blockedEdgeExtras(m, &b)

	var missing []string
	for _, key := range riskKeys {
		if !m.has(key) {
			missing = append(missing, key)
		}
	}
	switch len(missing) {
	case 0:
		m.reportUnknown(f.stricter)
		b.Risk = f.risk(m)
	case len(riskKeys):
		f.drop(m)
	default:
		m.reportUnknown(f.failed)
		for _, key := range missing {
			f.failed(m.node, key, rulePartialRisk, "is a required property of a risk: without it the file blocks nothing")
		}
	}
	return b
}

// blockedEdgeExtras reads what an update service does not look at.
func (f *file) blockedEdgeExtras(m *fields, b *BlockedEdge) {
	extra := f.beside()
	if n := m.values["fixedIn"]; n != nil {
		b.FixedIn, _ = extra.version(n, "fixedIn")
	}
	if n := m.values["autoExtend"]; n != nil {
		b.AutoExtend, _ = extra.words(n, "autoExtend")
	}
	f.adopt(extra)
}

// drop checks the keys of a file that removes updates. An update service wants to
// and from alone.
func (f *file) drop(m *fields) {
	m.reportUnknown(f.failed)
	if !f.loader.opts.Compat {
		return
	}
	for _, key := range []string{"fixedIn", "autoExtend"} {
		if n := m.values[key]; n != nil {
			f.failed(n, key, ruleDropKey, "makes the update service ignore a file without a risk")
		}
	}
}

// expression reads a regular expression on source versions.
func (f *file) expression(n *yaml.Node) string {
	text, ok := f.text(n, "from")
	if !ok {
		return ""
	}
	if text == "" || isNull(n) {
		f.stricter(n, "from", ruleFromEmpty, "is empty, which would match every version")
	}
	if f.bad {
		return ""
	}
	err, known := f.loader.expressions[text]
	if !known {
		_, err = CompileFrom(text)
		f.loader.expressions[text] = err
	}
	if err != nil {
		f.failed(n, "from", ruleFrom, "error parsing %s as Regex: %v", bounded.Text(text, bounded.MaxQuoted), err)
		return ""
	}
	return text
}

// risk reads the four keys of a risk.
func (f *file) risk(m *fields) *configv1.ConditionalUpdateRisk {
	r := &configv1.ConditionalUpdateRisk{MatchingRules: []configv1.ClusterCondition{}}
	r.URL, _ = f.words(m.values["url"], "url")
	r.Name, _ = f.words(m.values["name"], "name")
	r.Message, _ = f.words(m.values["message"], "message")
	items, _ := f.items(m.values["matchingRules"], "matchingRules")
	for i, n := range items {
		r.MatchingRules = append(r.MatchingRules, f.rule(resolved(n), element("matchingRules", i)))
	}
	return r
}

// rule reads a matching rule: a type, and for PromQL a query. What it says is in the
// words of the maintainers' check.
func (f *file) rule(n *yaml.Node, field string) configv1.ClusterCondition {
	var c configv1.ClusterCondition
	m := f.mapping(n, field+".", "type", "promql")
	if m == nil {
		return c
	}
	m.reportUnknown(f.stricter)
	if n := m.values["type"]; n != nil {
		c.Type, _ = f.text(n, field+".type")
	}
	query := ""
	if n := m.values["promql"]; n != nil {
		if m := f.mapping(n, field+".promql.", "promql"); m != nil {
			m.reportUnknown(f.stricter)
			query = m.optional("promql")
		}
	}
	if query != "" {
		c.PromQL = &configv1.PromQLClusterCondition{PromQL: query}
	}
	switch {
	case f.bad:
	case !m.has("type"):
		f.stricter(n, field+".type", ruleRuleType, "type must be set for %s", field)
	case c.Type != "Always" && c.Type != "PromQL":
		f.stricter(n, field+".type", ruleRuleType, "unrecognized %s type '%s'", field, bounded.Text(c.Type, bounded.MaxQuoted))
	case c.Type == "Always" && m.has("promql"):
		f.stricter(n, field+".promql", ruleRuleKey, "unrecognized keys in 'Always' rule: promql")
	case c.Type == "PromQL" && !m.has("promql"):
		f.stricter(n, field+".promql", ruleRuleKey, "promql must be set for 'PromQL' rules")
	case c.Type == "PromQL" && query == "":
		f.stricter(n, field+".promql", ruleRuleKey, "promql.promql must be set for 'PromQL' rules")
	}
	return c
}
