package clusterversion

import (
	"context"
	"errors"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// WriteStatus writes what the cluster accepts of a status, on condition that nobody wrote
// since cv was read. It returns the object as stored, which is cv if nothing differs.
// accepts keeps what the cluster accepts from call to call. Errors are those from reading
// the definition and from the write, and one from a server that refuses the newest entry of
// the history if the definition does not accept it: nothing may be applied that is not on
// record.
func WriteStatus(
	ctx context.Context, api clusterapi.ClusterAPI, accepts *clusterapi.Definitions,
	cv *configv1.ClusterVersion, status configv1.ClusterVersionStatus,
) (*configv1.ClusterVersion, error) {
	if equality.Semantic.DeepEqual(cv.Status, status) {
		return cv, nil
	}
	fitting, err := fitStatus(ctx, api, accepts, cv, status)
	if err != nil || equality.Semantic.DeepEqual(cv.Status, fitting) {
		return cv, err
	}
	read := cv.ResourceVersion
	return clusterapi.Modify(ctx, api, key,
		clusterapi.ModifyOptions{Status: true, Once: true, FieldManager: clusterapi.ManagerStatus, Definitions: accepts},
		func(live *configv1.ClusterVersion) (err error) {
			if live.UID != cv.UID {
				return errors.New("cluster version was deleted and recreated, cannot update status")
			}
			if live.ResourceVersion != read {
				changed := errors.New("it was changed since it was read")
				return apierrors.NewConflict(configv1.Resource("clusterversions"), cv.Name, changed)
			}
			live.Status, err = fitStatus(ctx, api, accepts, cv, status)
			return err
		})
}

// fitStatus returns what the cluster accepts of a status of cv. An update that cannot
// be shown with all its risks is not available either.
func fitStatus(
	ctx context.Context, api clusterapi.Reader, accepts *clusterapi.Definitions,
	cv *configv1.ClusterVersion, status configv1.ClusterVersionStatus,
) (configv1.ClusterVersionStatus, error) {
	fitting := &configv1.ClusterVersion{Status: status}
	known, err := accepts.FitStatus(ctx, api, fitting)
	if err != nil {
		return status, err
	}
	if !known { // all that is sure to be accepted is what is there
		status.Capabilities = limitCapabilities(status.Capabilities, cv.Status.Capabilities)
		return status, nil
	}
	s := fitting.Status
	if n := len(s.History); n > 0 && n < len(status.History) { // shorter by its least entries
		status.History = pruneHistory(slices.Clone(status.History), n)
		fitting = &configv1.ClusterVersion{Status: status}
		if _, err := accepts.FitStatus(ctx, api, fitting); err != nil {
			return status, err
		}
		s = fitting.Status
	}
	if len(status.History) > 0 {
		newest := configv1.Release{Version: status.History[0].Version, Image: status.History[0].Image}
		if len(s.History) == 0 || !SameRelease(&s.History[0], newest) {
			at := field.NewPath("status", "history").Index(0)
			const why = "the definition does not accept the entry, and nothing is applied that is not on record"
			return status, apierrors.NewInvalid(configv1.GroupVersion.WithKind("ClusterVersion").GroupKind(), cv.Name,
				field.ErrorList{field.Invalid(at, newest.Image, why)})
		}
	}
	asked := make(map[string]*configv1.ConditionalUpdate, len(status.ConditionalUpdates))
	for i := range status.ConditionalUpdates {
		asked[status.ConditionalUpdates[i].Release.Image] = &status.ConditionalUpdates[i]
	}
	s.ConditionalUpdates = slices.DeleteFunc(s.ConditionalUpdates, func(c configv1.ConditionalUpdate) bool {
		of := asked[c.Release.Image]
		return of == nil || !slices.EqualFunc(c.Risks, of.Risks, sameRisk)
	})
	s.ConditionalUpdateRisks = slices.DeleteFunc(s.ConditionalUpdateRisks, func(risk configv1.ConditionalUpdateRisk) bool {
		isRisk := func(of configv1.ConditionalUpdateRisk) bool { return sameRisk(risk, of) }
		return !slices.ContainsFunc(status.ConditionalUpdateRisks, isRisk)
	})
	for i := range s.ConditionalUpdates {
		c := &s.ConditionalUpdates[i]
		if len(c.RiskNames) != len(asked[c.Release.Image].RiskNames) {
			c.RiskNames = nil
		}
		delete(asked, c.Release.Image)
	}
	if slices.ContainsFunc(status.ConditionalUpdates, func(c configv1.ConditionalUpdate) bool {
		return asked[c.Release.Image] != nil && slices.ContainsFunc(c.Risks, isPreflight)
	}) { // an update stays available whether or not what a preflight found can be shown
		status = *status.DeepCopy()
		RemovePreflights(&status)
		return fitStatus(ctx, api, accepts, cv, status)
	}
	isLeft := func(r configv1.Release) bool { return asked[r.Image] != nil }
	s.AvailableUpdates = slices.DeleteFunc(s.AvailableUpdates, isLeft)
	return s, nil
}

// sameRisk reports whether two risks are of the same clusters.
func sameRisk(a, b configv1.ConditionalUpdateRisk) bool {
	return a.Name == b.Name && equality.Semantic.DeepEqual(a.MatchingRules, b.MatchingRules)
}

// limitCapabilities returns those of c that stored has.
func limitCapabilities(c, stored configv1.ClusterVersionCapabilitiesStatus) configv1.ClusterVersionCapabilitiesStatus {
	has := sets.New(slices.Concat(stored.KnownCapabilities, stored.EnabledCapabilities)...)
	lacks := func(name configv1.ClusterVersionCapability) bool { return !has.Has(name) }
	return configv1.ClusterVersionCapabilitiesStatus{
		EnabledCapabilities: slices.DeleteFunc(slices.Clone(c.EnabledCapabilities), lacks),
		KnownCapabilities:   slices.DeleteFunc(slices.Clone(c.KnownCapabilities), lacks),
	}
}
