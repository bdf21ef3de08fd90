package clusterupdate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/simtest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

// hellReleases are those of [toyReleases] with a ConfigMap that every second one
// deletes, and one that both deletes and applies it.
func hellReleases(t testing.TB) []*toyRelease {
	relic := func(version, delete string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: relic, namespace: toy, annotations: {%s: %q, include.release.openshift.io/self-managed-high-availability: 'true'%s}}, data: {version: %q}}\n",
			annotationRelease, version, delete, version)
	}
	const deletes = ", release.openshift.io/delete: 'true'"
	optional := "{apiVersion: v1, kind: ConfigMap, metadata: {name: optional, namespace: toy, annotations: {" + annotationRelease + ": %q, include.release.openshift.io/self-managed-high-availability: 'true', capability.openshift.io/name: marketplace}}, data: {version: %q}}\n"
	all := toyReleases(t)
	for i, r := range all {
		files := r.files.(fstest.MapFS)
		text := relic(r.Version, "")
		switch i {
		case 1:
			text = relic(r.Version, deletes)
		case 2:
			text = relic(r.Version, deletes) + "---\n" + fmt.Sprintf(optional, r.Version, r.Version)
		case 3:
			files["release-manifests/0000_11_relic_00_delete.yaml"] = &fstest.MapFile{Data: []byte(relic(r.Version, deletes))}
		}
		files["release-manifests/0000_12_relic_00_relic.yaml"] = &fstest.MapFile{Data: []byte(text)}
		p, err := manifest.Load(t.Context(), files, manifest.LoadOptions{Image: r.Image, Filter: manifest.DefaultFilter()})
		checktest.OK(t, err)
		r.payload = p
	}
	return all
}

// deletesRelic reports whether a release asks for the relic to be gone.
func deletesRelic(version string) bool { return version != "1.0.0" }

// adminKey marks what the administrator does.
type adminKey struct{}

// hell is a cluster with one updater whose administrator does what administrators do.
type hell struct {
	*toyWorld
	rng *rand.Rand
	own bool     // Options.Own is set
	did []string // by the administrator

	newest   []stamped            // versions of the newest entry, with since when
	reports  map[string][]stamped // versions that each operator reported
	reached  map[string]bool      // operators that were at the newest entry's release since it was accepted
	accepted int
	started  bool // the cluster is built
}

// stamped is a state that lasted until the next one.
type stamped struct {
	since time.Time
	text  string
}

// grace is how long a write may be late: the updater looks when a watch shows what
// has changed, and a read may be old.
const grace = 2 * time.Minute

// lately reports whether a state was text within the grace.
func lately(all []stamped, now time.Time, is func(text string) bool) bool {
	for i, s := range all {
		over := i+1 < len(all) && now.Sub(all[i+1].since) > grace
		if !over && is(s.text) {
			return true
		}
	}
	return false
}

func newHell(releases []*toyRelease, source graph.Source, rng *rand.Rand, o reconcile.VirtualOptions) (*hell, error) {
	x := &hell{rng: rng, own: rng.IntN(2) == 0, reports: map[string][]stamped{}, reached: map[string]bool{}}
	var err error
	if x.toyWorld, err = newToyWorld(releases, memory.Options{Intercept: x.intercept, Lenient: true}, o); err != nil {
		return nil, err
	}
	options := clusterupdate.Options{PreflightChecks: rules.Default(rules.Options{})}
	if x.own {
		options.Own = releases[0].Release
	}
	if err := x.add(updaters[0], source, options); err != nil {
		return nil, err
	}
	x.started = true
	x.see()
	return x, nil
}

// see takes note of the state of the cluster.
func (x *hell) see() {
	now := x.Now()
	note := func(all []stamped, text string) []stamped {
		if n := len(all); n == 0 || all[n-1].text != text {
			all = append(all, stamped{now, text})
		}
		return all
	}
	newest := ""
	if h := x.version().Status.History; len(h) > 0 {
		newest = h[0].Version
	}
	x.newest = note(x.newest, newest)
	for name := range toyOperators {
		version := x.operator(name)
		x.reports[name] = note(x.reports[name], version)
		if version == newest {
			x.reached[name] = true
		}
	}
}

