package forecast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/preflight"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
	"github.com/clusterupdate/clusterupdate/signature"
)

// Options are the options of [Update] and [Fleet]. To is required; each further field
// adds a part to the forecast. They are plain data.
type Options struct {
	// To is the version wanted.
	To string
	// Networks are the update graphs, one for each architecture. Nil: the path is
	// one update, and the cluster's own list of updates judges it.
	Networks []*path.Network
	// Way is the policy for the path; the zero value allows what is recommended.
	Way path.Policy
	// Releases are contents of releases, chosen by version: those that the cluster
	// runs, and those to update to. Payloads supplies, by image, contents that are
	// not among them; nil means that nothing does. Without contents there are no
	// changes, no credentials and no rehearsal.
	Releases payload.Images
	Payloads manifest.PayloadSource
	// Verifier verifies the image of the release; nil leaves that out.
	Verifier signature.Verifier
	// Preflight has the checks, their policy, and what they judge by besides the
	// cluster. Time and alerts of a recording are used unless set here; payloads are
	// filled in.
	Preflight preflight.Options
	// Rehearse asks for a rehearsal of the next update; Reader, From, To and Desired are
	// filled in, and a zero Timing means ObservedTiming's. Nil: none.
	Rehearse *RehearseOptions
}

// Forecast is what an update would do to a cluster. Checks, changes, credentials and
// rehearsal are about the first update of the Path: the updates after it find a cluster that
// is different by then. It is plain data.
type Forecast struct {
	// Cluster is spec.clusterID, Channel spec.channel.
	Cluster string `json:"cluster,omitempty"`
	Channel string `json:"channel,omitempty"`
	// Time is when the cluster was as the forecast sees it.
	Time time.Time `json:"time"`
	// From is the version that the cluster is at, or is being updated to. Next is the
	// first one of the Path after it, To the one wanted.
	From string `json:"from"`
	Next string `json:"next"`
	To   string `json:"to"`
	// Path leads from From to To; nil without a graph, or if it has no path.
	Path *path.Path `json:"path,omitempty"`
	// Nearest leads to the lowest version above To that the policy lets the cluster
	// reach, if To is not recommended or its release blocks; nil if absent. What else
	// blocks, blocks it too.
	Nearest *path.Path `json:"nearest,omitempty"`
	// Findings are what blocks, what to know and what is not known: by severity, then
	// in the order of the parts. Each cause is there once.
	Findings []Finding `json:"findings,omitempty"`
	// Checks are the names of the checks that passed, are bypassed or do not apply, by
	// state.
	Checks map[preconditions.State][]string `json:"checks,omitempty"`
	// Credentials are the CredentialsRequests that differ between the releases.
	Credentials []Credential `json:"credentials,omitempty"`
	// Changes is the preview of the first update, nil in a Fleet. Counts are its
	// changes by action and kind; nil if it was not previewed.
	Changes *preview.Preview                  `json:"-"`
	Counts  map[preview.Action]map[string]int `json:"changes,omitempty"`
	// Documented is the duration by the documentation's formula; zero if the pools
	// are not known.
	Documented time.Duration `json:"documented,omitempty"`
	// Rehearsal is nil if it was not asked for or cannot be made.
	Rehearsal *Rehearsal `json:"rehearsal,omitempty"`
	// Collect has the resources that the forecast lacks, as oc adm inspect
	// --all-namespaces takes them.
	Collect []string `json:"collect,omitempty"`
	// Assumed lists what the forecast takes for granted.
	Assumed []string `json:"assumed,omitempty"`

	policy path.Policy // allows Path
}

// MarshalJSON adds the verdict.
func (f *Forecast) MarshalJSON() ([]byte, error) {
	type plain Forecast
	return json.Marshal(struct {
		Verdict Verdict `json:"verdict"`
		*plain
	}{f.Verdict(), (*plain)(f)})
}

// Credential is a CredentialsRequest that an update adds, changes or removes.
type Credential struct {
	Action    preview.Action `json:"action"` // Create, Update or Delete
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	// Secret is where the component reads its credentials: NAMESPACE/NAME.
	Secret string `json:"secret,omitempty"`
}

// Update forecasts what an update does to a cluster, which it only reads. Errors are those
// of reading the ClusterVersion, of the options, and that ctx ended; what else cannot be
// read or made is a finding.
func Update(ctx context.Context, r clusterapi.Reader, o Options) (*Forecast, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	return newShared(o).update(ctx, r)
}

