package forecast

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/text"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/preflight"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

// check runs the checks, and takes over what they find.
func (f *Forecast) check(
	ctx context.Context, r clusterapi.Reader, target configv1.Release, in preconditions.Input, o Options,
) error {
	run := o.Preflight
	run.Input = in
	if run.Checks == nil {
		run.Checks = rules.Default(rules.Options{})
	}
	if run.PlanTarget == nil && f.Next != f.To {
		run.PlanTarget, _ = semver.StrictNewVersion(f.To) // nil if it is not one
	}
	report, err := preflight.Run(ctx, r, target, run)
	if err != nil {
		return fmt.Errorf("forecast: %w", err)
	}
	decision := report.Decide(run.Policy)
	if decision.Err != nil {
		return fmt.Errorf("forecast: the policy of the checks: %w", decision.Err)
	}
	for _, kind := range decision.Assumed {
		f.Assumed = append(f.Assumed, "All objects of "+kind+" were recorded.")
	}
	rule := map[string]preconditions.Rule{}
	for _, c := range run.Checks {
		if described, ok := c.(preconditions.Described); ok {
			rule[c.Name()] = described.Rule()
		}
	}
	var repeated []Finding // what another check's finding says
	missing := sets.New[schema.GroupVersionKind]()
	for _, result := range decision.Results {
		repeated = append(repeated, f.take(result, rule[result.Check])...)
		if errors.Is(result.Err, clusterapi.ErrNotCollected) && result.State != preconditions.Bypassed {
			missing.Insert(rule[result.Check].Reads...)
		}
	}
	for _, found := range repeated {
		f.addSame(found)
	}
	f.collect(ctx, r, missing)
	return nil
}

// take takes over the result of a check. It returns those findings whose cause another check
// reports. A check that can block, and that a gap of the recording left undecided, blocks
// as far as is known.
func (f *Forecast) take(result preconditions.Result, rule preconditions.Rule) (repeated []Finding) {
	switch result.State {
	case preconditions.Passed:
		f.addCheck(result.State, result.Check)
	case preconditions.NotApplicable, preconditions.Bypassed:
		f.addCheck(result.State, result.Check)
		return nil
	}
	for i, found := range result.Findings {
		unknown := result.Err != nil && i == len(result.Findings)-1
		f.adviseChannel(&found)
		gap := unknown && errors.Is(result.Err, clusterapi.ErrNotCollected)
		if gap && slices.Contains(rule.Severities, preconditions.Blocking) {
			found.Severity = preconditions.Blocking
		}
		next := Finding{Part: partOf(result.Check), Check: result.Check, Unknown: unknown, Finding: found}
		if found.RepeatOf != "" || unknown {
			repeated = append(repeated, next)
			continue
		}
		f.Findings = append(f.Findings, next)
	}
	return repeated
}

// addSame adds a finding to the one with the same cause, or by itself if there is
// none.
func (f *Forecast) addSame(found Finding) {
	i := slices.IndexFunc(f.Findings, func(other Finding) bool {
		if found.Unknown {
			return other.Unknown && other.Reason == found.Reason && other.Message == found.Message &&
				other.Severity == found.Severity
		}
		return other.Check == found.RepeatOf && !other.Unknown && other.Severity >= preconditions.Blocking
	})
	if i < 0 {
		f.Findings = append(f.Findings, found)
		return
	}
	f.Findings[i].Same = append(f.Findings[i].Same, found)
}

// collect names the kinds that were not collected, as oc does.
func (f *Forecast) collect(ctx context.Context, r clusterapi.Reader, kinds sets.Set[schema.GroupVersionKind]) {
	for gvk := range kinds {
		_, err := clusterapi.ListShared(ctx, r, gvk, clusterapi.ListOptions{Limit: 1})
		if !errors.Is(err, clusterapi.ErrNotCollected) {
			continue
		}
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		f.Collect = append(f.Collect, resource.GroupResource().String())
	}
}

// gates are what the inclusion of manifests depends on.
type gates struct {
	featureSet string
	enabled    sets.Set[string]
}

// readGates reads them. Without the object they are the default ones.
func readGates(ctx context.Context, r clusterapi.Reader, cv *configv1.ClusterVersion, f *Forecast) gates {
	featureSet, enabled, err := manifest.ReadGates(ctx, r, f.Next, cv.Status.Desired.Version)
	if err != nil {
		f.Assumed = append(f.Assumed, "The feature set is Default, without further gates: "+err.Error()+".")
	}
	return gates{featureSet, enabled}
}