// intercept checks every write of the updater.
func (x *hell) intercept(ctx context.Context, call memory.Call, do func(context.Context) error) error {
	reads := call.Verb == "Get" || call.Verb == "List" || call.Verb == "Watch"
	if !x.started || reads {
		return do(ctx)
	}
	var before *unstructured.Unstructured
	mine := ctx.Value(adminKey{}) == nil && !simulation.FromSimulation(ctx)
	if mine && call.GVK.Kind == "ClusterVersion" {
		before = x.raw()
	}
	err := do(ctx)
	if err == nil {
		x.see()
	}
	switch {
	case err != nil || !mine:
	case before != nil && call.Verb == "UpdateStatus":
		x.judgeStatus(before, x.version())
	case call.GVK.Kind == "ClusterVersion":
		x.problem("%s of the ClusterVersion, and nobody asked for it", call.Verb)
	case call.Verb == "Delete":
		x.judgeDelete(call.Key)
	case call.Object != nil:
		x.judgeApply(call)
	}
	return err
}

// judgeApply checks the write of an object of a payload.
func (x *hell) judgeApply(call memory.Call) {
	version := call.Object.GetAnnotations()[annotationRelease]
	if version == "" || call.Verb == "Update" && x.isStored(call) {
		return // of adoption, which writes managedFields alone
	}
	now := x.Now()
	if !lately(x.newest, now, func(v string) bool { return v == version }) {
		x.problem("%s %s of %s was applied, and the newest entries of the history are %v", call.GVK.Kind, call.Key.Name, version, x.newest[max(0, len(x.newest)-3):])
		return
	}
	h := x.version().Status.History
	if len(h) == 0 || h[0].State == configv1.CompletedUpdate || h[0].Version != version {
		return
	}
	for name, level := range toyOperators {
		if level < hellLevel(call.Object) && !x.reached[name] && !x.installs(version) {
			x.problem("%s %s was applied before %s was at %s", call.GVK.Kind, call.Key.Name, name, version)
		}
	}
}

// isStored reports whether an object is in the cluster as it is written, apart from
// its managedFields.
func (x *hell) isStored(call memory.Call) bool {
	live, err := x.cluster.Get(context.WithValue(context.Background(), adminKey{}, true), call.GVK, call.Key)
	if err != nil {
		return false
	}
	written := call.Object.DeepCopy()
	for _, u := range []*unstructured.Unstructured{live, written} {
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
	}
	return equality.Semantic.DeepEqual(live.Object, written.Object)
}

func hellLevel(u *unstructured.Unstructured) int {
	if u.GetKind() == "ClusterOperator" {
		return 0 // may be made first of all
	}
	return levelOf(u)
}

// installs reports whether no operator has reported a version lately, or none but
// this: then the release may count as being installed.
func (x *hell) installs(version string) bool {
	for name := range toyOperators {
		if !lately(x.reports[name], x.Now(), func(v string) bool { return v == "" || v == version }) {
			return false
		}
	}
	return true
}

// judgeDelete checks a deletion: only the relic, and only of a release that asks for
// it.
func (x *hell) judgeDelete(key types.NamespacedName) {
	if key.Name != "relic" || !lately(x.newest, x.Now(), func(v string) bool { return v != "" && deletesRelic(v) }) {
		x.problem("%s was deleted at %v", key, x.newest[max(0, len(x.newest)-3):])
	}
}

// judgeStatus checks a write of the status against what it was decided from.
func (x *hell) judgeStatus(was *unstructured.Unstructured, cv *configv1.ClusterVersion) {
	old, now := typed(was).Status.History, cv.Status.History
	added := len(now) - len(old)
	if added < 0 || added > 1 {
		x.problem("the history went from %v to %v", old, now)
		return
	}
	for i, o := range old {
		n := now[added+i]
		if n.Image != o.Image || o.Version != "" && n.Version != o.Version || !n.StartedTime.Equal(&o.StartedTime) || o.Verified && !n.Verified ||
			o.State == configv1.CompletedUpdate && n.State != o.State || o.AcceptedRisks != "" && n.AcceptedRisks == "" {
			x.problem("entry %d of the history was %v, and is %v", i, o, n)
		}
		if added+i > 0 && n.CompletionTime == nil {
			x.problem("entry %d of the history has no end", added+i)
		}
	}
	if len(now) == 0 {
		return
	}
	if cv.Status.Desired.Image != now[0].Image {
		x.problem("desired is %s, and the newest entry is %s", cv.Status.Desired.Image, now[0].Image)
	}
	if added > 0 {
		x.reached = map[string]bool{}
		x.accepted++
		x.judgeEntry(was, old, now[0])
		x.see()
	}
	if now[0].State == configv1.CompletedUpdate && (added > 0 || len(old) > 0 && old[0].State != configv1.CompletedUpdate) {
		for name := range toyOperators {
			done := x.reached[name] || lately(x.reports[name], x.Now(), func(v string) bool { return v == now[0].Version })
			if added > 0 && x.operator(name) == "" || x.installs(now[0].Version) {
				done = true // a release that counts as being installed awaits no versions
			}
			if !done {
				x.problem("%s is Completed, and %s reports %q", now[0].Version, name, x.operator(name))
			}
		}
	}
}

