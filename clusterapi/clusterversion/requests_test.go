package clusterversion_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/cvtest"
)

func noUpdates(cv *configv1.ClusterVersion) { cv.Status.AvailableUpdates = nil }

func onlyRisky(cv *configv1.ClusterVersion) {
	cv.Status.AvailableUpdates, cv.Status.ConditionalUpdates = nil, cv.Status.ConditionalUpdates[:1]
}

// requestTest is a request with what becomes of it.
type requestTest struct {
	name    string
	request clusterversion.Request
	cv      *configv1.ClusterVersion // nil: cvtest.Requestable()
	want    *configv1.Update         // what is desired then; nil: nothing is changed
	cleared bool                     // nothing is desired then
	out     string
	warn    string
	err     string
	reason  string
	waiver  string
}

func (tt *requestTest) run(t *testing.T) {
	t.Helper()
	cv := tt.cv
	if cv == nil {
		cv = cvtest.Requestable()
	}
	before := cv.DeepCopy()
	got, err := tt.request.Edit(cv)
	if diff := cmp.Diff(before, cv); diff != "" {
		t.Errorf("the argument was changed: %s", diff)
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	checktest.SameIn(t, "out, err, error", []string{tt.out, tt.warn, tt.err}, []string{got.Out, got.Err, text})
	if refused := new(clusterversion.RefusedError); err != nil && (!errors.As(err, &refused) || refused.Reason != tt.reason || refused.Waiver != tt.waiver) {
		t.Errorf("refused as %+v, want %s %s", refused, tt.reason, tt.waiver)
	}
	if (tt.want != nil || tt.cleared) != (got.ClusterVersion != nil) {
		t.Fatalf("changes to %+v", got.ClusterVersion)
	}
	if got.ClusterVersion == nil {
		return
	}
	checktest.Same(t, tt.want, got.ClusterVersion.Spec.DesiredUpdate)
	before.Spec.DesiredUpdate = got.ClusterVersion.Spec.DesiredUpdate
	if diff := cmp.Diff(before, got.ClusterVersion); diff != "" {
		t.Errorf("something else was changed: %s", diff)
	}
}

const (
	forced   = "warning: --force overrides cluster verification of your supplied release image and waives any update precondition failures. Only use this if you are testing unsigned release images or you are working around a known bug in the cluster-version operator and you have verified the authenticity of the provided image yourself.\n"
	taggedOK = "warning: Using by-tag pull specs is dangerous, and while we still allow it in combination with --force for backward compatibility, it would be much safer to pass a by-digest pull spec instead\n"
	tagged   = "--to-image must be a by-digest pull spec, unless --force is also set, because release images that are not accessed via digest cannot be verified by the cluster.  Even when --force is set, using tags is not recommended, although we continue to allow it for backwards compatibility"
	invalid  = "the cluster version object is invalid, you must correct the invalid state first:\n\n  Reason: R\n  Message: M\n  more"
	failing  = "the cluster is experiencing an error reconciling \"4.20.3\":\n\n  Reason: R\n  Message: M\n  more"
	updating = "the cluster is already upgrading:\n\n  Reason: R\n  Message: M\n  more"
	anyway   = "\n\nIf you want to upgrade anyway, use --allow-upgrade-with-warnings."
)

func TestUpdateRequest(t *testing.T) {
	type req = clusterversion.UpdateRequest
	to := func(version string, n int) *configv1.Update {
		return &configv1.Update{Version: version, Image: cvtest.ImageOf(cvtest.Repository, n)}
	}
	usage := func(name string, r req, text string) requestTest {
		return requestTest{name: name, request: r, err: text, reason: clusterversion.RefusedUsage}
	}
	unavailable := func(name string, r req, cv *configv1.ClusterVersion, text, flag string) requestTest {
		return requestTest{name: name, request: r, cv: cv, err: text, reason: clusterversion.RefusedUnavailable, waiver: flag}
	}
	const badImage = "--to-image must be a valid image pull spec: "
	const bypassed = "warning: with --allow-not-recommended you have accepted the risks with 4.21.1 and bypassed Recommended=False Slow: one\ntwo\n"
	const notRecommended = "the update 4.21.1 is not one of the recommended updates, but is available as a conditional update. To accept the Recommended=False risk and to proceed with update use --allow-not-recommended.\n  Reason: Slow\n  Message: one\n  two\n"
	const cannotRefresh = "cannot refresh available updates:\n  Reason: R\n  Message: M\n  more\n\nspecify "
	mirror := cvtest.ImageOf("mirror.example/a/b", 4)
	for _, tt := range []requestTest{
		// Options.
		usage("clear with another", req{Clear: true, To: "4.20.4"}, "--clear may not be specified with any other flags"),
		usage("clear with multi", req{Clear: true, ToMultiArch: true}, "--clear may not be specified with any other flags"),
		usage("multi with another", req{ToMultiArch: true, ToLatest: true}, "--to-multi-arch may not be used with --to, --to-image, or --to-latest"),
		usage("version and image", req{To: "4.20.4", ToImage: mirror}, "only one of --to or --to-image may be provided"),
		usage("latest and version", req{To: "4.20.4", ToLatest: true}, "--to-latest may not be used with --to or --to-image"),
		usage("latest and image", req{ToImage: mirror, ToLatest: true}, "--to-latest may not be used with --to or --to-image"),
		usage("no target", req{Force: true}, "no update is requested: one of --to, --to-image, --to-latest, --to-multi-arch or --clear is needed"),
		usage("v", req{To: "v4.20.4"}, "--to must be a semantic version (e.g. 4.0.1 or 4.1.0-nightly-20181104): invalid characters in version"),
		usage("two numbers", req{To: "4.20"}, "--to must be a semantic version (e.g. 4.0.1 or 4.1.0-nightly-20181104): invalid semantic version"),
		usage("image with blanks", req{ToImage: "a b"}, badImage+"invalid reference format"),
		usage("image in upper case", req{ToImage: "registry.example/A@" + mirror[19:]}, badImage+"repository name must be lowercase"),
		usage("bare name", req{ToImage: "name:tag"}, badImage+"no registry or repository specified"),
		usage("bare name with digest", req{ToImage: "name" + mirror[18:]}, badImage+"no registry or repository specified"),
		usage("version as image", req{ToImage: "4.0.1"}, badImage+"no tag or digest specified"),
		usage("registry with port", req{ToImage: "host.io:5000"}, badImage+"no tag or digest specified"),
		usage("localhost", req{ToImage: "localhost:tag", Force: true}, badImage+"no tag or digest specified"),
		usage("repository alone", req{ToImage: "registry.example/a/b"}, badImage+"no tag or digest specified"),
		{name: "by tag", request: req{ToImage: "registry.example/a:b"}, err: tagged, reason: clusterversion.RefusedByTag, waiver: "--force"},
		{name: "by tag and digest", request: req{ToImage: "registry.example/a:b" + mirror[18:]}, err: tagged, reason: clusterversion.RefusedByTag, waiver: "--force"},
		{name: "by tag, forced", request: req{ToImage: "registry.example/a:b", Force: true, AllowExplicitUpgrade: true}, want: &configv1.Update{Image: "registry.example/a:b", Force: true},
			out:  "Requested update to release image registry.example/a:b\n",
			warn: taggedOK + "warning: The requested upgrade image is not one of the available updates. You have used --allow-explicit-upgrade for the update to proceed anyway\n" + forced},

		// The target.
		{name: "same version", request: req{To: "4.20.3"}, out: "info: Cluster is already at version 4.20.3\n"},
		{name: "same image", request: req{ToImage: cvtest.ImageOf(cvtest.Repository, 3)}, out: "info: Cluster is already at " + cvtest.ImageOf(cvtest.Repository, 3) + "\n"},
		{name: "same version wins over the guard", request: req{To: "4.20.3"}, cv: cvtest.Requestable(cvtest.WithCondition("Failing", "True")), out: "info: Cluster is already at version 4.20.3\n"},
		{name: "recommended", request: req{To: "4.20.4"}, want: to("4.20.4", 4), out: "Requested update to 4.20.4\n"},
		{name: "by image", request: req{ToImage: cvtest.ImageOf(cvtest.Repository, 10)}, want: to("4.20.10", 10), out: "Requested update to 4.20.10\n"},
		{name: "by digest elsewhere", request: req{ToImage: mirror}, want: &configv1.Update{Version: "4.20.4", Image: mirror}, out: "Requested update to 4.20.4\n"},
		{name: "first match", request: req{To: "4.20.4"}, cv: cvtest.Requestable(func(cv *configv1.ClusterVersion) {
			cv.Status.AvailableUpdates = append(cv.Status.AvailableUpdates, configv1.Release{Version: "4.20.4", Image: cvtest.ImageOf(cvtest.Repository, 44)})
		}), want: to("4.20.4", 4), out: "Requested update to 4.20.4\n"},
		{name: "an image that does not parse", request: req{ToImage: cvtest.ImageOf(cvtest.Repository, 10)}, cv: cvtest.Requestable(func(cv *configv1.ClusterVersion) {
			cv.Status.AvailableUpdates[0].Image = "a b"
		}), want: to("4.20.10", 10), out: "Requested update to 4.20.10\n", warn: "warning: unable to calculate match for the update target in available updates: invalid reference format\n"},
		{name: "a conditional image that does not parse", request: req{ToImage: cvtest.ImageOf(cvtest.Repository, 20), AllowNotRecommended: true}, cv: cvtest.Requestable(func(cv *configv1.ClusterVersion) {
			cv.Status.ConditionalUpdates[0].Release.Image = "A"
		}), want: to("4.21.0", 20), out: "Requested update to 4.21.0\n",
			warn: "warning: unable to calculate match for the update target in available conditional updates: repository name must be lowercase\nwarning: with --allow-not-recommended you have accepted the risks with 4.21.0 and bypassed Recommended=Unknown Slow: one\ntwo\n"},
		{name: "not recommended", request: req{To: "4.21.1"}, err: notRecommended, reason: clusterversion.RefusedNotRecommended, waiver: "--allow-not-recommended"},
		{name: "not recommended, other allowances", request: req{To: "4.21.1", Force: true, AllowUpgradeWithWarnings: true, AllowExplicitUpgrade: true}, err: notRecommended, reason: clusterversion.RefusedNotRecommended, waiver: "--allow-not-recommended"},
		{name: "accepted", request: req{To: "4.21.1", AllowNotRecommended: true}, want: to("4.21.1", 21), out: "Requested update to 4.21.1\n", warn: bypassed},
		{name: "accepted by digest elsewhere", request: req{ToImage: cvtest.ImageOf("mirror.example/a", 21), AllowNotRecommended: true}, want: to("4.21.1", 21), out: "Requested update to 4.21.1\n", warn: bypassed},
		unavailable("a conditional update that is recommended", req{To: "4.21.2", AllowNotRecommended: true}, nil,
			"the update is not one of the possible targets: 4.21.1, 4.21.0, 4.20.10, 4.20.4. specify --to-image to continue with the update.", "--to-image"),
		unavailable("a conditional update that was not judged", req{To: "4.21.3"}, nil,
			"the update is not one of the possible targets: 4.20.10, 4.20.4. specify --to-image to continue with the update.", "--to-image"),
		unavailable("an unknown image", req{ToImage: cvtest.ImageOf(cvtest.Repository, 99)}, nil,
			"the update is not one of the possible targets: 4.20.10, 4.20.4. specify --allow-explicit-upgrade to continue with the update.", "--allow-explicit-upgrade"),
		{name: "an unknown image, explicitly", request: req{ToImage: cvtest.ImageOf(cvtest.Repository, 99), AllowExplicitUpgrade: true}, want: &configv1.Update{Image: cvtest.ImageOf(cvtest.Repository, 99)},
			out: "Requested update to release image " + cvtest.ImageOf(cvtest.Repository, 99) + "\n", warn: "warning: The requested upgrade image is not one of the available updates. You have used --allow-explicit-upgrade for the update to proceed anyway\n"},
		unavailable("an unknown version, explicitly", req{To: "4.22.0", AllowExplicitUpgrade: true}, nil,
			"the update is not one of the possible targets: 4.20.10, 4.20.4. specify --to-image to continue with the update.", "--to-image"),
		unavailable("no updates", req{To: "4.20.4"}, cvtest.Requestable(cvtest.WithoutUpdates),
			"no recommended updates, specify --to-image to continue with the update or wait for new updates to be available.", "--to-image"),
		unavailable("no updates at all", req{To: "4.20.4", AllowNotRecommended: true}, cvtest.Requestable(cvtest.WithoutUpdates),
			"no recommended or conditional updates, specify --to-image to continue with the update or wait for new updates to be available.", "--to-image"),
		{name: "not retrieved", request: req{To: "4.22.0"}, cv: cvtest.Requestable(cvtest.WithCondition("RetrievedUpdates", "False")), err: cannotRefresh + "--to-image to continue with the update.",
			reason: clusterversion.RefusedCannotRefresh, waiver: "--to-image"},
		{name: "not known whether retrieved", request: req{ToLatest: true}, cv: cvtest.Requestable(cvtest.WithoutUpdates, cvtest.WithCondition("RetrievedUpdates", "Unknown")), err: cannotRefresh + "--to-image to continue with an update.",
			reason: clusterversion.RefusedCannotRefresh, waiver: "--to-image"},

		// The latest.
		{name: "latest", request: req{ToLatest: true}, want: to("4.20.10", 10), out: "Requested update to 4.20.10\n"},
		{name: "latest with known issues", request: req{ToLatest: true, AllowNotRecommended: true}, want: to("4.21.1", 21), out: "Requested update to 4.21.1\n", warn: bypassed},
		{name: "latest, though not retrieved", request: req{ToLatest: true}, cv: cvtest.Requestable(cvtest.WithCondition("RetrievedUpdates", "False")), want: to("4.20.10", 10), out: "Requested update to 4.20.10\n"},
		{name: "latest already", request: req{ToLatest: true}, cv: cvtest.Requestable(onlyRisky), out: "info: Cluster is already at the latest available version 4.20.3\n"},
		unavailable("latest of nothing", req{ToLatest: true, AllowNotRecommended: true}, cvtest.Requestable(cvtest.WithoutUpdates),
			"no recommended or conditional updates, specify --to-image to continue with an update or wait for new updates to be available.", "--to-image"),

		// The guard.
		{name: "failing", request: req{To: "4.20.4"}, cv: cvtest.Requestable(cvtest.WithCondition("Failing", "True")), err: failing + anyway, reason: clusterversion.RefusedClusterState, waiver: "--allow-upgrade-with-warnings"},
		{name: "all of them, forced", request: req{To: "4.20.4", Force: true}, cv: cvtest.Requestable(cvtest.WithCondition("Progressing", "True"), cvtest.WithCondition("Failing", "True"), cvtest.WithCondition("Invalid", "True")),
			err: invalid + "\n\n" + failing + "\n\n" + updating + anyway, warn: forced, reason: clusterversion.RefusedClusterState, waiver: "--allow-upgrade-with-warnings"},
		{name: "bypassed", request: req{To: "4.20.4", Force: true, AllowUpgradeWithWarnings: true}, cv: cvtest.Requestable(cvtest.WithCondition("Progressing", "True"), cvtest.WithCondition("Invalid", "True")),
			want: &configv1.Update{Version: "4.20.4", Image: cvtest.ImageOf(cvtest.Repository, 4), Force: true}, out: "Requested update to 4.20.4\n",
			warn: forced + "warning: --allow-upgrade-with-warnings is bypassing: " + invalid + "\n\n" + updating + "\n"},
		{name: "unknown is not true", request: req{To: "4.20.4"}, cv: cvtest.Requestable(cvtest.WithCondition("Failing", "Unknown")), want: to("4.20.4", 4), out: "Requested update to 4.20.4\n"},
		{name: "guards of the cluster itself", request: req{To: "4.20.4"}, cv: cvtest.Requestable(cvtest.WithCondition("Upgradeable", "False"), cvtest.WithCondition("ReleaseAccepted", "False")), want: to("4.20.4", 4), out: "Requested update to 4.20.4\n"},
		{name: "failing without a version", request: req{To: "4.20.4"}, cv: cvtest.Requestable(cvtest.WithCondition("Failing", "True"), func(cv *configv1.ClusterVersion) { cv.Status.Desired = configv1.Release{} }),
			err: strings.ReplaceAll(failing, `"4.20.3"`, `"ClusterVersion status.desired has neither a version nor image; please open a bug"`) + anyway, reason: clusterversion.RefusedClusterState, waiver: "--allow-upgrade-with-warnings"},
		{name: "failing with an image", request: req{To: "4.20.4"}, cv: cvtest.Requestable(cvtest.WithCondition("Failing", "True"), func(cv *configv1.ClusterVersion) { cv.Status.Desired.Version = "" }),
			err: strings.ReplaceAll(failing, "4.20.3", cvtest.ImageOf(cvtest.Repository, 3)) + anyway, reason: clusterversion.RefusedClusterState, waiver: "--allow-upgrade-with-warnings"},

		// What was desired before.
		{name: "accepted risks stay", request: req{To: "4.20.4"}, cv: cvtest.Requestable(cvtest.Desired(configv1.Update{Architecture: "Multi", Version: "4.20.3", Force: true, AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}})),
			want: &configv1.Update{Version: "4.20.4", Image: cvtest.ImageOf(cvtest.Repository, 4), AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}}, out: "Requested update to 4.20.4\n"},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestMultiArchRequest(t *testing.T) {
	type req = clusterversion.UpdateRequest
	for _, tt := range []requestTest{
		{name: "requested", request: req{ToMultiArch: true}, want: &configv1.Update{Architecture: "Multi", Version: "4.20.3"}, out: "Requested update to multi cluster architecture\n"},
		{name: "whatever the updates", request: req{ToMultiArch: true}, cv: cvtest.Requestable(cvtest.WithoutUpdates, cvtest.WithCondition("RetrievedUpdates", "False")), want: &configv1.Update{Architecture: "Multi", Version: "4.20.3"}, out: "Requested update to multi cluster architecture\n"},
		{name: "image goes, risks stay", request: req{ToMultiArch: true, Force: true}, cv: cvtest.Requestable(cvtest.Desired(configv1.Update{Version: "4.20.3", Image: "x", AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}})),
			want: &configv1.Update{Architecture: "Multi", Version: "4.20.3", Force: true, AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}}, out: "Requested update to multi cluster architecture\n", warn: forced},
		{name: "again", request: req{ToMultiArch: true}, cv: cvtest.Requestable(cvtest.Desired(configv1.Update{Architecture: "Multi"})), err: "info: Update to multi cluster architecture has already been requested", reason: clusterversion.RefusedRequested},
		{name: "failing, forced", request: req{ToMultiArch: true, Force: true}, cv: cvtest.Requestable(cvtest.WithCondition("Failing", "True")), err: failing + anyway, reason: clusterversion.RefusedClusterState, waiver: "--allow-upgrade-with-warnings"},
		{name: "bypassed, then forced", request: req{ToMultiArch: true, Force: true, AllowUpgradeWithWarnings: true}, cv: cvtest.Requestable(cvtest.WithCondition("Failing", "True")),
			want: &configv1.Update{Architecture: "Multi", Version: "4.20.3", Force: true}, out: "Requested update to multi cluster architecture\n",
			warn: "warning: --allow-upgrade-with-warnings is bypassing: " + failing + "\n" + forced},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestClearRequest(t *testing.T) {
	risks := []configv1.AcceptRisk{{Name: "A"}}
	clear := clusterversion.UpdateRequest{Clear: true}
	for _, tt := range []requestTest{
		{name: "nothing to clear", request: clear, out: "info: No update in progress\n"},
		{name: "the same image", request: clear, cv: cvtest.Requestable(cvtest.Desired(configv1.Update{Version: "4.20.9", Image: cvtest.ImageOf(cvtest.Repository, 3)})), cleared: true, out: "Cleared the update field, still at 4.20.3\n"},
		{name: "another image of the version", request: clear, cv: cvtest.Requestable(cvtest.Desired(configv1.Update{Version: "4.20.3", Image: "x"})), cleared: true, out: "Cancelled requested upgrade to 4.20.3\n"},
		{name: "the same version", request: clear, cv: cvtest.Requestable(cvtest.Desired(configv1.Update{Version: "4.20.3"})), cleared: true, out: "Cleared the update field, still at 4.20.3\n"},
		{name: "another version", request: clear, cv: cvtest.Requestable(cvtest.Desired(configv1.Update{Version: "4.20.4"})), cleared: true, out: "Cancelled requested upgrade to 4.20.4\n"},
		{name: "another image", request: clear, cv: cvtest.Requestable(cvtest.Desired(configv1.Update{Image: "x"})), cleared: true, out: "Cancelled requested upgrade to x\n"},
		{name: "nobody knows what", request: clear, cv: cvtest.Requestable(cvtest.Desired(configv1.Update{})), cleared: true, out: "Cancelled requested upgrade to <unknown>\n"},
		{name: "risks stay", request: clear, cv: cvtest.Requestable(cvtest.Desired(configv1.Update{Architecture: "Multi", Version: "4.20.4", Image: "x", Force: true, AcceptRisks: risks})), want: &configv1.Update{AcceptRisks: risks}, out: "Cancelled requested upgrade to 4.20.4\n"},
		{name: "though it fails", request: clear, cv: cvtest.Requestable(cvtest.WithCondition("Failing", "True"), cvtest.Desired(configv1.Update{Version: "4.20.4"})), cleared: true, out: "Cancelled requested upgrade to 4.20.4\n"},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestChannelRequest(t *testing.T) {
	type req = clusterversion.ChannelRequest
	in := func(channel string, known ...string) *configv1.ClusterVersion {
		return cvtest.Requestable(func(cv *configv1.ClusterVersion) { cv.Spec.Channel, cv.Status.Desired.Channels = channel, known })
	}
	const flag = "--allow-explicit-channel"
	for _, tt := range []struct {
		name           string
		r              clusterversion.Request
		cv             *configv1.ClusterVersion
		channel        string // "-": not changed
		out, warn, err string
	}{
		{"the same", req{Name: "a"}, in("a"), "-", "info: Cluster is already in a (no change)\n", "", ""},
		{"both clear", req{}, in(""), "-", "info: Cluster channel is already clear (no change)\n", "", ""},
		{"known", req{Name: "b"}, in("a", "a", "b"), "b", "", "", ""},
		{"unknown", req{Name: "c"}, in("a", "a", "b"), "-", "", "", "the requested channel \"c\" is not one of the available channels (a, b), you must pass --allow-explicit-channel to continue\n"},
		{"unknown, allowed", req{Name: "c", AllowExplicit: true}, in("a", "a", "b"), "c", "", "warning: The requested channel \"c\" is not one of the available channels (a, b). You have used --allow-explicit-channel to proceed anyway. Setting the update channel to \"c\".\n", ""},
		{"none known", req{Name: "c"}, in("a"), "c", "", "warning: No channels known to be compatible with the current version \"4.20.3\"; unable to validate \"c\". Setting the update channel to \"c\" anyway.\n", ""},
		{"clear a known one", req{}, in("a", "a"), "-", "", "", "You are requesting to clear the update channel. The current channel \"a\" is one of the available channels, you must pass --allow-explicit-channel to continue\n"},
		{"clear a known one, allowed", req{AllowExplicit: true}, in("a", "a"), "", "", "warning: Clearing channel \"a\"; cluster will no longer request available update recommendations.\n", ""},
		{"clear another one", req{}, in("a", "b"), "", "", "warning: Clearing channel \"a\"; cluster will no longer request available update recommendations.\n", ""},
		{"clear, none known", req{}, in("a"), "", "", "warning: Clearing channel \"a\"; cluster will no longer request available update recommendations.\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := tt.cv.DeepCopy()
			got, err := tt.r.Edit(tt.cv)
			text := ""
			if refused := new(clusterversion.RefusedError); err != nil {
				text = err.Error()
				if !errors.As(err, &refused) || refused.Reason != clusterversion.RefusedChannel || refused.Waiver != flag {
					t.Errorf("refused as %+v", refused)
				}
			}
			checktest.Same(t, []string{tt.out, tt.warn, tt.err}, []string{got.Out, got.Err, text})
			if diff := cmp.Diff(before, tt.cv); diff != "" {
				t.Errorf("the argument was changed: %s", diff)
			}
			channel := "-"
			if got.ClusterVersion != nil {
				channel = got.ClusterVersion.Spec.Channel
			}
			if channel != tt.channel {
				t.Errorf("channel %q, want %q", channel, tt.channel)
			}
		})
	}
}

func TestUpstreamRequest(t *testing.T) {
	at := func(upstream configv1.URL) *configv1.ClusterVersion {
		return cvtest.Requestable(func(cv *configv1.ClusterVersion) { cv.Spec.Upstream = upstream })
	}
	const u, v = "https://a.example/graph", "http://b.example"
	for _, tt := range []struct {
		name, url, want, out, warn, err string
		cv                              *configv1.ClusterVersion
	}{
		{"set", u, u, "", "", "", at("")},
		{"change", v, v, "", "", "", at(u)},
		{"clear", "", "", "", "warning: Clearing upstream \"" + u + "\"; the cluster will use an appropriate default.\n", "", at(u)},
		{"the same", u, "-", "info: Cluster upstream is already " + u + " (no change)\n", "", "", at(u)},
		{"both clear", "", "-", "info: Cluster upstream is already clear (no change)\n", "", "", at("")},
		{"relative", "graph", "-", "", "", "the requested upstream \"graph\" is not an absolute http or https URL", at("")},
		{"another scheme", "ftp://a/b", "-", "", "", "the requested upstream \"ftp://a/b\" is not an absolute http or https URL", at("")},
		{"not a URL", "https://a b", "-", "", "", "the requested upstream \"https://(redacted)\" is not an absolute http or https URL", at("")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := clusterversion.UpstreamRequest{URL: tt.url}.Edit(tt.cv)
			text := ""
			if err != nil {
				text = err.Error()
			}
			upstream := "-"
			if got.ClusterVersion != nil {
				upstream = string(got.ClusterVersion.Spec.Upstream)
			}
			checktest.Same(t, []string{tt.want, tt.out, tt.warn, tt.err}, []string{upstream, got.Out, got.Err, text})
		})
	}
}

func TestRollbackRequest(t *testing.T) {
	history := func(entries ...string) func(*configv1.ClusterVersion) {
		return func(cv *configv1.ClusterVersion) {
			cv.Status.History = nil
			for _, version := range entries {
				version, img, _ := strings.Cut(version, " ")
				cv.Status.History = append(cv.Status.History, configv1.UpdateHistory{Version: version, Image: img, State: configv1.PartialUpdate})
			}
			cv.Status.Desired.Image = "i"
		}
	}
	r := clusterversion.RollbackRequest{}
	refused := func(name, text string, cv *configv1.ClusterVersion) requestTest {
		return requestTest{name: name, request: r, cv: cv, err: text, reason: clusterversion.RefusedRollback}
	}
	for _, tt := range []requestTest{
		{name: "back", request: r, want: &configv1.Update{Version: "4.20.2", Image: cvtest.ImageOf(cvtest.Repository, 2)}, out: "Requested rollback from 4.20.3 to 4.20.2\n"},
		{name: "whatever its state, without risks", request: r, cv: cvtest.Requestable(history("4.20.3 i", "4.20.1 h"), cvtest.Desired(configv1.Update{Force: true, AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}})),
			want: &configv1.Update{Version: "4.20.1", Image: "h"}, out: "Requested rollback from 4.20.3 to 4.20.1\n"},
		refused("no version", "invalid ClusterVersion status.desired.version: version string empty", cvtest.Requestable(func(cv *configv1.ClusterVersion) { cv.Status.Desired.Version = "" })),
		refused("no other", "no previous version found in ClusterVersion's status.history besides the current 4.20.3 (i).", cvtest.Requestable(history("4.20.3 i"))),
		refused("not a version", "previous version \"x\" invalid SemVer: invalid semantic version", cvtest.Requestable(history("4.20.3 i", "x h", "4.20.1 g"))),
		refused("higher", "previous version 4.20.4 (h) is greater than or equal to current version 4.20.3 (i).  Use 'oc adm upgrade ...' to update, and not this rollback command.", cvtest.Requestable(history("4.20.4 h", "4.20.3 i"))),
		refused("another architecture", "previous version 4.20.3 (h) is greater than or equal to current version 4.20.3 (i).  Use 'oc adm upgrade ...' to update, and not this rollback command.", cvtest.Requestable(history("4.20.3 i", "4.20.3 h"))),
		refused("another minor", "4.19.9 is less than the current target 4.20.3 and matches the cluster's previous version, but rollbacks that change major or minor versions are not recommended.", cvtest.Requestable(history("4.20.3 i", "4.19.9 h"))),
		{name: "no Progressing", request: r, cv: cvtest.Requestable(func(cv *configv1.ClusterVersion) { cv.Status.Conditions = nil }), err: "no current Progressing info, see `oc describe clusterversion` for more details.\n", reason: clusterversion.RefusedClusterState},
		{name: "updating", request: r, cv: cvtest.Requestable(cvtest.WithCondition("Progressing", "Unknown")), err: "unable to rollback while an update is Progressing=Unknown: R: M\nmore.", reason: clusterversion.RefusedClusterState},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestAcceptRequest(t *testing.T) {
	type req = clusterversion.AcceptRequest
	accepts := func(names ...string) *configv1.Update {
		u := &configv1.Update{Version: "4.20.9", Force: true}
		for _, n := range names {
			u.AcceptRisks = append(u.AcceptRisks, configv1.AcceptRisk{Name: n})
		}
		return u
	}
	cv := func(names ...string) *configv1.ClusterVersion {
		return cvtest.Requestable(cvtest.Desired(*accepts(names...)))
	}
	list := func(s string) []string { return []string{s} }
	usage := func(name string, r req, text string) requestTest {
		return requestTest{name: name, request: r, cv: cv("A"), err: text, reason: clusterversion.RefusedUsage}
	}
	for _, tt := range []requestTest{
		{name: "add", request: req{Risks: list("C, B ,A")}, cv: cv("Z", "A"), want: accepts("Z", "A", "B", "C"), out: "info: Accept risks are [Z, A, B, C]\n"},
		{name: "add and remove", request: req{Risks: list("B,A-")}, cv: cv("Z", "A"), want: accepts("Z", "B"), out: "info: Accept risks are [Z, B]\n"},
		{name: "one suffix", request: req{Risks: list("A--")}, cv: cv("A", "A-"), want: accepts("A"), out: "info: Accept risks are [A]\n"},
		{name: "to none", request: req{Risks: list("A-")}, cv: cv("A"), want: accepts(), out: "info: Accept risks are []\n"},
		{name: "the first", request: req{Risks: list("A")}, want: &configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}}, out: "info: Accept risks are [A]\n"},
		{name: "replace", request: req{Risks: list("C,B"), Replace: true}, cv: cv("A", "B"), want: accepts("B", "C"), out: "info: Accept risks are [B, C]\n"},
		{name: "clear", request: req{Clear: true}, cv: cv("A", "B"), want: accepts(), out: "info: Accept risks are []\n"},
		{name: "nothing to clear", request: req{Clear: true}, out: "info: Accept risks are not changed\n"},
		{name: "there already", request: req{Risks: list("A,Q-")}, cv: cv("A"), out: "info: Accept risks are not changed\n"},
		usage("no list", req{}, "no positional arguments given"),
		usage("two lists", req{Risks: []string{"A", "B"}}, "multiple positional arguments given"),
		usage("empty", req{Risks: list("")}, `illegal risk ""`),
		usage("empty name", req{Risks: list("A, ,B")}, `illegal risk ""`),
		usage("lone suffix", req{Risks: list("-")}, `illegal risk "-"`),
		usage("both", req{Risks: list("B,A,A-,B-,C-")}, "requested risks with both Risk and Risk-: A,B"),
		usage("replace and remove", req{Risks: list("A-"), Replace: true}, "The suffix '-' on risks is not allowed if --replace is specified"),
		usage("clear and replace", req{Clear: true, Replace: true}, "--clear and --replace are mutually exclusive"),
		usage("clear with a list", req{Clear: true, Risks: list("A")}, "--clear may not be specified with risks"),
	} {
		t.Run(tt.name, tt.run)
	}
}

