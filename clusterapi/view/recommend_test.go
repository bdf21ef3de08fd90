package view_test

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

func recommendWriter(t *testing.T, in view.RecommendInput, o view.RecommendText) func(io.Writer, io.Writer) error {
	t.Helper()
	r := checktest.Get(view.AssessRecommend(in))(t)
	return func(out, errOut io.Writer) error { return r.WriteText(out, errOut, o) }
}

// precheck makes the result of a check with one condition.
func precheck(t, status, reason, message, name string) view.Precheck {
	return view.Precheck{Conditions: []view.PrecheckCondition{{Condition: view.Condition{Type: t, Status: status, Reason: reason, Message: message}, AcceptanceName: name}}}
}

// TestRecommendRecorded compares with recorded outputs of the command line tool,
// byte for byte. Its tests inject a check for alerts that it has no data of.
func TestRecommendRecorded(t *testing.T) {
	dir := filepath.Join(testdata.Dir(t), "clusters", "recommend")
	const clusters = "-cv.yaml"
	files, err := filepath.Glob(filepath.Join(dir, "*"+clusters))
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings", err)
	}
	for _, file := range files {
		base := strings.TrimSuffix(file, clusters)
		name := filepath.Base(base)
		outputs := checktest.Get(filepath.Glob(base + ".*output"))(t)
		for _, output := range outputs {
			t.Run(filepath.Base(output), func(t *testing.T) {
				in := view.RecommendInput{ClusterVersion: readVersion(t, file), Prechecks: []view.Precheck{precheck("recommended/Alert", "Unknown", "NoTestData",
					"This --mock-clusterversion run did not have alert data available at examples/"+name+"-alerts.json", "AlertNoTestData")}}
				var o view.RecommendText
				switch variant := strings.TrimPrefix(output, base+"."); variant {
				case "output":
				case "show-outdated-releases-output":
					o.ShowOutdated = true
				default:
					in.Version = strings.TrimSuffix(strings.TrimPrefix(variant, "version-"), "-output")
				}
				out, _ := texts(recommendWriter(t, in, o))
				checktest.Same(t, readFile(t, output), out)
			})
		}
	}
}

// TestRecommendSamples compares with outputs of the product's documentation, and
// with what the tool prints today for the same cluster.
func TestRecommendSamples(t *testing.T) {
	for _, tt := range []struct {
		want    string
		version string
		docs418 bool
	}{
		{"recommend.txt", "", false},
		{"recommend-docs418.txt", "", true},
		{"recommend-version.txt", "4.12.51", false},
		{"recommend-version-docs418.txt", "4.12.51", true},
	} {
		t.Run(tt.want, func(t *testing.T) {
			in := view.RecommendInput{ClusterVersion: readVersion(t, "testdata/recommend.yaml"), Version: tt.version}
			out, errOut := texts(recommendWriter(t, in, view.RecommendText{Docs418: tt.docs418}))
			if tt.docs418 { // which did not judge
				out, _, _ = strings.Cut(out, "\nerror: ")
			}
			checkSample(t, tt.want, out)
			checktest.FailIf(t, errOut != "", "warned %q", errOut)
		})
	}
}

const noUpdates = "No updates available. You may still upgrade to a specific release image with --to-image or wait for new updates to be available.\n"

