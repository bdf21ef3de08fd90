package upgradeconfig_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/loop"
)

const fullConfig = `
upgradeType: OSD
configManager:
  source: OCM
  ocmBaseUrl: https://api.openshift.com
  localConfigName: managed-upgrade-config
  watchInterval: 60
maintenance: {controlPlaneTime: 90, ignoredAlerts: {controlPlaneCriticals: [x]}}
upgradeWindow: {timeOut: 120, delayTrigger: 30}
validation: {cincinnati: true}
featureGate: {enabled: [PreHealthCheck, ServiceLogNotification]}
`

func TestParseConfig(t *testing.T) {
	got := must(upgradeconfig.ParseConfig([]byte(fullConfig)))
	want := &upgradeconfig.Config{UpgradeType: upgradeconfig.OSD}
	want.ConfigManager.Source, want.ConfigManager.OCMBaseURL = "OCM", "https://api.openshift.com"
	want.ConfigManager.LocalConfigName, want.ConfigManager.WatchInterval = "managed-upgrade-config", 60
	want.UpgradeWindow.TimeOut, want.UpgradeWindow.DelayTrigger = 120, 30
	want.Validation.Cincinnati = true
	want.FeatureGate.Enabled = []string{"PreHealthCheck", "ServiceLogNotification"}
	checktest.Same(t, want, got)
	checktest.Good(t, got.Check())
	if got.Interval() != time.Hour || got.TimeOut() != 2*time.Hour || got.DelayTrigger() != 30*time.Minute || got.Type() != upgradeconfig.OSD ||
		!got.Enabled("PreHealthCheck") || got.Enabled("prehealthcheck") {
		t.Errorf("%+v", got)
	}
	empty := must(upgradeconfig.ParseConfig(nil))
	if d := cmp.Diff(&upgradeconfig.Config{}, empty); d != "" || empty.Type() != upgradeconfig.ARO || empty.TimeOut() != 0 {
		t.Errorf("an empty document has no defaults: %s", d)
	}
}

func TestConfigFaults(t *testing.T) {
	const (
		noInterval = "configManager.watchInterval: no configManager defined in configuration"
		noSource   = "configManager.source: no configManager spec provider configured"
		badSource  = "invalid configManager spec provider type defined"
		badURL     = "configManager.ocmBaseUrl: OCM Base URL is not a parseable URL"
		localName  = "configManager.localConfigName: please use managed-upgrade-config as the upgrade config name"
		timeOut    = "upgradeWindow.timeOut: config upgrade window time out is invalid"
		trigger    = "upgradeWindow.delayTrigger: config upgrade window delay trigger is invalid"
	)
	for _, tt := range []struct {
		name, config string
		want         []string // of Check: field and text
		inSource     bool     // CheckSource finds some of them
	}{
		{name: "full", config: fullConfig},
		{name: "small letters", config: "configManager: {source: ocm, ocmBaseUrl: 'http://localhost:8080/x', watchInterval: 1}"},
		{name: "local", config: "configManager: {source: Local, localConfigName: managed-upgrade-config, watchInterval: 1}"},
		{name: "empty", config: "", want: []string{noInterval, noSource}, inSource: true},
		{name: "null", config: "null", want: []string{noInterval, noSource}, inSource: true},
		{name: "no interval", config: "configManager: {source: OCM, ocmBaseUrl: 'https://h'}", want: []string{noInterval}},
		{name: "zero interval", config: "configManager: {source: OCM, ocmBaseUrl: 'https://h', watchInterval: 0}", want: []string{noInterval}},
		{name: "negative interval", config: "configManager: {source: OCM, ocmBaseUrl: 'https://h', watchInterval: -5}", want: []string{noInterval}},
		{name: "keys have their case", config: "configmanager: {source: OCM, ocmBaseUrl: 'https://h', watchInterval: 5}", want: []string{noInterval, noSource}, inSource: true},
		{name: "no source", config: "configManager: {watchInterval: 5}", want: []string{noSource}, inSource: true},
		{name: "another source", config: "configManager: {source: GIT, watchInterval: 5}", want: []string{"configManager.source: " + badSource}, inSource: true},
		{name: "type in small letters", config: "upgradeType: osd\nconfigManager: {source: OCM, ocmBaseUrl: 'https://h', watchInterval: 5}", want: []string{"upgradeType: " + badSource}, inSource: true},
		{name: "no URL", config: "configManager: {source: OCM, watchInterval: 5}", want: []string{badURL}, inSource: true},
		{name: "relative URL", config: "configManager: {source: OCM, ocmBaseUrl: api.openshift.com, watchInterval: 5}", want: []string{badURL}, inSource: true},
		{name: "URL without host", config: "configManager: {source: OCM, ocmBaseUrl: 'https://', watchInterval: 5}", want: []string{badURL}, inSource: true},
		{name: "URL of a port only", config: "configManager: {source: OCM, ocmBaseUrl: 'https://:443', watchInterval: 5}", want: []string{badURL}, inSource: true},
		{name: "another scheme", config: "configManager: {source: OCM, ocmBaseUrl: 'ftp://h', watchInterval: 5}", want: []string{badURL}, inSource: true},
		{name: "URL with a user", config: "configManager: {source: OCM, ocmBaseUrl: 'https://u:secret@h', watchInterval: 5}", want: []string{badURL}, inSource: true},
		{name: "URL whose password has a slash", config: "configManager: {source: OCM, ocmBaseUrl: 'https://u:secret/x@h', watchInterval: 5}", want: []string{badURL}, inSource: true},
		{name: "no URL at all", config: "configManager: {source: OCM, ocmBaseUrl: 'https://u:secret@%zz', watchInterval: 5}", want: []string{badURL}, inSource: true},
		{name: "local without name", config: "configManager: {source: LOCAL, watchInterval: 5}", want: []string{localName}, inSource: true},
		{name: "local by another name", config: "configManager: {source: LOCAL, localConfigName: mine, watchInterval: 5}", want: []string{localName}, inSource: true},
		{name: "windows", config: "configManager: {source: LOCAL, localConfigName: managed-upgrade-config, watchInterval: 5}\nupgradeWindow: {timeOut: -1, delayTrigger: -1}",
			want: []string{timeOut, trigger}},
		{name: "all at once", config: "upgradeType: X\nconfigManager: {source: OCM}\nupgradeWindow: {delayTrigger: -1}",
			want: []string{noInterval, "upgradeType: " + badSource, badURL, trigger}, inSource: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := upgradeconfig.ParseConfig([]byte(tt.config))
			checktest.OK(t, err)
			err = c.Check()
			if len(tt.want) == 0 && err != nil {
				t.Error(err)
			}
			faults := configErrors(err)
			if len(faults) != len(tt.want) || strings.Contains(errText(err), "secret") {
				t.Fatalf("%v", err)
			}
			for i, want := range tt.want {
				if got := faults[i].Field + ": " + faults[i].Error(); !strings.HasPrefix(got, want) {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			checktest.Equal(t, tt.inSource, c.CheckSource() != nil, "source")
		})
	}
	for _, text := range []string{"a: [", "- a", "text", "configManager: {watchInterval: soon}", "configManager: {watchInterval: 1.5}", "configManager: []", "upgradeType: OSD\nupgradeType: ARO",
		"\tx: y", "configManager: {watchInterval: 99999999999999999999}", strings.Repeat("#", 1<<20+1)} {
		_, err := upgradeconfig.ParseConfig([]byte(text))
		var typed *upgradeconfig.ConfigError
		if !errors.As(err, &typed) {
			t.Errorf("%.20q: %v", text, err)
			continue
		}
		checktest.ErrorHas(t, "check config map managed-upgrade-operator-config for incorrect yaml formatting", err)
	}
}

// configErrors are the faults that an error joins.
func configErrors(err error) []*upgradeconfig.ConfigError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []*upgradeconfig.ConfigError
		for _, e := range joined.Unwrap() {
			out = append(out, configErrors(e)...)
		}
		return out
	}
	if e, ok := errors.AsType[*upgradeconfig.ConfigError](err); ok {
		return []*upgradeconfig.ConfigError{e}
	}
	return nil
}