// Without a ClusterVersion every command says so in its words.
func TestRequestsWithoutClusterVersion(t *testing.T) {
	api := memory.NewOpenShift(memory.Options{})
	for want, requests := range map[string][]clusterversion.Request{
		"No cluster version information available - you must be connected to an OpenShift version 4 server to fetch the current version": {
			clusterversion.UpdateRequest{ToLatest: true}, clusterversion.UpdateRequest{Clear: true}, clusterversion.UpdateRequest{ToMultiArch: true}},
		"no cluster version information available - you must be connected to an OpenShift version 4 server to fetch the current version": {
			clusterversion.ChannelRequest{Name: "a"}, clusterversion.UpstreamRequest{}, clusterversion.RollbackRequest{}},
		"no cluster version information available - you must be connected to an OpenShift server to fetch the current version": {clusterversion.AcceptRequest{Clear: true}},
	} {
		for _, r := range requests {
			if _, err := r.Edit(nil); err == nil || err.Error() != want {
				t.Errorf("%T: %v", r, err)
			}
			_, err := clusterversion.Submit(t.Context(), api, r)
			if refused := new(clusterversion.RefusedError); !errors.As(err, &refused) || refused.Reason != clusterversion.RefusedNoVersion || err.Error() != want {
				t.Errorf("%T on a cluster: %v", r, err)
			}
		}
	}
}