// TestRecommendBlocks holds the text of each block above the updates.
func TestRecommendBlocks(t *testing.T) {
	const missing = "warning: No current Failing info, see `oc describe clusterversion` for more details.\n"
	const progress = "info: An update is in progress.  You may wish to let this update complete before requesting a new update.\n  a\n  b\n\n"
	for _, tt := range []struct {
		name    string
		edit    func(*configv1.ClusterVersion)
		accept  []string
		out     string
		warning string
		issues  string
	}{
		{name: "nothing", edit: edited()},
		{name: "failing", edit: with("Failing", "True", "R", "a\nb"), out: "Failing=True:\n\n  Reason: R\n  Message: a\n  b\n\n", issues: "Failing"},
		{name: "failing accepted", edit: with("Failing", "Unknown", "R", "a"), accept: []string{"Failing"}, out: "accepted Failing=Unknown:\n\n  Reason: R\n  Message: a\n\n", issues: "accepted Failing"},
		{name: "no failing", edit: without("Failing"), warning: missing, issues: "Failing"},
		{name: "no failing accepted", edit: without("Failing"), accept: []string{"Failing"}, warning: "accepted " + missing, issues: "accepted Failing"},
		{name: "progressing", edit: with("Progressing", "True", "R", "a\nb"), out: progress, issues: "Progressing"},
		{name: "progressing accepted", edit: with("Progressing", "True", "R", "a\nb"), accept: []string{"Progressing"}, out: "accepted " + progress, issues: "accepted Progressing"},
		{name: "progressing without message", edit: with("Progressing", "True", "R", "")},
		{name: "progressing unknown", edit: with("Progressing", "Unknown", "R", "a")},
		{name: "no progressing", edit: without("Progressing")},
		{name: "stale", edit: with("RetrievedUpdates", "False", "R", "a\nb"), warning: "warning: Cannot refresh available updates:\n  Reason: R\n  Message: a\n  b\n\n", issues: "CannotRetrieveUpdates"},
		{name: "stale unknown", edit: with("RetrievedUpdates", "Unknown", "R", "a"), warning: "warning: Cannot refresh available updates:\n  Reason: R\n  Message: a\n\n", issues: "CannotRetrieveUpdates"},
		{name: "fresh", edit: with("RetrievedUpdates", "True", "R", "a")},
		{name: "channel", edit: channel("b", "", "a", "b"), out: "Upstream update service is unset, so the cluster will use an appropriate default.\nChannel: b (available channels: a, b)\n"},
		{name: "upstream", edit: channel("b", "https://up.example"), out: "Upstream update service: https://up.example\nChannel: b\n"},
		{name: "upstream without channel", edit: channel("", "https://up.example", "a")},
		{name: "not upgradeable is not mentioned", edit: with("Upgradeable", "False", "R", "a")},
		{name: "all, by name", edit: edited(with("Failing", "True", "R", "a"), with("RetrievedUpdates", "False", "R", "M"), with("Progressing", "True", "R", "a\nb")), accept: []string{"Progressing", "Other"},
			out: "Failing=True:\n\n  Reason: R\n  Message: a\n\naccepted " + progress, warning: "warning: Cannot refresh available updates:\n  Reason: R\n  Message: M\n\n", issues: "CannotRetrieveUpdates Failing accepted Progressing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := view.RecommendInput{ClusterVersion: healthy(tt.edit), Accept: tt.accept}
			wantTexts(t, tt.out+noUpdates, tt.warning, recommendWriter(t, in, view.RecommendText{}))
			if got := issues(t, in); got != tt.issues {
				t.Errorf("issues are %q, want %q", got, tt.issues)
			}
		})
	}
}

// issues returns the names of issues, the accepted ones as such.
func issues(t *testing.T, in view.RecommendInput) string {
	t.Helper()
	r := checktest.Get(view.AssessRecommend(in))(t)
	var names []string
	for _, issue := range r.Issues {
		if issue.Accepted {
			names = append(names, "accepted")
		}
		names = append(names, issue.Name)
	}
	return strings.Join(names, " ")
}

