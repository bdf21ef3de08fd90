package view

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

// writePreflights shows how far the checks of releases are, and what they found.
func writePreflights(w *text.Writer, all []clusterversion.Preflight) {
	for i := range all {
		p := &all[i]
		target := cmp.Or(p.Release.Version, p.Release.Image)
		fmt.Fprintf(w, "\nPreflight Check: %s\n  Target: %s\n", p.State, target)
		if p.Message != "" {
			fmt.Fprintf(w, "  Progress: %s\n", p.Message)
		}
		if p.State == clusterversion.PreflightCompleted && len(p.Findings) == 0 {
			w.Print("  Risks: none\n")
		}
		for j, name := range p.Risks() {
			message := strings.ReplaceAll(p.Findings[j].Message, "\n", "\n    ")
			fmt.Fprintf(w, "  Risk: %s\n    %s\n", name, message)
		}
	}
}

// preflightLine is what a status in one line says of preflights; empty if absent.
func preflightLine(all []clusterversion.Preflight) string {
	var parts []string
	for i := range all {
		p := &all[i]
		target := cmp.Or(p.Release.Version, p.Release.Image)
		part := fmt.Sprintf("preflight of %s %s", target, strings.ToLower(string(p.State)))
		if n := len(p.Findings); n == 1 {
			part += " with 1 risk"
		} else if n > 1 {
			part += fmt.Sprintf(" with %d risks", n)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}