// judgeEntry checks a new entry of the history against the request that stood in the
// object: the write is conditional on it.
func (x *hell) judgeEntry(was *unstructured.Unstructured, old []configv1.UpdateHistory, entry configv1.UpdateHistory) {
	i := slices.IndexFunc(x.releases, func(r *toyRelease) bool { return r.Image == entry.Image })
	if i < 0 || x.releases[i].Version != entry.Version {
		x.problem("%s %s was accepted, which is not a release", entry.Version, entry.Image)
		return
	}
	u := typed(was).Spec.DesiredUpdate
	if len(clusterversion.NotUnderstood(was)) > 0 || u != nil && u.Mode != "" {
		u = nil
	}
	asked := u != nil && (u.Image == entry.Image || u.Image == "" && u.Version == entry.Version)
	if len(old) == 0 && (entry.State == configv1.CompletedUpdate || !asked || x.installs("")) {
		x.judgeFirst(entry)
		return
	}
	if !asked && x.own && x.installs("") && entry.Version == x.releases[0].Version && entry.State == configv1.PartialUpdate {
		return // as long as nothing was completed and no operator is there, Own is installed
	}
	if !asked {
		x.problem("%s was accepted, and the request is %+v", entry.Version, u)
		return
	}
	signed := entry.Version != unsigned
	if !signed && !u.Force {
		x.problem("%s was accepted, which nobody signed and nobody forced", entry.Version)
	}
	if entry.Verified != signed {
		x.problem("%s was accepted, and verified is %v", entry.Version, entry.Verified)
	}
	if len(old) > 0 && semver.MustParse(entry.Version).LessThan(semver.MustParse(old[0].Version)) && u.Image == "" {
		x.problem("a downgrade to %s was accepted, and nobody named its image", entry.Version)
	}
}

// judgeFirst checks the first entry of a history, which nobody asked for: it is what
// all operators report, or an installation.
func (x *hell) judgeFirst(entry configv1.UpdateHistory) {
	now, some := x.Now(), false
	for name := range toyOperators {
		all := x.reports[name]
		some = some || lately(all, now, func(v string) bool { return v == entry.Version })
		if !lately(all, now, func(v string) bool { return v == entry.Version && entry.State == configv1.CompletedUpdate || v == "" }) {
			x.problem("the history begins with %s %s, and %s reports %q", entry.Version, entry.State, name, x.operator(name))
		}
	}
	if entry.State == configv1.CompletedUpdate && (!some || entry.Verified) {
		x.problem("the history begins with %v, and no operator is there", entry)
	}
}

// modify changes the ClusterVersion as the administrator.
func (x *hell) modify(status bool, f func(cv *configv1.ClusterVersion)) error {
	ctx := context.WithValue(context.Background(), adminKey{}, true)
	_, err := clusterapi.Modify(ctx, x.cluster, clusterapi.Key("", "version"), clusterapi.ModifyOptions{Status: status}, func(cv *configv1.ClusterVersion) error {
		f(cv)
		return nil
	})
	return err
}

// ask replaces the whole request.
func (x *hell) ask(fields map[string]any) error {
	u := x.raw()
	unstructured.RemoveNestedField(u.Object, "spec", "desiredUpdate")
	if fields != nil {
		if err := unstructured.SetNestedField(u.Object, fields, "spec", "desiredUpdate"); err != nil {
			return err
		}
	}
	_, err := x.cluster.Update(context.WithValue(context.Background(), adminKey{}, true), u, clusterapi.UpdateOptions{FieldManager: "administrator"})
	return err
}