// TestRecommendPrechecks holds the three lists, their order and the details.
func TestRecommendPrechecks(t *testing.T) {
	const (
		good     = "The following conditions found no cause for concern in updating this cluster to later releases: "
		accepted = "The following conditions found cause for concern in updating this cluster to later releases, but were explicitly accepted via --accept: "
		bad      = "The following conditions found cause for concern in updating this cluster to later releases: "
	)
	many := []view.Precheck{
		precheck("z", "False", "R", "a\nb", "Z"),
		precheck("y", "True", "Fine", "", ""),
		precheck("x", "Unknown", "S", "c", "X"),
		precheck("w", "True", "Good", "", "W"),
		precheck("v", "False", "T", "d", ""),
	}
	details := func(which ...string) string {
		all := map[string]string{
			"z": "z=False:\n\n  Reason: R\n  Message: a\n  b\n\n",
			"x": "x=Unknown:\n\n  Reason: S\n  Message: c\n\n",
			"v": "v=False:\n\n  Reason: T\n  Message: d\n\n",
		}
		text := ""
		for _, w := range which {
			text += all[w]
		}
		return text
	}
	for _, tt := range []struct {
		name   string
		checks []view.Precheck
		accept []string
		out    string
		issues string
	}{
		{name: "none"},
		{name: "all lists", checks: many, accept: []string{"X", "W"}, out: good + "w (Good), y (Fine)\n\n" + accepted + "x\n\n" + bad + "v, z\n\n" + details("z", "x", "v"), issues: "accepted X Z v"},
		{name: "no details where all is accepted", checks: many, accept: []string{"X", "Z", "v"}, out: good + "w (Good), y (Fine)\n\n" + accepted + "v, x, z\n\n", issues: "accepted X accepted Z accepted v"},
		{name: "a type is not the name", checks: many[:1], accept: []string{"z"}, out: bad + "z\n\n" + details("z"), issues: "Z"},
		{name: "one name for two", checks: []view.Precheck{many[0], precheck("u", "False", "R", "M", "Z")}, accept: []string{"Z"}, out: accepted + "u, z\n\n", issues: "accepted Z"},
		{name: "failed", checks: []view.Precheck{{Err: errors.New("first")}, {Conditions: many[1].Conditions, Err: errors.New("second")}},
			out: "Failed to check for at least some preconditions: first\nsecond\n" + good + "y (Fine)\n\n", issues: "FailedToCompletePrecheck"},
		{name: "failed and accepted", checks: []view.Precheck{{Err: errors.New("first")}}, accept: []string{"FailedToCompletePrecheck"},
			out: "Failed to check for at least some preconditions: first\n", issues: "accepted FailedToCompletePrecheck"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := view.RecommendInput{ClusterVersion: healthy(), Prechecks: tt.checks, Accept: tt.accept}
			wantTexts(t, tt.out+noUpdates, "", recommendWriter(t, in, view.RecommendText{}))
			if got := issues(t, in); got != tt.issues {
				t.Errorf("issues are %q, want %q", got, tt.issues)
			}
		})
	}
}

// TestRecommendProcedure goes through which rows, headers, paragraphs and empty
// lines a group has, for clean (c) and risky (r) releases.
func TestRecommendProcedure(t *testing.T) {
	for _, tt := range []struct{ releases, want string }{
		{"c", "header row"},
		{"r", "empty block"},
		{"c c", "header row row"},
		{"c c c", "header row row And 1"},
		{"c c c c", "header row row And 2"},
		{"c c r", "header row row empty And 1"},
		{"c r", "header row empty block"},
		{"c r c", "header row empty block empty And 1"},
		{"c r r c", "header row empty block empty And 2"},
		{"r c", "empty block empty header row"},
		{"r c c", "empty block empty header row And 1"},
		{"r c r", "empty block empty header row empty And 1"},
		{"r r", "empty block empty block"},
		{"r r c", "empty block empty block empty And 1"},
		{"r r r r r", "empty block empty block empty And 3"},
	} {
		t.Run(tt.releases, func(t *testing.T) {
			cv := healthy()
			kinds := strings.Fields(tt.releases)
			for i, kind := range kinds {
				version := fmt.Sprintf("4.14.%d", 20-i)
				if kind == "c" {
					available(version)(cv)
				} else {
					conditional(version, "False", "R", "M")(cv)
				}
			}
			out, _ := texts(recommendWriter(t, view.RecommendInput{ClusterVersion: cv}, view.RecommendText{}))
			text, ok := strings.CutPrefix(out, "\nUpdates to 4.14:\n")
			checktest.FatalIf(t, !ok, "no title: %q", out)
			if got := shape(text); got != tt.want {
				t.Errorf("lines are %q, want %q:\n%s", got, tt.want, out)
			}
		})
	}
}

// shape names the lines of a group.
func shape(text string) string {
	var names []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "":
			names = append(names, "empty")
		case line == "  VERSION     ISSUES":
			names = append(names, "header")
		case strings.HasSuffix(line, "no known issues relevant to this cluster"):
			names = append(names, "row")
		case strings.HasPrefix(line, "  Version: "):
			names = append(names, "block")
		case strings.HasPrefix(line, "  Image: image-4.14."), line == "  Reason: R", line == "  Message: M":
		default:
			line, ok := strings.CutSuffix(line, " older 4.14 updates you can see with '--show-outdated-releases' or '--version VERSION'.")
			if !ok {
				line = "?" + line
			}
			names = append(names, line)
		}
	}
	return strings.Join(names, " ")
}

