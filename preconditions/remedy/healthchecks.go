package remedy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/machinehealth"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

// annotationPausedFor marks a MachineHealthCheck that [HealthChecks] paused, and has the
// release image of the update. It goes when the check is resumed. One that a plan has
// paused belongs to the plan.
const annotationPausedFor = machinehealth.AnnotationPausedFor

// HealthChecks pauses the MachineHealthChecks that would replace nodes while these are
// updated: those that are not paused and look at the condition Ready. A check that
// somebody else has paused stays as it is. All that it knows is in the
// cluster. It is safe for concurrent use.
//
// It is a [clusterversion.Hook], which an Updater of package clusterupdate takes: it
// pauses before anything of an update is applied, also those that are made meanwhile, and
// resumes after the update, however that ends. [HealthChecks.Pause] and
// [HealthChecks.Resume] are for clusters that somebody else updates.
type HealthChecks struct {
	// ResumeAfterControlPlane resumes checks as soon as the cluster's version is
	// complete. Otherwise they stay paused until every machine config pool is
	// updated, so a pool that is paused for a canary keeps them paused.
	ResumeAfterControlPlane bool
}

// Name implements [clusterversion.Hook].
func (HealthChecks) Name() string { return "MachineHealthChecks" }

// BeforeApply implements [clusterversion.Hook]. An installation has nothing paused. Errors
// are those of Pause.
func (h HealthChecks) BeforeApply(ctx context.Context, r clusterversion.HookRequest) (clusterversion.HookWait, error) {
	if !clusterversion.EverCompleted(r.ClusterVersion) {
		return clusterversion.HookWait{}, nil
	}
	_, err := h.Pause(ctx, r.API, r.ClusterVersion.Status.History[0].Image)
	return clusterversion.HookWait{}, err
}

// AfterComplete implements [clusterversion.Hook]. Errors are those of Resume.
func (h HealthChecks) AfterComplete(ctx context.Context, r clusterversion.HookRequest) (clusterversion.HookWait, error) {
	still, waitsFor, err := h.Resume(ctx, r.API, r.ClusterVersion.Status.History[0].Image)
	if err != nil || len(still) == 0 {
		return clusterversion.HookWait{}, err
	}
	reason := fmt.Sprintf("%s stay paused until these are updated: %s", strings.Join(still, ", "), waitsFor)
	return clusterversion.HookWait{After: time.Minute, Reason: reason}, nil
}

// Pause pauses checks for an update to a release image, marks them, and returns the
// names of all that are paused for it, sorted. Those that were paused for another
// release are taken over, or resumed if they do not look at Ready any more. A cluster with
// a single node has none paused: nothing could replace it.
//
// Errors are those of reading nodes and MachineHealthChecks and of writing these; the
// others are paused all the same.
func (h HealthChecks) Pause(ctx context.Context, api clusterapi.ClusterAPI, image string) ([]string, error) {
	if image == "" {
		return nil, errors.New("pausing MachineHealthChecks: the image of the release is not known")
	}
	nodes, err := clusterapi.ReadAll[corev1.Node](ctx, api, clusterapi.ListOptions{})
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("pausing MachineHealthChecks: %w", err)
	}
	if len(nodes) == 1 {
		return nil, nil
	}
	return each(ctx, api, "pausing", func(c *machinev1beta1.MachineHealthCheck) bool {
		_, ours := c.Annotations[annotationPausedFor]
		switch {
		case ours && !machinehealth.LooksAtReady(c):
			resume(c)
			return false
		case ours && paused(c):
			annotate(c, annotationPausedFor, image) // it stays paused
			return true
		case machinehealth.ActsOnReady(c):
			annotate(c, machinehealth.AnnotationPaused, "")
			annotate(c, annotationPausedFor, image)
			return true
		}
		return false
	})
}

