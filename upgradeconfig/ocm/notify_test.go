package ocm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm/ocmtest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
)

func notification(s upgradeconfig.State) upgradeconfig.Notification {
	n := upgradeconfig.Notification{State: s, Version: "4.17.4", Description: "told you so", Config: &upgradeconfig.UpgradeConfig{Spec: p7Spec}}
	if s.ServiceLog() {
		n.Summary, n.References = "a summary", []string{"https://docs.example/1"}
	}
	return n
}

// TestTransitions: all pairs of what OCM has and what it is told.
func TestTransitions(t *testing.T) {
	type from struct{ value, description string }
	allowed := map[from]map[upgradeconfig.State]string{
		{"scheduled", ""}:                {upgradeconfig.StateStarted: "started"},
		{"started", ""}:                  {upgradeconfig.StateScaleSkipped: "delayed", upgradeconfig.StateDelayed: "delayed", upgradeconfig.StateCompleted: "completed", upgradeconfig.StateFailed: "failed"},
		{"delayed", "continue to retry"}: {upgradeconfig.StateSkipped: "delayed", upgradeconfig.StateCompleted: "completed", upgradeconfig.StateFailed: "failed"},
		{"delayed", "has skipped"}:       {upgradeconfig.StateCompleted: "completed", upgradeconfig.StateFailed: "failed"},
		{"delayed", "Retry"}:             {upgradeconfig.StateCompleted: "completed", upgradeconfig.StateFailed: "failed"},
		{"pending", ""}:                  nil,
		{"completed", ""}:                nil,
		{"failed", ""}:                   nil,
		{"cancelled", "retry"}:           nil,
	}
	for from, to := range allowed {
		for _, s := range []upgradeconfig.State{
			upgradeconfig.StatePending, upgradeconfig.StateScheduled, upgradeconfig.StateStarted, upgradeconfig.StateScaleSkipped,
			upgradeconfig.StateDelayed, upgradeconfig.StateSkipped, upgradeconfig.StateCompleted, upgradeconfig.StateFailed, upgradeconfig.StateCancelled, "StateOfBliss",
		} {
			p := p7
			p.State, p.Description = from.value, from.description
			server := newServer(p)
			if err := newProvider(t, server, ocm.Options{}).Notify(t.Context(), notification(s)); err != nil {
				t.Errorf("%v to %s: %v", from, s, err)
			}
			after, _ := server.Policy(clusterID, "p-7")
			want := p
			if value, ok := to[s]; ok {
				want.State, want.Description = value, "told you so"
			}
			checktest.SameIn(t, fmt.Sprintf("%v to %s", from, s), want, after)
		}
	}
}

func TestStateOf(t *testing.T) {
	for _, tt := range []struct {
		value, description string
		want               upgradeconfig.State
	}{
		{"pending", "", upgradeconfig.StatePending}, {"scheduled", "", upgradeconfig.StateScheduled}, {"started", "retry", upgradeconfig.StateStarted},
		{"delayed", "will retry.", upgradeconfig.StateDelayed}, {"delayed", "", upgradeconfig.StateSkipped}, {"completed", "", upgradeconfig.StateCompleted},
		{"failed", "", upgradeconfig.StateFailed}, {"cancelled", "", upgradeconfig.StateCancelled},
		{"Started", "", ""}, {"", "", ""}, {"canceled", "", ""},
	} {
		got, err := ocm.StateOf(tt.value, tt.description)
		if got != tt.want || (err == nil) != (tt.want != "") || err != nil && (!errors.Is(err, ocm.ErrConvertState) || !strings.HasPrefix(err.Error(), "failed to convert OCM state")) {
			t.Errorf("%q, %q: %q, %v", tt.value, tt.description, got, err)
		}
	}
}

