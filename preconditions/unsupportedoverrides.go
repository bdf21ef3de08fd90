package preconditions

import (
	"context"
)

func unsupportedOverridesCheck() Check {
	return documented{Rule{
		Name: "UnsupportedOverrides", Severities: []Severity{Warning, Blocking},
		Source: "Performing a cluster update", Link: docsPerforming,
	}, unsupportedOverrides}
}

func unsupportedOverrides(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
