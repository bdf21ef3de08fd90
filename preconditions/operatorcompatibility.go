package preconditions

import (
	"context"
)

func operatorCompatibilityCheck() Check {
	return documented{Rule{
		Name: "OperatorCompatibility", Scope: minorStep(), Severities: []Severity{Warning, Blocking},
		Source: "Performing a cluster update", Link: docsPerforming,
	}, operatorCompatibility}
}

func operatorCompatibility(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
