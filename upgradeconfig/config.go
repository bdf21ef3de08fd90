package upgradeconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/yamljson"
)

// Config is the configuration of the managed-upgrade operator as far as it
// concerns the UpgradeConfig: key config.yaml of ConfigMap
// managed-upgrade-operator-config. All else in that document is ignored.
// Nothing has a default: what is absent is zero.
type Config struct {
	// UpgradeType is OSD, ARO or empty; see [Config.Type].
	UpgradeType UpgradeType `json:"upgradeType"`
	// ConfigManager says where the policy comes from.
	ConfigManager struct {
		// Source is OCM or LOCAL, in any letter case.
		Source string `json:"source"`
		// OCMBaseURL is where OCM is, for source OCM.
		OCMBaseURL string `json:"ocmBaseUrl"`
		// LocalConfigName names the UpgradeConfig, for source LOCAL. It can only
		// be [Name].
		LocalConfigName string `json:"localConfigName"`
		// WatchInterval between two syncs in minutes, above 0.
		WatchInterval int64 `json:"watchInterval"`
	} `json:"configManager"`
	// UpgradeWindow limits how long an upgrade may take to start.
	UpgradeWindow struct {
		// TimeOut in minutes after which an upgrade fails that has not started; 0:
		// it never does.
		TimeOut int64 `json:"timeOut"`
		// DelayTrigger in minutes after which the provider hears of a delay; 0:
		// never.
		DelayTrigger int64 `json:"delayTrigger"`
	} `json:"upgradeWindow"`
	// Validation of UpgradeConfigs.
	Validation struct {
		// Cincinnati asks the update service whether a version of another channel
		// exists.
		Cincinnati bool `json:"cincinnati"`
	} `json:"validation"`
	// FeatureGate names the features that are on: PreHealthCheck and
	// ServiceLogNotification are known.
	FeatureGate struct {
		Enabled []string `json:"enabled"`
	} `json:"featureGate"`
}

// The values of ConfigManager.Source, in capitals.
const (
	sourceOCM   = "OCM"
	sourceLocal = "LOCAL"
)

// maxConfigSize is the most bytes that a document may have, also after its
// aliases are expanded: more than a ConfigMap can hold.
const maxConfigSize = 1 << 20

// ConfigError describes what is wrong with a configuration.
type ConfigError struct {
	// Field is the path of the field at fault, such as configManager.source; empty
	// if the document cannot be read as YAML.
	Field string
	Err   error
}