// TestRecommendList holds the exact text of lists.
func TestRecommendList(t *testing.T) {
	for _, tt := range []struct {
		name    string
		edit    func(*configv1.ClusterVersion)
		o       view.RecommendText
		want    string
		warning string
	}{
		{name: "none", edit: edited(), want: noUpdates},
		{name: "none in older words", edit: edited(), o: view.RecommendText{Docs418: true},
			want: "No updates available. You may force an update to a specific release image, but doing so might not be supported and might result in downtime or data loss.\n"},
		{name: "groups by number", edit: available("4.9.1", "5.0.0", "4.10.1", "4.10.0-rc.1"), want: `
Updates to 5.0:
  VERSION     ISSUES
  5.0.0       no known issues relevant to this cluster

Updates to 4.10:
  VERSION     ISSUES
  4.10.1      no known issues relevant to this cluster
  4.10.0-rc.1 no known issues relevant to this cluster

Updates to 4.9:
  VERSION     ISSUES
  4.9.1       no known issues relevant to this cluster
`},
		{name: "a second row has a table of its own", edit: available("4.14.2", "4.14.1-rc.20240101"), want: `
Updates to 4.14:
  VERSION     ISSUES
  4.14.2      no known issues relevant to this cluster
  4.14.1-rc.20240101 no known issues relevant to this cluster
`},
		{name: "outdated are one table", edit: edited(available("4.14.2", "4.14.1-rc.20240101"), conditional("4.14.3", "False", "Reason3", "M"), conditional("4.15.0", "Unknown", "Reason5", "M")),
			o: view.RecommendText{ShowOutdated: true}, want: `
Updates to 4.15:
  VERSION     ISSUES
  4.15.0      Reason5

Updates to 4.14:
  VERSION            ISSUES
  4.14.3             Reason3
  4.14.2             no known issues relevant to this cluster
  4.14.1-rc.20240101 no known issues relevant to this cluster
`},
		{name: "a paragraph trims and indents", edit: conditional("4.14.3", "False", "Reason3", "\n a\n\nb\n \n"), want: "\nUpdates to 4.14:\n\n  Version: 4.14.3\n  Image: image-4.14.3\n  Reason: Reason3\n  Message: a\n  \n  b\n"},
		{name: "an image is listed once", edit: edited(available("4.14.2"), conditional("4.14.2", "True", "AsExpected", "M"), func(cv *configv1.ClusterVersion) {
			cv.Status.AvailableUpdates = append(cv.Status.AvailableUpdates, configv1.Release{Version: "4.14.3", Image: "image-4.14.2"})
		}), want: "\nUpdates to 4.14:\n  VERSION     ISSUES\n  4.14.2      no known issues relevant to this cluster\n"},
		{name: "conditional first among equal ones", edit: edited(available("4.14.2+a"), conditional("4.14.2+b", "True", "AsExpected", "M")),
			want: "\nUpdates to 4.14:\n  VERSION     ISSUES\n  4.14.2+b    no known issues relevant to this cluster\n  4.14.2+a    no known issues relevant to this cluster\n"},
		{name: "invalid versions", edit: edited(available("v4.14.2", "4.14", "4.14.3"), conditional("04.14.4", "True", "R", "M"), func(cv *configv1.ClusterVersion) {
			cv.Status.AvailableUpdates = append(cv.Status.AvailableUpdates, configv1.Release{Version: "4.14.9", Image: "image-04.14.4"}) // hidden by the conditional one
		}), want: "\nUpdates to 4.14:\n  VERSION     ISSUES\n  4.14.3      no known issues relevant to this cluster\n",
			warning: "warning: Cannot parse SemVer available update \"04.14.4\": version segment starts with 0\nwarning: Cannot parse SemVer available update \"v4.14.2\": invalid characters in version\nwarning: Cannot parse SemVer available update \"4.14\": invalid semantic version\n"},
		{name: "no risks, no issue", edit: edited(conditional("4.14.2", "False", "R", "M"), func(cv *configv1.ClusterVersion) { cv.Status.ConditionalUpdates[0].Risks = nil }),
			want: "\nUpdates to 4.14:\n  VERSION     ISSUES\n  4.14.2      no known issues relevant to this cluster\n"},
		{name: "risks without condition", edit: edited(conditional("4.14.2", "-", "", ""), func(cv *configv1.ClusterVersion) {
			cv.Status.ConditionalUpdates[0].Risks = append(cv.Status.ConditionalUpdates[0].Risks, configv1.ConditionalUpdateRisk{Name: "A"})
		}), want: "\nUpdates to 4.14:\n\n  Version: 4.14.2\n  Image: image-4.14.2\n  Reason: NoConditions\n  Message: Conditional update to 4.14.2 has risks (A, Risk), but no conditions.\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantTexts(t, tt.want, tt.warning, recommendWriter(t, view.RecommendInput{ClusterVersion: healthy(tt.edit)}, tt.o))
		})
	}
}

