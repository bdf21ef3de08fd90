package ocm

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// defaultURL is the public OCM.
const defaultURL = "https://api.openshift.com"

// The defaults of [Options].
const (
	defaultTimeout     = 30 * time.Second
	defaultMaxBody     = 4 << 20 // bytes
	defaultMaxPolicies = 1000
)

// Kind determines which of OCM's policies count.
type Kind string

// The kinds.
const (
	// Classic: those of the cluster. The default.
	Classic Kind = "Classic"
	// HostedControlPlane: those of the control plane of a hosted cluster.
	HostedControlPlane Kind = "HostedControlPlane"
	// Auto: those of the control plane if OCM reports that the cluster is a hosted
	// one, else those of the cluster.
	Auto Kind = "Auto"
)

// Options configure a [Provider]. The zero value is usable.
type Options struct {
	// URL of OCM, absolute, http or https, without user, query and fragment.
	// The paths of the API are appended to its own. Empty means https://api.openshift.com.
	// The address of the OCM agent in the cluster selects the agent's dialect.
	URL string
	// Type is the upgrade type of UpgradeConfigs; empty means ARO.
	Type upgradeconfig.UpgradeType
	// Kind of the policies; empty means [Classic].
	Kind Kind
	// ServiceLogs posts the notifications that are for the service log; by
	// default they are dropped.
	ServiceLogs bool

	// Transport sends requests and authenticates them, in place of the pull
	// secret, which is not read then; for instance an OCM SDK's connection.
	// Nil means the pull secret.
	Transport http.RoundTripper
	// Base sends requests that the pull secret authenticates; nil means an own
	// transport with Proxy and RootCAs, which leaves no connection open.
	// Proxy and RootCAs do not apply to Transport and Base.
	Base http.RoundTripper
	// Proxy returns the proxy of a request; nil means none: the environment is
	// not consulted. The OCM agent is always reached directly.
	Proxy func(*http.Request) (*url.URL, error)
	// RootCAs are the authorities to trust; nil means those of the system.
	RootCAs *x509.CertPool
	// UserAgent is sent with each request; empty means
	// managed-upgrade-operator/v0.0.0 (OS/ARCHITECTURE).
	UserAgent string

	// Timeout bounds each try of a request, redirects and body included. Zero
	// means 30 seconds.
	Timeout time.Duration
	// MaxBody is the largest answer in bytes, after decompression. Zero means
	// 4 MiB.
	MaxBody int64
	// MaxPolicies is how many policies a cluster may have. Zero means 1000.
	MaxPolicies int
	// Retries is how often a read is tried again after a transient failure:
	// status 429 or 503, or a broken connection. Zero means 5, and 2 with the
	// OCM agent.
	Retries int
	// NoRetry never tries again.
	NoRetry bool
	// RetryWait is half the wait before the first retry; each further one
	// takes twice as long, up to an hour, all ±30 %. Zero means 2 seconds, and
	// 1 with the OCM agent. A Retry-After in the answer goes before, up to a
	// minute.
	RetryWait time.Duration

	// Clock is the time, and measures waits. Nil means the real one; waits are
	// then measured by the driver of package reconcile that runs the
	// [upgradeconfig.Manager], as they are with the clock of a virtual one.
	Clock clock.Clock
	// Rand returns a number in [0, n) for jitter; nil means math/rand/v2.
	Rand func(n int64) int64
	// Logger gets retries and policies that do not count; nil means no
	// logging.
	Logger *slog.Logger
	// Observe gets an EventPolicyFault for each policy, but the next one, that
	// cannot be read. It may be called from several goroutines if Policies is.
	Observe func(clusterapi.Event)
}

// agentHost is where the OCM agent listens in a cluster.
const agentHost = "ocm-agent.openshift-ocm-agent-operator.svc.cluster.local:8081"

const (
	maxRetryAfter = time.Minute
	maxRetryWait  = time.Hour
	retryJitter   = 0.3
)

// check fills in the defaults and returns the base URL without a slash at its
// end.
func (o *Options) check() (base string, agent bool, err error) {
	if err := options.NonNegative(*o); err != nil {
		return "", false, err
	}
	o.URL = cmp.Or(o.URL, defaultURL)
	base, err = upgradeconfig.BaseURL(o.URL)
	if err != nil {
		return "", false, err
	}
	switch o.Kind {
	case "":
		o.Kind = Classic
	case Classic, HostedControlPlane, Auto:
	default:
		return "", false, fmt.Errorf("ocm: Options.Kind: unknown kind %q", o.Kind)
	}
	switch o.Type {
	case "":
		o.Type = upgradeconfig.ARO
	case upgradeconfig.ARO, upgradeconfig.OSD:
	default:
		return "", false, fmt.Errorf("ocm: Options.Type: unknown upgrade type %q", o.Type)
	}
	agent = strings.Contains(o.URL, agentHost)
	retries, wait := 5, 2*time.Second
	if agent {
		retries, wait = 2, time.Second
	}
	o.Retries = cmp.Or(o.Retries, retries)
	if o.NoRetry {
		o.Retries = 0
	}
	o.RetryWait = min(cmp.Or(o.RetryWait, wait), maxRetryWait)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.MaxBody = cmp.Or(o.MaxBody, defaultMaxBody)
	o.MaxPolicies = cmp.Or(o.MaxPolicies, defaultMaxPolicies)
	o.UserAgent = cmp.Or(o.UserAgent, fmt.Sprintf("managed-upgrade-operator/v0.0.0 (%s/%s)", runtime.GOOS, runtime.GOARCH))
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Rand == nil {
		o.Rand = rand.Int64N
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return base, agent, nil
}