// act does something of the administrator's, and says what.
func (x *hell) act() (string, error) {
	ctx, rng := context.WithValue(context.Background(), adminKey{}, true), x.rng
	r := x.releases[rng.IntN(len(x.releases))]
	force := rng.IntN(3) == 0
	name := []string{"alpha", "beta", "gamma"}[rng.IntN(3)]
	object := []string{"first", "last", "relic", "optional", "cluster-version-operator"}[rng.IntN(5)]
	switch n := rng.IntN(21); n {
	case 0, 1, 2:
		return fmt.Sprint("request version ", r.Version, force), x.ask(map[string]any{"version": r.Version, "force": force})
	case 3, 4, 5:
		return fmt.Sprint("request image of ", r.Version, force), x.ask(map[string]any{"image": r.Image, "force": force})
	case 6:
		return fmt.Sprint("request an unknown image", force), x.ask(map[string]any{"image": "registry.example/release@sha256:" + strings.Repeat("0", 64), "force": force})
	case 7:
		return "take the request back", x.ask(nil)
	case 8:
		return "preflight of " + r.Version, x.ask(map[string]any{"image": r.Image, "force": true, "mode": "Preflight"})
	case 9:
		return "preflight by the version " + r.Version, x.ask(map[string]any{"version": r.Version, "mode": "Preflight"})
	case 10:
		return "change the channel", x.modify(false, func(cv *configv1.ClusterVersion) { cv.Spec.Channel = []string{"", "stable", "fast"}[rng.IntN(3)] })
	case 11:
		return "override " + name, x.modify(false, func(cv *configv1.ClusterVersion) {
			cv.Spec.Overrides = nil
			if rng.IntN(2) == 0 {
				cv.Spec.Overrides = []configv1.ComponentOverride{{Kind: "Deployment", Group: "apps", Namespace: "toy", Name: name, Unmanaged: true}}
			}
		})
	case 12:
		return "change the capabilities", x.modify(false, func(cv *configv1.ClusterVersion) {
			cv.Spec.Capabilities = &configv1.ClusterVersionCapabilitiesSpec{BaselineCapabilitySet: []configv1.ClusterVersionCapabilitySet{"None", "vCurrent", "v4.11"}[rng.IntN(3)]}
		})
	case 13:
		return "delete " + object, x.delete(ctx, configMapKind, clusterapi.Key("toy", object))
	case 14:
		return "delete Deployment " + name, x.delete(ctx, deployments, clusterapi.Key("toy", name))
	case 15:
		return "edit Deployment " + name, ignoreNotFound(clusterapi.Modify(ctx, x.cluster, clusterapi.Key("toy", name), clusterapi.ModifyOptions{}, func(d *appsv1.Deployment) error {
			d.Spec.Template.Spec.Containers[0].Image = "registry.example/mine"
			return nil
		}))
	case 16:
		if !x.own || rng.IntN(2) == 0 { // without Own, what the cluster runs is known from operators alone
			version := []string{"", r.Version, "rubbish"}[rng.IntN(3)]
			if !x.own {
				version = r.Version
			}
			return fmt.Sprintf("make %s report %q", name, version), ignoreNotFound(clusterapi.Modify(ctx, x.cluster, clusterapi.Key("", name), clusterapi.ModifyOptions{Status: true}, func(co *configv1.ClusterOperator) error {
				co.Status.Versions = nil
				if version != "" {
					co.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: version}}
				}
				return nil
			}))
		}
		return "delete ClusterOperator " + name, x.delete(ctx, configv1.GroupVersion.WithKind("ClusterOperator"), clusterapi.Key("", name))
	case 17:
		return "lose the history", x.modify(true, func(cv *configv1.ClusterVersion) { cv.Status.History = nil })
	case 18:
		return "lose the status", x.modify(true, func(cv *configv1.ClusterVersion) { cv.Status = configv1.ClusterVersionStatus{} })
	case 19:
		if !x.own {
			return "nothing", nil
		}
		err := x.modify(true, func(cv *configv1.ClusterVersion) { cv.Status = configv1.ClusterVersionStatus{} })
		for name := range toyOperators {
			err = errors.Join(err, x.delete(ctx, configv1.GroupVersion.WithKind("ClusterOperator"), clusterapi.Key("", name)))
		}
		return "lose the status and all ClusterOperators", err
	default:
		u := x.raw()
		orphan := metav1.DeletePropagationOrphan
		if err := x.cluster.Delete(ctx, u.GroupVersionKind(), clusterapi.KeyOf(u), clusterapi.DeleteOptions{Propagation: orphan}); err != nil {
			return "", err
		}
		again := &unstructured.Unstructured{Object: map[string]any{"spec": u.Object["spec"]}}
		again.SetGroupVersionKind(u.GroupVersionKind())
		again.SetName(u.GetName())
		_, err := x.cluster.Create(ctx, again, clusterapi.CreateOptions{})
		return "make the ClusterVersion again", err
	}
}