// TestRecommendUpgradeable makes Upgradeable=False a risk of later minor versions.
func TestRecommendUpgradeable(t *testing.T) {
	off := with("Upgradeable", "False", "Ack", "Ack first.")
	always := view.Risk{Name: "UpgradeableFalse", URL: "https://docs.openshift.com/container-platform/4.14/updating/preparing_for_updates/updating-cluster-prepare.html#cluster-upgradeable_updating-cluster-prepare", Message: "Ack first."}
	own := view.Risk{Name: "Risk", URL: "https://risk.example", Message: "It may break."}
	from := func(version string) func(*configv1.ClusterVersion) {
		return func(cv *configv1.ClusterVersion) { cv.Status.Desired.Version = version }
	}
	risk := func(message string) func(*configv1.ClusterVersion) {
		return func(cv *configv1.ClusterVersion) { cv.Status.ConditionalUpdates[0].Risks[0].Message = message }
	}
	for _, tt := range []struct {
		name  string
		edit  func(*configv1.ClusterVersion)
		issue *view.Condition
		risks []view.Risk
	}{
		{"same minor", edited(off, available("4.14.2")), nil, nil},
		{"older minor", edited(off, available("4.13.2")), nil, nil},
		{"older major", edited(off, available("3.15.2")), nil, nil},
		{"later minor", edited(off, available("4.15.0")), &view.Condition{Type: "Recommended", Status: "False", Reason: "Ack", Message: "Ack first."}, []view.Risk{always}},
		{"later major", edited(off, available("5.0.0")), &view.Condition{Type: "Recommended", Status: "False", Reason: "Ack", Message: "Ack first."}, []view.Risk{always}},
		{"upgradeable", edited(with("Upgradeable", "True", "Ack", "Ack first."), available("4.15.0")), nil, nil},
		{"upgradeable unknown", edited(with("Upgradeable", "Unknown", "Ack", "Ack first."), available("4.15.0")), nil, nil},
		{"recommended", edited(off, conditional("4.15.0", "True", "R", "M")), &view.Condition{Type: "Recommended", Status: "False", Reason: "Ack", Message: "Ack first."}, []view.Risk{own, always}},
		{"not judged", edited(off, conditional("4.15.0", "-", "", "")), &view.Condition{Type: "Recommended", Status: "False", Reason: "Ack", Message: "Ack first."}, []view.Risk{own, always}},
		{"not recommended", edited(off, conditional("4.15.0", "False", "R", "M")), &view.Condition{Type: "Recommended", Status: "False", Reason: "MultipleReasons", Message: "Ack first.\n\nM"}, []view.Risk{own, always}},
		{"unknown", edited(off, conditional("4.15.0", "Unknown", "R", "M")), &view.Condition{Type: "Recommended", Status: "False", Reason: "MultipleReasons", Message: "Ack first.\n\nM"}, []view.Risk{own, always}},
		{"said already", edited(off, conditional("4.15.0", "Unknown", "R", "M"), risk("Please: Ack first. Soon.")), &view.Condition{Type: "Recommended", Status: "Unknown", Reason: "R", Message: "M"}, []view.Risk{{Name: "Risk", URL: "https://risk.example", Message: "Please: Ack first. Soon."}}},
		{"said already and recommended", edited(off, conditional("4.15.0", "True", "R", "M"), risk("Ack first.")), nil, []view.Risk{{Name: "Risk", URL: "https://risk.example", Message: "Ack first."}}},
		{"an empty message is never said already", edited(with("Upgradeable", "False", "Ack", ""), conditional("4.15.0", "True", "R", "M")), &view.Condition{Type: "Recommended", Status: "False", Reason: "Ack"}, []view.Risk{own, {Name: always.Name, URL: always.URL}}},
		{"docs until 4.13", edited(off, from("4.13.9"), available("4.14.0")), &view.Condition{Type: "Recommended", Status: "False", Reason: "Ack", Message: "Ack first."},
			[]view.Risk{{Name: always.Name, Message: always.Message, URL: "https://docs.openshift.com/container-platform/4.13/updating/index.html#understanding_clusteroperator_conditiontypes_updating-clusters-overview"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := checktest.Get(view.AssessRecommend(view.RecommendInput{ClusterVersion: healthy(tt.edit)}))(t)
			got := r.Groups[0].Releases[0]
			checktest.SameIn(t, "issue", tt.issue, got.Issue)
			checktest.SameIn(t, "risks", tt.risks, got.Risks)
		})
	}
}

// TestRecommendUpgradeableUnknownVersion cannot tell which minor versions are
// later.
func TestRecommendUpgradeableUnknownVersion(t *testing.T) {
	cv := healthy(with("Upgradeable", "False", "Ack", "a\nb"), available("4.15.0"))
	cv.Status.Desired.Version = "4.14"
	wantTexts(t, "\nUpdates to 4.15:\n  VERSION     ISSUES\n  4.15.0      no known issues relevant to this cluster\n",
		"warning: Cannot inject Upgradeable=False as a conditional update risk: cannot parse SemVer version \"4.14\": invalid semantic version\n\nReason: Ack\n  Message: a\n  b\n\n",
		recommendWriter(t, view.RecommendInput{ClusterVersion: cv}, view.RecommendText{}))
}

// TestRecommendTarget judges one release.
func TestRecommendTarget(t *testing.T) {
	updates := edited(available("4.14.2", "4.13.9"), conditional("4.14.3", "Unknown", "R", "a\nb"), conditional("4.14.4", "True", "R", "M"))
	const (
		clean4 = "\nUpdate to 4.14.4 has no known issues relevant to this cluster.\nImage: image-4.14.4\nRelease URL: https://errata.example/4.14.4\n"
		clean2 = "\nUpdate to 4.14.2 has no known issues relevant to this cluster.\nImage: image-4.14.2\nRelease URL: \n"
		fails  = "Failing=True:\n\n  Reason: R\n  Message: M\n\n"
		open   = "\nerror: issues that apply to this cluster but which were not included in --accept: "
	)
	risky := func(reason string) string {
		return "\nUpdate to 4.14.3 Recommended=Unknown:\nImage: image-4.14.3\nRelease URL: https://errata.example/4.14.3\nReason: " + reason + "\nMessage: a\n  b\n"
	}
	for _, tt := range []struct {
		name    string
		edit    func(*configv1.ClusterVersion)
		version string
		accept  []string
		want    string
	}{
		{"no updates", edited(), "4.14.2", nil, "\nerror: no updates available, so cannot display context for the requested release 4.14.2\n"},
		{"no major", updates, "5.14.2", nil, "\nerror: no updates to 5 available, so cannot display context for the requested release 5.14.2\n"},
		{"no minor", updates, "4.15.2", nil, "\nerror: no updates to 4.15 available, so cannot display context for the requested release 4.15.2\n"},
		{"no version", updates, "4.14.9", nil, "\nerror: no update to 4.14.9 available, so cannot display context for the requested release\n"},
		{"other text", updates, "4.14.2+a", nil, "\nerror: no update to 4.14.2+a available, so cannot display context for the requested release\n"},
		{"clean", updates, "4.14.4", nil, clean4},
		{"clean without risks", updates, "4.14.2", nil, clean2},
		{"clean, nothing to accept", updates, "4.14.2", []string{"ConditionalUpdateRisk"}, clean2},
		{"risky", updates, "4.14.3", nil, risky("R") + open + "ConditionalUpdateRisk\n"},
		{"risky and accepted", updates, "4.14.3", []string{"ConditionalUpdateRisk"}, risky("accepted R via ConditionalUpdateRisk") + "Update to 4.14.3 has no known issues relevant to this cluster other than the accepted ConditionalUpdateRisk.\n"},
		{"issues of the cluster", edited(updates, with("Failing", "True", "R", "M"), with("RetrievedUpdates", "True", "R", "M")), "4.14.2", nil, fails + clean2 + open + "Failing\n"},
		{"risks without condition", edited(available("4.14.2"), conditional("4.14.3", "-", "", "")), "4.14.3", nil,
			"\nUpdate to 4.14.3 Recommended=Unknown:\nImage: image-4.14.3\nRelease URL: https://errata.example/4.14.3\nReason: NoConditions\nMessage: Conditional update to 4.14.3 has risks (Risk), but no conditions.\n" + open + "ConditionalUpdateRisk\n"},
		{"some accepted", edited(updates, with("Failing", "True", "R", "M"), with("RetrievedUpdates", "False", "R", "M")), "4.14.3", []string{"Failing"}, "accepted " + fails + risky("R") + open + "CannotRetrieveUpdates,ConditionalUpdateRisk\n"},
		{"all accepted", edited(updates, with("Failing", "True", "R", "M"), with("RetrievedUpdates", "False", "R", "M")), "4.14.3", []string{"Failing", "ConditionalUpdateRisk", "CannotRetrieveUpdates"},
			"accepted " + fails + risky("accepted R via ConditionalUpdateRisk") + "Update to 4.14.3 has no known issues relevant to this cluster other than the accepted CannotRetrieveUpdates,ConditionalUpdateRisk,Failing.\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := view.RecommendInput{ClusterVersion: healthy(tt.edit), Version: tt.version, Accept: tt.accept}
			out, _ := texts(recommendWriter(t, in, view.RecommendText{}))
			checktest.Same(t, tt.want, out)
			// Quietly, the error is all there is.
			_, errText, hasError := strings.Cut(tt.want, "\nerror: ")
			quiet := ""
			if hasError {
				quiet = "\nerror: " + errText
			}
			wantTexts(t, quiet, "", recommendWriter(t, in, view.RecommendText{Quiet: true}))
		})
	}
}

