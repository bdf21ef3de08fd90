package clusterversion_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/cvtest"
)

func TestPreflightRequests(t *testing.T) {
	image := func(n int) string { return cvtest.ImageOf(cvtest.Repository, n) }
	checks := func(version, image string) func(*configv1.ClusterVersion) {
		return cvtest.Desired(configv1.Update{Version: version, Image: image, Mode: configv1.UpdateModePreflight})
	}
	offer := func(cv *configv1.ClusterVersion) {
		cv.Status.ConditionalUpdates = append(cv.Status.ConditionalUpdates, configv1.ConditionalUpdate{
			Release: configv1.Release{Version: "4.22.0", Image: image(22)},
		})
	}
	for _, tt := range []struct {
		name    string
		cv      *configv1.ClusterVersion
		request clusterversion.Request
		want    string // the request that is written
		out     string
		refused string
	}{
		{name: "an available update", cv: cvtest.Requestable(), request: clusterversion.PreflightRequest{To: "4.20.4"},
			want: "4.20.4 " + image(4) + " Preflight", out: "Requested preflight of 4.20.4\n"},
		{name: "one that is not recommended", cv: cvtest.Requestable(offer), request: clusterversion.PreflightRequest{To: "4.22.0"},
			want: "4.22.0 " + image(22) + " Preflight", out: "Requested preflight of 4.22.0\n"},
		{name: "an image", cv: cvtest.Requestable(), request: clusterversion.PreflightRequest{ToImage: image(99)},
			want: " " + image(99) + " Preflight", out: "Requested preflight of " + image(99) + "\n"},
		{name: "a request of an update", cv: cvtest.Requestable(cvtest.Desired(configv1.Update{Version: "4.20.10", Image: image(10)})),
			request: clusterversion.PreflightRequest{To: "4.20.4"}, want: "4.20.4 " + image(4) + " Preflight",
			out: "Requested preflight of 4.20.4\nwarning: the request of the update to 4.20.10, which has not begun, is taken back\n"},
		{name: "the same", cv: cvtest.Requestable(checks("4.20.4", image(4))), request: clusterversion.PreflightRequest{To: "4.20.4"},
			out: "info: The preflight of 4.20.4 is already requested\n"},
		{name: "where it is", cv: cvtest.Requestable(), request: clusterversion.PreflightRequest{To: "4.20.3"},
			out: "info: Cluster is already at 4.20.3\n"},
		{name: "not offered", cv: cvtest.Requestable(), request: clusterversion.PreflightRequest{To: "4.99.0"}, refused: "Unavailable"},
		{name: "a tag", cv: cvtest.Requestable(), request: clusterversion.PreflightRequest{ToImage: "quay.io/ocp/release:4.20.4"}, refused: "ByTag"},
		{name: "no version", cv: cvtest.Requestable(), request: clusterversion.PreflightRequest{To: "next"}, refused: "Usage"},
		{name: "no target", cv: cvtest.Requestable(), request: clusterversion.PreflightRequest{}, refused: "Usage"},
		{name: "no cluster", request: clusterversion.PreflightRequest{To: "4.20.4"}, refused: "NoClusterVersion"},
		{name: "clear", cv: cvtest.Requestable(checks("4.20.4", image(4))), request: clusterversion.ClearPreflight{},
			want: "none", out: "Cleared the preflight of 4.20.4\n"},
		{name: "clear as an update", cv: cvtest.Requestable(checks("4.20.4", image(4))), request: clusterversion.UpdateRequest{Clear: true},
			want: "none", out: "Cleared the preflight of 4.20.4\n"},
		{name: "several architectures, which are only checked", request: clusterversion.UpdateRequest{ToMultiArch: true},
			cv:   cvtest.Requestable(cvtest.Desired(configv1.Update{Version: "4.20.3", Architecture: "Multi", Mode: configv1.UpdateModePreflight})),
			want: "4.20.3  ", out: "Requested update to multi cluster architecture\n"},
		{name: "clear an update", cv: cvtest.Requestable(cvtest.Desired(configv1.Update{Version: "4.20.4", Image: image(4)})),
			request: clusterversion.ClearPreflight{}, out: "info: No preflight is requested\n"},
		{name: "clear without a cluster", request: clusterversion.ClearPreflight{}, refused: "NoClusterVersion"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer, err := tt.request.Edit(tt.cv)
			if refused, _ := err.(*clusterversion.RefusedError); refused != nil {
				checktest.Equal(t, tt.refused, refused.Reason, "refused")
				return
			}
			checktest.OK(t, err)
			checktest.Equal(t, tt.out, answer.Out+answer.Err, "said")
			got := ""
			if answer.ClusterVersion != nil {
				got = "none"
				if u := answer.ClusterVersion.Spec.DesiredUpdate; u != nil {
					got = strings.Join([]string{u.Version, u.Image, string(u.Mode)}, " ")
				}
			}
			checktest.Equal(t, tt.want, got, "written")
		})
	}
}

