package clusterversion

import (
	"cmp"
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/apiserver"
)

// PreflightRequest asks what an update to a release would meet, without the update: the
// cluster verifies, loads and checks the release, and reports risks (see [Preflights]).
// Give one target. It is plain data.
type PreflightRequest struct {
	To      string // a version that the cluster is offered, recommended or not
	ToImage string // a release image, by digest
}

func (r PreflightRequest) failed() string { return "Unable to request the preflight" }
func (r PreflightRequest) replaces() bool { return true }

// Edit implements [Request]. An update that was requested and not started is taken
// back.
func (r PreflightRequest) Edit(cv *configv1.ClusterVersion) (Answer, error) {
	var out Answer
	if err := (UpdateRequest{To: r.To, ToImage: r.ToImage}).check(&out); err != nil {
		return out, err
	}
	if cv == nil {
		return out, noVersion("No", "OpenShift version 4")
	}
	old, desired := cv.Spec.DesiredUpdate, cv.Status.Desired
	u := configv1.Update{Version: r.To, Image: r.ToImage, Mode: configv1.UpdateModePreflight}
	u.AcceptRisks = AcceptedRisks(cv)
	name := cmp.Or(r.To, r.ToImage)
	if r.To == desired.Version && r.To != "" || r.ToImage == desired.Image && r.ToImage != "" {
		out.printf("info: Cluster is already at %s", name)
		return out, nil
	}
	if r.To != "" {
		switch n := matchingPayloads(cv, r.To, true); {
		case n == 0:
			const text = "the version %s is not among the updates that the cluster is offered: specify --to-image to check it"
			return out, refuse(RefusedUnavailable, "--to-image", text, r.To)
		case n > 1:
			const text = "there are several releases of the version %s: specify --to-image to choose one"
			return out, refuse(RefusedUnavailable, "--to-image", text, r.To)
		}
		u.Image = offered(cv, r.To)
	}
	if old != nil && old.Mode == u.Mode && old.Image == u.Image && old.Version == u.Version {
		out.printf("info: The preflight of %s is already requested", name)
		return out, nil
	}
	out.ClusterVersion = cv.DeepCopy()
	SetDesired(out.ClusterVersion, u)
	if asks := requestedUpdate(cv); asks != "" {
		out.warnf("the request of the update to %s, which has not begun, is taken back", asks)
	}
	out.printf("Requested preflight of %s", name)
	return out, nil
}

// offered is the image of the release that a version means.
func offered(cv *configv1.ClusterVersion, version string) string {
	for _, r := range cv.Status.AvailableUpdates {
		if r.Version == version && r.Image != "" {
			return r.Image
		}
	}
	if c := conditional(cv, version); c != nil && c.Release.Image != "" {
		return c.Release.Image
	}
	return historyImage(cv, version)
}

// requestedUpdate names the release of a request that is neither carried out nor under
// way; empty without one.
func requestedUpdate(cv *configv1.ClusterVersion) string {
	u := cv.Spec.DesiredUpdate
	if u == nil || u.Mode != "" || u.Image == "" && u.Version == "" {
		return ""
	}
	if u.Image != "" && u.Image == cv.Status.Desired.Image || u.Image == "" && u.Version == cv.Status.Desired.Version {
		return ""
	}
	return cmp.Or(u.Version, u.Image)
}

// ClearPreflight takes a preflight back: nothing of spec.desiredUpdate stays. It is plain
// data.
type ClearPreflight struct{}

func (ClearPreflight) failed() string { return "Unable to clear the preflight" }
func (ClearPreflight) replaces() bool { return true }

// Edit implements [Request].
func (ClearPreflight) Edit(cv *configv1.ClusterVersion) (Answer, error) {
	var out Answer
	if cv == nil {
		return out, noVersion("No", "OpenShift version 4")
	}
	u := cv.Spec.DesiredUpdate
	if u == nil || u.Mode != configv1.UpdateModePreflight {
		out.printf("info: No preflight is requested")
		return out, nil
	}
	out.ClusterVersion = cv.DeepCopy()
	SetDesired(out.ClusterVersion, configv1.Update{})
	out.printf("Cleared the preflight of %s", cmp.Or(u.Version, u.Image))
	return out, nil
}

var (
	definitionKind = schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
	}
	definitionKey = clusterapi.Key("", "clusterversions.config.openshift.io")
)

// refuseMode refuses a request with a mode if the cluster would drop the mode, since what
// is left would be an update. A cluster without a definition drops nothing. The error is a
// [*RefusedError] or one of reading the definition.
func refuseMode(ctx context.Context, api clusterapi.Reader, u *configv1.Update) error {
	if u == nil || u.Mode == "" {
		return nil
	}
	const unsupported = "the ClusterVersion of this cluster has no spec.desiredUpdate.mode, and a request without it " +
		"would begin the update: forecast.Update checks an update without a request"
	definition, err := clusterapi.GetShared(ctx, api, definitionKind, definitionKey)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("the definition of ClusterVersion: %w", err)
	case !definesMode(definition.Unstructured()):
		return refuse(RefusedMode, "", unsupported)
	}
	return nil
}

// definesMode reports whether a definition of ClusterVersion keeps spec.desiredUpdate.mode.
func definesMode(definition *unstructured.Unstructured) bool {
	tree := apiserver.Of(definition.Object, configv1.GroupVersion.Version)
	request := map[string]any{"spec": map[string]any{"desiredUpdate": map[string]any{"mode": string(configv1.UpdateModePreflight)}}}
	keeps := true
	apiserver.Prune(request, tree, func(string) { keeps = false })
	return keeps
}
