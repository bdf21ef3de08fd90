package forecast_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/forecast"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/cvtest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
	"github.com/clusterupdate/clusterupdate/signature"
)

var update = flag.Bool("update", false, "write the golden files")

// signs are a forecast without its texts: what a golden file may show of real clusters.
// The hash covers the texts too.
func signs(tb testing.TB, f *forecast.Forecast) string {
	tb.Helper()
	var text, out bytes.Buffer
	checktest.OK(tb, f.WriteText(&text, forecast.TextOptions{}))
	hash := fnv.New64a()
	hash.Write(text.Bytes())
	lines := bytes.Count(text.Bytes(), []byte("\n"))
	fmt.Fprintf(&out, "%s to %s: %s, %d lines, %x\n", f.From, f.To, f.Verdict(), lines, hash.Sum64())
	for _, found := range f.Findings {
		mark := ""
		if found.Unknown {
			mark = "?"
		}
		fmt.Fprintf(&out, "  %v%s %s %s %s\n", found.Severity, mark, found.Part, found.Check, found.Reason)
		for _, same := range found.Same {
			fmt.Fprintf(&out, "    %s %s\n", same.Check, same.Reason)
		}
	}
	return out.String()
}

// Every recorded cluster and the Insights archive, to its next patch and minor version. The minor update has the
// contents of real releases.
func TestRecordedClusters(t *testing.T) {
	var out strings.Builder
	for _, c := range []struct{ name, patch, minor string }{
		{"4.14.1-degraded", "4.14.2", "4.15.0"},
		{"4.14.1-workers-started-updating-multiple-pools", "4.14.2", "4.15.0"},
		{"4.15.0-ec2-early", "4.15.1", "4.16.0"},
		{"not-upgrading", "4.14.2", "4.15.0"},
		{"recommend", "4.14.2", "4.15.0"},
		{"../insights-4.7", "4.7.17", "4.8.0"},
	} {
		cluster := recorded(t, c.name)
		cv := checktest.Get(clusterapi.Read[configv1.ClusterVersion](t.Context(), cluster, clusterapi.Key("", "version")))(t)
		at := cv.Status.Desired.Version
		contents := payload.Images{release(t, "4.17.30", at), release(t, "4.18.15", c.minor, at)}
		for _, to := range []string{c.patch, c.minor} {
			f := checktest.Get(forecast.Update(t.Context(), cluster, forecast.Options{To: to, Releases: contents}))(t)
			fmt.Fprintf(&out, "%s: %s", c.name, signs(t, f))
		}
	}
	golden(t, "recorded.golden", out.String())
}

// golden compares a text with that of a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		checktest.OK(t, os.WriteFile(file, []byte(got), 0o644))
	}
	checktest.Same(t, string(checktest.Get(os.ReadFile(file))(t)), got)
}

// cluster has a ClusterVersion at 4.20.3, and what a test adds.
func cluster(tb testing.TB, objects ...any) *memory.Cluster {
	tb.Helper()
	c := memory.NewOpenShift(memory.Options{})
	load(tb, c, cvtest.Requestable())
	load(tb, c, objects...)
	return c
}

func load(tb testing.TB, c *memory.Cluster, objects ...any) {
	tb.Helper()
	for _, o := range objects {
		checktest.OK(tb, c.Load(checktest.Get(clusterapi.ToUnstructured(o))(tb)))
	}
}

// finding is that of a check with a reason; nil if there is none.
func finding(f *forecast.Forecast, check, reason string) *forecast.Finding {
	for i := range f.Findings {
		if found := &f.Findings[i]; found.Check == check && found.Reason == reason {
			return found
		}
	}
	return nil
}