// found draws what preflights of up to three releases found.
func found(t *rapid.T) []clusterversion.Preflight {
	name := rapid.StringMatching(`[A-Z][A-Za-z]{0,12}(Unknown)?`)
	finding := rapid.Custom(func(t *rapid.T) clusterversion.PreflightFinding {
		return clusterversion.PreflightFinding{
			Name: name.Draw(t, "name"), Message: rapid.StringN(1, 40, -1).Draw(t, "message"),
			URL: rapid.SampledFrom([]string{"", "https://docs.example/x"}).Draw(t, "url"),
		}
	})
	var all []clusterversion.Preflight
	for i := range rapid.IntRange(0, 3).Draw(t, "releases") {
		p := clusterversion.Preflight{Release: configv1.Release{Version: fmt.Sprintf("4.21.%d", 9-i), Image: fmt.Sprint("image", i)}}
		p.State = rapid.SampledFrom([]clusterversion.PreflightState{"Running", "Completed", "Failed"}).Draw(t, "state")
		switch p.State {
		case clusterversion.PreflightRunning:
			p.Message = "1 of 2"
		case clusterversion.PreflightFailed:
			p.Findings = []clusterversion.PreflightFinding{{Name: clusterversion.PreflightIncomplete, Message: "broken"}}
		default:
			p.Findings = rapid.SliceOfNDistinct(finding, 0, 5, func(f clusterversion.PreflightFinding) string { return f.Name }).Draw(t, "findings")
			if len(p.Findings) == 0 {
				p.Findings = nil
			}
		}
		if p.State != clusterversion.PreflightRunning && rapid.Bool().Draw(t, "ended") {
			p.Ended = time.Unix(1e9+int64(i), 0).UTC()
		}
		all = append(all, p)
	}
	return all
}

// What preflights found is in the status as it was shown, stays the same when it is shown
// again, and leaves nothing when it is removed.
func TestPreflightsAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s configv1.ClusterVersionStatus
		s.AvailableUpdates = []configv1.Release{{Version: "4.21.9", Image: "image0"}, {Version: "4.21.1", Image: "other"}}
		if rapid.Bool().Draw(t, "conditional") {
			risks := []configv1.ConditionalUpdateRisk{{Name: "SlowDisks", Message: "Preflight=no", URL: "https://docs.example/slow"}}
			s.ConditionalUpdates = []configv1.ConditionalUpdate{{Release: configv1.Release{Version: "4.21.8", Image: "image1"}, Risks: risks, RiskNames: []string{"SlowDisks"},
				Conditions: []metav1.Condition{{Type: "Recommended", Status: "False", Reason: "SlowDisks"}}}}
			s.ConditionalUpdateRisks = slices.Clone(risks)
		}
		before := s.DeepCopy()
		want := found(t)
		o := clusterversion.PreflightDisplay{Now: metav1.NewTime(time.Unix(1e9, 0))}
		clusterversion.ShowPreflights(&s, want, o)
		got := clusterversion.Preflights(&s)
		slices.SortFunc(got, func(a, b clusterversion.Preflight) int { return strings.Compare(b.Release.Version, a.Release.Version) })
		checktest.Same(t, want, got)

		again := s.DeepCopy()
		clusterversion.RemovePreflights(again)
		checktest.Same(t, before, again)
		later := o
		later.Before, later.Now = &s, metav1.NewTime(time.Unix(2e9, 0))
		clusterversion.ShowPreflights(again, clusterversion.Preflights(&s), later)
		checktest.Same(t, &s, again)
	})
}

