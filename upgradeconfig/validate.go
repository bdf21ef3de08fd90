package upgradeconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// Validity is what [Validate] found.
type Validity struct {
	// IsValid reports that the UpgradeConfig can be carried out, and
	// IsAvailableUpdate that there is something to do: it is neither a downgrade
	// nor the version that the cluster has.
	IsValid, IsAvailableUpdate bool
	// Message is the first finding, or reports that all is well.
	Message string
	// Findings are all that is wrong, the one that decided first.
	Findings []*Finding
	// Version is the desired one: the image's if it is known, else the spec's.
	Version string
}

// Finding is something that is wrong with an UpgradeConfig.
type Finding struct {
	// Field is the path of the field, such as spec.desired.version.
	Field string
	// Text describes what is wrong.
	Text string
	// Err is the cause or one of the sentinels; nil if there is nothing but
	// the text.
	Err error
}

func (f *Finding) Error() string { return f.Text }

// Unwrap returns the cause.
func (f *Finding) Unwrap() error { return f.Err }

// What is wrong with an UpgradeConfig, for errors.Is.
var (
	// ErrDowngrade: the desired version is below the current one.
	ErrDowngrade = errors.New("downgrades are unsupported")
	// ErrAlreadyAtVersion: the cluster has the desired version.
	ErrAlreadyAtVersion = errors.New("the cluster has that version")
	// ErrImageConfig is for ReleaseVersion of [ValidateOptions] to wrap: the
	// manifest was read, but not the image's configuration.
	ErrImageConfig = errors.New("the image's configuration cannot be read")
)

// ValidateOptions are the options of [Validate]. The zero value works.
type ValidateOptions struct {
	// Cincinnati asks the update service about versions of a channel other than
	// the cluster's. By default they are accepted.
	Cincinnati bool
	// Graph is the update service. It is asked at spec.upstream of the
	// ClusterVersion if it is a [graph.Upstreamer]. Nil means a
	// [graph.Client], that is the public service.
	Graph graph.Source
	// Architecture of the cluster as the update service names it; empty means the
	// program's. Where the ClusterVersion says Multi, that counts.
	Architecture string
	// ReleaseVersion reads the version of a release image from its registry:
	// label io.openshift.release. Nil: images are judged by their pull spec
	// alone.
	ReleaseVersion func(ctx context.Context, image string) (string, error)
	// ImageTimeout bounds ReleaseVersion; 0 means 20 seconds.
	ImageTimeout time.Duration
}

const imageTimeout = 20 * time.Second

const (
	fieldUpgradeAt = "spec.upgradeAt"
	fieldDesired   = "spec.desired"
	fieldVersion   = "spec.desired.version"
	fieldChannel   = "spec.desired.channel"
	fieldImage     = "spec.desired.image"
)

// Validate reports whether a cluster can do what a spec asks for. It writes
// nothing.
//
// upgradeAt must be a time, past or future. An image must be a pull spec by
// digest; no rule about versions applies to it. A version must be above the
// current one and among the cluster's updates; if it is of a channel that the
// cluster is not in, the update service is asked.
//
// All findings are reported, and the first one decides: a downgrade, or the
// version that the cluster has, is valid but not available. The error joins
// those findings that the managed-upgrade operator reports as errors, which
// are all but two: a spec that names no release, and a version that is not
// among the cluster's updates. So if the error is nil the spec may still not
// be valid.
func Validate(ctx context.Context, s Spec, cv *configv1.ClusterVersion, o ValidateOptions) (Validity, error) {
	v := validator{ctx: ctx, spec: s, cv: cv, o: o}
	v.out.Version = s.Desired.Version
	v.upgradeAt()
	if s.Desired.Image != "" {
		v.image()
	} else {
		v.version()
	}
	if len(v.out.Findings) == 0 {
		v.out.IsValid, v.out.IsAvailableUpdate, v.out.Message = true, true, "Upgrade config is valid"
		return v.out, nil
	}
	first := v.out.Findings[0]
	v.out.Message = first.Text
	v.out.IsValid = errors.Is(first, ErrDowngrade) || errors.Is(first, ErrAlreadyAtVersion)
	return v.out, bounded.Errors(v.errs...)
}

