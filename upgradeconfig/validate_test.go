package upgradeconfig_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

const digest = "@sha256:6ab330b5205a6a0cb64d0e3c3a5a04278d90cb85e128e3b5317cdfba22bef41d"

func TestValidate(t *testing.T) {
	const when = "2031-02-04T03:00:00Z"
	version := func(v, channel string) upgradeconfig.Spec {
		return upgradeconfig.Spec{UpgradeAt: when, Desired: upgradeconfig.Update{Version: v, Channel: channel}}
	}
	image := func(image string) upgradeconfig.Spec {
		return upgradeconfig.Spec{UpgradeAt: when, Desired: upgradeconfig.Update{Version: "4.0.0", Image: image}}
	}
	g := must(graph.New(graph.Data{
		Nodes: []graph.Node{{Version: semver.MustParse("4.20.3"), Image: "a"}, {Version: semver.MustParse("4.21.0"), Image: "b"}, {Version: semver.MustParse("4.21.1"), Image: "c"}, {Version: semver.MustParse("4.21.2"), Image: "d"}},
		Edges: [][2]int{{0, 1}},
		ConditionalEdges: []graph.ConditionalEdges{{
			Edges: []graph.VersionPair{{From: "4.20.3", To: "4.21.1"}},
			Risks: []configv1.ConditionalUpdateRisk{{URL: "https://example.com", Name: "R", Message: "m", MatchingRules: []configv1.ClusterCondition{{Type: "Always"}}}},
		}},
	}, graph.DecodeOptions{}))
	var asked []graph.Query
	service := graph.SourceFunc(func(_ context.Context, q graph.Query) (*graph.Graph, error) {
		asked = append(asked, q)
		if q.Channel == "gone-4.21" {
			return nil, errors.New("no answer")
		}
		return g, nil
	})
	label := func(version string, err error) func(context.Context, string) (string, error) {
		return func(context.Context, string) (string, error) { return version, err }
	}
	cincinnati := upgradeconfig.ValidateOptions{Cincinnati: true, Graph: service}
	base := history([2]string{"4.20.2", "2030-01-01T00:00:00Z"}, [2]string{"4.20.3", "2030-02-01T00:00:00Z"})

	for _, tt := range []struct {
		name             string
		spec             upgradeconfig.Spec
		history          []configv1.UpdateHistory
		o                upgradeconfig.ValidateOptions
		valid, available bool
		// findings, the first of which is the message; one in brackets is no
		// error.
		findings []string
		version  string
	}{
		{name: "available", spec: version("4.20.4", "stable-4.20"), history: base, valid: true, available: true, version: "4.20.4"},
		{name: "conditional", spec: version("4.20.5", "stable-4.20"), history: base, valid: true, available: true, version: "4.20.5"},
		{name: "not among the updates", spec: version("4.20.6", "stable-4.20"), history: base, version: "4.20.6",
			findings: []string{"[version 4.20.6 not found in clusterversion available or conditional updates]"}},
		{name: "upgradeAt", spec: upgradeconfig.Spec{UpgradeAt: "soon", Desired: upgradeconfig.Update{Version: "4.20.4", Channel: "stable-4.20"}}, history: base, version: "4.20.4",
			findings: []string{"Failed to parse upgradeAt:soon during validation"}},
		{name: "all findings together", spec: upgradeconfig.Spec{UpgradeAt: "soon", Desired: upgradeconfig.Update{Version: "v4", Channel: "c"}}, version: "v4",
			findings: []string{"Failed to parse upgradeAt:soon during validation",
				"failed to parse upgrade config desired version v4 as semver: invalid semantic version",
				"failed to get current cluster version during validation: failed to get current version"}},
		{name: "nothing wanted", spec: version("", ""), history: base,
			findings: []string{"[Not able to validate the upgrade config, either image or (channel + version) needs to be provided]"}},
		{name: "channel alone", spec: version("", "stable-4.20"), history: base,
			findings: []string{"failed to parse upgrade config desired version  as semver: Version string empty"}},
		{name: "no current version", spec: version("4.20.4", "stable-4.20"), version: "4.20.4", history: history([2]string{"4.20.3", ""}),
			findings: []string{"failed to get current cluster version during validation: failed to get current version"}},
		{name: "bad current version", spec: version("4.20.4", "stable-4.20"), version: "4.20.4", history: history([2]string{"four", "2030-01-01T00:00:00Z"}),
			findings: []string{"failed to parse current cluster version four as semver: invalid semantic version"}},
		{name: "downgrade", spec: version("4.20.2", "stable-4.20"), history: base, valid: true, version: "4.20.2",
			findings: []string{"downgrades to desired version 4.20.2 from 4.20.3 are unsupported"}},
		{name: "pre-release is lower", spec: version("4.20.3-rc.1", "stable-4.20"), history: base, valid: true, version: "4.20.3-rc.1",
			findings: []string{"downgrades to desired version 4.20.3-rc.1 from 4.20.3 are unsupported"}},
		{name: "equal", spec: version("4.20.3", "stable-4.20"), history: base, valid: true, version: "4.20.3",
			findings: []string{"desired version 4.20.3 matches the current version 4.20.3"}},
		{name: "builds are equal", spec: version("4.20.3+b", "stable-4.20"), history: base, valid: true, version: "4.20.3+b",
			findings: []string{"desired version 4.20.3+b matches the current version 4.20.3"}},
		{name: "other channel, not asked", spec: version("4.99.0", "stable-4.99"), history: base, valid: true, available: true, version: "4.99.0"},
		{name: "other channel, edge", spec: version("4.21.0", "stable-4.21"), history: base, o: cincinnati, valid: true, available: true, version: "4.21.0"},
		{name: "other channel, conditional edge", spec: version("4.21.1", "stable-4.21"), history: base, o: cincinnati, valid: true, available: true, version: "4.21.1"},
		{name: "other channel, no edge", spec: version("4.21.2", "stable-4.21"), history: base, o: cincinnati, version: "4.21.2",
			findings: []string{"cannot find version 4.21.2 in available updates"}},
		{name: "other channel, nothing", spec: version("4.21.3", "stable-4.21"), history: history([2]string{"4.21.2", "2030-02-01T00:00:00Z"}), o: cincinnati, version: "4.21.3",
			findings: []string{"no available upgrade for the given clusterversion 4.21.2"}},
		{name: "service down", spec: version("4.21.0", "gone-4.21"), history: base, o: cincinnati, version: "4.21.0",
			findings: []string{"failed to get the updates of channel gone-4.21 during validation: no answer"}},

		{name: "image", spec: image("quay.io/ocp/release" + digest), valid: true, available: true, version: "4.0.0"},
		{name: "image with port and tag", spec: image("quay.io:5000/ocp/a/release:v1" + digest), valid: true, available: true, version: "4.0.0"},
		{name: "localhost", spec: image("localhost/ocp/release" + digest), valid: true, available: true, version: "4.0.0"},
		{name: "no registry", spec: image("ocp/release" + digest), version: "4.0.0",
			findings: []string{"failed to parse image:ocp/release" + digest + " must be a valid image pull spec: no registry specified"}},
		{name: "no repository", spec: image("quay.io/release" + digest), version: "4.0.0",
			findings: []string{"failed to parse image:quay.io/release" + digest + " must be a valid image pull spec: no repository specified"}},
		{name: "several parts missing", spec: image("release:v1"), version: "4.0.0", findings: []string{
			"failed to parse image:release:v1 must be a valid image pull spec: no registry specified",
			"failed to parse image:release:v1 must be a valid image pull spec: no repository specified",
			"failed to parse image:release:v1 must be a valid image pull spec: no image digest specified"}},
		{name: "no pull spec", spec: image("https://quay.io/x"), version: "4.0.0",
			findings: []string{"failed to parse image https://quay.io/x: must be a valid image pull spec:invalid reference format"}},
		{name: "bad digest", spec: image("quay.io/a/b@sha256:0123456789abcdef0123456789abcdef"), version: "4.0.0",
			findings: []string{"failed to parse image quay.io/a/b@sha256:0123456789abcdef0123456789abcdef: must be a valid image pull spec:invalid or unsupported digest sha256:0123456789abcdef0123456789abcdef"}},
		{name: "the image's version, a downgrade", spec: image("quay.io/ocp/release" + digest), history: base, valid: true, available: true, version: "4.1.7",
			o: upgradeconfig.ValidateOptions{ReleaseVersion: label("4.1.7", nil)}},
		{name: "no manifest", spec: image("quay.io/ocp/release" + digest), version: "4.0.0", o: upgradeconfig.ValidateOptions{ReleaseVersion: label("", errors.New("404"))},
			findings: []string{"failed to fetch image manifest digest: quay.io/ocp/release" + digest + " needs to be a valid release image: 404"}},
		{name: "no label", spec: image("quay.io/ocp/release" + digest), version: "4.0.0", o: upgradeconfig.ValidateOptions{ReleaseVersion: label("", nil)},
			findings: []string{"failed to fetch blobs for image manifest digest: quay.io/ocp/release" + digest + " needs to be a valid release image: the image's configuration cannot be read: it names no version"}},
		{name: "no blob", spec: image("quay.io/ocp/release" + digest), version: "4.0.0",
			o:        upgradeconfig.ValidateOptions{ReleaseVersion: label("", fmt.Errorf("%w: 404", upgradeconfig.ErrImageConfig))},
			findings: []string{"failed to fetch blobs for image manifest digest: quay.io/ocp/release" + digest + " needs to be a valid release image: the image's configuration cannot be read: 404"}},
		{name: "not fetched before its syntax is right", spec: image("release:v1" + digest), version: "4.0.0", o: upgradeconfig.ValidateOptions{ReleaseVersion: label("4.1.0", nil)}, findings: []string{
			"failed to parse image:release:v1" + digest + " must be a valid image pull spec: no registry specified",
			"failed to parse image:release:v1" + digest + " must be a valid image pull spec: no repository specified"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cv := &configv1.ClusterVersion{Spec: configv1.ClusterVersionSpec{Channel: "stable-4.20", ClusterID: "b2d0a7a5-2a39-4a5c-9e1d-0123456789ab"}}
			cv.Status.History = tt.history
			cv.Status.AvailableUpdates = []configv1.Release{{Version: "4.20.4", Image: "x"}}
			cv.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{Release: configv1.Release{Version: "4.20.5", Image: "y"}}}
			got, err := upgradeconfig.Validate(t.Context(), tt.spec, cv, tt.o)
			if got.IsValid != tt.valid || got.IsAvailableUpdate != tt.available || got.Version != tt.version {
				t.Errorf("got %+v", got)
			}
			var findings, errs []string
			message := "Upgrade config is valid"
			for i, f := range tt.findings {
				text := strings.Trim(f, "[]")
				findings = append(findings, text)
				if text == f {
					errs = append(errs, text)
				}
				if i == 0 {
					message = text
				}
			}
			var texts []string
			for _, f := range got.Findings {
				texts = append(texts, f.Error())
			}
			checktest.Same(t, findings, texts)
			checktest.Same(t, strings.Join(errs, "\n"), errText(err))
			checktest.Equal(t, message, got.Message, "message")
		})
	}
	if want := (graph.Query{Channel: "stable-4.21", Version: "4.20.3", ClusterID: "b2d0a7a5-2a39-4a5c-9e1d-0123456789ab"}); len(asked) == 0 {
		t.Error("the update service was not asked")
	} else if got := asked[0]; got.Channel != want.Channel || got.Version != want.Version || got.ClusterID != want.ClusterID || got.Arch == "" {
		t.Errorf("asked for %+v", got)
	}
}