func TestVerdict(t *testing.T) {
	of := func(s preconditions.Severity, unknown bool) forecast.Finding {
		return forecast.Finding{Unknown: unknown, Finding: preconditions.Finding{Severity: s}}
	}
	undecided, blocks := of(preconditions.Blocking, true), of(preconditions.Blocking, false)
	for name, c := range map[string]struct {
		want     forecast.Verdict
		findings []forecast.Finding
	}{
		"nothing":             {forecast.Ready, nil},
		"a note":              {forecast.Ready, []forecast.Finding{of(preconditions.Info, false)}},
		"an unknown warning":  {forecast.Ready, []forecast.Finding{of(preconditions.Warning, true)}},
		"a warning":           {forecast.Warnings, []forecast.Finding{of(preconditions.Warning, false)}},
		"unknown and warning": {forecast.Unknown, []forecast.Finding{undecided, of(preconditions.Warning, false)}},
		"all":                 {forecast.Blocked, []forecast.Finding{undecided, blocks}},
	} {
		f := &forecast.Forecast{Findings: c.findings}
		checktest.Equal(t, c.want, f.Verdict(), "%s", name)
		checktest.Equal(t, c.want == forecast.Blocked || c.want == forecast.Unknown, len(f.WhyNot()) > 0, "%s: why not", name)
	}
}

// The remedy of each finding, applied on a fork: it is not in the next forecast.
func TestRemedies(t *testing.T) {
	pool := &mcfgv1.MachineConfigPool{}
	pool.Name = "worker"
	pool.Spec.Paused = true
	pool.Status.MachineCount, pool.Status.UpdatedMachineCount, pool.Status.ReadyMachineCount = 2, 2, 2
	operator := &configv1.ClusterOperator{}
	operator.Name = "dns"
	operator.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
		{Type: configv1.OperatorAvailable, Status: configv1.ConditionFalse, Reason: "NoPods", Message: "no pods"},
		{Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse},
	}
	version := clusterapi.Key("", "version")
	broken := cluster(t, pool, operator)
	override := func(cv *configv1.ClusterVersion) error {
		cv.Spec.Overrides = []configv1.ComponentOverride{
			{Kind: "Deployment", Group: "apps", Namespace: "a", Name: "b", Unmanaged: true},
		}
		return nil
	}
	checktest.OK(t, checktest.Err(clusterapi.Modify(t.Context(), broken, version, clusterapi.ModifyOptions{}, override)))
	options := forecast.Options{To: "4.21.2"}
	before := checktest.Get(forecast.Update(t.Context(), broken, options))(t)
	fork := memory.NewOpenShift(memory.Options{Base: broken})
	for _, c := range []struct {
		check, reason string
		remedy        func() error
	}{
		{"PoolsPaused", "PoolPaused", func() error {
			unpause := func(p *mcfgv1.MachineConfigPool) error { p.Spec.Paused = false; return nil }
			worker := clusterapi.Key("", "worker")
			return checktest.Err(clusterapi.Modify(t.Context(), fork, worker, clusterapi.ModifyOptions{}, unpause))
		}},
		{"ClusterOperators", "ClusterOperatorNotAvailable", func() error {
			heal := func(o *configv1.ClusterOperator) error {
				o.Status.Conditions[0].Status = configv1.ConditionTrue
				return nil
			}
			status := clusterapi.ModifyOptions{Status: true}
			return checktest.Err(clusterapi.Modify(t.Context(), fork, clusterapi.Key("", "dns"), status, heal))
		}},
		{"VersionOverrides", "ClusterVersionOverridesSet", func() error {
			manage := func(cv *configv1.ClusterVersion) error { cv.Spec.Overrides = nil; return nil }
			return checktest.Err(clusterapi.Modify(t.Context(), fork, version, clusterapi.ModifyOptions{}, manage))
		}},
		{"Channel", "ChannelBehindTarget", func() error {
			change := func(cv *configv1.ClusterVersion) error { cv.Spec.Channel = "stable-4.21"; return nil }
			return checktest.Err(clusterapi.Modify(t.Context(), fork, version, clusterapi.ModifyOptions{}, change))
		}},
	} {
		found := finding(before, c.check, c.reason)
		if found == nil || found.Remedy == "" {
			t.Errorf("%s %s: not found, or without a remedy: %s", c.check, c.reason, signs(t, before))
			continue
		}
		checktest.OK(t, c.remedy())
		after := checktest.Get(forecast.Update(t.Context(), fork, options))(t)
		checktest.Equal(t, true, finding(after, c.check, c.reason) == nil, "%s is still there", c.check)
	}
	after := checktest.Get(forecast.Update(t.Context(), fork, options))(t)
	checktest.Equal(t, 0, len(after.WhyNot()), "%s", signs(t, after))
}

