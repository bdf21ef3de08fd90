package preconditions

import (
	"context"
)

func kernelModulesCheck() Check {
	return documented{Rule{
		Name: "KernelModules", Severities: []Severity{Warning, Blocking},
		Source: "Preflight validation for Kernel Module Management (KMM) Modules", Link: docsPreparing,
		Needs: []string{"TargetKernel"},
	}, kernelModules}
}

func kernelModules(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