// requestCluster is a cluster with a ClusterVersion.
func TestSubmit(t *testing.T) {
	t.Run("stored", func(t *testing.T) {
		api := clusterOf(t, memory.Options{}, cvtest.Requestable())
		got, err := clusterversion.Submit(t.Context(), api, clusterversion.UpdateRequest{To: "4.20.4"})
		if err != nil || got.Out != "Requested update to 4.20.4\n" {
			t.Fatalf("%+v, %v", got, err)
		}
		stored := storedVersion(t, api)
		checktest.Same(t, &configv1.Update{Version: "4.20.4", Image: cvtest.ImageOf(cvtest.Repository, 4)}, stored.Spec.DesiredUpdate)
		if got.ClusterVersion.ResourceVersion != stored.ResourceVersion || stored.Generation != 2 {
			t.Errorf("resource version %s of %s, generation %d", got.ClusterVersion.ResourceVersion, stored.ResourceVersion, stored.Generation)
		}
	})
	t.Run("nothing to change", func(t *testing.T) {
		api := clusterOf(t, memory.Options{}, cvtest.Requestable())
		before := storedVersion(t, api)
		got, err := clusterversion.Submit(t.Context(), api, clusterversion.UpdateRequest{Clear: true})
		if err != nil || got.ClusterVersion != nil || storedVersion(t, api).ResourceVersion != before.ResourceVersion {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("decided again after a conflict", func(t *testing.T) {
		var api *memory.Cluster
		raced := false
		api = clusterOf(t, memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
			if call.Verb == "Update" && !raced {
				raced = true // somebody else was faster
				if _, err := clusterapi.Modify(ctx, api, clusterapi.Key("", "version"), clusterapi.ModifyOptions{Status: true}, func(cv *configv1.ClusterVersion) error {
					cvtest.WithCondition("Failing", "True")(cv)
					return nil
				}); err != nil {
					return err
				}
			}
			return do(ctx)
		}}, cvtest.Requestable())
		_, err := clusterversion.Submit(t.Context(), api, clusterversion.UpdateRequest{To: "4.20.4"})
		if refused := new(clusterversion.RefusedError); !errors.As(err, &refused) || refused.Reason != clusterversion.RefusedClusterState {
			t.Errorf("%v", err)
		}
		if storedVersion(t, api).Spec.DesiredUpdate != nil {
			t.Error("the update was requested all the same")
		}
	})
	forbid := func(verb string) memory.Options {
		return memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
			if call.Verb == verb {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "clusterversions"}, "version", errors.New("no rights"))
			}
			return do(ctx)
		}}
	}
	for want, r := range map[string]clusterversion.Request{
		"Unable to upgrade: ":                clusterversion.UpdateRequest{To: "4.20.4"},
		"Unable to upgrade:  ":               clusterversion.UpdateRequest{ToMultiArch: true},
		"Unable to cancel current rollout: ": clusterversion.UpdateRequest{Clear: true},
		"unable to set channel: ":            clusterversion.ChannelRequest{Name: "fast-4.20"},
		"unable to set upstream: ":           clusterversion.UpstreamRequest{URL: "https://a.example"},
		"Unable to rollback: ":               clusterversion.RollbackRequest{},
		"unable to accept risks: ":           clusterversion.AcceptRequest{Risks: []string{"A"}},
	} {
		t.Run(want, func(t *testing.T) {
			cv := cvtest.Requestable()
			if want == "Unable to cancel current rollout: " {
				cvtest.Desired(configv1.Update{Version: "4.20.4"})(cv)
			}
			got, err := clusterversion.Submit(t.Context(), clusterOf(t, forbid("Update"), cv), r)
			if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), strings.TrimSuffix(want, " ")) || got.Out != "" || got.ClusterVersion != nil {
				t.Errorf("%+v, %v", got, err)
			}
			_, err = clusterversion.Submit(t.Context(), clusterOf(t, forbid("Get"), cv), r)
			if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), "reading the ClusterVersion: ") {
				t.Errorf("%v", err)
			}
		})
	}
}