func (e *ConfigError) Error() string {
	if e.Field != "" {
		return e.Err.Error()
	}
	return "check config map " + configMapName + " for incorrect yaml formatting: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// ReadConfig reads the ConfigMap in a namespace; empty means
// [DefaultNamespace]. A ConfigMap without the key counts as an empty document. Errors are
// those of the [clusterapi.Reader], and a [*ConfigError] if it is not YAML. What the
// document says is not checked: see [Config.Check].
func ReadConfig(ctx context.Context, r clusterapi.Reader, namespace string) (*Config, error) {
	data, err := configText(ctx, r, namespace)
	if err != nil {
		return nil, err
	}
	c := &Config{}
	if err := decodeConfig(data, c); err != nil {
		return nil, err
	}
	return c, nil
}

func configText(ctx context.Context, r clusterapi.Reader, namespace string) ([]byte, error) {
	m, err := clusterapi.Get[corev1.ConfigMap](ctx, r, clusterapi.Key(cmp.Or(namespace, DefaultNamespace), configMapName))
	if err != nil {
		return nil, err
	}
	return []byte(m.Data[configMapKey]), nil
}

// NodeDrain is what the configuration says about nodes that cannot be drained: key
// nodeDrain of the document.
type NodeDrain struct {
	// TimeOut in minutes after which pods without a disruption budget are removed;
	// 0: it names none.
	TimeOut int64 `json:"timeOut"`
	// ExpectedNodeDrainTime in minutes, for which pods with a budget are given more
	// than their UpgradeConfig says; 0: it names none.
	ExpectedNodeDrainTime int64 `json:"expectedNodeDrainTime"`
	// DisableDrainStrategies removes no pods at all.
	DisableDrainStrategies bool `json:"disableDrainStrategies"`
	// IgnoredNamespacePatterns are regular expressions; pods in namespaces that
	// one of them matches somewhere stay.
	IgnoredNamespacePatterns []string `json:"ignoredNamespacePatterns"`
}

// ReadNodeDrain reads [NodeDrain] as [ReadConfig] reads a [Config], and with its
// errors. A negative time is an error too.
func ReadNodeDrain(ctx context.Context, r clusterapi.Reader, namespace string) (NodeDrain, error) {
	var document struct {
		NodeDrain NodeDrain `json:"nodeDrain"`
	}
	data, err := configText(ctx, r, namespace)
	if err == nil {
		err = decodeConfig(data, &document)
	}
	d := document.NodeDrain
	if err == nil && (d.TimeOut < 0 || d.ExpectedNodeDrainTime < 0) {
		err = errors.New("config node drain time is invalid")
	}
	return d, err
}

func decodeConfig(data []byte, into any) error {
	if len(data) > maxConfigSize {
		return &ConfigError{Err: fmt.Errorf("the document has %d bytes, more than the limit of %d", len(data), maxConfigSize)}
	}
	switch size, err := yamljson.Measure(data, maxConfigSize); {
	case err != nil:
		return &ConfigError{Err: err}
	case size.Bytes > maxConfigSize:
		return &ConfigError{Err: fmt.Errorf("its aliases expand the document to more than the limit of %d bytes", maxConfigSize)}
	}
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return &ConfigError{Err: err}
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(asJSON, into); err != nil {
		return &ConfigError{Err: err}
	}
	return nil
}

// Check returns all faults of the configuration together, each a [*ConfigError].
func (c *Config) Check() error {
	return errors.Join(c.checkInterval(), c.checkSource(), c.CheckWindow())
}

// checkInterval returns an error if the configuration does not say how often to
// sync. A Manager does not start without.
func (c *Config) checkInterval() error {
	if c.ConfigManager.WatchInterval <= 0 {
		return &ConfigError{"configManager.watchInterval", errNoConfigManager}
	}
	return nil
}

// checkSource returns errors if the configuration does not say where policies come
// from. Each sync needs that.
func (c *Config) checkSource() error {
	m := c.ConfigManager
	if m.Source == "" {
		return &ConfigError{"configManager.source", errNoSource}
	}
	var errs []error
	if t := c.UpgradeType; t != "" && t != OSD && t != ARO {
		errs = append(errs, &ConfigError{"upgradeType", fmt.Errorf("%w: upgradeType %q", errSource, t)})
	}
	switch c.source() {
	case sourceOCM:
		_, err := BaseURL(m.OCMBaseURL)
		errs = append(errs, err)
	case sourceLocal:
		if m.LocalConfigName != Name {
			errs = append(errs, &ConfigError{"configManager.localConfigName", errLocalName})
		}
	default:
		errs = append(errs, &ConfigError{"configManager.source", fmt.Errorf("%w: source %q", errSource, m.Source)})
	}
	return bounded.Errors(errs...)
}

// BaseURL checks the address of OCM and returns it without a slash at its end.
// It has to be absolute, http or https, without user, query and fragment; else
// the error is a [*ConfigError], which does not quote the text: it may hold a
// password.
func BaseURL(text string) (string, error) {
	const field = "configManager.ocmBaseUrl"
	u, err := url.Parse(text)
	var fault string
	switch {
	case text == "":
		fault = "it is empty"
	case err != nil:
		return "", &ConfigError{field, errBaseURL} // without the cause, which quotes the text
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		fault = "it is not an absolute http or https URL"
	case u.User != nil:
		fault = "it has a user"
	case u.RawQuery != "" || u.ForceQuery:
		fault = "it has a query"
	case strings.Contains(text, "#"):
		fault = "it has a fragment"
	default:
		return strings.TrimRight(u.String(), "/"), nil
	}
	return "", &ConfigError{field, fmt.Errorf("%w: %s", errBaseURL, fault)}
}

// CheckWindow returns a [*ConfigError] for each time of the upgrade window that is
// negative. The upgrade itself needs them, syncs do not.
func (c *Config) CheckWindow() error {
	var errs []error
	if c.UpgradeWindow.TimeOut < 0 {
		errs = append(errs, &ConfigError{"upgradeWindow.timeOut", errTimeOut})
	}
	if c.UpgradeWindow.DelayTrigger < 0 {
		errs = append(errs, &ConfigError{"upgradeWindow.delayTrigger", errDelayTrigger})
	}
	return bounded.Errors(errs...)
}

// source returns the source in capitals.
func (c *Config) source() string { return strings.ToUpper(c.ConfigManager.Source) }

// Type returns the upgrade type: [ARO] if none is named.
func (c *Config) Type() UpgradeType {
	if c.UpgradeType == "" {
		return ARO
	}
	return c.UpgradeType
}

// Interval returns the time between two syncs.
func (c *Config) Interval() time.Duration { return minutes(c.ConfigManager.WatchInterval) }

// TimeOut returns how long an upgrade may take to start; 0: without a limit.
func (c *Config) TimeOut() time.Duration { return minutes(c.UpgradeWindow.TimeOut) }

// DelayTrigger returns after which time the provider hears of a delay; 0:
// never.
func (c *Config) DelayTrigger() time.Duration { return minutes(c.UpgradeWindow.DelayTrigger) }

// Enabled reports whether a feature is on. Names are compared as they are.
func (c *Config) Enabled(feature string) bool { return slices.Contains(c.FeatureGate.Enabled, feature) }

// minutes does not overflow: what is beyond some 290 years is that.
func minutes(n int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Minute)
	return time.Duration(max(min(n, most), -most)) * time.Minute
}