type validator struct {
	ctx  context.Context
	spec Spec
	cv   *configv1.ClusterVersion
	o    ValidateOptions
	out  Validity
	errs []error
}

// note adds a finding that is not an error.
func (v *validator) note(field string, cause error, format string, args ...any) *Finding {
	f := &Finding{Field: field, Text: fmt.Sprintf(format, args...), Err: cause}
	v.out.Findings = append(v.out.Findings, f)
	return f
}

// fail adds a finding that is an error.
func (v *validator) fail(field string, cause error, format string, args ...any) {
	v.errs = append(v.errs, v.note(field, cause, format, args...))
}

func (v *validator) upgradeAt() {
	if _, err := time.Parse(time.RFC3339, v.spec.UpgradeAt); err != nil {
		v.fail(fieldUpgradeAt, err, "Failed to parse upgradeAt:%s during validation", v.spec.UpgradeAt)
	}
}

func (v *validator) image() {
	image := v.spec.Desired.Image
	ref, err := parsePullSpec(image)
	if err != nil {
		v.fail(fieldImage, err, "failed to parse image %s: must be a valid image pull spec:%v", image, err)
		return
	}
	before := len(v.out.Findings)
	for _, part := range []struct{ value, name string }{
		{ref.registry, "registry"}, {ref.namespace, "repository"}, {ref.name, "image name"}, {ref.digest, "image digest"},
	} {
		if part.value == "" {
			v.fail(fieldImage, nil, "failed to parse image:%s must be a valid image pull spec: no %s specified", image, part.name)
		}
	}
	if v.o.ReleaseVersion == nil || len(v.out.Findings) > before {
		return
	}
	ctx, cancel := reconcile.WithTimeout(v.ctx, cmp.Or(v.o.ImageTimeout, imageTimeout))
	defer cancel()
	version, err := v.o.ReleaseVersion(ctx, image)
	switch {
	case err == nil && version != "":
		v.out.Version = version
	case err == nil:
		err = fmt.Errorf("%w: it names no version", ErrImageConfig)
		fallthrough
	case errors.Is(err, ErrImageConfig):
		v.fail(fieldImage, err, "failed to fetch blobs for image manifest digest: %s needs to be a valid release image: %v", image, err)
	default:
		v.fail(fieldImage, err, "failed to fetch image manifest digest: %s needs to be a valid release image: %v", image, err)
	}
}

func (v *validator) version() {
	d := v.spec.Desired
	if d.Version == "" && d.Channel == "" {
		v.note(fieldDesired, nil, "Not able to validate the upgrade config, either image or (channel + version) needs to be provided")
		return
	}
	desired, err := graph.ParseVersion(d.Version)
	if err != nil {
		v.fail(fieldVersion, err, "failed to parse upgrade config desired version %s as semver: %v", d.Version, err)
	}
	text, current := v.current()
	if desired == nil || current == nil {
		return
	}
	switch c := desired.Compare(current); {
	case c < 0:
		v.fail(fieldVersion, ErrDowngrade, "downgrades to desired version %s from %s are unsupported", d.Version, text)
	case c == 0:
		v.fail(fieldVersion, ErrAlreadyAtVersion, "desired version %s matches the current version %s", d.Version, text)
	case d.Channel == v.cv.Spec.Channel:
		if !listed(v.cv, d.Version) {
			v.note(fieldVersion, nil, "version %s not found in clusterversion available or conditional updates", d.Version)
		}
	case v.o.Cincinnati:
		v.ask(text)
	}
}

// current is the version that the cluster has; nil, with a finding, if that is not
// known.
func (v *validator) current() (string, *semver.Version) {
	const field = "ClusterVersion status.history"
	if v.cv == nil {
		v.fail(field, errNoCurrent, "failed to get current cluster version during validation: %v", errNoCurrent)
		return "", nil
	}
	text, ok := CurrentVersion(v.cv)
	if !ok {
		v.fail(field, errNoCurrent, "failed to get current cluster version during validation: %v", errNoCurrent)
		return "", nil
	}
	current, err := graph.ParseVersion(text)
	if err != nil {
		v.fail(field, err, "failed to parse current cluster version %s as semver: %v", text, err)
		return "", nil
	}
	return text, current
}

