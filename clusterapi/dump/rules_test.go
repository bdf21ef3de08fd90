package dump_test

import (
	_ "embed"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
)

// rulesFile has a case for each rule: a line "=== name", lines "whole" and "skip"
// with the names of Options, a tree as [files] reads it, and behind lines
// "=> answers" and "=> problems" what a recording of it says.
//
//go:embed testdata/rules.txt
var rulesFile string

// TestRules opens small trees and asks.
func TestRules(t *testing.T) {
	for _, text := range strings.Split("\n"+rulesFile, "\n=== ")[1:] {
		name, text, _ := strings.Cut(text, "\n")
		text, problems, _ := strings.Cut(text, "\n=> problems\n")
		text, answers, _ := strings.Cut(text, "\n=> answers\n")
		t.Run(name, func(t *testing.T) {
			var o dump.Options
			options, tree, _ := strings.Cut("\n"+text, "\n-- ")
			for line := range strings.Lines(options) {
				switch words := strings.Fields(line); {
				case len(words) > 0 && words[0] == "whole":
					o.Whole = resources(words[1:]...)
				case len(words) > 0 && words[0] == "skip":
					for _, kind := range words[1:] {
						o.Skip = append(o.Skip, schema.GroupKind{Kind: kind})
					}
				}
			}
			recorded := files("-- " + tree)
			r := mustOpen(t, recorded, o)
			check(t, r, answers)
			checkProblems(t, r, problems)
			same(t, recorded, o, r, answers)
		})
	}
}
