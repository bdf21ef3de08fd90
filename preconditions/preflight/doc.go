// Package preflight checks an update of a cluster before it starts: [Run] runs the checks
// of package preconditions on the step from what a cluster runs to a release.
//
//	report, err := preflight.Run(ctx, cluster, configv1.Release{Version: "4.22.0"}, preflight.Options{})
//	if err != nil {
//		return err
//	}
//	fmt.Println(report.Decide(preconditions.Policy{}).Summary)
//
// What is found can be used in three places. [Submit] carries out a request for an update
// only if the checks allow it. [Action] holds a step of a plan (package mcp/plan) until
// they do. [Precheck] lets them count in the recommendations of package view.
//
// All is safe for concurrent use.
package preflight
