package preflight

import (
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// Precheck turns what preconditions found into a precheck of
// [view.AssessRecommend]: one condition for each finding that is more than
// informative, named preconditions/ and the check, and one that is True for each
// check that passed. A check that could not decide has a condition that is Unknown;
// one that does not concern the update has none. The check's name is what accepts its
// conditions. A nil report has no conditions. It can be called concurrently.
func Precheck(report *preconditions.Report) view.Precheck {
	var p view.Precheck
	if report == nil {
		return p
	}
	for _, r := range report.Results {
		add := func(status, reason, message string) {
			p.Conditions = append(p.Conditions, view.PrecheckCondition{
				Condition:      view.Condition{Type: "preconditions/" + r.Check, Status: status, Reason: reason, Message: message},
				AcceptanceName: r.Check,
			})
		}
		switch r.State {
		case preconditions.NotApplicable:
		case preconditions.Passed:
			add("True", "AsExpected", "")
		case preconditions.Unknown:
			message := ""
			if r.Err != nil {
				message = r.Err.Error()
			}
			add("Unknown", "Unknown", message)
		default:
			for _, f := range r.Findings {
				if f.Severity > preconditions.Info {
					add("False", f.Reason, f.Message)
				}
			}
		}
	}
	return p
}
