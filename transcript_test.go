package clusterupdate_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/remedy"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"

	"github.com/cockroachdb/datadriven"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/signature"
)

// TestTranscripts plays the scenarios of testdata/transcripts. Each is a text of
// commands and of what the library then said and did, with the virtual time
// since the cluster began. The flag -rewrite writes them again.
//
// The commands:
//
//	cluster [version=V] [workers=N] [shop=N] [budget=N] [gate=G] [empty] [slow] [hook] [health]
//	    makes a cluster at rest at version V (default 4.20.3), with "slow" one whose
//	    preflights take two minutes, or with "empty"
//	    one that nothing has been installed on; with so many pods of a
//	    shop, a budget that keeps some of them, a feature gate enabled,
//	    a hook of the updater, and MachineHealthChecks that it pauses
//	request V [force] [image] [multi] [preflight] [accept=RISK]
//	    asks for a version; with "image" by its image alone; with "preflight" for its
//	    check
//	clear                              takes the request of a preflight back
//	upgrade                            shows what oc adm upgrade shows
//	withdraw                           takes the request back
//	advance D                          lets so much time pass
//	until WHAT [limit=D]               runs until WHAT is so: completed, refused,
//	                                   failing, accepted, nodes, idle, operator=NAME
//	fail NAME [degraded|stuck|unavailable] / recover NAME   an operator
//	pause POOL / unpause POOL          a machine config pool
//	set KIND [NAMESPACE/]NAME          lays the YAML below the command onto an object
//	unsigned V                         nobody signed this release
//	crash / stop / start NAME          the updater's process, or another one
//	restart [clocks]                   the updater's, with the clocks of the old one
//	hook waits|fails WHY / hook done   what a hook of the updater says from now on
//	history, conditions, nodes, explain   show the state
//	follow V                           from now on tells the status of the update
//	                                   to V when it changes, and nothing else
//	status                             shows that status
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, filepath.Join("testdata", "transcripts"), func(t *testing.T, path string) {
		s := &scenario{t: t, told: map[string]string{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			s.out.Reset()
			if err := s.do(d); err != nil {
				s.printf("error: %v", err)
			}
			return s.out.String()
		})
	})
}

// scenario is one transcript that is being played.
type scenario struct {
	t   *testing.T
	out bytes.Buffer

	*reconcile.Virtual
	start    time.Time
	cluster  *simulation.Cluster
	updater  *clusterupdate.Updater
	releases []*sampleRelease
	unsigned map[string]bool
	hook     hookAnswer
	health   map[string]string // MachineHealthChecks, as told last; nil: none

	conditions map[configv1.ClusterStatusConditionType]configv1.ConditionStatus
	waits      map[string]string // what was last said of a ClusterOperator
	levels     map[string]string // told to be done, and of which release by whom
	updates    string            // what was last said of them
	slow       bool              // previews take two minutes
	follows    bool              // only the status is told
	told       map[string]string // of the status, last
}

// sampleRelease is one of the releases that scenarios know.
type sampleRelease struct {
	configv1.Release
	files   fs.FS
	payload *manifest.Payload
}

// withCapability is the release that makes a part of ingress optional.
const withCapability = "4.21.2"

// sampleVariant is a sample release under another version.
func sampleVariant(t testing.TB, files fs.FS, from, version, arch string) *sampleRelease {
	t.Helper()
	out := fstest.MapFS{}
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, path)
		dashed := strings.NewReplacer(from, version, strings.ReplaceAll(from, ".", "-"), strings.ReplaceAll(version, ".", "-"))
		text := dashed.Replace(string(data))
		if arch != "" && strings.HasSuffix(path, "release-metadata") {
			text = strings.Replace(text, `"metadata": {`, `"metadata": {"release.openshift.io/architecture": "`+arch+`",`, 1)
		}
		if version == withCapability && strings.Contains(path, "ingress-operator_04_service") {
			text = strings.Replace(text, "annotations:\n", "annotations:\n    capability.openshift.io/name: Ingress\n", 1)
		}
		out[path] = &fstest.MapFile{Data: []byte(text)}
		return err
	})
	checktest.OK(t, err)
	image := fmt.Sprintf("registry.example/ocp/release@sha256:%x", sha256.Sum256([]byte(version+arch)))
	p, err := manifest.Load(t.Context(), out, manifest.LoadOptions{Image: image, Filter: manifest.DefaultFilter()})
	checktest.OK(t, err)
	return &sampleRelease{Release: configv1.Release{Version: version, Image: image}, files: out, payload: p}
}

