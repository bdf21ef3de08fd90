package clusterversion_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestResolve(t *testing.T) {
	multi := configv1.ClusterVersionArchitectureMulti
	tests := []struct {
		name    string
		change  func(*configv1.ClusterVersion)
		base    string // default: 4.2.0@A
		options clusterversion.ResolveOptions
		row     clusterversion.Row
		outcome clusterversion.Outcome
		want    string
		why     string
	}{
		{name: "no request", row: clusterversion.RowNone, outcome: clusterversion.OwnRelease, want: "4.2.0@A"},
		{name: "available", row: clusterversion.RowAvailable, change: request(configv1.Update{Version: "4.2.1"}), outcome: clusterversion.Resolved, want: "4.2.1@B"},
		{name: "another image of an available version", row: clusterversion.RowImage, change: request(configv1.Update{Version: "4.2.1", Image: "C"}), outcome: clusterversion.Resolved, want: "4.2.1@C"},
		{name: "image alone", row: clusterversion.RowImage, change: request(configv1.Update{Image: "C"}), outcome: clusterversion.Resolved, want: "@C"},
		{name: "image of an available update", row: clusterversion.RowImage, change: request(configv1.Update{Image: "B"}), outcome: clusterversion.Resolved, want: "4.2.1@B"},
		{name: "satisfied", row: clusterversion.RowCurrent, change: request(configv1.Update{Version: "4.2.0"}), outcome: clusterversion.OwnRelease, want: "4.2.0@A"},
		{name: "satisfied, by image", row: clusterversion.RowCurrent, change: request(configv1.Update{Image: "A"}), outcome: clusterversion.OwnRelease, want: "4.2.0@A"},
		{name: "under way", row: clusterversion.RowCurrent, base: "4.2.2@X", change: func(cv *configv1.ClusterVersion) {
			cv.Status.History = append([]configv1.UpdateHistory{{Version: "4.2.2", Image: "X", State: configv1.PartialUpdate}}, cv.Status.History...)
			cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.2.2"}
		}, outcome: clusterversion.UnderWay, want: "4.2.2@X"},
		{name: "known from the history", row: clusterversion.RowNotFound, change: request(configv1.Update{Version: "4.1.9"}), outcome: clusterversion.NotFound, want: "4.2.0@A",
			why: "version 4.1.9 is known from the history, but is not an available update: request it with its image Z"},
		{name: "conditional", row: clusterversion.RowNotFound, change: func(cv *configv1.ClusterVersion) {
			cv.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{Release: release("4.2.3@D"), Risks: []configv1.ConditionalUpdateRisk{{Name: "R1"}, {Name: "R2"}}}}
			cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.2.3"}
		}, outcome: clusterversion.NotFound, want: "4.2.0@A",
			why: "version 4.2.3 is not recommended for this cluster because of the risks R1, R2: to accept them, request it with its image D"},
		{name: "conditional, and in the history", row: clusterversion.RowNotFound, options: clusterversion.ResolveOptions{History: true},
			change: func(cv *configv1.ClusterVersion) {
				atRisk("")(cv)
				cv.Status.History = history("4.2.0@A C, 4.2.3@D P, 4.1.9@Z C")
			}, outcome: clusterversion.NotFound, want: "4.2.0@A",
			why: "version 4.2.3 is not recommended for this cluster because of the risks R1, R2: to accept them, request it with its image D"},
		{name: "recommended by now, and in the history", row: clusterversion.RowHistory, options: clusterversion.ResolveOptions{History: true},
			change: func(cv *configv1.ClusterVersion) {
				atRisk(metav1.ConditionTrue)(cv)
				cv.Status.History = history("4.2.0@A C, 4.2.3@D P, 4.1.9@Z C")
			}, outcome: clusterversion.Resolved, want: "4.2.3@D"},
		{name: "nowhere", row: clusterversion.RowNotFound, change: request(configv1.Update{Version: "4.9.9"}), outcome: clusterversion.NotFound, want: "4.2.0@A", why: "version 4.9.9 is not an available update"},
		{name: "conditional with image", row: clusterversion.RowImage, change: request(configv1.Update{Version: "4.2.3", Image: "D"}), outcome: clusterversion.Resolved, want: "4.2.3@D"},
		{name: "only risks", row: clusterversion.RowNone, change: request(configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}}), outcome: clusterversion.OwnRelease, want: "4.2.0@A"},
		{name: "multi, not offered", row: clusterversion.RowNotFound, change: request(configv1.Update{Version: "4.2.0", Architecture: multi}), outcome: clusterversion.NotFound, want: "4.2.0@A",
			why: "no multi-architecture release of 4.2.0 is available"},
		{name: "multi ignores the requested version", row: clusterversion.RowMultiArch, change: func(cv *configv1.ClusterVersion) {
			cv.Status.AvailableUpdates = []configv1.Release{release("4.2.0@M"), release("4.2.1@B")}
			cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.2.1", Architecture: multi}
		}, outcome: clusterversion.Resolved, want: "4.2.0@M"},

		{name: "from the history", row: clusterversion.RowHistory, options: clusterversion.ResolveOptions{History: true}, change: request(configv1.Update{Version: "4.1.9"}), outcome: clusterversion.Resolved, want: "4.1.9@Z"},
		{name: "not in the history", row: clusterversion.RowNotFound, options: clusterversion.ResolveOptions{History: true}, change: request(configv1.Update{Version: "4.9.9"}), outcome: clusterversion.NotFound, want: "4.2.0@A", why: "version 4.9.9 is not an available update"},
		{name: "all risks accepted", row: clusterversion.RowAtRisk, options: clusterversion.ResolveOptions{Accepted: true}, change: atRisk("", "R1", "R2", "R3"), outcome: clusterversion.Resolved, want: "4.2.3@D"},
		{name: "one risk not accepted", row: clusterversion.RowNotFound, options: clusterversion.ResolveOptions{Accepted: true}, change: atRisk("", "R1"), outcome: clusterversion.NotFound, want: "4.2.0@A",
			why: "version 4.2.3 is not recommended for this cluster because of the risks R1, R2: to accept them, request it with its image D"},
		{name: "accepted without the option", row: clusterversion.RowNotFound, change: atRisk("", "R1", "R2"), outcome: clusterversion.NotFound, want: "4.2.0@A",
			why: "version 4.2.3 is not recommended for this cluster because of the risks R1, R2: to accept them, request it with its image D"},
		{name: "recommended after all", row: clusterversion.RowAtRisk, options: clusterversion.ResolveOptions{Accepted: true}, change: atRisk("True"), outcome: clusterversion.Resolved, want: "4.2.3@D"},
		{name: "whatever its risks", row: clusterversion.RowAtRisk, options: clusterversion.ResolveOptions{Conditional: true}, change: atRisk("False"), outcome: clusterversion.Resolved, want: "4.2.3@D"},
		{name: "available before at risk", row: clusterversion.RowAvailable, options: clusterversion.ResolveOptions{Conditional: true, History: true}, change: request(configv1.Update{Version: "4.2.1"}), outcome: clusterversion.Resolved, want: "4.2.1@B"},

		{name: "started, and gone from the lists", row: clusterversion.RowCurrent, base: "4.2.2@X", change: request(configv1.Update{Version: "4.2.2"}), outcome: clusterversion.OwnRelease, want: "4.2.2@X"},
		{name: "started, request removed", row: clusterversion.RowNone, base: "4.2.2@X", outcome: clusterversion.OwnRelease, want: "4.2.2@X"},
		{name: "started, retargeted", row: clusterversion.RowAvailable, base: "4.2.2@X", change: request(configv1.Update{Version: "4.2.1"}), outcome: clusterversion.Resolved, want: "4.2.1@B"},
		{name: "started, turned around by image", row: clusterversion.RowImage, base: "4.2.2@X", change: request(configv1.Update{Version: "4.2.0", Image: "A"}), outcome: clusterversion.Resolved, want: "4.2.0@A"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base := release("4.2.0@A")
			if tt.base != "" {
				base = release(tt.base)
			}
			got := clusterversion.Resolve(version(tt.change), base, false, tt.options)
			got.Withdrawn = ""
			want := clusterversion.Resolution{Outcome: tt.outcome, Row: tt.row, Release: release(tt.want), Why: tt.why}
			checktest.Same(t, want, got)
		})
	}
}