// validate returns an error unless To is a version.
func (o *Options) validate() error {
	if o.To == "" {
		return errors.New("forecast: Options.To is empty")
	}
	if _, err := graph.ParseVersion(o.To); err != nil {
		return fmt.Errorf("forecast: Options.To is %s, not a version such as 4.18.3: %w", bounded.Quote(o.To), err)
	}
	return nil
}

// update is one forecast.
func (s *shared) update(ctx context.Context, r clusterapi.Reader) (*Forecast, error) {
	o := s.options
	cv, err := clusterapi.Read[configv1.ClusterVersion](ctx, r, clusterapi.Key("", "version"))
	if err != nil {
		return nil, fmt.Errorf("forecast: reading the ClusterVersion: %w", err)
	}
	f := &Forecast{
		Cluster: string(cv.Spec.ClusterID), Channel: cv.Spec.Channel, From: cv.Status.Desired.Version, To: o.To, Next: o.To,
		Checks: map[preconditions.State][]string{},
	}
	input := o.Preflight.Input
	if input.Now.IsZero() {
		input.Now = clusterapi.TimeOf(r)
	}
	if input.Now.IsZero() {
		input.Now = clock.RealClock{}.Now()
	}
	f.Time = input.Now
	if err := f.findPath(cv, o); err != nil {
		return nil, err
	}
	target := targetOf(cv, f)
	running := s.release(ctx, cv.Status.Desired, f)
	next := s.release(ctx, target, f)
	gates := readGates(ctx, r, cv, f)
	input.CurrentPayload = s.payload(ctx, running, gates, f)
	input.TargetPayload = s.payload(ctx, next, gates, f)

	f.verify(ctx, s, target)
	if err := f.check(ctx, r, target, input, o); err != nil {
		return nil, err
	}
	f.credentials(ctx, r, cv, input, gates)
	if err := f.preview(ctx, r, cv, input, gates); err != nil {
		return nil, err
	}
	f.estimate(ctx, r, o.Rehearse)
	if err := f.rehearse(ctx, s, r, cv, next); err != nil {
		return nil, err
	}
	if err := f.findNearest(cv, o); err != nil {
		return nil, err
	}
	f.sort()
	return f, ctx.Err()
}

// targetOf is the release to update to next, as the path or the cluster knows it.
func targetOf(cv *configv1.ClusterVersion, f *Forecast) configv1.Release {
	if f.Path != nil {
		target := f.Path.Releases[1]
		return configv1.Release{Version: target.Version, Image: target.Image, Architecture: cv.Status.Desired.Architecture}
	}
	target := configv1.Release{Version: f.Next}
	if listed := offered(cv, f.Next); listed != nil {
		target = *listed
	}
	return target
}

// offered returns the release of a version in the cluster's lists of updates; nil if
// it is not there.
func offered(cv *configv1.ClusterVersion, version string) *configv1.Release {
	for i := range cv.Status.AvailableUpdates {
		if r := &cv.Status.AvailableUpdates[i]; r.Version == version {
			return r
		}
	}
	for i := range cv.Status.ConditionalUpdates {
		if r := &cv.Status.ConditionalUpdates[i].Release; r.Version == version {
			return r
		}
	}
	return nil
}

// verify asks who vouches for the image of the release.
func (f *Forecast) verify(ctx context.Context, s *shared, target configv1.Release) {
	if s.options.Verifier == nil {
		return
	}
	found := preconditions.Finding{Severity: preconditions.Blocking, Reason: "ImageVerificationFailed",
		Remedy: "use the release that is signed, or give the key and the store of its signature"}
	digest := signature.Digest(target.Image)
	if digest == "" {
		found.Message = fmt.Sprintf("the digest of release %s is not known: its signature cannot be verified", target.Version)
		f.addUnknown(partRelease, "Signature", found)
		return
	}
	if err := s.verify(ctx, digest); err != nil {
		found.Message = fmt.Sprintf("the image of release %s: %v", target.Version, err)
		f.add(partRelease, "Signature", found)
		return
	}
	f.addCheck(preconditions.Passed, "Signature")
}