// digests are written short: they say nothing to people.
var digests = regexp.MustCompile(`sha256:([0-9a-f]{8})[0-9a-f]{56}`)

// printf says a line with the time.
func (s *scenario) printf(format string, args ...any) {
	if s.follows && !strings.HasPrefix(format, "status") && !strings.HasPrefix(format, "error") {
		return
	}
	d := time.Duration(0)
	if s.Virtual != nil {
		d = s.Now().Sub(s.start)
	}
	text := digests.ReplaceAllString(strings.TrimSpace(fmt.Sprintf(format, args...)), "sha256:$1...")
	text = strings.ReplaceAll(text, "\n", "\n         | ")
	fmt.Fprintf(&s.out, "%2d:%02d:%02d  %s\n", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60, text)
}

// list prints lines without the time.
func (s *scenario) list(lines ...string) {
	for _, l := range lines {
		fmt.Fprintln(&s.out, digests.ReplaceAllString(l, "sha256:$1..."))
	}
}

func (s *scenario) do(d *datadriven.TestData) error {
	arg := ""
	if len(d.CmdArgs) > 0 {
		arg = d.CmdArgs[0].Key
	}
	if d.Cmd == "advance" || d.Cmd == "until" {
		defer s.wholeStatus()
	}
	switch d.Cmd {
	case "cluster":
		return s.newCluster(d)
	case "request":
		return s.request(d)
	case "withdraw":
		return s.modify(func(cv *configv1.ClusterVersion) error { cv.Spec.DesiredUpdate = nil; return nil })
	case "advance":
		step, err := time.ParseDuration(arg)
		if err != nil {
			return err
		}
		end := s.Now().Add(step)
		if err := s.run(step+1, func() bool { at, ok := s.Next(); return !ok || at.After(end) }); err != nil {
			return err
		}
		return s.RunUntil(end)
	case "until":
		return s.until(d, arg)
	case "fail":
		kind := map[string]simulation.FaultKind{"degraded": simulation.FaultDegraded, "stuck": simulation.FaultStuck, "unavailable": simulation.FaultUnavailable}[d.CmdArgs[1].Key]
		s.cluster.SetOperatorFault(arg, &simulation.Fault{Kind: kind, Reason: "Scenario", Message: "made to fail"})
	case "recover":
		s.cluster.SetOperatorFault(arg, nil)
	case "pause", "unpause":
		_, err := clusterapi.Modify(context.Background(), s.cluster, clusterapi.Key("", arg), clusterapi.ModifyOptions{}, func(p *mcfgv1.MachineConfigPool) error {
			p.Spec.Paused = d.Cmd == "pause"
			return nil
		})
		return err
	case "set":
		return s.set(arg, d.CmdArgs[1].Key, d.Input)
	case "unsigned":
		s.unsigned[arg] = true
	case "signed":
		delete(s.unsigned, arg)
	case "crash":
		s.Crash("updater")
	case "stop":
		s.Stop(arg)
	case "start":
		return s.startUpdater(arg, nil)
	case "restart":
		clocks, err := s.updater.Tracker()
		if err != nil {
			return err
		}
		if arg != "clocks" {
			clocks = nil
		}
		s.Stop("updater")
		return s.startUpdater("updater", clocks)
	case "hook":
		s.hook = hookAnswer{arg, d.Input}
	case "follow":
		return s.follow(arg)
	case "status":
		status, err := view.ReadStatus(context.Background(), s.cluster, view.StatusOptions{Now: s.Now()})
		if err != nil {
			return err
		}
		return status.WriteText(&s.out, &s.out, view.StatusText{Waits: true})
	case "clear":
		return s.submit(clusterversion.ClearPreflight{})
	case "upgrade":
		summary, err := view.Summarize(s.version())
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := summary.WriteText(&out, &out, view.SummaryText{IncludeNotRecommended: true}); err != nil {
			return err
		}
		s.list(strings.Split(strings.TrimRight(out.String(), "\n"), "\n")...)
		return nil
	case "history", "conditions", "nodes", "pools", "explain":
		return s.show(d.Cmd)
	default:
		return fmt.Errorf("no command %q", d.Cmd)
	}
	return nil
}

