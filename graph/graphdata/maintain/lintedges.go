package maintain

import (
	"fmt"
	"path"
	"reflect"
	"regexp"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// The rules of hack/validate-blocked-edges.py that Load does not have.

func (l *linter) riskFileName() {
	for _, b := range l.tree.Risks {
		if !strings.HasPrefix(path.Base(b.File), b.To) {
			l.report(b.File, 0, "to", fmt.Sprintf("conditional risk to version %s should be declared in a %s-<...>.yaml file", b.To, b.To))
		}
	}
}

func (l *linter) riskURL() {
	for _, b := range l.tree.Risks {
		if !strings.HasPrefix(b.Risk.URL, "https://") {
			l.report(b.File, 0, "url", fmt.Sprintf("url must be an https:// URI, not '%s'", bounded.Text(b.Risk.URL, bounded.MaxQuoted)))
		}
	}
}

var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9_]*$`)

func (l *linter) riskName() {
	for _, b := range l.tree.Risks {
		if !camelCase.MatchString(b.Risk.Name) {
			l.report(b.File, 0, "name", fmt.Sprintf("name must be a CamelCase reason, not '%s' (must match '%v')", bounded.Text(b.Risk.Name, bounded.MaxQuoted), camelCase))
		}
	}
}

func (l *linter) riskRules() {
	for _, b := range l.tree.Risks {
		if len(b.Risk.MatchingRules) == 0 {
			l.report(b.File, 0, "matchingRules", "matchingRules must be an array with at least one member")
		}
	}
}

func (l *linter) ruleTwice() {
	for _, b := range l.tree.Risks {
		seen := map[string]bool{}
		for i, r := range b.Risk.MatchingRules {
			if seen[r.Type] {
				l.report(b.File, 0, element("matchingRules", i), fmt.Sprintf("type %s appears multiple times in matchingRules", bounded.Text(r.Type, bounded.MaxQuoted)))
			}
			seen[r.Type] = true
		}
	}
}

// riskDiverges compares each file with the first one of the same risk.
func (l *linter) riskDiverges() {
	first := map[string]graphdata.BlockedEdge{}
	for _, b := range l.tree.Risks {
		a, known := first[b.Risk.Name]
		if !known {
			first[b.Risk.Name] = b
			continue
		}
		for _, key := range divergences(a, b) {
			l.report(b.File, 0, key, fmt.Sprintf("risk %s diverges on %s from %s", bounded.Text(b.Risk.Name, bounded.MaxQuoted), key, a.File))
		}
	}
}

func divergences(a, b graphdata.BlockedEdge) (keys []string) {
	for _, d := range []struct {
		key   string
		equal bool
	}{
		{"url", a.Risk.URL == b.Risk.URL},
		{"message", a.Risk.Message == b.Risk.Message},
		{"matchingRules", reflect.DeepEqual(rulesOf(a), rulesOf(b))},
		{"autoExtend", a.AutoExtend == b.AutoExtend},
	} {
		if !d.equal {
			keys = append(keys, d.key)
		}
	}
	return keys
}

// rulesOf is never nil: no list and an empty one are the same.
func rulesOf(b graphdata.BlockedEdge) []configv1.ClusterCondition {
	return append([]configv1.ClusterCondition{}, b.Risk.MatchingRules...)
}