func TestNotifyRequests(t *testing.T) {
	s := newServer(p7)
	p := newProvider(t, s, ocm.Options{})
	checktest.OK(t, p.Notify(t.Context(), notification(upgradeconfig.StateStarted)))
	want := []string{"GET ", "GET /1a2b/upgrade_policies", "GET /1a2b/upgrade_policies/p-7/state", "PATCH /1a2b/upgrade_policies/p-7/state"}
	checktest.Same(t, want, asked(s))
	patch := s.Requests()[3]
	if patch.Body != `{"kind":"UpgradePolicyState","value":"started","description":"told you so"}` || patch.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%+v", patch)
	}

	// That of a hosted control plane is a part of the policy.
	s = newServer(p7)
	c, _ := s.Cluster(clusterID)
	c.Hosted = true
	s.SetCluster(c)
	checktest.OK(t,
		newProvider(t, s, ocm.Options{Kind: ocm.Auto}).Notify(t.Context(), notification(upgradeconfig.StateStarted)))
	want = []string{"GET ", "GET /1a2b/control_plane/upgrade_policies", "PATCH /1a2b/control_plane/upgrade_policies/p-7"}
	checktest.Same(t, want, asked(s))
	if after, _ := s.Policy(clusterID, "p-7"); after.State != "started" || after.Description != "told you so" {
		t.Errorf("%+v", after)
	}
	checktest.Equal(t,
		`{"kind":"ControlPlaneUpgradePolicy","state":{"kind":"UpgradePolicyState","value":"started","description":"told you so"}}`, s.Requests()[2].Body, "s.Requests()[2].Body")

	// Nothing to tell, nothing asked.
	s.Forget()
	n := notification(upgradeconfig.StateStarted)
	n.Config = nil
	for _, n := range []upgradeconfig.Notification{n, notification(upgradeconfig.StateHealthCheckSL)} {
		if err := p.Notify(t.Context(), n); err != nil || len(s.Requests()) != 0 {
			t.Errorf("%s: %v, %v", n, err, asked(s))
		}
	}
}