func (s *scenario) newCluster(d *datadriven.TestData) error {
	version := cmp.Or(argOf(d, "version"), sample.FromVersion)
	workers, _ := strconv.Atoi(cmp.Or(argOf(d, "workers"), "2"))
	shop, _ := strconv.Atoi(argOf(d, "shop"))
	budget, _ := strconv.Atoi(argOf(d, "budget"))
	s.releases = []*sampleRelease{
		sampleVariant(s.t, sample.From(), sample.FromVersion, sample.FromVersion, ""),
		sampleVariant(s.t, sample.From(), sample.FromVersion, "4.20.4", ""),
		sampleVariant(s.t, sample.To(), sample.ToVersion, "4.21.0", ""),
		sampleVariant(s.t, sample.To(), sample.ToVersion, sample.ToVersion, ""),
		sampleVariant(s.t, sample.To(), sample.ToVersion, "4.21.2", ""),
		sampleVariant(s.t, sample.From(), sample.FromVersion, sample.FromVersion, "multi"),
	}
	s.unsigned, s.hook, s.follows = map[string]bool{}, hookAnswer{}, false
	if d.HasArg("hook") {
		s.hook.how = "done"
	}
	s.health, s.slow = nil, d.HasArg("slow")
	s.conditions, s.waits, s.levels = map[configv1.ClusterStatusConditionType]configv1.ConditionStatus{}, map[string]string{}, map[string]string{}
	s.start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := reconcile.NewClock(s.start)
	own := s.release(version, false)
	if own == nil {
		return fmt.Errorf("no release %s", version)
	}
	o := simulation.Options{
		Clock: clock, Release: payload.Release(own.payload), ControlPlane: 3,
		Pools:          []simulation.Pool{{Name: "worker", Nodes: workers}},
		ClusterVersion: simulation.ClusterVersion{Channel: sample.Channel},
	}
	if shop > 0 {
		least := intstr.FromInt32(int32(budget))
		o.Workloads = []simulation.Workload{{Namespace: "shop", Name: "web", Replicas: shop, MinAvailable: &least}}
	}
	var err error
	if s.cluster, err = simulation.New(o); err != nil {
		return err
	}
	for _, r := range s.releases {
		if r != own {
			s.cluster.Expect(payload.Release(r.payload))
		}
	}
	if gate := argOf(d, "gate"); gate != "" {
		if err := s.enable(configv1.FeatureGateName(gate)); err != nil {
			return err
		}
	}
	if d.HasArg("empty") {
		if err := s.empty(); err != nil {
			return err
		}
	}
	if d.HasArg("health") {
		s.health = map[string]string{}
		for _, m := range []*machinev1beta1.MachineHealthCheck{
			healthCheck("workers", corev1.NodeReady, nil),
			healthCheck("gpu", corev1.NodeReady, map[string]string{annotationPaused: "by the owner"}),
			healthCheck("termination", "Terminating", nil),
		} {
			if _, err := clusterapi.Create(context.Background(), s.cluster, m, clusterapi.CreateOptions{}); err != nil {
				return err
			}
		}
	}
	s.Virtual = reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: s.cluster, Clock: clock, Seed: 1, Observe: s.driverEvent}, s.cluster.Process())
	nodes, err := rollout.New(rollout.Options{API: s.cluster, Mode: rollout.Drive, Observe: s.nodeEvent})
	if err != nil {
		return err
	}
	s.Add(nodes.Process())
	return s.startUpdater("updater", nil)
}

// argOf is the value of an argument "name=value", empty where there is none.
func argOf(d *datadriven.TestData, name string) string {
	if all := argsOf(d, name); len(all) > 0 {
		return all[0]
	}
	return ""
}

// argsOf are the values of an argument "name=value" or "name=(value, value)".
func argsOf(d *datadriven.TestData, name string) []string {
	for _, a := range d.CmdArgs {
		if a.Key == name {
			return a.Vals
		}
	}
	return nil
}