// A rehearsal that gets stuck blocks, and what a check has found of its cause is not there
// twice.
func TestRehearsed(t *testing.T) {
	degraded := recorded(t, "4.14.1-degraded")
	contents := payload.Images{
		release(t, "4.17.30", "4.14.0-rc.3", "4.13.9"), release(t, "4.17.30", "4.14.1", "4.14.0-rc.3"),
		release(t, "4.18.15", "4.14.2", "4.14.1"), release(t, "4.18.15", "4.15.0", "4.14.1"),
	}
	for to, want := range map[string]string{
		"4.14.2": "Rehearsal Stuck\n    ClusterOperators ClusterOperatorDegraded\n", // only a warning without it
		"4.15.0": "ClusterVersionUpgradeable ClusterOperatorsNotUpgradeable\n" +
			"    ClusterOperators ClusterOperatorNotUpgradeable\n    Rehearsal Refused\n",
	} {
		o := forecast.Options{To: to, Releases: contents, Rehearse: &forecast.RehearseOptions{}}
		f := checktest.Get(forecast.Update(t.Context(), degraded, o))(t)
		checktest.Equal(t, forecast.Blocked, f.Verdict(), "%s", to)
		checktest.Has(t, signs(t, f), want)
		checktest.Equal(t, 1, strings.Count(signs(t, f), "ClusterOperatorDegraded"), "%s", signs(t, f))
		checktest.Equal(t, true, f.WhyNot()[0].Remedy != "", "%s: no remedy", to)
	}
}

// The documentation's formula follows the what-ifs of a rehearsal.
func TestDocumented(t *testing.T) {
	pool := &mcfgv1.MachineConfigPool{}
	pool.Name = "worker"
	pool.Status.MachineCount = 3
	two, yes := intstr.FromInt32(2), true
	for _, tt := range []struct {
		name string
		o    *forecast.RehearseOptions
		want time.Duration
	}{
		{"as it is", nil, 75 * time.Minute},
		{"more nodes", &forecast.RehearseOptions{Nodes: map[string]int{"worker": 9}}, 105 * time.Minute},
		{"two at a time", &forecast.RehearseOptions{
			Nodes: map[string]int{"worker": 9}, Pools: map[string]forecast.PoolChange{"worker": {MaxUnavailable: &two}},
		}, 85 * time.Minute},
		{"paused", &forecast.RehearseOptions{Pools: map[string]forecast.PoolChange{"worker": {Paused: &yes}}}, 0},
	} {
		f := checktest.Get(forecast.Update(t.Context(), cluster(t, pool), forecast.Options{To: "4.21.1", Rehearse: tt.o}))(t)
		checktest.Equal(t, tt.want, f.Documented, "%s", tt.name)
	}
}

// contents are the releases that are built in: 4.20.3 and 4.21.1.
func contents(tb testing.TB) payload.Images {
	tb.Helper()
	return payload.Images{
		checktest.Get(payload.Open(tb.Context(), "from", sample.From()))(tb),
		checktest.Get(payload.Open(tb.Context(), "to", sample.To()))(tb),
	}
}