func TestBaseURL(t *testing.T) {
	for text, want := range map[string]string{
		"https://api.openshift.com": "https://api.openshift.com", "HTTP://h:8080/a%2Fb//": "http://h:8080/a%2Fb", "https://[::1]:1/": "https://[::1]:1",
	} {
		checktest.Equal(t, want, checktest.Get(upgradeconfig.BaseURL(text))(t), "%s", text)
	}
	for _, text := range []string{
		"", "h", "/a", "https:", "https:h", "https://", "https://:1", "ftp://h", "https://h?", "https://h?a=secret", "https://h#", "https://h#secret",
		"https://secret@h", "https://u:secret@h", "https://u:secret/x@h", "https://u:se secret@h", "https://u:%secret@h", "https://[secret", "https://h:secret", "\x7fsecret",
	} {
		got, err := upgradeconfig.BaseURL(text)
		if !errors.As(err, new(*upgradeconfig.ConfigError)) || got != "" || strings.Contains(err.Error(), "secret") || !strings.HasPrefix(err.Error(), "OCM Base URL is not a parseable URL") {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}

func TestIntervalDoesNotOverflow(t *testing.T) {
	var c upgradeconfig.Config
	c.ConfigManager.WatchInterval = math.MaxInt64
	wait := loop.Jitter(c.Interval(), 0.1, func(n int64) int64 { return n - 1 })
	if c.Interval() < 200*365*24*time.Hour || wait < c.Interval() {
		t.Errorf("%v, jittered %v", c.Interval(), wait)
	}
}

func TestReadConfig(t *testing.T) {
	cluster := serving(memory.NewOpenShift(memory.Options{}))
	if _, err := upgradeconfig.ReadConfig(t.Context(), cluster, ""); !apierrors.IsNotFound(err) {
		t.Errorf("absent: %v", err)
	}
	must(clusterapi.Create(t.Context(), cluster, configMap(upgradeconfig.DefaultNamespace, fullConfig), clusterapi.CreateOptions{}))
	if c, err := upgradeconfig.ReadConfig(t.Context(), cluster, ""); err != nil || c.ConfigManager.WatchInterval != 60 {
		t.Errorf("%+v, %v", c, err)
	}
	m := configMap("elsewhere", "")
	m.Data = nil
	must(clusterapi.Create(t.Context(), cluster, m, clusterapi.CreateOptions{}))
	c, err := upgradeconfig.ReadConfig(t.Context(), cluster, "elsewhere")
	checktest.OK(t, err)
	checktest.Fails(t, c.CheckInterval(), "no key: %+v", c)
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(fullConfig))
	f.Add([]byte("configManager: {source: LOCAL, watchInterval: -1}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := upgradeconfig.ParseConfig(data)
		if err != nil {
			return
		}
		_ = c.Check()
		if c.CheckInterval() == nil && (c.Interval() <= 0 || loop.Jitter(c.Interval(), 0.1, func(int64) int64 { return 0 }) <= 0) {
			t.Fatalf("interval %v of %d", c.Interval(), c.ConfigManager.WatchInterval)
		}
	})
}