// upstream is an update service that notes where and what it is asked for.
type upstream struct {
	at    string
	asked *[]string
}

func (u upstream) WithUpstream(at string) graph.Source { return upstream{at, u.asked} }

func (u upstream) Fetch(_ context.Context, q graph.Query) (*graph.Graph, error) {
	*u.asked = append(*u.asked, u.at+" "+q.Arch)
	return nil, errors.New("down")
}

// TestValidateAsksUpstream: the update service of the ClusterVersion, for the
// cluster's architecture.
func TestValidateAsksUpstream(t *testing.T) {
	var asked []string
	o := upgradeconfig.ValidateOptions{Cincinnati: true, Graph: upstream{asked: &asked}}
	s := upgradeconfig.Spec{UpgradeAt: "2031-02-04T03:00:00Z", Desired: upgradeconfig.Update{Version: "4.20.4", Channel: "stable-4.20"}}
	cv := &configv1.ClusterVersion{}
	cv.Status.History = history([2]string{"4.20.3", "2030-02-01T00:00:00Z"})
	validate := func() {
		if v, err := upgradeconfig.Validate(t.Context(), s, cv, o); err == nil || v.IsValid {
			t.Errorf("%+v, %v", v, err)
		}
	}
	validate()
	cv.Spec.Upstream = "https://updates.example"
	o.Architecture = "s390x"
	validate()
	cv.Status.Desired.Architecture = configv1.ClusterVersionArchitectureMulti
	validate()
	checktest.Same(t, []string{" " + runtime.GOARCH, "https://updates.example s390x", "https://updates.example multi"}, asked)
}

