package maintain

import (
	"path"
	"regexp"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// The rules of hack/validate-blocked-edges.py that Load does not have.

func (l *linter) riskFileName() {
	for _, b := range l.tree.Risks {
		if !strings.HasPrefix(path.Base(b.File), b.To) {
			l.edge(b, "to", "conditional risk to version %s should be declared in a %s-<...>.yaml file", b.To, b.To)
		}
	}
}

func (l *linter) riskURL() {
	for _, b := range l.tree.Risks {
		if !strings.HasPrefix(b.Risk.URL, "https://") {
			l.edge(b, "url", "url must be an https:// URI, not '%s'", short(b.Risk.URL))
		}
	}
}

var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9_]*$`)

func (l *linter) riskName() {
	for _, b := range l.tree.Risks {
		if !camelCase.MatchString(b.Risk.Name) {
			l.edge(b, "name", "name must be a CamelCase reason, not '%s' (must match '%v')",
				short(b.Risk.Name), camelCase)
		}
	}
}

func (l *linter) riskRules() {
	for _, b := range l.tree.Risks {
		if len(b.Risk.MatchingRules) == 0 {
			l.edge(b, "matchingRules", "matchingRules must be an array with at least one member")
		}
	}
}

func (l *linter) ruleTwice() {
	for _, b := range l.tree.Risks {
		seen := map[string]bool{}
		for i, r := range b.Risk.MatchingRules {
			if seen[r.Type] {
				l.edge(b, element("matchingRules", i),
					"type %s appears multiple times in matchingRules", short(r.Type))
			}
			seen[r.Type] = true
		}
	}
}

// riskDiverges compares each file with what most files of the same risk say. Of two
// values that are as frequent, the first one is right.
func (l *linter) riskDiverges() {
	files := map[string][]graphdata.BlockedEdge{}
	for _, b := range l.tree.Risks {
		files[b.Risk.Name] = append(files[b.Risk.Name], b)
	}
	for _, b := range l.tree.Risks {
		of := files[b.Risk.Name]
		delete(files, b.Risk.Name)
		for _, key := range []string{"url", "message", "matchingRules", "autoExtend"} {
			l.diverges(key, of)
		}
	}
}

// diverges reports the files whose value of a key is not the most frequent one.
func (l *linter) diverges(key string, files []graphdata.BlockedEdge) {
	counts := map[string]int{}
	for _, b := range files {
		counts[valueOf(b, key)]++
	}
	if len(counts) < 2 {
		return
	}
	usual := files[0]
	for _, b := range files {
		if counts[valueOf(b, key)] > counts[valueOf(usual, key)] {
			usual = b
		}
	}
	for _, b := range files {
		if valueOf(b, key) != valueOf(usual, key) {
			l.edge(b, key, "risk %s diverges on %s from %s", short(b.Risk.Name), key, usual.File)
		}
	}
}

// valueOf is the value of a key as text.
func valueOf(b graphdata.BlockedEdge, key string) string {
	switch key {
	case "url":
		return b.Risk.URL
	case "message":
		return b.Risk.Message
	case "autoExtend":
		return b.AutoExtend
	}
	if len(b.Risk.MatchingRules) == 0 {
		return "" // no list and an empty one are the same
	}
	return riskText(b.Risk.MatchingRules)
}

// fixedIn: a version of another minor ends nothing where the target's minor
// continues.
func (l *linter) fixedIn() {
	for _, b := range l.edges {
		to, errTo := graph.ParseVersion(b.To)
		fixed, err := graph.ParseVersion(b.FixedIn)
		if errTo != nil || err != nil {
			continue
		}
		switch {
		case openshift.MinorOf(to) != openshift.MinorOf(fixed):
			l.edge(b, "fixedIn", "%s is of another minor than %s", b.FixedIn, b.To)
		case !fixed.GreaterThan(to):
			l.edge(b, "fixedIn", "%s is not above %s", b.FixedIn, b.To)
		}
	}
}

func (l *linter) promQL() {
	if l.opts.PromQL == nil {
		return
	}
	faults := map[string]error{}
	for _, b := range l.tree.Risks {
		for i, r := range b.Risk.MatchingRules {
			if r.PromQL == nil {
				continue
			}
			err, known := faults[r.PromQL.PromQL]
			if !known {
				err = l.opts.PromQL(r.PromQL.PromQL)
				faults[r.PromQL.PromQL] = err
			}
			if err != nil {
				l.edge(b, element("matchingRules", i), "cannot be parsed: %s", short(err.Error()))
			}
		}
	}
}