// ask looks for the version among the updates that the update service has in
// the desired channel.
func (v *validator) ask(current string) {
	d := v.spec.Desired
	updates, err := v.updates(current)
	switch {
	case err != nil:
		v.fail(fieldChannel, err, "failed to get the updates of channel %s during validation: %v", d.Channel, err)
	case len(updates) == 0:
		v.fail(fieldChannel, nil, "no available upgrade for the given clusterversion %s", current)
	case !slices.Contains(updates, d.Version):
		v.fail(fieldVersion, nil, "cannot find version %s in available updates", d.Version)
	}
}

func (v *validator) updates(current string) ([]string, error) {
	source := v.o.Graph
	if source == nil {
		client := &graph.Client{}
		defer client.CloseIdleConnections()
		source = client
	}
	if up, ok := source.(graph.Upstreamer); ok && v.cv.Spec.Upstream != "" {
		source = up.WithUpstream(string(v.cv.Spec.Upstream))
	}
	arch, name := v.o.Architecture, v.o.Architecture
	if arch == "" {
		arch, name = runtime.GOARCH, runtime.GOARCH
	}
	if v.cv.Status.Desired.Architecture == configv1.ClusterVersionArchitectureMulti {
		arch, name = "multi", string(configv1.ClusterVersionArchitectureMulti)
	}
	channel := v.spec.Desired.Channel
	g, err := source.Fetch(v.ctx, graph.Query{Channel: channel, Arch: arch, Version: current, ClusterID: string(v.cv.Spec.ClusterID)})
	if err != nil {
		return nil, err
	}
	u, err := g.Updates(graph.UpdatesQuery{Version: current, Channel: channel, Architecture: name})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, r := range u.Available {
		out = append(out, r.Version)
	}
	for _, c := range u.Conditional {
		out = append(out, c.Release.Version)
	}
	return out, nil
}

// listed reports whether a version is among the updates of a ClusterVersion.
func listed(cv *configv1.ClusterVersion, version string) bool {
	return slices.ContainsFunc(cv.Status.AvailableUpdates, func(r configv1.Release) bool { return r.Version == version }) ||
		slices.ContainsFunc(cv.Status.ConditionalUpdates, func(c configv1.ConditionalUpdate) bool { return c.Release.Version == version })
}

// pullSpec is an image reference in its parts. All but the name may be empty.
type pullSpec struct{ registry, namespace, name, digest string }

// The grammar of github.com/distribution/reference.
var (
	pullSpecPattern = regexp.MustCompile(`^(` + domainPattern + `/)?([a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*)` +
		`(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?$`)
	digestPattern = regexp.MustCompile(`^(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$`)
)

const (
	labelPattern  = `[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?`
	domainPattern = `(?:` + labelPattern + `(?:\.` + labelPattern + `)*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?`
)

const maxPullSpec = 1024

func parsePullSpec(text string) (pullSpec, error) {
	if len(text) > maxPullSpec {
		return pullSpec{}, fmt.Errorf("it has %d bytes, more than the limit of %d", len(text), maxPullSpec)
	}
	if pullSpecPattern.FindStringSubmatch(text) == nil {
		return pullSpec{}, errors.New("invalid reference format")
	}
	rest, digest, _ := strings.Cut(text, "@")
	if digest != "" && !digestPattern.MatchString(digest) {
		return pullSpec{}, fmt.Errorf("invalid or unsupported digest %s", digest)
	}
	out := pullSpec{digest: digest}
	if first, path, ok := strings.Cut(rest, "/"); ok && (strings.ContainsAny(first, ".:") || first == "localhost") {
		out.registry, rest = first, path
	}
	if i := strings.LastIndexByte(rest, ':'); i >= 0 {
		rest = rest[:i]
	}
	namespace, name, ok := strings.Cut(rest, "/")
	if !ok {
		namespace, name = "", namespace
	}
	out.namespace, out.name = namespace, name
	return out, nil
}