// Resume resumes the checks that were paused for an update which has ended, in
// whatever way: image is the release that the cluster is at, complete. Those that were
// paused for this release stay so while pools are on their way to it; those for
// another, which was given up, are resumed at once.
//
// It returns the sorted names of the checks that are still paused, and what they wait
// for, which is empty if nothing is left. Errors are those of reading pools and
// MachineHealthChecks and of writing these; they name the checks that stay paused.
func (h HealthChecks) Resume(ctx context.Context, api clusterapi.ClusterAPI, image string) (still []string, waitsFor string, err error) {
	if !h.ResumeAfterControlPlane {
		waitsFor, err = poolsBehind(ctx, api)
		if err != nil {
			return nil, "", fmt.Errorf("resuming MachineHealthChecks: %w", err)
		}
	}
	still, err = each(ctx, api, "resuming", func(c *machinev1beta1.MachineHealthCheck) bool {
		mark, ours := c.Annotations[annotationPausedFor]
		if !ours {
			return false
		}
		if mark == image && waitsFor != "" {
			return true
		}
		resume(c)
		return false
	})
	if len(still) == 0 {
		waitsFor = ""
	}
	return still, waitsFor, err
}

// each changes every check that change changes, each in one write, and returns the
// names of the checks that change reports as paused by us.
func each(ctx context.Context, api clusterapi.ClusterAPI, doing string, change func(*machinev1beta1.MachineHealthCheck) bool) ([]string, error) {
	checks, err := clusterapi.ReadAll[machinev1beta1.MachineHealthCheck](ctx, api, clusterapi.ListOptions{Namespace: machinehealth.Namespace})
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s MachineHealthChecks: %w", doing, err)
	}
	var ours, failed []string
	var errs []error
	for _, c := range checks {
		if machinehealth.HeldByPlan(c) {
			continue
		}
		held := false
		_, err := clusterapi.Modify(ctx, api, clusterapi.Key(c.Namespace, c.Name), clusterapi.ModifyOptions{}, func(c *machinev1beta1.MachineHealthCheck) error {
			held = change(c)
			return nil
		})
		switch {
		case apierrors.IsNotFound(err): // it was deleted meanwhile
		case err != nil:
			failed, errs = append(failed, c.Name), append(errs, err)
		case held:
			ours = append(ours, c.Name)
		}
		if ctx.Err() != nil {
			break
		}
	}
	slices.Sort(ours)
	if len(errs) > 0 {
		return ours, fmt.Errorf("%s MachineHealthChecks %s: %w", doing, strings.Join(failed, ", "), errors.Join(errs...))
	}
	return ours, nil
}

func paused(c *machinev1beta1.MachineHealthCheck) bool {
	_, ok := c.Annotations[machinehealth.AnnotationPaused]
	return ok
}

// resume removes our mark, and the pause unless somebody else has made it theirs by
// giving it a value.
func resume(c *machinev1beta1.MachineHealthCheck) {
	if value, ok := c.Annotations[machinehealth.AnnotationPaused]; ok && value == "" {
		delete(c.Annotations, machinehealth.AnnotationPaused)
	}
	delete(c.Annotations, annotationPausedFor)
}

// poolsBehind names the pools that are not updated. A cluster without machine config
// pools has none.
func poolsBehind(ctx context.Context, api clusterapi.Reader) (string, error) {
	pools, err := clusterapi.ReadAll[mcfgv1.MachineConfigPool](ctx, api, clusterapi.ListOptions{})
	if meta.IsNoMatchError(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var behind []string
	for _, p := range pools {
		switch {
		case facts.PoolCondition(p, mcfgv1.MachineConfigPoolUpdating).Status == corev1.ConditionTrue:
			behind = append(behind, p.Name+" (updating)")
		case facts.PoolCondition(p, mcfgv1.MachineConfigPoolUpdated).Status == corev1.ConditionTrue && !stale(p):
		case p.Spec.Paused:
			behind = append(behind, p.Name+" (paused)")
		default:
			behind = append(behind, p.Name+" (not updated)")
		}
	}
	if len(behind) == 0 {
		return "", nil
	}
	slices.Sort(behind)
	return "machine config pools " + strings.Join(behind, ", "), nil
}

// stale reports whether the status of a pool is from before it got its configuration.
func stale(p *mcfgv1.MachineConfigPool) bool {
	seen := p.Status.ObservedGeneration
	return seen != 0 && seen < p.Generation || p.Spec.Configuration.Name != p.Status.Configuration.Name
}