// crowded are six releases with 100 findings each, which are long.
func crowded() []clusterversion.Preflight {
	long := strings.Repeat("x", 40<<10)
	var all []clusterversion.Preflight
	for i := range 6 {
		p := clusterversion.Preflight{Release: configv1.Release{Version: fmt.Sprintf("4.21.%d", i), Image: fmt.Sprint("image", i)}, State: "Completed"}
		for j := range 100 {
			p.Findings = append(p.Findings, clusterversion.PreflightFinding{Name: fmt.Sprintf("Check%d%s", j, strings.Repeat("Y", 300*(j%2))), Message: long})
		}
		all = append(all, p)
	}
	return all
}

// showCrowded shows some of them, and returns the sums of their risks and messages.
func showCrowded(t *testing.T, n int) (risks, bytes int) {
	var s configv1.ClusterVersionStatus
	clusterversion.ShowPreflights(&s, crowded()[:n], clusterversion.PreflightDisplay{})
	for _, c := range s.ConditionalUpdates {
		for _, r := range c.Risks {
			bytes += len(r.Message)
			if len(r.Name) > 256 {
				t.Errorf("the name %s has %d characters", r.Name, len(r.Name))
			}
		}
		last := c.Risks[len(c.Risks)-1]
		checktest.Has(t, last.Name, "PreflightIncompleteFor")
		checktest.Has(t, last.Message, "findings are left out")
		risks += len(c.Risks)
	}
	checktest.Equal(t, risks, len(s.ConditionalUpdateRisks), "listed risks")
	return risks, bytes
}

// An update is recommended unless a risk applies that is not accepted.
func TestPreflightRecommends(t *testing.T) {
	for name, tt := range map[string]struct {
		state    clusterversion.PreflightState
		findings []string
		accepted []string
		blocks   bool
		want     string
		left     int // available updates
	}{
		"passed":            {"Completed", nil, nil, true, "True PreflightPassed", 1},
		"running":           {"Running", nil, nil, true, "Unknown PreflightRunning", 1},
		"risks":             {"Completed", []string{"A", "B"}, []string{"AFor4_21_1"}, false, "False PreflightValidation", 1},
		"risks that block":  {"Completed", []string{"A", "B"}, []string{"AFor4_21_1"}, true, "False PreflightValidation", 0},
		"of another target": {"Completed", []string{"A"}, []string{"AFor4_21_2"}, true, "False PreflightValidation", 0},
		"accepted":          {"Completed", []string{"A", "B"}, []string{"AFor4_21_1", "BFor4_21_1"}, true, "True PreflightRisksAccepted", 1},
		"failed":            {"Failed", []string{clusterversion.PreflightIncomplete}, nil, true, "False PreflightFailed", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := clusterversion.Preflight{Release: configv1.Release{Version: "4.21.1", Image: "image"}, State: tt.state}
			for _, f := range tt.findings {
				p.Findings = append(p.Findings, clusterversion.PreflightFinding{Name: f, Message: "it says"})
			}
			s := configv1.ClusterVersionStatus{AvailableUpdates: []configv1.Release{p.Release}}
			clusterversion.ShowPreflights(&s, []clusterversion.Preflight{p}, clusterversion.PreflightDisplay{Blocks: tt.blocks, Accepted: tt.accepted})
			r := meta.FindStatusCondition(s.ConditionalUpdates[0].Conditions, "Recommended")
			checktest.Equal(t, tt.want, string(r.Status)+" "+r.Reason, "recommended")
			checktest.Equal(t, tt.left, len(s.AvailableUpdates), "available updates")
		})
	}
}
