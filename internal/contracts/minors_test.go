package contracts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// minorArithmetic is what counts minor versions of OpenShift.
var minorArithmetic = regexp.MustCompile(`[mM]inor(\(\))?(\+\+|--| ?[-+] ?[0-9]| ?% ?[23])|[mM]ajor(\(\))? [!=]= 4|\+ ?13\b`)

// countsMinors are the files that count otherwise, and why.
var countsMinors = map[string]string{
	"olm/clusterupdates.go":     "the name of the next release in an operator's message, as OLM writes it",
	"preconditions/operator.go": "the cluster-version operator lets 4.y go to 5.0 whatever y is",
}

// Package internal/openshift alone knows what follows a minor version of OpenShift, and
// what is in it.
func TestMinorsAreCountedOnce(t *testing.T) {
	found := map[string]bool{}
	for dir, p := range packages(t) {
		if dir == "internal/openshift" || filepath.Base(dir) == "definitions" { // which is generated
			continue
		}
		for _, parsed := range p.files {
			file := p.fset.Position(parsed.Package).Filename
			text := checktest.Get(os.ReadFile(filepath.Join(root, file)))(t)
			for line := range strings.Lines(string(text)) {
				if !minorArithmetic.MatchString(line) {
					continue
				}
				found[file] = true
				checktest.FailIf(t, countsMinors[file] == "",
					"%s counts minor versions: %s", file, strings.TrimSpace(line))
			}
		}
	}
	for file := range countsMinors {
		checktest.FailIf(t, !found[file], "%s does not count minor versions", file)
	}
}