// TestRecommendQuiet says nothing on either stream.
func TestRecommendQuiet(t *testing.T) {
	cv := healthy(without("Failing"), with("Upgradeable", "False", "R", "M"), with("RetrievedUpdates", "False", "R", "M"), available("4", "4.14.2"))
	cv.Status.Desired.Version = ""
	in := view.RecommendInput{ClusterVersion: cv, Version: "4.14.2", Accept: []string{"Failing", "CannotRetrieveUpdates"}}
	wantTexts(t, "", "", recommendWriter(t, in, view.RecommendText{Quiet: true}))
}

// TestRecommendRefusals holds the errors of flags and input.
func TestRecommendRefusals(t *testing.T) {
	for _, tt := range []struct {
		in   view.RecommendInput
		o    view.RecommendText
		want string
	}{
		{view.RecommendInput{}, view.RecommendText{}, noVersion},
		{view.RecommendInput{ClusterVersion: healthy(), Version: "4.14"}, view.RecommendText{}, `cannot parse SemVer target "4.14": invalid semantic version`},
		{view.RecommendInput{ClusterVersion: healthy(), Version: "v4.14.0"}, view.RecommendText{}, `cannot parse SemVer target "v4.14.0": invalid characters in version`},
		{view.RecommendInput{ClusterVersion: healthy(), Version: "4.14.0"}, view.RecommendText{ShowOutdated: true}, "when --version is set, --show-outdated-releases is unnecessary"},
		{view.RecommendInput{ClusterVersion: healthy()}, view.RecommendText{Quiet: true}, "--quiet can only be set when --version is set"},
	} {
		r, err := view.AssessRecommend(tt.in)
		if err == nil {
			var out, errOut strings.Builder
			err = r.WriteText(&out, &errOut, tt.o)
			if out.Len()+errOut.Len() > 0 {
				t.Errorf("wrote %q and %q before the error %v", out.String(), errOut.String(), err)
			}
		}
		checktest.FailIf(t, err == nil || err.Error() != tt.want, "error is %v, want %s", err, tt.want)
	}
}

func TestRecommendJSON(t *testing.T) {
	r := checktest.Get(view.AssessRecommend(view.RecommendInput{
		ClusterVersion: healthy(with("Failing", "True", "R", "M"), available("4.14.2", "4"), conditional("4.14.3", "False", "R", "M")),
		Prechecks:      []view.Precheck{precheck("a/b", "False", "R", "M", "Name"), {Err: errors.New("no answer")}},
		Version:        "4.14.3",
		Accept:         []string{"Name", "ConditionalUpdateRisk"},
	}))(t)
	golden(t, "recommend.json", indented(t, r))
}
