package plan

import (
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/machinehealth"
)

var (
	healthCheckKind       = machinev1beta1.GroupVersion.WithKind("MachineHealthCheck")
	pathHealthCheckPaused = []string{"metadata", "annotations", machinehealth.AnnotationPaused}
	pathHealthCheckFor    = []string{"metadata", "annotations", machinehealth.AnnotationPausedFor}
)

// lookAtHealthChecks pauses the MachineHealthChecks that would replace nodes which reboot,
// and resumes those that the plan has paused. A cluster without a Machine API has none.
func (x *pass) lookAtHealthChecks(i int, s *Step) (look, error) {
	l := look{writes: true, done: true}
	machines := clusterapi.ListOptions{Namespace: machinehealth.Namespace}
	checks, err := clusterapi.ListShared(x.ctx, x.r.api, healthCheckKind, machines)
	if clusterapi.IsAbsent(err) {
		return l, nil
	}
	if err != nil {
		return look{}, err
	}
	for _, o := range checks {
		c, err := clusterapi.As[machinev1beta1.MachineHealthCheck](o)
		if err != nil {
			return look{}, err
		}
		u, m, err := x.markedAt(healthCheckKind, clusterapi.Key(c.Namespace, c.Name))
		if err != nil {
			return look{}, err
		}
		noted, ours := m.Fields[pointer(pathHealthCheckPaused)]
		if u == nil || !ours && (!*s.Args.Paused || !machinehealth.ActsOnReady(c)) {
			continue
		}
		wanted := healthCheckFields(x.r.plan.ID)
		if !*s.Args.Paused {
			wanted = []field{{pathHealthCheckPaused, noted.Before}, {pathHealthCheckFor, nil}}
		}
		x.want(&l, i, u, m, wanted, true)
	}
	return l, nil
}

// healthCheckFields are the fields by which a plan pauses a MachineHealthCheck.
func healthCheckFields(plan string) []field {
	return []field{{pathHealthCheckPaused, ""}, {pathHealthCheckFor, machinehealth.ForPlan(plan)}}
}

// withHealthChecks adds the steps that pause the cluster's MachineHealthChecks before the
// first change of a plan, and resume them in the end.
func (b *builder) withHealthChecks(steps []Step) []Step {
	if len(b.c.HealthChecks) == 0 {
		return steps
	}
	begin := 0
	if len(steps) > 0 && steps[0].Kind == CheckAll {
		begin = 1
	}
	pause := Step{ID: "pause-health-checks", Kind: SetHealthChecksPaused, Args: Args{Paused: new(true)}}
	resume := Step{ID: "resume-health-checks", Kind: SetHealthChecksPaused, Args: Args{Paused: new(false)}}
	return append(slices.Insert(steps, begin, pause), resume)
}
