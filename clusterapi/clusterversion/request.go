package clusterversion

import (
	"context"
	"errors"
	"slices"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

var key = clusterapi.Key("", "version")

// SetDesired makes u the request of cv. Nothing of an earlier request stays, so u
// names all that is wanted: accepted risks that still count are
// [AcceptedRisks]. Without a version, an image, an architecture and risks, u takes
// the request back. SetDesired keeps a copy of u.
func SetDesired(cv *configv1.ClusterVersion, u configv1.Update) {
	cv.Spec.DesiredUpdate = nil
	if len(u.AcceptRisks) == 0 {
		u.AcceptRisks = nil // the API refuses a list without elements
	}
	if u.Version != "" || u.Image != "" || u.Architecture != "" || u.AcceptRisks != nil {
		cv.Spec.DesiredUpdate = u.DeepCopy()
	}
}

// AcceptedRisks returns a copy of the risks that the request of cv accepts, nil
// without any.
func AcceptedRisks(cv *configv1.ClusterVersion) []configv1.AcceptRisk {
	if cv.Spec.DesiredUpdate == nil {
		return nil
	}
	return slices.Clone(cv.Spec.DesiredUpdate.AcceptRisks)
}

// Asks reports whether cv requests an update to a release: to its image or, if image
// is empty, to its version. A request that only checks the release, or that asks a
// cluster of one architecture to become one of several, does not.
func Asks(cv *configv1.ClusterVersion, version, image string) bool {
	u := cv.Spec.DesiredUpdate
	switch {
	case u == nil || u.Mode != "":
		return false
	case u.Architecture != "" && u.Architecture != cv.Status.Desired.Architecture:
		return false
	case image != "":
		return u.Image == image
	}
	return version != "" && u.Version == version
}

// Get reads the ClusterVersion of a cluster. A request that is not understood (see
// [NotUnderstood]) is left out, since it changes nothing. The result belongs to the
// caller. Errors are those of clusterapi.GetShared and clusterapi.As.
func Get(ctx context.Context, r clusterapi.Reader) (*configv1.ClusterVersion, error) {
	stored, err := clusterapi.GetShared(ctx, r, configv1.GroupVersion.WithKind("ClusterVersion"), key)
	if err != nil {
		return nil, err
	}
	cv, err := clusterapi.As[configv1.ClusterVersion](stored)
	if err != nil {
		return nil, err
	}
	cv = cv.DeepCopy()
	if len(NotUnderstood(stored.Unstructured())) > 0 {
		cv.Spec.DesiredUpdate = nil
	}
	return cv, nil
}

// Modify changes the ClusterVersion of a cluster as [clusterapi.Modify] does, and
// writes spec.desiredUpdate as a whole if f reports that it made a request: fields
// of an earlier request that this library does not know are then removed.
// Otherwise they stay. Errors are those of clusterapi.Modify and of f.
func Modify(ctx context.Context, api clusterapi.ReadWriter, o clusterapi.ModifyOptions, f func(cv *configv1.ClusterVersion) (requested bool, err error)) (*configv1.ClusterVersion, error) {
	if o.Status {
		return nil, errors.New("clusterversion: a request is not part of the status")
	}
	return clusterapi.ModifyWhole(ctx, api, key, o, func(cv *configv1.ClusterVersion) ([]string, error) {
		requested, err := f(cv)
		if err != nil || !requested {
			return nil, err
		}
		return []string{"spec.desiredUpdate"}, nil
	})
}
