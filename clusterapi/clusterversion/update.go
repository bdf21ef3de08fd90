package clusterversion

import (
	"cmp"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/imageref"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// UpdateRequest asks for an update, as oc adm upgrade does: give one target. Each
// allowance waives one guard and none implies another. It is plain data.
type UpdateRequest struct {
	To          string // a version
	ToImage     string // a release image, by digest
	ToLatest    bool   // the highest version on offer
	ToMultiArch bool   // the same version for several architectures
	Clear       bool   // no update: takes a request back

	// AllowNotRecommended accepts the known issues of an update.
	AllowNotRecommended bool
	// AllowExplicitUpgrade accepts an image that the cluster has not been
	// offered.
	AllowExplicitUpgrade bool
	// AllowUpgradeWithWarnings requests an update although the cluster is
	// invalid, failing or updating.
	AllowUpgradeWithWarnings bool
	// Force waives what the cluster itself would check: signature and
	// preconditions.
	Force bool
}

func (r UpdateRequest) failed() string {
	if r.Clear {
		return "Unable to cancel current rollout"
	}
	return "Unable to upgrade"
}

func (r UpdateRequest) replaces() bool { return true }

// Edit implements [Request].
func (r UpdateRequest) Edit(cv *configv1.ClusterVersion) (Answer, error) {
	var out Answer
	if err := r.check(&out); err != nil {
		return out, err
	}
	if cv == nil {
		return out, noVersion("No", "OpenShift version 4")
	}
	var err *RefusedError
	switch {
	case r.Clear:
		r.clear(cv, &out)
	case r.ToMultiArch:
		err = r.multiArch(cv, &out)
	default:
		err = r.update(cv, &out)
	}
	if err != nil {
		out.ClusterVersion = nil
		return out, err
	}
	return out, nil
}

// check refuses options that do not go together, and malformed targets.
func (r UpdateRequest) check(out *Answer) error {
	usage := func(format string, args ...any) error { return refuse(RefusedUsage, "", format, args...) }
	target := r.To != "" || r.ToImage != "" || r.ToLatest
	switch {
	case r.Clear && (target || r.ToMultiArch):
		return usage("--clear may not be specified with any other flags")
	case r.ToMultiArch && target:
		return usage("--to-multi-arch may not be used with --to, --to-image, or --to-latest")
	case r.To != "" && r.ToImage != "":
		return usage("only one of --to or --to-image may be provided")
	case r.ToLatest && (r.To != "" || r.ToImage != ""):
		return usage("--to-latest may not be used with --to or --to-image")
	case !target && !r.ToMultiArch && !r.Clear:
		return usage("no update is requested: one of --to, --to-image, --to-latest, --to-multi-arch or --clear is needed")
	}
	if r.To != "" {
		if _, err := openshift.ParseVersion(r.To); err != nil {
			return usage("--to must be a semantic version (e.g. 4.0.1 or 4.1.0-nightly-20181104): %v", err)
		}
	}
	if r.ToImage == "" {
		return nil
	}
	const invalid = "--to-image must be a valid image pull spec: %v"
	image, err := imageref.Parse(r.ToImage)
	if err != nil {
		return usage(invalid, err)
	}
	if !strings.Contains(image.Name, "/") {
		// Without a path it is a registry, which has no tag, or nothing to pull from.
		if !strings.Contains(image.Name, ".") && !strings.HasPrefix(image.Name, "localhost") {
			return usage(invalid, "no registry or repository specified")
		}
		image.Tag, image.Digest = "", ""
	}
	switch {
	case image.Tag == "" && image.Digest == "":
		return usage(invalid, "no tag or digest specified")
	case image.Tag != "" && !r.Force:
		return refuse(RefusedByTag, "--force", "--to-image must be a by-digest pull spec, unless --force is also set, because release images that are not accessed via digest cannot be verified by the cluster.  Even when --force is set, using tags is not recommended, although we continue to allow it for backwards compatibility")
	case image.Tag != "":
		out.warnf("Using by-tag pull specs is dangerous, and while we still allow it in combination with --force for backward compatibility, it would be much safer to pass a by-digest pull spec instead")
	}
	return nil
}

// update requests a release.
func (r UpdateRequest) update(cv *configv1.ClusterVersion, out *Answer) *RefusedError {
	desired := cv.Status.Desired
	switch {
	case r.To != "" && r.To == desired.Version:
		out.printf("info: Cluster is already at version %s", desired.Version)
		return nil
	case r.ToImage != "" && r.ToImage == desired.Image:
		out.printf("info: Cluster is already at %s", desired.Image)
		return nil
	}
	target, err := r.choose(cv, out)
	if target == nil || err != nil {
		return err
	}
	if r.Force {
		out.Err += forceWarning
	}
	if err := r.guard(cv, out); err != nil {
		return err
	}
	r.request(cv, out, configv1.Update{Version: target.Version, Image: target.Image})
	if target.Version != "" {
		out.printf("Requested update to %s", target.Version)
	} else {
		out.printf("Requested update to release image %s", target.Image)
	}
	return nil
}

const forceWarning = "warning: --force overrides cluster verification of your supplied release image and waives any update precondition failures. Only use this if you are testing unsigned release images or you are working around a known bug in the cluster-version operator and you have verified the authenticity of the provided image yourself.\n"

// offer is a release that can be requested; known has its known issues, nil for
// none.
type offer struct {
	release configv1.Release
	known   *metav1.Condition
}

// choose finds the release that is meant. Without one and without an error there
// is nothing to do, and it has said so.
func (r UpdateRequest) choose(cv *configv1.ClusterVersion, out *Answer) (*configv1.Release, *RefusedError) {
	var candidates []offer
	for _, u := range cv.Status.AvailableUpdates {
		if r.matches(u, "available updates", out) {
			if r.ToImage != "" {
				u.Image = r.ToImage
			}
			return &u, nil
		}
		candidates = append(candidates, offer{release: u})
	}
	for _, u := range cv.Status.ConditionalUpdates {
		known := meta.FindStatusCondition(u.Conditions, "Recommended")
		if known == nil || known.Status == metav1.ConditionTrue {
			continue
		}
		o := offer{u.Release, known}
		switch {
		case !r.matches(u.Release, "available conditional updates", out):
			if r.AllowNotRecommended {
				candidates = append(candidates, o)
			}
		case !r.AllowNotRecommended:
			return nil, refuse(RefusedNotRecommended, "--allow-not-recommended",
				"the update %s is not one of the recommended updates, but is available as a conditional update. To accept the Recommended=%s risk and to proceed with update use --allow-not-recommended.\n  Reason: %s\n  Message: %s\n",
				u.Release.Version, known.Status, known.Reason, strings.ReplaceAll(known.Message, "\n", "\n  "))
		default:
			return o.accept(out), nil
		}
	}
	switch {
	case r.ToImage != "" && r.AllowExplicitUpgrade:
		out.warnf("The requested upgrade image is not one of the available updates. You have used --allow-explicit-upgrade for the update to proceed anyway")
		return &configv1.Release{Image: r.ToImage}, nil
	case r.ToLatest && len(candidates) > 0:
		latest := openshift.NewestFirst(candidates, func(o offer) string { return o.release.Version })[0]
		return latest.accept(out), nil
	}
	return nil, r.noTarget(cv, candidates, out)
}

// accept takes an offer, with its known issues.
func (o offer) accept(out *Answer) *configv1.Release {
	if o.known != nil {
		out.warnf("with --allow-not-recommended you have accepted the risks with %s and bypassed Recommended=%s %s: %s", o.release.Version, o.known.Status, o.known.Reason, o.known.Message)
	}
	return &o.release
}

// matches reports that a release is the one that is asked for by version or image.
func (r UpdateRequest) matches(u configv1.Release, list string, out *Answer) bool {
	switch {
	case r.To != "":
		return u.Version == r.To
	case r.ToImage == "":
		return false
	case u.Image == r.ToImage:
		return true
	}
	theirs, err := imageref.Parse(u.Image)
	if err != nil {
		out.warnf("unable to calculate match for the update target in %s: %v", list, err)
		return false
	}
	ours, _ := imageref.Parse(r.ToImage) // check has parsed it
	return ours.Digest != "" && ours.Digest == theirs.Digest
}

// noTarget explains why there is no release to request.
func (r UpdateRequest) noTarget(cv *configv1.ClusterVersion, candidates []offer, out *Answer) *RefusedError {
	flag, the := "--to-image", "the"
	if r.ToImage != "" {
		flag = "--allow-explicit-upgrade"
	}
	if r.ToLatest {
		the = "an"
	}
	next := fmt.Sprintf("specify %s to continue with %s update", flag, the)
	c := openshift.FindCondition(cv.Status.Conditions, configv1.RetrievedUpdates)
	switch {
	case c != nil && c.Status != configv1.ConditionTrue:
		return refuse(RefusedCannotRefresh, flag, "cannot refresh available updates:\n%s\n\n%s.", because(c), next)
	case len(candidates) == 0 && r.AllowNotRecommended:
		return refuse(RefusedUnavailable, flag, "no recommended or conditional updates, %s or wait for new updates to be available.", next)
	case len(candidates) == 0 && r.ToLatest:
		out.printf("info: Cluster is already at the latest available version %s", cv.Status.Desired.Version)
		return nil
	case len(candidates) == 0:
		return refuse(RefusedUnavailable, flag, "no recommended updates, %s or wait for new updates to be available.", next)
	}
	var targets []string
	for _, o := range openshift.NewestFirst(candidates, func(o offer) string { return o.release.Version }) {
		targets = append(targets, o.release.Version)
	}
	return refuse(RefusedUnavailable, flag, "the update is not one of the possible targets: %s. %s.", strings.Join(targets, ", "), next)
}

// guard refuses an update in a state of the cluster in which none is started.
func (r UpdateRequest) guard(cv *configv1.ClusterVersion, out *Answer) *RefusedError {
	text := strings.Join(guards(cv), "\n\n")
	switch {
	case text == "":
		return nil
	case r.AllowUpgradeWithWarnings:
		out.warnf("--allow-upgrade-with-warnings is bypassing: %s", text)
		return nil
	}
	return refuse(RefusedClusterState, "--allow-upgrade-with-warnings", "%s\n\nIf you want to upgrade anyway, use --allow-upgrade-with-warnings.", text)
}

// request replaces the desired update. Accepted risks stay, which are a request of
// their own: [AcceptRequest].
func (r UpdateRequest) request(cv *configv1.ClusterVersion, out *Answer, u configv1.Update) {
	out.ClusterVersion = cv.DeepCopy()
	u.Force, u.AcceptRisks = r.Force, AcceptedRisks(cv)
	SetDesired(out.ClusterVersion, u)
}

// multiArch requests the same version for several architectures.
func (r UpdateRequest) multiArch(cv *configv1.ClusterVersion, out *Answer) *RefusedError {
	if u := cv.Spec.DesiredUpdate; u != nil && u.Mode == "" && u.Architecture == configv1.ClusterVersionArchitectureMulti {
		return refuse(RefusedRequested, "", "info: Update to multi cluster architecture has already been requested")
	}
	if err := r.guard(cv, out); err != nil {
		return err
	}
	if r.Force {
		out.Err += forceWarning
	}
	r.request(cv, out, configv1.Update{Architecture: configv1.ClusterVersionArchitectureMulti, Version: cv.Status.Desired.Version})
	out.printf("Requested update to multi cluster architecture")
	return nil
}

// clear takes a request back, and leaves the risks that it accepts.
func (r UpdateRequest) clear(cv *configv1.ClusterVersion, out *Answer) {
	old := cv.Spec.DesiredUpdate
	if old == nil {
		out.printf("info: No update in progress")
		return
	}
	r.request(cv, out, configv1.Update{})
	desired := cv.Status.Desired
	same := old.Image == desired.Image
	if old.Image == "" || desired.Image == "" {
		same = old.Version != "" && old.Version == desired.Version
	}
	if old.Mode == configv1.UpdateModePreflight {
		out.printf("Cleared the preflight of %s", cmp.Or(old.Version, old.Image, "<unknown>"))
	} else if same {
		out.printf("Cleared the update field, still at %s", cmp.Or(desired.Version, desired.Image, "<unknown>"))
	} else {
		out.printf("Cancelled requested upgrade to %s", cmp.Or(old.Version, old.Image, "<unknown>"))
	}
}