func (x *hell) delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) error {
	return ignoreNotFound(nil, x.cluster.Delete(ctx, gvk, key, clusterapi.DeleteOptions{}))
}

func ignoreNotFound(_ any, err error) error {
	if err != nil && strings.Contains(err.Error(), "not found") {
		return nil
	}
	return err
}

var hellFaults = reconcile.Faults{
	Before: 0.01, After: 0.01, Conflict: 0.01, Slow: 0.005, Stale: 0.02, Late: 0.1, Double: 0.05, Merge: 0.05,
	Crash: 0.004, ClockBack: 0.2, Until: 90 * time.Minute,
}

// playHell lets the administrator do what comes to mind, and in the end ask for the
// latest release by its image. Whatever came before, the cluster gets there.
func playHell(releases []*toyRelease, source graph.Source, seed uint64, only map[string]bool) ([]string, error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	o := reconcile.VirtualOptions{Seed: seed, Faults: hellFaults, Order: reconcile.Order(rng.IntN(2))}
	o.Faults.Only = only
	x, err := newHell(releases, source, rng, o)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	fail := func(err error) ([]string, error) {
		return x.Faults(), fmt.Errorf("%w\nthe administrator did:\n\t%s\n%s", err, strings.Join(x.did, "\n\t"), x.state())
	}
	for range 4 + rng.IntN(12) {
		if err := x.until(x.Now().Add(time.Duration(rng.IntN(8*60)) * time.Second)); err != nil {
			return fail(err)
		}
		what, err := x.act()
		x.did = append(x.did, fmt.Sprintf("%s %s", x.Now().Sub(toyStart), what))
		if err != nil {
			return fail(fmt.Errorf("the administrator: %w", err))
		}
	}
	if err := x.until(x.Now().Add(15 * time.Minute)); err != nil {
		return fail(err)
	}
	last := releases[2]
	if x.settled(last.Version) { // so that there is an update to check
		last = releases[1]
	}
	err = x.modify(false, func(cv *configv1.ClusterVersion) { cv.Spec.Overrides, cv.Spec.Channel = nil, "stable" })
	if err := errors.Join(err, x.ask(map[string]any{"image": last.Image, "force": true})); err != nil {
		return fail(err)
	}
	x.did = append(x.did, fmt.Sprintf("%s at last %s", x.Now().Sub(toyStart), last.Version))
	if err := x.run(8*time.Hour, func() bool { return x.settled(last.Version) }); err != nil {
		return fail(err)
	}
	if err := x.stays(last.Version, 25*time.Minute); err != nil {
		return fail(err)
	}
	if _, err := x.cluster.Get(context.Background(), configMapKind, clusterapi.Key("toy", "relic")); err == nil {
		return fail(errors.New("the relic is still there"))
	}
	if c := condition(x.version(), "Upgradeable"); strings.Contains(c, "Delet") {
		return fail(fmt.Errorf("deletions are pending: %s", c))
	}
	return x.Faults(), nil
}

// TestAdministratorFromHell lets an administrator do everything that can be done to a
// cluster, under faults, and checks each write of the updater.
func TestAdministratorFromHell(t *testing.T) {
	releases := hellReleases(t)
	source := toyGraph(t, releases)
	simtest.Test(t, 0.1, func(seed uint64, only map[string]bool) ([]string, error) {
		return playHell(releases, source, seed, only)
	})
}