// atRisk asks for a conditional update with the risks R1 and R2, and accepts some.
func atRisk(recommended metav1.ConditionStatus, accept ...string) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) {
		u := configv1.ConditionalUpdate{Release: release("4.2.3@D"), Risks: []configv1.ConditionalUpdateRisk{{Name: "R1"}, {Name: "R2"}}}
		if recommended != "" {
			u.Conditions = []metav1.Condition{{Type: "Recommended", Status: recommended}}
		}
		cv.Status.ConditionalUpdates = []configv1.ConditionalUpdate{u}
		cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.2.3"}
		for _, name := range accept {
			cv.Spec.DesiredUpdate.AcceptRisks = append(cv.Spec.DesiredUpdate.AcceptRisks, configv1.AcceptRisk{Name: name})
		}
	}
}

// What becomes of the cluster if the request is withdrawn.
func TestResolveWithdrawn(t *testing.T) {
	started := func(cv *configv1.ClusterVersion) {
		cv.Status.History = append([]configv1.UpdateHistory{{Version: "4.2.2", Image: "X", State: configv1.PartialUpdate}}, cv.Status.History...)
	}
	for _, tt := range []struct {
		name   string
		change func(*configv1.ClusterVersion)
		base   string
		want   string
	}{
		{"no request", nil, "4.2.0@A", ""},
		{"asked for", request(configv1.Update{Version: "4.2.1"}), "4.2.0@A", "the cluster stays at 4.2.0: nothing of 4.2.1 has been applied"},
		{"asked for by image", request(configv1.Update{Image: "C"}), "4.2.0@A", "the cluster stays at 4.2.0: nothing of C has been applied"},
		{"satisfied", request(configv1.Update{Version: "4.2.0"}), "4.2.0@A", "the cluster stays at 4.2.0, as it does now"},
		{"not found", request(configv1.Update{Version: "4.9.9"}), "4.2.0@A", "the cluster stays at 4.2.0, as it does now"},
		{"started", func(cv *configv1.ClusterVersion) {
			started(cv)
			request(configv1.Update{Version: "4.2.2"})(cv)
		}, "4.2.2@X", "the update to 4.2.2, which was started, goes on"},
		{"started, and another one is asked for", func(cv *configv1.ClusterVersion) {
			started(cv)
			request(configv1.Update{Version: "4.2.1"})(cv)
		}, "4.2.2@X", "the update to 4.2.2, which was started, goes on"},
	} {
		if got := clusterversion.Resolve(version(tt.change), release(tt.base), false, clusterversion.ResolveOptions{}); got.Withdrawn != tt.want {
			t.Errorf("%s: %s", tt.name, got.Withdrawn)
		}
	}
}