// TestFindPolicy: by version and instant.
func TestFindPolicy(t *testing.T) {
	other := pol("other", "4.17.5", "2031-02-04T03:00:00Z", "scheduled")
	for _, tt := range []struct {
		name    string
		nextRun string
		at      string
		version string
		found   bool
	}{
		{"same", "2031-02-04T03:00:00Z", "2031-02-04T03:00:00Z", "4.17.4", true},
		{"another zone", "2031-02-04T05:00:00+02:00", "2031-02-04T03:00:00Z", "4.17.4", true},
		{"with a fraction", "2031-02-04T03:00:00.7Z", "2031-02-04T03:00:00Z", "4.17.4", true},
		{"a second later", "2031-02-04T03:00:01Z", "2031-02-04T03:00:00Z", "4.17.4", false},
		{"another version", "2031-02-04T03:00:00Z", "2031-02-04T03:00:00Z", "4.17.6", false},
		{"no time", "", "2031-02-04T03:00:00Z", "4.17.4", false},
		{"zero", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "4.17.4", false},
		{"not a time", "tomorrow", "tomorrow", "4.17.4", false},
	} {
		s := newServer(other, pol("p-7", "4.17.4", tt.nextRun, "scheduled"))
		n := notification(upgradeconfig.StateStarted)
		config := *n.Config
		config.Spec.UpgradeAt, config.Spec.Desired.Version = tt.at, tt.version
		n.Config = &config
		err := newProvider(t, s, ocm.Options{}).Notify(t.Context(), n)
		after, _ := s.Policy(clusterID, "p-7")
		if tt.found != (err == nil) || tt.found != (after.State == "started") {
			t.Errorf("%s: %v, %+v", tt.name, err, after)
		}
		if want := "can't send notification 'StateStarted': can't determine policy ID to notify for: no policy matches the current UpgradeConfig"; !tt.found && (!errors.Is(err, ocm.ErrNoPolicy) || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestNotifyErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		state  upgradeconfig.State
		fault  ocmtest.Fault
		want   string
		status int
	}{
		{"cluster", upgradeconfig.StateStarted, ocmtest.Fault{Path: "/clusters", Status: 500}, "can't send notification 'StateStarted': failed to retrieve internal ocm cluster ID: OCM Provider unavailable: ", 500},
		{"list", upgradeconfig.StateStarted, ocmtest.Fault{Path: "/upgrade_policies", Status: 404}, "can't send notification 'StateStarted': can't determine policy ID to notify for: could not retrieve provider upgrade policies: ", 404},
		{"state", upgradeconfig.StateStarted, ocmtest.Fault{Method: "GET", Path: "/state", Status: 401}, "can't send notification 'StateStarted': can't determine policy state: can't pull upgrade policy state: ", 401},
		{"unknown state", upgradeconfig.StateStarted, ocmtest.Fault{Method: "GET", Path: "/state", Body: `{"value":"Started"}`}, "can't send notification 'StateStarted': can't determine policy state: failed to convert OCM state", 0},
		{"change", upgradeconfig.StateStarted, ocmtest.Fault{Method: "PATCH", Status: 503, Always: true}, "can't send notification 'StateStarted': can't send notification: can't set upgrade policy state: request to 'https://api.openshift.com" + policies + "/p-7/state' returned error 'status 503 Service Unavailable: CLUSTERS-MGMT-503: Service Unavailable (operation id operation-4)'", 503},
		{"change answered elsewhere", upgradeconfig.StateStarted, ocmtest.Fault{Method: "PATCH", Status: 303, Header: map[string][]string{"Location": {"/"}}}, "redirect that turns the request into another method refused", 0},
		{"change broken off", upgradeconfig.StateStarted, ocmtest.Fault{Method: "PATCH", Abort: true, Always: true}, "returned error 'EOF'", 0},
		{"service log", upgradeconfig.StateHealthCheckSL, ocmtest.Fault{Method: "POST", Status: 429, Always: true}, "can't send notification 'StateHealthCheckSL': can't send notification: can't post service log: POST https://api.openshift.com/api/service_logs/v1/cluster_logs: status 429 Too Many Requests", 429},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(p7)
			s.Fail(tt.fault)
			err := newProvider(t, s, ocm.Options{ServiceLogs: true, RetryWait: 1}).Notify(t.Context(), notification(tt.state))
			checktest.ErrorHas(t, tt.want, err)
			n, request := new(ocm.NotificationError), new(ocm.RequestError)
			if !errors.As(err, &n) || n.State != tt.state || tt.status != 0 && (!errors.As(err, &request) || request.StatusCode != tt.status) {
				t.Errorf("%#v", err)
			}
			changes := 0
			for _, r := range s.Requests() {
				if r.Method != "GET" {
					changes++
				}
			}
			if changes > 1 {
				t.Errorf("a change was sent %d times", changes)
			}
		})
	}
	must(ocm.New(store(t), ocm.Options{}))
	p, _ := ocm.New(store(t), ocm.Options{})
	checktest.ErrorIs(t, ocm.ErrAccessToken, p.Notify(t.Context(), notification(upgradeconfig.StateStarted)))
}

// TestChangeSucceeds with any status that says so, whatever comes with it.
func TestChangeSucceeds(t *testing.T) {
	for _, status := range []int{200, 201, 202, 204} {
		s := newServer(p7)
		s.Fail(ocmtest.Fault{Method: "PATCH", Status: status, Empty: true}, ocmtest.Fault{Method: "POST", Status: status, Body: "thanks", Cut: status != 204})
		p := newProvider(t, s, ocm.Options{ServiceLogs: true})
		for _, state := range []upgradeconfig.State{upgradeconfig.StateStarted, upgradeconfig.StateHealthCheckSL} {
			if err := p.Notify(t.Context(), notification(state)); err != nil {
				t.Errorf("%d, %s: %v", status, state, err)
			}
		}
	}
}

// TestLostAnswer: a change whose answer is lost is an error, and told again it
// does no harm.
func TestLostAnswer(t *testing.T) {
	s := newServer(p7)
	s.Fail(ocmtest.Fault{Method: "PATCH", Abort: true, Late: true})
	p := newProvider(t, s, ocm.Options{})
	checktest.Fails(t, p.Notify(t.Context(), notification(upgradeconfig.StateStarted)), "no error")
	checktest.Good(t, p.Notify(t.Context(), notification(upgradeconfig.StateStarted)))
	changes := 0
	for _, r := range s.Requests() {
		if r.Method == "PATCH" {
			changes++
		}
	}
	if after, _ := s.Policy(clusterID, "p-7"); after.State != "started" || changes != 1 {
		t.Errorf("%+v after %d changes", after, changes)
	}
}

