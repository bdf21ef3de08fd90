package preconditions

import (
	"context"
)

func cloudCredentialsCheck() Check {
	return documented{Rule{
		Name: "CloudCredentials", Scope: minorStep(), Severities: []Severity{Warning, Blocking},
		Source: "Preparing to update a cluster with manually maintained credentials", Link: docsPreparing,
	}, cloudCredentials}
}

func cloudCredentials(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