func TestResolveFaulty(t *testing.T) {
	cv := version(nil)
	got := clusterversion.Resolve(cv, release("4.2.2@X"), true, clusterversion.ResolveOptions{})
	want := clusterversion.Resolution{Outcome: clusterversion.Invalid, Row: clusterversion.RowInvalid, Release: release("4.2.2@X"), Why: "the request is invalid", Withdrawn: "the cluster stays at 4.2.2, as it does now"}
	checktest.Same(t, want, got)
}

func TestResolveForce(t *testing.T) {
	got := clusterversion.Resolve(version(request(configv1.Update{Version: "4.2.1", Force: true})), release("4.2.0@A"), false, clusterversion.ResolveOptions{})
	if !got.Force || got.Outcome != clusterversion.Resolved {
		t.Errorf("got %+v", got)
	}
}

// version returns a valid object: own 4.2.0@A, available 4.2.1@B, history
// 4.1.9@Z.
func version(change func(*configv1.ClusterVersion)) *configv1.ClusterVersion {
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	cv.Spec.ClusterID = "8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01"
	cv.Status.Desired = release("4.2.0@A")
	cv.Status.AvailableUpdates = []configv1.Release{release("4.2.1@B")}
	cv.Status.History = history("4.2.0@A C, 4.1.9@Z C")
	if change != nil {
		change(cv)
	}
	return cv
}