// What a request decides does not depend on how it is carried out, and a refused
// one changes nothing.
func TestRequestProperties(t *testing.T) {
	status := rapid.SampledFrom([]configv1.ConditionStatus{"True", "False", "Unknown"})
	versions := rapid.SampledFrom([]string{"", "4.20.2", "4.20.3", "4.20.4", "4.20.10", "4.21.0", "4.21.1", "4.22.0", "x", "v4.1.0"})
	images := rapid.SampledFrom([]string{"", cvtest.ImageOf(cvtest.Repository, 3), cvtest.ImageOf(cvtest.Repository, 4), cvtest.ImageOf("mirror.example/a", 21), cvtest.ImageOf(cvtest.Repository, 99), "a b", "registry.example/a:b"})
	risks := rapid.SliceOfN(rapid.SampledFrom([]string{"A", "B", "A-", "B-", " C ", "-", ""}), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		cv := cvtest.Requestable()
		for _, c := range []configv1.ClusterStatusConditionType{"Progressing", "Failing", "Invalid", "RetrievedUpdates"} {
			if rapid.Bool().Draw(t, "has "+string(c)) {
				cvtest.WithCondition(c, status.Draw(t, string(c)))(cv)
			}
		}
		if rapid.Bool().Draw(t, "desires") {
			cvtest.Desired(configv1.Update{Version: "4.20.4", Image: cvtest.ImageOf(cvtest.Repository, 4), AcceptRisks: []configv1.AcceptRisk{{Name: "B"}}})(cv)
		}
		for _, f := range []func(*configv1.ClusterVersion){noUpdates, onlyRisky, cvtest.WithoutUpdates} {
			if rapid.IntRange(0, 4).Draw(t, "updates") == 0 {
				f(cv)
			}
		}
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		var r clusterversion.Request
		switch rapid.IntRange(0, 4).Draw(t, "request") {
		case 0:
			r = clusterversion.UpdateRequest{
				To: versions.Draw(t, "to"), ToImage: images.Draw(t, "image"), ToLatest: flag("latest"), ToMultiArch: flag("multi"), Clear: flag("clear"),
				AllowNotRecommended: flag("not recommended"), AllowExplicitUpgrade: flag("explicit"), AllowUpgradeWithWarnings: flag("warnings"), Force: flag("force"),
			}
		case 1:
			r = clusterversion.ChannelRequest{Name: rapid.SampledFrom([]string{"", "a", "stable-4.20", "fast-4.20"}).Draw(t, "channel"), AllowExplicit: flag("explicit")}
		case 2:
			r = clusterversion.RollbackRequest{}
		case 3:
			r = clusterversion.AcceptRequest{Risks: []string{strings.Join(risks.Draw(t, "risks"), ",")}, Replace: flag("replace")}
		default:
			r = clusterversion.UpdateRequest{To: versions.Draw(t, "to"), AllowNotRecommended: flag("not recommended"), AllowUpgradeWithWarnings: flag("warnings"), Force: flag("force")}
		}
		u, err := clusterapi.ToUnstructured(cv)
		checktest.OK(t, err)
		api := memory.NewOpenShift(memory.Options{})
		checktest.OK(t, api.Load(u))
		before, err := clusterapi.Get[configv1.ClusterVersion](context.Background(), api, clusterapi.Key("", "version"))
		checktest.OK(t, err)
		want, wantErr := r.Edit(before)
		got, gotErr := clusterversion.Submit(context.Background(), api, r)
		if fmt.Sprint(wantErr) != fmt.Sprint(gotErr) || want.Out != got.Out || want.Err != got.Err {
			t.Fatalf("decided %q %q %v, carried out %q %q %v", want.Out, want.Err, wantErr, got.Out, got.Err, gotErr)
		}
		after, err := clusterapi.Get[configv1.ClusterVersion](context.Background(), api, clusterapi.Key("", "version"))
		checktest.OK(t, err)
		spec := before.Spec
		if want.ClusterVersion != nil {
			spec = want.ClusterVersion.Spec
		}
		if wantErr != nil && want.ClusterVersion != nil {
			t.Error("refused, with a change")
		}
		checktest.Same(t, spec, after.Spec)
		checktest.Same(t, before.Status, after.Status)
	})
}