// enable turns on a feature gate in all releases.
func (s *scenario) enable(gate configv1.FeatureGateName) error {
	var details []configv1.FeatureGateDetails
	for _, r := range s.releases[:5] {
		details = append(details, configv1.FeatureGateDetails{Version: r.Version, Enabled: []configv1.FeatureGateAttributes{{Name: gate}}})
	}
	fg := &configv1.FeatureGate{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	if _, err := clusterapi.Create(context.Background(), s.cluster, fg, clusterapi.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err := clusterapi.Modify(context.Background(), s.cluster, clusterapi.Key("", "cluster"), clusterapi.ModifyOptions{Status: true}, func(fg *configv1.FeatureGate) error {
		fg.Status.FeatureGates = details
		return nil
	})
	return err
}

// empty takes back what an installation does: the operators have not reported
// yet, and the ClusterVersion has no status.
func (s *scenario) empty() error {
	ctx := context.Background()
	if _, err := clusterapi.Modify(ctx, s.cluster, clusterapi.Key("", "version"), clusterapi.ModifyOptions{Status: true}, func(cv *configv1.ClusterVersion) error {
		cv.Status = configv1.ClusterVersionStatus{}
		return nil
	}); err != nil {
		return err
	}
	list, err := s.cluster.List(ctx, configv1.GroupVersion.WithKind("ClusterOperator"), clusterapi.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if err := s.cluster.Delete(ctx, list.Items[i].GroupVersionKind(), clusterapi.KeyOf(&list.Items[i]), clusterapi.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// hookAnswer is what the hook of a scenario says: done, waits or fails, and why.
type hookAnswer struct{ how, why string }

// backupsHook is a hook that says what its scenario says.
type backupsHook struct{ *scenario }

func (h backupsHook) Name() string { return "backups" }

func (h backupsHook) BeforeApply(context.Context, clusterversion.HookRequest) (wait clusterversion.HookWait, err error) {
	switch h.hook.how {
	case "waits":
		wait.Reason = h.hook.why
	case "fails":
		err = errors.New(h.hook.why)
	}
	return wait, err
}

func (h backupsHook) AfterComplete(ctx context.Context, r clusterversion.HookRequest) (clusterversion.HookWait, error) {
	return h.BeforeApply(ctx, r)
}

func (s *scenario) startUpdater(name string, clocks []byte) error {
	var hooks []clusterversion.Hook
	if s.hook.how != "" {
		hooks = []clusterversion.Hook{backupsHook{s}}
	}
	if s.health != nil {
		hooks = append(hooks, remedy.HealthChecks{})
	}
	u, err := clusterupdate.New(clusterupdate.Options{
		API: s.cluster, Payloads: s, Graph: s, Verifier: s, Clock: s.clock(), Own: configv1.Release{},
		Hooks: hooks, Tracker: clocks,
		Interval: 3 * time.Minute, Observe: func(e clusterapi.Event) { s.event(name, e) },
		PreflightChecks:  rules.Default(rules.Options{}),
		PreflightPreview: s.preview,
	})
	if err != nil {
		return err
	}
	p := u.Process()
	p.Name = name
	s.updater = u
	s.Add(p)
	return nil
}

// preview is the updater's preview of a preflight: on a slow cluster it takes its time, and
// finds an API that goes.
func (s *scenario) preview(ctx context.Context, _, to *manifest.Payload) ([]preconditions.Finding, error) {
	if !s.slow {
		return nil, nil
	}
	if err := reconcile.Sleep(ctx, 2*time.Minute); err != nil {
		return nil, err
	}
	return []preconditions.Finding{{
		Severity: preconditions.Warning, Reason: "RemovedAPI", Message: "flowschemas of v1beta3 are used, which the target version does not serve.",
	}}, nil
}

// follow tells how the status changes.
func (s *scenario) follow(version string) error {
	last := ""
	p, err := view.FollowProcess(view.FollowOptions{
		API: s.cluster, Components: preview.Components(s.release(version, false).payload),
		Observe: func(status *view.Status, err error) {
			if err != nil {
				s.printf("status: %v", err)
				return
			}
			if text := status.String(); text != last { // what has no place in a line changes too
				s.printf("status: %s", text)
				last = text
			}
		},
	})
	if err != nil {
		return err
	}
	s.follows = true
	s.Add(p)
	return nil
}

func (s *scenario) clock() *reconcile.Clock { return s.Virtual.Clock() }

// release is the release of a version, nil where there is none.
func (s *scenario) release(version string, multi bool) *sampleRelease {
	for _, r := range s.releases {
		if r.Version == version && (string(r.payload.Release.Architecture) == "Multi") == multi {
			return r
		}
	}
	return nil
}

// Fetch implements graph.Source: each release leads to all later ones, to 4.21.0
// with a risk. For several architectures there is one release.
func (s *scenario) Fetch(_ context.Context, q graph.Query) (*graph.Graph, error) {
	var d graph.Data
	if strings.EqualFold(q.Arch, "multi") {
		r := s.releases[5]
		d.Nodes = []graph.Node{{Version: semver.MustParse(r.Version), Image: r.Image}}
		return graph.New(d, graph.DecodeOptions{})
	}
	for i, r := range s.releases[:5] {
		d.Nodes = append(d.Nodes, graph.Node{Version: semver.MustParse(r.Version), Image: r.Image})
		for j := range i {
			if r.Version == "4.21.0" {
				d.ConditionalEdges = append(d.ConditionalEdges, graph.ConditionalEdges{
					Edges: []graph.VersionPair{{From: d.Nodes[j].Version.Original(), To: r.Version}},
					Risks: []configv1.ConditionalUpdateRisk{{
						Name: "SlowDisks", URL: "https://docs.example/slow-disks", Message: "Nodes with slow disks may lose leases.",
						MatchingRules: []configv1.ClusterCondition{{Type: "Always"}},
					}},
				})
				continue
			}
			d.Edges = append(d.Edges, [2]int{j, i})
		}
	}
	return graph.New(d, graph.DecodeOptions{})
}

// Payload implements manifest.PayloadSource.
func (s *scenario) Payload(_ context.Context, want configv1.Release) (fs.FS, error) {
	for _, r := range s.releases {
		if r.Image == want.Image {
			return r.files, nil
		}
	}
	return nil, fs.ErrNotExist
}

// InitialRelease implements manifest.InitialReleaser.
func (s *scenario) InitialRelease(context.Context) (configv1.Release, error) {
	return s.releases[0].Release, nil
}

// Verify implements signature.Verifier.
func (s *scenario) Verify(_ context.Context, digest string) (*signature.Verification, error) {
	for _, r := range s.releases {
		if strings.HasSuffix(r.Image, digest) && !s.unsigned[r.Version] {
			return &signature.Verification{Digest: digest, Signers: []signature.Signer{{System: signature.SystemOpenPGP, Keyring: "releases", Fingerprint: "5C3B0A1D9E7F2468", Store: "sample", Reference: "registry.example/ocp/release:" + r.Version + "-x86_64"}}}, nil
		}
	}
	return nil, &signature.Error{Digest: digest}
}

func (s *scenario) modify(f func(*configv1.ClusterVersion) error) error {
	_, err := clusterapi.Modify(context.Background(), s.cluster, clusterapi.Key("", "version"), clusterapi.ModifyOptions{}, f)
	return err
}

func (s *scenario) request(d *datadriven.TestData) error {
	version := d.CmdArgs[0].Key
	u := &configv1.Update{Version: version, Force: d.HasArg("force")}
	for _, risk := range argsOf(d, "accept") {
		u.AcceptRisks = append(u.AcceptRisks, configv1.AcceptRisk{Name: risk})
	}
	if d.HasArg("preflight") {
		r := clusterversion.PreflightRequest{To: version}
		if d.HasArg("image") {
			r = clusterversion.PreflightRequest{ToImage: s.release(version, false).Image}
		}
		return s.submit(r)
	}
	switch {
	case d.HasArg("multi"):
		u.Architecture = configv1.ClusterVersionArchitectureMulti
	case d.HasArg("image"):
		u.Image, u.Version = s.release(version, false).Image, ""
	}
	return s.modify(func(cv *configv1.ClusterVersion) error { cv.Spec.DesiredUpdate = u; return nil })
}

// submit carries out a request and prints what it answers.
func (s *scenario) submit(r clusterversion.Request) error {
	answer, err := clusterversion.Submit(context.Background(), s.cluster, r)
	s.list(strings.TrimSpace(answer.Out + answer.Err))
	return err
}

// set lays YAML onto an object.
func (s *scenario) set(kind, name, text string) error {
	if kind == "ClusterOperatorStatus" {
		return s.setOperator(name, text)
	}
	gvk, ok := map[string]schema.GroupVersionKind{
		"ClusterVersion": configv1.GroupVersion.WithKind("ClusterVersion"), "ConfigMap": {Version: "v1", Kind: "ConfigMap"},
		"FeatureGate":         configv1.GroupVersion.WithKind("FeatureGate"),
		"PodDisruptionBudget": policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
	}[kind]
	if !ok {
		return fmt.Errorf("no kind %q", kind)
	}
	var content map[string]any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	namespace, short, found := strings.Cut(name, "/")
	if !found {
		namespace, short = "", name
	}
	u.SetNamespace(namespace)
	u.SetName(short)
	_, err := s.cluster.Apply(context.Background(), u, clusterapi.ApplyOptions{FieldManager: "administrator"})
	return err
}

// setOperator sets conditions of a ClusterOperator.
func (s *scenario) setOperator(name, text string) error {
	var status configv1.ClusterOperatorStatus
	if err := yaml.Unmarshal([]byte(text), &status); err != nil {
		return err
	}
	_, err := clusterapi.Modify(context.Background(), s.cluster, clusterapi.Key("", name), clusterapi.ModifyOptions{Status: true}, func(co *configv1.ClusterOperator) error {
		for _, c := range status.Conditions {
			c.LastTransitionTime = metav1.NewTime(s.Now())
			co.Status.Conditions = append(slices.DeleteFunc(co.Status.Conditions, func(o configv1.ClusterOperatorStatusCondition) bool { return o.Type == c.Type }), c)
		}
		return nil
	})
	return err
}

// run steps while done is false, and tells of conditions that turn.
func (s *scenario) run(limit time.Duration, done func() bool) error {
	return s.RunWhile(limit, func() bool {
		s.turned()
		return !done()
	})
}

func (s *scenario) until(d *datadriven.TestData, what string) error {
	limit, err := time.ParseDuration(cmp.Or(argOf(d, "limit"), "4h"))
	if err != nil {
		return err
	}
	is := func(t configv1.ClusterStatusConditionType, status configv1.ConditionStatus) func() bool {
		return func() bool { return s.conditions[t] == status }
	}
	newest := func() configv1.UpdateHistory {
		if h := s.version().Status.History; len(h) > 0 {
			return h[0]
		}
		return configv1.UpdateHistory{}
	}
	seen := newest()
	done, ok := map[string]func() bool{
		"completed": func() bool {
			cv := s.version()
			h := newest()
			return h.State == configv1.CompletedUpdate && (cv.Spec.DesiredUpdate == nil || cv.Spec.DesiredUpdate.Version == "" || h.Version == cv.Spec.DesiredUpdate.Version)
		},
		"accepted": func() bool { return newest().Image != seen.Image },
		"refused":  is(clusterversion.ConditionReleaseAccepted, configv1.ConditionFalse),
		"failing":  is(clusterversion.ConditionFailing, configv1.ConditionTrue),
		"nodes":    func() bool { return updated(s.t, s.cluster, newest2(s.version())) },
		"operator": func() bool { return s.reports(d) },
	}[what]
	if !ok {
		return fmt.Errorf("until what? %q", what)
	}
	return s.run(limit, done)
}

func newest2(cv *configv1.ClusterVersion) configv1.Release {
	return configv1.Release{Version: cv.Status.History[0].Version, Image: cv.Status.History[0].Image}
}

// reports tells whether the operator of operator=NAME is at the desired version.
func (s *scenario) reports(d *datadriven.TestData) bool {
	co, err := clusterapi.Read[configv1.ClusterOperator](context.Background(), s.cluster, clusterapi.Key("", d.CmdArgs[0].Vals[0]))
	return err == nil && s.updating() && slices.ContainsFunc(co.Status.Versions, func(v configv1.OperandVersion) bool {
		return v.Name == "operator" && v.Version == s.version().Status.Desired.Version
	})
}

func (s *scenario) version() *configv1.ClusterVersion {
	cv, err := clusterapi.Read[configv1.ClusterVersion](context.Background(), s.cluster, clusterapi.Key("", "version"))
	if err != nil {
		s.t.Fatal(err)
	}
	return cv
}

// turned tells of conditions of the ClusterVersion that have another status, and of
// MachineHealthChecks that were paused or resumed.
func (s *scenario) turned() {
	if s.health != nil {
		s.pauses()
	}
	for _, c := range s.version().Status.Conditions {
		if s.conditions[c.Type] != c.Status {
			s.conditions[c.Type] = c.Status
			text := fmt.Sprintf("ClusterVersion: %s=%s", c.Type, c.Status)
			if c.Reason != "" {
				text += " " + c.Reason
			}
			if c.Message != "" {
				text += ": " + c.Message
			}
			s.printf("%s", text)
		}
	}
}

func (s *scenario) pauses() {
	all, err := clusterapi.ReadAll[machinev1beta1.MachineHealthCheck](context.Background(), s.cluster, clusterapi.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, m := range all {
		text := "not paused"
		if why, ok := m.Annotations[annotationPaused]; ok {
			text = strings.TrimSpace("paused " + why)
		}
		if image, ok := m.Annotations[annotationPausedFor]; ok {
			text += " for " + image
		}
		if s.health[m.Name] != text {
			s.health[m.Name] = text
			s.printf("MachineHealthCheck %s: %s", m.Name, text)
		}
	}
}

// event writes a line about an event of an updater that is worth one.
func (s *scenario) event(who string, e clusterapi.Event) {
	switch e.Type {
	case clusterupdate.EventStatus:
	case clusterupdate.EventTask:
		s.task(who, e)
	case clusterupdate.EventRetrievedUpdates:
		var versions []string
		for _, r := range dataOf(e).Updates {
			versions = append(versions, r.Version)
		}
		if text := fmt.Sprintf("%s: recommended updates: %s %s", who, strings.Join(versions, ", "), e.Message); text != s.updates {
			s.updates = text
			s.printf("%s", text)
		}
	default:
		s.printf("%s: %s: %s", who, e.Type, strings.TrimSpace(e.Message))
	}
}

// task says how far a pass is, a runlevel at a time, and what it waits for.
func (s *scenario) task(who string, e clusterapi.Event) {
	p := dataOf(e).Pass
	switch p.Type {
	case runlevel.EventTaskDone, runlevel.EventTaskSkipped:
		release := who + " " + dataOf(e).Release.Version
		if s.updating() && progressOf(p).LevelSettled == progressOf(p).LevelTotal && s.levels[progressOf(p).Level] != release {
			s.levels[progressOf(p).Level] = release
			s.printf("%s: runlevel %s of %s is done, %d of %d manifests", who, progressOf(p).Level, dataOf(e).Release.Version, progressOf(p).Done+progressOf(p).Skipped, progressOf(p).Total)
		}
	case runlevel.EventWaiting:
		if progressOf(p).Wait != nil && s.waits[progressOf(p).Wait.Operator] != waitLine(progressOf(p).Wait) {
			s.waits[progressOf(p).Wait.Operator] = waitLine(progressOf(p).Wait)
			s.printf("%s: waits for %s: %s", who, progressOf(p).Wait.Operator, waitLine(progressOf(p).Wait))
		}
	case runlevel.EventTaskFailed:
		s.printf("%s: %s: %v", who, p.Type, p.Err)
	case runlevel.EventWarning:
		s.printf("%s: %s: %s", who, p.Type, p.Message)
	}
}

func (s *scenario) updating() bool {
	h := s.version().Status.History
	return len(h) > 0 && h[0].State == configv1.PartialUpdate
}

func waitLine(w *runlevel.Wait) string {
	if w.Reason == "" && w.Message == "" {
		return strings.Join(w.Undone, ", ")
	}
	return fmt.Sprintf("Available=%s Degraded=%s %s: %s", w.Available, w.Degraded, w.Reason, w.Message)
}

// nodeEvent says what the rollout of nodes tells.
func (s *scenario) nodeEvent(e clusterapi.Event) {
	d := e.Data.(*rollout.EventData)
	switch e.Type {
	case rollout.EventPoolProgress, rollout.EventPool, rollout.EventNodeTargeted, rollout.EventNodeDone: // phases tell the last two
	case rollout.EventNodePhase:
		s.printf("nodes: %s: %s", d.Node, d.Phase)
	default:
		s.printf("nodes: %s", strings.Join(slices.DeleteFunc([]string{string(e.Type), d.Pool, d.Node, e.Message}, func(t string) bool { return t == "" }), " "))
	}
}

// driverEvent says what the driver met.
func (s *scenario) driverEvent(e clusterapi.Event) {
	if e.Type == reconcile.EventCrashed {
		s.printf("%s crashed", e.Data.(*reconcile.Attempt).Process)
	}
}

func (s *scenario) show(what string) error {
	cv := s.version()
	switch what {
	case "history":
		for _, h := range cv.Status.History {
			end := "-"
			if h.CompletionTime != nil {
				end = s.since(*h.CompletionTime)
			}
			verified := ""
			if h.Verified {
				verified = " verified"
			}
			s.list(strings.TrimSpace(fmt.Sprintf("%s %s, started %s, ended %s%s %s", h.Version, h.State, s.since(h.StartedTime), end, verified, h.AcceptedRisks)))
		}
	case "conditions":
		for _, c := range cv.Status.Conditions {
			s.list(strings.TrimSpace(fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)))
		}
	case "nodes":
		nodes, err := clusterapi.ReadAll[corev1.Node](context.Background(), s.cluster, clusterapi.ListOptions{})
		if err != nil {
			return err
		}
		for _, n := range nodes {
			text := n.Name + " kubelet " + n.Status.NodeInfo.KubeletVersion
			if n.Spec.Unschedulable {
				text += " cordoned"
			}
			s.list(text)
		}
	case "pools":
		pools, err := clusterapi.ReadAll[mcfgv1.MachineConfigPool](context.Background(), s.cluster, clusterapi.ListOptions{})
		if err != nil {
			return err
		}
		for _, p := range pools {
			s.list(fmt.Sprintf("%s: %d of %d updated", p.Name, p.Status.UpdatedMachineCount, p.Status.MachineCount))
		}
	case "explain":
		text, err := json.MarshalIndent(s.updater.Explain(), "", "  ")
		if err != nil {
			return err
		}
		s.list(string(text))
	}
	return nil
}

// wholeStatus tells the status of the ClusterVersion: each part that is another than
// it was told last, and the names of the others.
func (s *scenario) wholeStatus() {
	if s.follows || s.Virtual == nil {
		return
	}
	var same []string
	s.list("status of the ClusterVersion:")
	tell := func(name, format string, args ...any) {
		text := strings.ReplaceAll(strings.TrimSpace(fmt.Sprintf(format, args...)), "\n", "\n      | ")
		if s.told[name] == text {
			same = append(same, name)
			return
		}
		s.told[name] = text
		s.list(strings.TrimRight(fmt.Sprintf("  %s: %s", name, text), " "))
	}
	cv := s.version()
	st := &cv.Status
	tell("observedGeneration", "%d of %d", st.ObservedGeneration, cv.Generation)
	tell("desired", "%s", releaseText(st.Desired))
	for i, h := range st.History {
		end, verified := "-", ""
		if h.CompletionTime != nil {
			end = s.since(*h.CompletionTime)
		}
		if h.Verified {
			verified = ", verified"
		}
		if h.AcceptedRisks != "" {
			verified += ", accepted risks: " + h.AcceptedRisks
		}
		tell(fmt.Sprintf("history[%d]", i), "%s %s %s, %s to %s%s", h.State, h.Version, h.Image, s.since(h.StartedTime), end, verified)
	}
	tell("versionHash", "%s", st.VersionHash)
	tell("capabilities", "enabled %v of %v", st.Capabilities.EnabledCapabilities, st.Capabilities.KnownCapabilities)
	for _, c := range st.Conditions {
		tell(string(c.Type), "%s %s since %s: %s", c.Status, c.Reason, s.since(c.LastTransitionTime), c.Message)
	}
	var updates []string
	for _, r := range st.AvailableUpdates {
		updates = append(updates, releaseText(r))
	}
	tell("availableUpdates", "%s", strings.Join(updates, "\n"))
	updates = nil
	for _, u := range st.ConditionalUpdates {
		text := releaseText(u.Release)
		for _, c := range u.Conditions {
			text += fmt.Sprintf(", %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
		for _, r := range u.Risks {
			text += ", risk " + r.Name
		}
		updates = append(updates, text)
	}
	tell("conditionalUpdates", "%s", strings.Join(updates, "\n"))
	var risks []string
	for _, r := range st.ConditionalUpdateRisks {
		risks = append(risks, r.Name)
	}
	tell("conditionalUpdateRisks", "%s", strings.Join(risks, ", "))
	if len(same) > 0 {
		s.list("  as before: " + strings.Join(same, ", "))
	}
}

func releaseText(r configv1.Release) string {
	text := r.Version + " " + r.Image
	for _, more := range []string{string(r.Architecture), string(r.URL), strings.Join(r.Channels, ",")} {
		if more != "" {
			text += " " + more
		}
	}
	return text
}

// since is a time as the time since the start, "before" if it is earlier.
func (s *scenario) since(t metav1.Time) string {
	d := t.Sub(s.start)
	if d < 0 {
		return "before"
	}
	return fmt.Sprintf("%d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
}