func request(u configv1.Update) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) { cv.Spec.DesiredUpdate = &u }
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name        string
		change      func(*configv1.ClusterVersion)
		acceptRisks bool
		want        []string
	}{
		{name: "valid"},
		{name: "name", change: func(cv *configv1.ClusterVersion) { cv.Name = "Version" }, want: []string{
			`name: Invalid value: "Version": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`}},
		{name: "namespaced", change: func(cv *configv1.ClusterVersion) { cv.Namespace = "x" }, want: []string{`namespace: Forbidden: not allowed on this type`}},
		{name: "generated name", change: func(cv *configv1.ClusterVersion) { cv.GenerateName = "v-" }},
		{name: "generated name in capitals", change: func(cv *configv1.ClusterVersion) { cv.GenerateName = "V1-" }, want: []string{
			`generateName: Invalid value: "V1-": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`}},
		{name: "upstream foo passes", change: func(cv *configv1.ClusterVersion) { cv.Spec.Upstream = "foo" }},
		{name: "upstream colon", change: func(cv *configv1.ClusterVersion) { cv.Spec.Upstream = ":a&b" }, want: []string{`spec.upstream: Invalid value: ":a\u0026b": must be a valid URL or empty`}},
		{name: "upstream escape", change: func(cv *configv1.ClusterVersion) { cv.Spec.Upstream = "https://a/%zz" }, want: []string{`spec.upstream: Invalid value: "https://(redacted)": must be a valid URL or empty`}},
		{name: "no cluster ID", change: func(cv *configv1.ClusterVersion) { cv.Spec.ClusterID = "" }},
		{name: "cluster ID in braces", change: func(cv *configv1.ClusterVersion) { cv.Spec.ClusterID = "{8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01}" }},
		{name: "cluster ID as URN", change: func(cv *configv1.ClusterVersion) { cv.Spec.ClusterID = "URN:uuid:8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01" }},
		{name: "cluster ID bare", change: func(cv *configv1.ClusterVersion) { cv.Spec.ClusterID = "8d4c5c1a8e0e4bd99d5d8d2a4c9f7f01" }},
		{name: "cluster ID in other braces", change: func(cv *configv1.ClusterVersion) { cv.Spec.ClusterID = "(8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01)" }, want: []string{
			`spec.clusterID: Invalid value: "(8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01)": must be an RFC4122-variant UUID`}},
		{name: "cluster ID with rubbish at the end", change: func(cv *configv1.ClusterVersion) { cv.Spec.ClusterID = "8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7fxx" }, want: []string{
			`spec.clusterID: Invalid value: "8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7fxx": must be an RFC4122-variant UUID`}},
		{name: "cluster ID of another variant", change: func(cv *configv1.ClusterVersion) { cv.Spec.ClusterID = "8d4c5c1a-8e0e-4bd9-1d5d-8d2a4c9f7f01" }, want: []string{
			`spec.clusterID: Invalid value: "8d4c5c1a-8e0e-4bd9-1d5d-8d2a4c9f7f01": must be an RFC4122-variant UUID`}},
		{name: "cluster ID of version 1", change: func(cv *configv1.ClusterVersion) { cv.Spec.ClusterID = "8d4c5c1a-8e0e-1bd9-9d5d-8d2a4c9f7f01" }, want: []string{
			`spec.clusterID: Invalid value: "8d4c5c1a-8e0e-1bd9-9d5d-8d2a4c9f7f01": must be a version-4 UUID`}},

		{name: "available", change: request(configv1.Update{Version: "4.2.1"})},
		{name: "in the history", change: request(configv1.Update{Version: "4.1.9"})},
		{name: "image alone", change: request(configv1.Update{Image: "C"})},
		{name: "unknown version with image", change: request(configv1.Update{Version: "4.9.9", Image: "C"})},
		{name: "unknown", change: request(configv1.Update{Version: "4.2.3"}), want: []string{
			`spec.desiredUpdate.version: Invalid value: "4.2.3": when image is empty the update must be an available update`}},
		{name: "force does not help", change: request(configv1.Update{Version: "4.2.3", Force: true}), want: []string{
			`spec.desiredUpdate.version: Invalid value: "4.2.3": when image is empty the update must be an available update`}},
		{name: "conditional does not count", change: func(cv *configv1.ClusterVersion) {
			cv.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{Release: release("4.2.3@D")}}
			cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.2.3"}
		}, want: []string{`spec.desiredUpdate.version: Invalid value: "4.2.3": when image is empty the update must be an available update`}},
		{name: "several images", change: func(cv *configv1.ClusterVersion) {
			cv.Status.AvailableUpdates = append(cv.Status.AvailableUpdates, release("4.2.1@B"))
			cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.2.1"}
		}, want: []string{`spec.desiredUpdate.version: Invalid value: "4.2.1": there are multiple possible payloads for this version, specify the exact image`}},
		{name: "not semver", change: request(configv1.Update{Version: "v4.2.1"}), want: []string{
			`spec.desiredUpdate.version: Invalid value: "v4.2.1": must be a semantic version (1.2.3[-...])`}},
		{name: "a number that is too large", change: request(configv1.Update{Version: "4.2.1-99999999999999999999", Image: "C"}), want: []string{
			`spec.desiredUpdate.version: Invalid value: "4.2.1-99999999999999999999": must be a semantic version (1.2.3[-...])`}},
		{name: "not semver, with image", change: request(configv1.Update{Version: "4.2", Image: "C"}), want: []string{
			`spec.desiredUpdate.version: Invalid value: "4.2": must be a semantic version (1.2.3[-...])`}},
		{name: "nothing", change: request(configv1.Update{}), want: []string{
			`spec.desiredUpdate: Required value: must specify architecture, version, or image`}},
		{name: "nothing, gate on", change: request(configv1.Update{}), acceptRisks: true, want: []string{
			`spec.desiredUpdate: Required value: must specify architecture, version, image, or acceptRisks`}},
		{name: "risks without the gate", change: request(configv1.Update{Version: "4.2.1", AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}}), want: []string{
			`spec.desiredUpdate.acceptRisks: Forbidden: acceptRisks must not be specified`}},
		{name: "risks alone, gate on", change: request(configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}}), acceptRisks: true},
		{name: "all at once", change: func(cv *configv1.ClusterVersion) {
			cv.Spec.Upstream, cv.Spec.ClusterID, cv.Spec.DesiredUpdate = ":", "x", &configv1.Update{Version: "x"}
		}, want: []string{
			`spec.upstream: Invalid value: ":": must be a valid URL or empty`,
			`spec.clusterID: Invalid value: "x": must be an RFC4122-variant UUID`,
			`spec.desiredUpdate.version: Invalid value: "x": must be a semantic version (1.2.3[-...])`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, err := range clusterversion.Validate(version(tt.change), tt.acceptRisks) {
				got = append(got, err.Error())
			}
			checktest.Same(t, tt.want, got)
		})
	}
}

