package preconditions

import (
	"context"
)

func credentialsRequestsCheck() Check {
	return documented{Rule{
		Name: "CredentialsRequests", Scope: minorStep(), Severities: []Severity{Warning, Blocking},
		Source: "Preparing to update a cluster with manually maintained credentials", Link: docsPreparing,
		Needs: []string{"TargetPayload", "CurrentPayload"},
	}, credentialsRequests}
}

func credentialsRequests(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