// With contents there are changes and credentials, and a gap of a recording is a finding.
func TestContents(t *testing.T) {
	infrastructure := &configv1.Infrastructure{}
	infrastructure.Name = "cluster"
	infrastructure.Status.PlatformStatus = &configv1.PlatformStatus{Type: configv1.AWSPlatformType}
	c := cluster(t, infrastructure)
	f := checktest.Get(forecast.Update(t.Context(), c, forecast.Options{To: "4.21.1", Releases: contents(t)}))(t)
	checktest.Equal(t, true, f.Counts[preview.Create]["Deployment"] > 0 && f.Changes != nil, "changes: %v", f.Counts)
	// What the API refuses blocks, and names the object.
	deployment := &appsv1.Deployment{}
	deployment.Namespace, deployment.Name = "openshift-dns-operator", "dns-operator"
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"other": "one"}}
	refused := checktest.Get(forecast.Update(t.Context(), cluster(t, infrastructure, deployment),
		forecast.Options{To: "4.21.1", Releases: contents(t)}))(t)
	found := finding(refused, "Preview", "ObjectsRefused")
	named := found != nil && found.Objects[0].Name == "dns-operator" && found.Objects[0].Note != ""
	checktest.Equal(t, true, named, "%s", signs(t, refused))
	plain := checktest.Get(forecast.Update(t.Context(), c, forecast.Options{To: "4.21.1"}))(t)
	checktest.Equal(t, true, plain.Counts == nil, "counts: %v", plain.Counts)
	checktest.Equal(t, true, finding(plain, "ReleasePrevious", "NoSource") != nil, "%s", signs(t, plain))
	// The cluster's judgement of the update counts, once.
	checktest.Equal(t, 1, strings.Count(signs(t, f), " Slow"), "%s", signs(t, f))
}

// network is the graph of a channel: releases and updates between them, of which the last
// one is conditional.
func network(tb testing.TB, versions string, edges string, conditional string) *path.Network {
	tb.Helper()
	var nodes []string
	for i, v := range strings.Fields(versions) {
		nodes = append(nodes, fmt.Sprintf(`{"version": %q, "payload": %q}`, v, cvtest.ImageOf(cvtest.Repository, 100+i)))
	}
	text := fmt.Sprintf(`{"version": 1, "nodes": [%s], "edges": [%s], "conditionalEdges": [%s]}`,
		strings.Join(nodes, ","), edges, conditional)
	g := checktest.Get(graph.Decode(strings.NewReader(text), graph.DecodeOptions{}))(tb)
	channel := path.ChannelGraph{Channel: "stable-4.21", Arch: "amd64", Graph: g}
	return checktest.Get(path.NewNetwork(tb.Context(), path.NetworkOptions{}, channel))(tb)
}

// The rest of an update that is under way needs no path.
func TestPathOfRest(t *testing.T) {
	n := network(t, "4.20.2 4.20.3", "[0, 1]", "")
	c := memory.NewOpenShift(memory.Options{})
	load(t, c, cvtest.Requestable(func(cv *configv1.ClusterVersion) { cv.Status.History[0].State = configv1.PartialUpdate }))
	f := checktest.Get(forecast.Update(t.Context(), c, forecast.Options{To: "4.20.3", Networks: []*path.Network{n}}))(t)
	for _, found := range f.Findings {
		if found.Check == "Graph" {
			t.Errorf("found %+v", found)
		}
	}
}

const risky = `{"edges": [{"from": "4.20.9", "to": "4.21.7"}], "risks": [{"name": "Slow", "url": "https://example.com",
	"message": "slow", "matchingRules": [{"type": "PromQL", "promql": {"promql": "up"}}]}]}`