// Texts from outside never make a request panic.
func FuzzRequests(f *testing.F) {
	for _, s := range []string{"4.20.4", cvtest.ImageOf(cvtest.Repository, 4), "name:tag", "host.io:5000", "A,B-,A-", "-", "https://a.example", "@", ":"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range []clusterversion.Request{
			clusterversion.UpdateRequest{To: s}, clusterversion.UpdateRequest{ToImage: s, Force: true, AllowExplicitUpgrade: true}, clusterversion.ChannelRequest{Name: s},
			clusterversion.UpstreamRequest{URL: s}, clusterversion.AcceptRequest{Risks: []string{s}},
		} {
			got, err := r.Edit(cvtest.Requestable())
			if err != nil && got.ClusterVersion != nil {
				t.Errorf("%T %q: %v, with a change", r, s, err)
			}
		}
	})
}

// The cluster fails, so an update is not begun unless somebody says so.
func ExampleSubmit() {
	ctx := context.Background()
	cluster := memory.NewOpenShift(memory.Options{})
	object, _ := clusterapi.ToUnstructured(cvtest.Requestable(cvtest.WithCondition("Failing", "True")))
	if err := cluster.Load(object); err != nil {
		fmt.Println(err)
	}
	request := clusterversion.UpdateRequest{To: "4.20.10"}
	_, err := clusterversion.Submit(ctx, cluster, request)
	if refused := new(clusterversion.RefusedError); errors.As(err, &refused) {
		fmt.Println(refused.Reason, "unless", refused.Waiver)
	}
	request.AllowUpgradeWithWarnings = true
	answer, err := clusterversion.Submit(ctx, cluster, request)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Fprint(os.Stdout, answer.Out)
	// Output:
	// ClusterState unless --allow-upgrade-with-warnings
	// Requested update to 4.20.10
}

// A rollback goes to the release before, of the same minor version.
func ExampleRollbackRequest() {
	answer, err := clusterversion.RollbackRequest{}.Edit(cvtest.Requestable())
	fmt.Println(answer.Out, answer.ClusterVersion.Spec.DesiredUpdate.Version, err)
	// Output:
	// Requested rollback from 4.20.3 to 4.20.2
	//  4.20.2 <nil>
}

// clusterOf returns a cluster that has cv alone.
func clusterOf(t testing.TB, o memory.Options, cv *configv1.ClusterVersion) *memory.Cluster {
	t.Helper()
	u := checktest.Get(clusterapi.ToUnstructured(cv))(t)
	api := memory.NewOpenShift(o)
	checktest.OK(t, api.Load(u))
	return api
}

// storedVersion reads the ClusterVersion.
func storedVersion(t testing.TB, api clusterapi.Reader) *configv1.ClusterVersion {
	t.Helper()
	cv := checktest.Get(clusterapi.Get[configv1.ClusterVersion](t.Context(), api, clusterapi.Key("", "version")))(t)
	return cv
}