func TestServiceLogs(t *testing.T) {
	s := newServer() // no policy is needed
	p := newProvider(t, s, ocm.Options{ServiceLogs: true})
	for _, state := range []upgradeconfig.State{upgradeconfig.StateControlPlaneStartedSL, upgradeconfig.StateHealthCheckSL} {
		n := notification(state)
		if state == upgradeconfig.StateControlPlaneStartedSL {
			n.References = nil
		}
		checktest.OK(t, p.Notify(t.Context(), n))
	}
	want := ocmtest.ServiceLog{
		Severity: "Info", ServiceName: "RedHat Managed Upgrade Notifications", LogType: "Cluster Updates",
		ClusterID: clusterID, Summary: "a summary", Description: "told you so",
	}
	second := want
	second.DocReferences = []string{"https://docs.example/1"}
	checktest.Same(t, []ocmtest.ServiceLog{want, second}, s.ServiceLogs())
	checktest.Same(t,
		[]string{"GET ", "POST /api/service_logs/v1/cluster_logs", "GET ", "POST /api/service_logs/v1/cluster_logs"}, asked(s))
	var keys map[string]any
	if err := json.Unmarshal([]byte(s.Requests()[1].Body), &keys); err != nil || fmt.Sprint(keys["internal_only"]) != "false" || len(keys) != 7 {
		t.Errorf("%v, %v", keys, err)
	}
}

// TestCourse: the texts of an upgrade lead through OCM's states, and each tells
// the next notification where it is.
func TestCourse(t *testing.T) {
	s := newServer(p7)
	p := newProvider(t, s, ocm.Options{ServiceLogs: true})
	c := &upgradeconfig.UpgradeConfig{Spec: p7Spec}
	for _, tt := range []struct {
		state upgradeconfig.State
		value string // what OCM has then
		text  string
	}{
		{upgradeconfig.StateDelayed, "scheduled", ""}, // it has not started
		{upgradeconfig.StateStarted, "started", "Cluster is currently being upgraded to version 4.17.4"},
		{upgradeconfig.StateStarted, "started", "Cluster is currently being upgraded"},
		{upgradeconfig.StateDelayed, "delayed", "The upgrade will continue to retry."},
		{upgradeconfig.StateDelayed, "delayed", "The upgrade will continue to retry."},
		{upgradeconfig.StateScaleSkipped, "delayed", "The upgrade will continue to retry."},
		{upgradeconfig.StateSkipped, "delayed", "The upgrade will continue without extra compute."},
		{upgradeconfig.StateDelayed, "delayed", "The upgrade will continue without extra compute."}, // not back
		{upgradeconfig.StateCompleted, "completed", "Cluster has been successfully upgraded to version 4.17.4"},
		{upgradeconfig.StateFailed, "completed", "Cluster has been successfully upgraded to version 4.17.4"},
	} {
		if err := p.Notify(t.Context(), upgrade.NewNotification(tt.state, c, nil)); err != nil {
			t.Fatalf("%s: %v", tt.state, err)
		}
		if after, _ := s.Policy(clusterID, "p-7"); after.State != tt.value || !strings.Contains(after.Description, tt.text) {
			t.Errorf("after %s: %s, %q", tt.state, after.State, after.Description)
		}
	}
	checktest.OK(t,
		p.Notify(t.Context(), upgrade.NewNotification(upgradeconfig.StateHealthCheckSL, c, []string{"x is down"})))
	l := s.ServiceLogs()[0]
	if l.Summary != "Cluster has encountered healthcheck failure during upgrade" || !strings.Contains(l.Description, "x is down") || cmp.Diff([]string{"https://access.redhat.com/solutions/7081505"}, l.DocReferences) != "" {
		t.Errorf("%+v", l)
	}
}