func TestPaths(t *testing.T) {
	n := network(t, "4.20.3 4.20.9 4.21.5 4.21.7 4.21.8 4.21.9", "[0, 1], [1, 2], [2, 4]", risky)
	for to, want := range map[string]struct {
		path, nearest, reason string
		verdict               forecast.Verdict
	}{
		"4.20.9": {path: "4.20.3 4.20.9", verdict: forecast.Warnings},
		"4.21.8": {path: "4.20.3 4.20.9 4.21.5 4.21.8", verdict: forecast.Warnings},
		"4.21.7": {path: "4.20.3 4.20.9 4.21.7", nearest: "4.20.3 4.20.9 4.21.5 4.21.8", reason: "RiskUnknown",
			verdict: forecast.Warnings},
		"4.21.6": {nearest: "4.20.3 4.20.9 4.21.5 4.21.8", reason: "NotInGraph", verdict: forecast.Blocked},
		"4.21.9": {reason: "NoEdge", verdict: forecast.Blocked},
		"4.20.3": {reason: "SameVersion", verdict: forecast.Blocked},
	} {
		o := forecast.Options{To: to, Networks: []*path.Network{n}}
		f := checktest.Get(forecast.Update(t.Context(), cluster(t), o))(t)
		plain := checktest.Get(forecast.Update(t.Context(), cluster(t), forecast.Options{To: to}))(t)
		same := finding(plain, "Graph", "SameVersion") != nil
		checktest.Equal(t, want.reason == "SameVersion", same, "%s: the cluster's own version, without a graph", to)
		checktest.Equal(t, want.path, versionsOf(f.Path), "%s: path", to)
		checktest.Equal(t, want.nearest, versionsOf(f.Nearest), "%s: nearest", to)
		checktest.Equal(t, want.verdict, f.Verdict(), "%s: %s", to, signs(t, f))
		checktest.Equal(t, want.reason == "", finding(f, "Graph", want.reason) == nil, "%s: %s", to, signs(t, f))
		if want.nearest != "" {
			checktest.Has(t, textOf(t, f), "the nearest version above "+to+" that can be reached is 4.21.8:")
		}
	}
}

func versionsOf(p *path.Path) string {
	if p == nil {
		return ""
	}
	return strings.Join(p.Versions(), " ")
}

func textOf(tb testing.TB, f *forecast.Forecast) string {
	tb.Helper()
	var out bytes.Buffer
	checktest.OK(tb, f.WriteText(&out, forecast.TextOptions{}))
	return out.String()
}

// counting counts what is asked of a source of contents and of a verifier.
type counting struct {
	loads, verifications atomic.Int32
}

func (c *counting) Payload(context.Context, configv1.Release) (fs.FS, error) {
	c.loads.Add(1)
	return sample.To(), nil
}

func (c *counting) Verify(_ context.Context, digest string) (*signature.Verification, error) {
	c.verifications.Add(1)
	if strings.HasSuffix(digest, "16") {
		return nil, errors.New("no signature")
	}
	return &signature.Verification{Digest: digest}, nil
}