// TestImageTimeout: a registry that does not answer is given up.
func TestImageTimeout(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{0: 20 * time.Second, time.Second: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			s := upgradeconfig.Spec{UpgradeAt: "2031-02-04T03:00:00Z", Desired: upgradeconfig.Update{Image: "quay.io/ocp/release" + digest}}
			v, err := upgradeconfig.Validate(t.Context(), s, nil, upgradeconfig.ValidateOptions{ImageTimeout: limit, ReleaseVersion: func(ctx context.Context, _ string) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}})
			if v.IsValid || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != want {
				t.Errorf("after %s: %+v, %v", time.Since(start), v, err)
			}
		})
	}
}

func TestValidateSentinels(t *testing.T) {
	cv := &configv1.ClusterVersion{}
	cv.Status.History = history([2]string{"4.20.3", "2030-02-01T00:00:00Z"})
	for version, want := range map[string]error{"4.20.2": upgradeconfig.ErrDowngrade, "4.20.3": upgradeconfig.ErrAlreadyAtVersion} {
		s := upgradeconfig.Spec{UpgradeAt: "2031-02-04T03:00:00Z", Desired: upgradeconfig.Update{Version: version, Channel: "c"}}
		if _, err := upgradeconfig.Validate(t.Context(), s, cv, upgradeconfig.ValidateOptions{}); !errors.Is(err, want) {
			t.Errorf("%s: %v", version, err)
		}
	}
	if v, err := upgradeconfig.Validate(t.Context(), upgradeconfig.Spec{UpgradeAt: "2031-02-04T03:00:00Z", Desired: upgradeconfig.Update{Version: "4.2.0"}}, nil, upgradeconfig.ValidateOptions{}); err == nil || v.IsValid {
		t.Errorf("without a ClusterVersion: %+v, %v", v, err)
	}
}

func FuzzValidateImage(f *testing.F) {
	for _, s := range []string{"quay.io/ocp/release" + digest, "release", "a@b", "[::1]:5000/a/b" + digest, "https://x", "/", ":", "a/b:c@sha256:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, image string) {
		if image == "" {
			return
		}
		s := upgradeconfig.Spec{UpgradeAt: "2031-02-04T03:00:00Z", Desired: upgradeconfig.Update{Image: image}}
		v, err := upgradeconfig.Validate(t.Context(), s, nil, upgradeconfig.ValidateOptions{})
		if v.IsValid != (err == nil) || v.IsValid != (len(v.Findings) == 0) {
			t.Fatalf("%q: %+v, %v", image, v, err)
		}
		if v.IsValid && (!strings.Contains(image, "@sha") || strings.Count(image, "/") < 2) {
			t.Fatalf("%q is valid", image)
		}
	})
}