// credentials compares the CredentialsRequests of the releases for the cluster's platform.
func (f *Forecast) credentials(
	ctx context.Context, r clusterapi.Reader, cv *configv1.ClusterVersion, in preconditions.Input, g gates,
) {
	from, to := in.CurrentPayload, in.TargetPayload
	if from == nil || to == nil {
		return
	}
	infrastructure, err := clusterapi.Read[configv1.Infrastructure](ctx, r, clusterapi.Key("", "cluster"))
	if err != nil || infrastructure.Status.PlatformStatus == nil {
		return // the checks of credentials report it
	}
	platform := infrastructure.Status.PlatformStatus.Type
	filter := manifest.ClusterFilter(cv, g.enabled, from, to)
	before, errBefore := requestsOf(from, platform, filter)
	after, errAfter := requestsOf(to, platform, filter)
	if err := errors.Join(errBefore, errAfter); err != nil {
		f.addUnknown(partCredentials, "CredentialsRequests",
			preconditions.Finding{Severity: preconditions.Warning, Reason: reasonNotLoaded, Message: err.Error()})
	}
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is := before[name], after[name]
		change := Credential{Action: preview.Update, Namespace: names[name].Namespace, Name: names[name].Name}
		secret := names[name].Spec.SecretRef
		if secret.Name != "" {
			change.Secret = secret.Namespace + "/" + secret.Name
		}
		switch {
		case was == nil:
			change.Action = preview.Create
		case is == nil:
			change.Action = preview.Delete
		case reflect.DeepEqual(was.Spec, is.Spec):
			continue
		}
		f.Credentials = append(f.Credentials, change)
	}
}

// requestsOf are the CredentialsRequests of a release by namespace and name.
func requestsOf(
	p *manifest.Payload, platform configv1.PlatformType, filter manifest.Filter,
) (map[string]*manifest.CredentialsRequest, error) {
	all, err := p.CredentialsRequests(platform, filter)
	byName := make(map[string]*manifest.CredentialsRequest, len(all))
	for _, r := range all {
		byName[r.Namespace+"/"+r.Name] = r
	}
	return byName, err
}

// preview asks what the next update changes, as the version operator would apply it.
func (f *Forecast) preview(
	ctx context.Context, r clusterapi.Reader, cv *configv1.ClusterVersion, in preconditions.Input, g gates,
) error {
	target := in.TargetPayload
	if target == nil {
		return nil
	}
	p, err := preview.Run(ctx, target.Tasks(), preview.Options{
		Reader: r, Payload: target, Running: in.CurrentPayload, Mode: runlevel.ApplyMerge,
		Filter: manifest.ClusterFilter(cv, g.enabled, in.CurrentPayload, target),
		Owner:  &metav1.OwnerReference{Name: cv.Name, UID: cv.UID},
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		f.addUnknown(partChanges, "Preview",
			preconditions.Finding{Severity: preconditions.Warning, Reason: reasonNotPreviewed, Message: err.Error()})
		return nil
	}
	f.Changes, f.Counts = p, p.Summary()
	for _, arguments := range p.Unknowns {
		resource, _, _ := strings.Cut(arguments, " ")
		f.Collect = append(f.Collect, resource)
	}
	f.Assumed = append(f.Assumed, p.Assumed...)
	f.takeChanges(p)
	return nil
}

// takeChanges makes findings about objects that the API would refuse, fields that
// somebody else has set and loses, capabilities that come with the update, and unknowns.
func (f *Forecast) takeChanges(p *preview.Preview) {
	refused := preconditions.Finding{Severity: preconditions.Blocking, Reason: reasonRefused}
	overwritten := preconditions.Finding{Severity: preconditions.Warning, Reason: reasonOverwrites}
	behind := 0
	for i := range p.Changes {
		c := &p.Changes[i]
		if c.Action != preview.Fail && len(c.HeldBy) > 0 {
			behind++
		}
		at := preconditions.Object{GVK: c.Object.GroupVersionKind, Namespace: c.Object.Namespace, Name: c.Object.Name}
		if c.Action == preview.Fail {
			at.Note = c.Reason
			refused.Objects = append(refused.Objects, at)
		}
		for _, d := range c.Drift {
			at.FieldPath = d.Path
			overwritten.Objects = append(overwritten.Objects, at)
		}
	}
	if n := len(refused.Objects); n > 0 {
		refused.Message = fmt.Sprintf("the API server refuses %s of the release, which %d others stand behind",
			text.Plural(n, "object"), behind)
		refused.Remedy = "change or delete each object such that the release can be applied"
		f.add(partChanges, "Preview", refused)
	}
	if n := len(overwritten.Objects); n > 0 {
		overwritten.Message = "the update overwrites " + text.Plural(n, "field") + " that somebody else has set"
		overwritten.Remedy = "make sure that nothing depends on them"
		f.add(partChanges, "Preview", overwritten)
	}
	if len(p.Implicit) > 0 {
		implicit := preconditions.Finding{Severity: preconditions.Info, Reason: reasonImplicit}
		implicit.Message = "the update enables capabilities for good that the ClusterVersion does not ask for: " +
			strings.Join(p.Implicit, ", ")
		f.add(partChanges, "Preview", implicit)
	}
	if n := p.Count(preview.Unknown); n > 0 {
		unknown := preconditions.Finding{Severity: preconditions.Warning, Reason: reasonNotCollected}
		unknown.Message = text.Plural(n, "object") +
			" of the release were not collected: whether the update changes them is not known"
		f.addUnknown(partChanges, "Preview", unknown)
	}
}