// A fleet has one row a cluster, one load and verification a release, and one mirror.
func TestFleet(t *testing.T) {
	n := network(t, "4.20.3 4.21.1", "[0, 1]", "")
	var asked counting
	clusters := []forecast.Cluster{{Name: "a", Reader: cluster(t)}, {Name: "b", Reader: cluster(t)},
		{Name: "c", Reader: memory.NewOpenShift(memory.Options{})}}
	fleet := checktest.Get(forecast.Fleet(t.Context(), clusters, forecast.Options{
		To: "4.21.1", Networks: []*path.Network{n}, Payloads: &asked, Verifier: &asked,
	}))(t)
	checktest.Equal(t, 2, asked.loads.Load(), "loads")
	checktest.Equal(t, 1, asked.verifications.Load(), "verifications")
	checktest.Equal(t, "4.20.3 4.21.1", strings.Join(fleet.Mirror.Versions(), " "), "mirror")
	checktest.ErrorHas(t, "ClusterVersion", fleet.Rows[2].Err)
	var text, markdown bytes.Buffer
	checktest.OK(t, fleet.WriteText(&text, forecast.TextOptions{}))
	checktest.Has(t, text.String(), "CLUSTER  FROM    TO      VERDICT", "\na        4.20.3  4.21.1  Warnings",
		"3 clusters: 1 Unknown, 2 Warnings", "A mirror must hold: 4.20.3, 4.21.1\n")
	checktest.OK(t, fleet.WriteMarkdown(&markdown))
	checktest.Has(t, markdown.String(), "| a | 4.20.3 | 4.21.1 | Warnings |", "- 4.21.1\n")
	short := &forecast.FleetForecast{Rows: []forecast.Row{{Name: strings.Repeat("x", 60), Forecast: &forecast.Forecast{Findings: []forecast.Finding{
		{Finding: preconditions.Finding{Severity: preconditions.Blocking, Reason: "UpdateInProgress"}, Check: "UpdateInProgress"},
	}}}}}
	text.Reset()
	checktest.OK(t, short.WriteText(&text, forecast.TextOptions{}))
	checktest.Has(t, text.String(), " UpdateInProgress\n")
	for to, want := range map[string]string{
		"":        "Options.To is empty",
		"foo":     `Options.To is "foo", not a version such as 4.18.3`,
		"4.21":    `Options.To is "4.21", not a version such as 4.18.3`,
		"v4.21.1": `Options.To is "v4.21.1", not a version such as 4.18.3`,
	} {
		checktest.ErrorHas(t, want, checktest.Err(forecast.Fleet(t.Context(), clusters[:1], forecast.Options{To: to})))
		checktest.ErrorHas(t, want, checktest.Err(forecast.Update(t.Context(), clusters[0].Reader, forecast.Options{To: to})))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	checktest.ErrorIs(t, context.Canceled, checktest.Err(forecast.Fleet(ctx, clusters, forecast.Options{To: "4.21.1"})))
}

// A release that nobody vouches for blocks; one without a digest is not decided.
func TestSignature(t *testing.T) {
	var asked counting
	for to, want := range map[string]string{"4.21.3": "", "4.21.2": "Blocking", "4.21.9": "Blocking?"} {
		f := checktest.Get(forecast.Update(t.Context(), cluster(t), forecast.Options{To: to, Verifier: &asked}))(t)
		got := ""
		if found := finding(f, "Signature", "ImageVerificationFailed"); found != nil {
			got = found.Severity.String() + strings.Repeat("?", map[bool]int{true: 1}[found.Unknown])
		}
		checktest.Equal(t, want, got, "%s", to)
	}
}

// No line is wider than asked, whatever the cluster says, and nothing of it is markup or
// an escape sequence.
func TestTexts(t *testing.T) {
	operator := &configv1.ClusterOperator{}
	operator.Name = "dns"
	operator.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{
		Type: configv1.OperatorAvailable, Status: configv1.ConditionFalse,
		Reason: "Long", Message: "<b>\x1b[31m " + strings.Repeat("x", 300) + "\n# more " + strings.Repeat("ü", 3000),
	}}
	o := forecast.Options{To: "4.21.1", Releases: contents(t)}
	f := checktest.Get(forecast.Update(t.Context(), cluster(t, operator), o))(t)
	for _, width := range []int{0, 80, 132} {
		var out bytes.Buffer
		checktest.OK(t, f.WriteText(&out, forecast.TextOptions{Width: width}))
		for line := range strings.SplitSeq(out.String(), "\n") {
			checktest.Equal(t, true, utf8.RuneCountInString(line) <= max(width, 80), "width %d: %s", width, line)
			checktest.Equal(t, false, strings.ContainsRune(line, 0x1b), "%q", line)
		}
	}
	var markdown bytes.Buffer
	checktest.OK(t, f.WriteMarkdown(&markdown))
	checktest.Has(t, markdown.String(), "# Update of cluster 8d4c5c1a",
		"\n## Blocking\n\n- [ ] operators: **ClusterOperators** `ClusterOperatorNotAvailable`: ",
		"&lt;b&gt;", "  - To do: ")
	checktest.Equal(t, false, strings.Contains(markdown.String(), "<b>"), "markup")
	data := checktest.Get(json.Marshal(f))(t)
	checktest.Has(t, string(data), `{"verdict":"Blocked","cluster":"8d4c5c1a`, `"changes":{`, `"part":"operators"`)
}