func TestClear(t *testing.T) {
	bad := version(func(cv *configv1.ClusterVersion) {
		cv.Spec.Upstream, cv.Spec.ClusterID, cv.Spec.Channel = ":", "x", "stable-4.2"
		cv.Spec.DesiredUpdate = &configv1.Update{Version: "x", Image: "C"}
	})
	before := bad.DeepCopy()
	got := clusterversion.Clear(bad, clusterversion.Validate(bad, false))
	want := configv1.ClusterVersionSpec{Channel: "stable-4.2"}
	checktest.Same(t, want, got.Spec)
	checktest.SameIn(t, "the object itself changed (-before +after)", before, bad)

	required := version(request(configv1.Update{Force: true}))
	if got := clusterversion.Clear(required, clusterversion.Validate(required, false)); got.Spec.DesiredUpdate == nil {
		t.Error("a fault of desiredUpdate itself cleared it")
	}
}

func requestOf(t testing.TB, desired string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	if desired == "" {
		return u
	}
	var value any
	checktest.OK(t, yaml.Unmarshal([]byte(desired), &value))
	u.Object["spec"].(map[string]any)["desiredUpdate"] = value
	return u
}

func TestNotUnderstood(t *testing.T) {
	const unknown = ": Forbidden: not understood by this version"
	for name, tt := range map[string]struct {
		desired string
		want    []string
	}{
		"no request":           {"", nil},
		"null":                 {"null", nil},
		"empty":                {"{}", nil},
		"all that is known":    {"{architecture: Multi, version: 4.19.1, image: i, force: true, acceptRisks: [{name: A}], mode: ''}", nil},
		"preflight":            {"{version: 4.19.1, mode: Preflight}", nil},
		"another mode":         {"{version: 4.19.1, mode: DryRun}", []string{"spec.desiredUpdate.mode" + unknown}},
		"mode in another case": {"{version: 4.19.1, Mode: Preflight}", []string{"spec.desiredUpdate.Mode" + unknown}},
		"another architecture": {"{version: 4.19.1, architecture: arm64}", []string{"spec.desiredUpdate.architecture" + unknown}},
		"unknown fields":       {"{version: 4.19.1, window: x, after: {at: 1}}", []string{"spec.desiredUpdate.after" + unknown, "spec.desiredUpdate.window" + unknown}},
		"unknown and null":     {"{version: 4.19.1, window: null}", []string{"spec.desiredUpdate.window" + unknown}},
		"unknown in a list":    {"{version: 4.19.1, acceptRisks: [{name: A}, {name: B, until: x}]}", []string{"spec.desiredUpdate.acceptRisks[1].until" + unknown}},
		"all kinds":            {"{mode: Preflight, architecture: s390x, x: 1}", []string{"spec.desiredUpdate.architecture" + unknown, "spec.desiredUpdate.x" + unknown}},
		"control characters":   {`{"a\u001b[1mb": 1}`, []string{`spec.desiredUpdate."a\x1b[1mb"` + unknown}},
		"long name":            {"{" + strings.Repeat("n", 500) + ": 1}", []string{"spec.desiredUpdate." + strings.Repeat("n", 80) + "... (420 more bytes)" + unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			cv := requestOf(t, tt.desired)
			before := cv.DeepCopy()
			var got []string
			for _, err := range clusterversion.NotUnderstood(cv) {
				got = append(got, err.Error())
			}
			checktest.Same(t, tt.want, got)
			if diff := cmp.Diff(before.Object, cv.Object); diff != "" {
				t.Errorf("the object was changed: %s", diff)
			}
		})
	}
}