// estimate applies the documentation's formula to the pools, with the what-ifs of a
// rehearsal.
func (f *Forecast) estimate(ctx context.Context, r clusterapi.Reader, o *RehearseOptions) {
	pools, err := clusterapi.List[mcfgv1.MachineConfigPool](ctx, r, clusterapi.ListOptions{})
	if err != nil {
		return
	}
	if o == nil {
		o = &RehearseOptions{}
	}
	var in mcp.EstimateInput
	for i := range pools {
		pool := &pools[i]
		o.Pools[pool.Name].apply(pool)
		nodes := int(pool.Status.MachineCount)
		if n, ok := o.Nodes[pool.Name]; ok {
			nodes = n
		}
		limit, _, err := mcp.MaxUnavailable(pool, nodes)
		if err == nil && !pool.Spec.Paused {
			in.Pools = append(in.Pools, mcp.EstimatePool{Nodes: nodes, MaxUnavailable: limit})
		}
	}
	if len(in.Pools) > 0 {
		f.Documented = mcp.EstimateDocumented(in)
	}
}

// rehearse plays the update, and reports how it ends unless it completes.
func (f *Forecast) rehearse(
	ctx context.Context, s *shared, r clusterapi.Reader, cv *configv1.ClusterVersion, next *payload.Image,
) error {
	if s.options.Rehearse == nil {
		return nil
	}
	o := *s.options.Rehearse
	o.Reader, o.To = r, next
	completed := completedRelease(cv)
	o.From = s.release(ctx, completed, f)
	if desired := cv.Status.Desired; desired.Version != completed.Version && desired.Version != f.Next {
		o.Desired = s.release(ctx, desired, f)
	}
	unknown := preconditions.Finding{Severity: preconditions.Warning, Reason: reasonNotRehearsed}
	if o.From == nil || o.To == nil {
		unknown.Message = "the rehearsal needs the contents of both releases"
		f.addUnknown(partDuration, checkRehearsal, unknown)
		return nil
	}
	if reflect.ValueOf(o.Timing).IsZero() {
		timing, err := ObservedTiming(ctx, r, o.From)
		if err != nil {
			f.Assumed = append(f.Assumed, "Work takes its usual time: "+err.Error()+".")
		}
		o.Timing = timing
	}
	rehearsal, err := Rehearse(ctx, o)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		unknown.Message = err.Error()
		f.addUnknown(partDuration, checkRehearsal, unknown)
		return nil
	}
	f.Rehearsal = rehearsal
	f.outcome()
	return nil
}

// completedRelease is the release of the newest completed update.
func completedRelease(cv *configv1.ClusterVersion) configv1.Release {
	for _, h := range cv.Status.History {
		if h.State == configv1.CompletedUpdate {
			return configv1.Release{Version: h.Version, Image: h.Image}
		}
	}
	return cv.Status.Desired
}

// outcome makes a finding of a rehearsal that did not complete. Its first cause is
// uncertain if it rests on an assumption. What a check has found of the same object, or
// what refuses the update anyway, is the same cause.
func (f *Forecast) outcome() {
	if f.Rehearsal.Outcome == Completed {
		return
	}
	found := Finding{Part: partDuration, Check: checkRehearsal}
	found.Severity, found.Reason = preconditions.Blocking, string(f.Rehearsal.Outcome)
	found.Message = "the rehearsal does not complete"
	if len(f.Rehearsal.Why) > 0 {
		first := f.Rehearsal.Why[0]
		found.Message, found.Unknown = first.String(), first.Assumed
	}
	for i := range f.Findings {
		other := &f.Findings[i]
		if !f.sameCause(*other) {
			continue
		}
		if other.Severity >= preconditions.Blocking {
			other.Same = append(other.Same, found)
			return
		}
		found.Remedy = other.Remedy
		found.Same = append(found.Same, *other)
	}
	f.Findings = slices.DeleteFunc(f.Findings, func(other Finding) bool {
		return slices.ContainsFunc(found.Same, func(same Finding) bool {
			return same.Check == other.Check && same.Reason == other.Reason
		})
	})
	f.Findings = append(f.Findings, found)
}

// sameCause reports whether a finding has the cause for which the rehearsal does not
// complete.
func (f *Forecast) sameCause(found Finding) bool {
	if found.Unknown || found.Severity < preconditions.Warning {
		return false
	}
	if f.Rehearsal.Outcome == Refused {
		return found.Severity >= preconditions.Blocking
	}
	for _, cause := range f.Rehearsal.Why {
		for _, link := range cause.Chain {
			if found.Reason == reasonRefused && strings.HasPrefix(link.Reason, refusals) {
				return true
			}
			same := func(o preconditions.Object) bool {
				return link.Object != nil && o.GVK.Kind == link.Object.Kind && o.Name == link.Object.Name
			}
			if slices.ContainsFunc(found.Objects, same) {
				return true
			}
		}
	}
	return false
}