// TestNotUnderstoodTypes: what is not an object, or has a field of another type, is not
// understood either, and many faults are cut.
func TestNotUnderstoodTypes(t *testing.T) {
	for _, desired := range []string{"4.19.1", "[]", "{version: 4}", "{force: yes please}", "{acceptRisks: A}"} {
		faults := clusterversion.NotUnderstood(requestOf(t, desired))
		if len(faults) != 1 || !strings.HasPrefix(faults[0].Error(), "spec.desiredUpdate: Forbidden: not understood by this version") {
			t.Errorf("%s: %v", desired, faults)
		}
	}
	many := "{"
	for i := range 50 {
		many += fmt.Sprintf("f%02d: x, ", i)
	}
	if faults := clusterversion.NotUnderstood(requestOf(t, many+"}")); len(faults) != 10 || faults[0].Field != "spec.desiredUpdate.f00" {
		t.Errorf("%d faults: %v", len(faults), faults)
	}
}

// TestUpdateFields fails when openshift/api has a new field of a request: somebody
// must decide what it means before it counts as understood.
func TestUpdateFields(t *testing.T) {
	var got []string
	for f := range reflect.TypeFor[configv1.Update]().Fields() {
		got = append(got, strings.Split(f.Tag.Get("json"), ",")[0])
	}
	checktest.Same(t, []string{"architecture", "version", "image", "force", "acceptRisks", "mode"}, got)
}

func FuzzNotUnderstood(f *testing.F) {
	for _, seed := range []string{`{}`, `{"mode":"Preflight"}`, `{"version":"4.19.1","x":{"y":[1,null]}}`, `{"acceptRisks":[{"name":"a","b":1}]}`, `"x"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var desired any
		if json.Unmarshal(data, &desired) != nil {
			return
		}
		cv := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"desiredUpdate": desired}}}
		faults := clusterversion.NotUnderstood(cv)
		if len(faults) > 10 {
			t.Errorf("%d faults", len(faults))
		}
		for _, err := range faults {
			if text := err.Error(); len(text) > 1000 || strings.ContainsAny(text, "\x00\x1b\n") {
				t.Errorf("fault %q", text)
			}
		}
		if fields, ok := desired.(map[string]any); ok && len(faults) == 0 {
			for name := range fields {
				switch name {
				case "architecture", "version", "image", "force", "acceptRisks", "mode":
				default:
					t.Errorf("field %q counts as understood", name)
				}
			}
		}
	})
}
