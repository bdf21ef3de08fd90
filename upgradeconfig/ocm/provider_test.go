package ocm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm/ocmtest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
)

func TestPolicies(t *testing.T) {
	s := newServer(p7)
	got, err := newProvider(t, s, ocm.Options{URL: "https://ocm.example/base/"}).Policies(t.Context())
	if err == nil {
		t.Fatalf("the base path was dropped: %v", got) // the fake has none
	}
	s.Forget()

	got, err = newProvider(t, s, ocm.Options{}).Policies(t.Context())
	checktest.OK(t, err)
	want := []upgradeconfig.Policy{{ID: "p-7", State: "scheduled", NextRun: time.Date(2031, 2, 4, 3, 0, 0, 0, time.UTC), Spec: p7Spec}}
	checktest.Same(t, want, got)
	requests := s.Requests()
	wantRequests := []ocmtest.Request{
		{Method: "GET", Path: listPath, Query: url.Values{"search": {"external_id = '" + uuid + "'"}, "size": {"1"}}},
		{Method: "GET", Path: policies, Query: url.Values{"page": {"1"}, "size": {"100"}}},
		{Method: "GET", Path: policies + "/p-7/state", Query: url.Values{}},
	}
	for i := range wantRequests {
		wantRequests[i].Status = 200
		wantRequests[i].Header = http.Header{
			"Accept": {"application/json"}, "Accept-Encoding": {"gzip"},
			"User-Agent": {"managed-upgrade-operator/v0.0.0 (" + runtime.GOOS + "/" + runtime.GOARCH + ")"},
		}
	}
	checktest.Same(t, wantRequests, requests)
}

func TestRequestForm(t *testing.T) {
	var seen *http.Request
	h := handlerFunc(func(w http.ResponseWriter, r *http.Request) { seen = r; w.WriteHeader(500) })
	p := newProvider(t, h, ocm.Options{URL: "https://ocm.example/tenant/a%2Fb//"})
	p.Policies(t.Context())
	wantURI := "/tenant/a%2Fb" + listPath + "?search=external_id+%3D+%27" + uuid + "%27&size=1"
	if seen.RequestURI != wantURI || seen.Host != "ocm.example" {
		t.Errorf("%s %s, want %s", seen.Host, seen.RequestURI, wantURI)
	}
	checktest.Equal(t, "AccessToken "+uuid+":"+token, seen.Header.Get("Authorization"), "Authorization")
	if got := seen.Header.Get("User-Agent"); !strings.HasPrefix(got, "managed-upgrade-operator/v0.0.0 (") {
		t.Errorf("User-Agent: %s", got)
	}
	checktest.Equal(t, "OCM https://ocm.example/tenant/a%2Fb", p.String(), "p.String() (%v)", p)
}

func TestConversion(t *testing.T) {
	no, yes := false, true
	with := func(f func(*upgradeconfig.Spec)) *upgradeconfig.Spec { s := p7Spec; f(&s); return &s }
	period := func(value, unit any) func(*ocmtest.Cluster, *ocmtest.Policy) {
		return func(c *ocmtest.Cluster, _ *ocmtest.Policy) {
			p := map[string]any{}
			if value != nil {
				p["value"] = value
			}
			if unit != nil {
				p["unit"] = unit
			}
			c.Extra = map[string]any{"node_drain_grace_period": p}
		}
	}
	drain := func(n int32) *upgradeconfig.Spec {
		return with(func(s *upgradeconfig.Spec) { s.PDBForceDrainTimeout = n })
	}
	at := func(text string) *upgradeconfig.Spec { return with(func(s *upgradeconfig.Spec) { s.UpgradeAt = text }) }
	channel := func(version, channel string) *upgradeconfig.Spec {
		return with(func(s *upgradeconfig.Spec) { s.Desired.Version, s.Desired.Channel = version, channel })
	}
	nextRun := func(v any) func(*ocmtest.Cluster, *ocmtest.Policy) {
		return func(_ *ocmtest.Cluster, p *ocmtest.Policy) { p.Extra = map[string]any{"next_run": v} }
	}
	capacity := func(v any) func(*ocmtest.Cluster, *ocmtest.Policy) {
		return func(_ *ocmtest.Cluster, p *ocmtest.Policy) { p.Extra = map[string]any{"capacity_reservation": v} }
	}
	const noGroup = "the cluster has no version.channel_group, so its channel is not known"
	version := func(group, version string) func(*ocmtest.Cluster, *ocmtest.Policy) {
		return func(c *ocmtest.Cluster, p *ocmtest.Policy) { c.ChannelGroup, p.Version = group, version }
	}
	for _, tt := range []struct {
		name   string
		change func(*ocmtest.Cluster, *ocmtest.Policy)
		want   *upgradeconfig.Spec
		err    string
	}{
		{"plain", func(*ocmtest.Cluster, *ocmtest.Policy) {}, &p7Spec, ""},
		{"automatic", func(_ *ocmtest.Cluster, p *ocmtest.Policy) { p.Schedule = "0 3 * * 2" }, &p7Spec, ""},

		{"no drain period", func(c *ocmtest.Cluster, _ *ocmtest.Policy) { c.DrainMinutes = 0 }, drain(0), ""},
		{"drain period null", func(c *ocmtest.Cluster, _ *ocmtest.Policy) { c.Extra = map[string]any{"node_drain_grace_period": nil} }, drain(0), ""},
		{"integer", period(30, "minutes"), drain(30), ""},
		{"float", period(30.9, "minutes"), drain(30), ""},
		{"no unit", period(30, nil), drain(30), ""},
		{"empty unit", period(30, ""), drain(30), ""},
		{"no value", period(nil, "minutes"), drain(0), ""},
		{"largest", period(math.MaxInt32, "minutes"), drain(math.MaxInt32), ""},
		{"largest and a bit", period(math.MaxInt32+0.5, "minutes"), drain(math.MaxInt32), ""},
		{"too large", period(math.MaxInt32+1, "minutes"), nil, "not between 0 and 2147483647"},
		{"far too large", period(1e300, "minutes"), nil, "not between 0 and 2147483647"},
		{"negative", period(-1, "minutes"), nil, "not between 0"},
		{"slightly negative", period(-0.5, "minutes"), nil, "not between 0"},
		{"hours", period(1, "hours"), nil, `unit "hours", not minutes`},
		{"unit in capitals", period(1, "Minutes"), nil, `unit "Minutes", not minutes`},
		{"hours without a value", period(nil, "hours"), nil, `unit "hours", not minutes`},
		{"value is a text", period("soon", "minutes"), nil, "malformed node_drain_grace_period"},
		{"period is a number", func(c *ocmtest.Cluster, _ *ocmtest.Policy) { c.Extra = map[string]any{"node_drain_grace_period": 5} }, nil, "malformed node_drain_grace_period"},

		{"UTC as an offset", nextRun("2031-02-04T03:00:00+00:00"), at("2031-02-04T03:00:00Z"), ""},
		{"zone kept", nextRun("2031-02-04T03:00:00+05:30"), at("2031-02-04T03:00:00+05:30"), ""},
		{"fraction cut", nextRun("2031-02-04T03:00:00.999-07:00"), at("2031-02-04T03:00:00-07:00"), ""},
		{"no next_run", func(_ *ocmtest.Cluster, p *ocmtest.Policy) { p.NextRun = "" }, nil, "it has no next_run"},
		{"next_run null", nextRun(nil), nil, "it has no next_run"},
		{"next_run empty", nextRun(""), nil, "not a time in RFC 3339"},
		{"next_run a date", nextRun("2031-02-04"), nil, "not a time in RFC 3339"},
		{"next_run a number", nextRun(5), nil, "its next_run is not a text"},
		{"next_run zero", nextRun("0001-01-01T00:00:00Z"), nil, "is a zero time"},

		{"capacity on", func(_ *ocmtest.Cluster, p *ocmtest.Policy) { p.CapacityReservation = &yes }, &p7Spec, ""},
		{"capacity null", capacity(nil), &p7Spec, ""},
		{"capacity off", func(_ *ocmtest.Cluster, p *ocmtest.Policy) { p.CapacityReservation = &no }, with(func(s *upgradeconfig.Spec) { s.CapacityReservation = false }), ""},
		{"capacity text", capacity("false"), nil, "neither true nor false"},

		{"no group", version("", "4.18.0-rc.1"), nil, noGroup},
		{"group null", func(c *ocmtest.Cluster, _ *ocmtest.Policy) {
			c.Extra = map[string]any{"version": map[string]any{"channel_group": nil}}
		}, nil, noGroup},
		{"no version of the cluster", func(c *ocmtest.Cluster, _ *ocmtest.Policy) { c.Extra = map[string]any{"version": nil} }, nil, noGroup},
		{"eus, odd", version("eus", "4.15.9"), channel("4.15.9", "eus-4.16"), ""},
		{"eus, even", version("eus", "4.16.1"), channel("4.16.1", "eus-4.16"), ""},
		{"nightly", version("nightly", "4.17.3"), channel("4.17.3", "nightly-4.17"), ""},
		{"short version", version("candidate", "4.17"), nil, "unable to determine channel from channel group 'candidate' and version '4.17' for policy ID 'p-7'"},
		{"v", version("candidate", "v4.17.3"), nil, "unable to determine channel from channel group 'candidate' and version 'v4.17.3' for policy ID 'p-7'"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(p7)
			c, _ := s.Cluster(clusterID)
			tt.change(&c, &c.Policies[0])
			s.SetCluster(c)
			got, err := newProvider(t, s, ocm.Options{}).Policies(t.Context())
			if tt.err != "" {
				if !errors.Is(err, ocm.ErrProcessingPolicies) || !strings.Contains(err.Error(), tt.err) || !strings.HasPrefix(err.Error(), "could not process provider upgrade policies: ") || got != nil {
					t.Errorf("%v, want an error with %q", err, tt.err)
				}
				return
			}
			if err != nil || len(got) != 1 {
				t.Fatal(got, err)
			}
			checktest.Same(t, *tt.want, got[0].Spec)
		})
	}
}

func TestType(t *testing.T) {
	for typ, want := range map[upgradeconfig.UpgradeType]upgradeconfig.UpgradeType{"": upgradeconfig.ARO, "OSD": upgradeconfig.OSD, "ARO": upgradeconfig.ARO} {
		p := checktest.Get(ocm.New(newCluster(t), ocm.Options{Type: typ, Base: ocmtest.Transport(newServer(p7))}))(t)
		checktest.Equal(t, want, checktest.Get(p.Policies(t.Context()))(t)[0].Spec.Type, "%q", typ)
		// Clusters of type ARO have no channel group.
		s := newServer(p7)
		c, _ := s.Cluster(clusterID)
		c.ChannelGroup = ""
		s.SetCluster(c)
		p = checktest.Get(ocm.New(newCluster(t), ocm.Options{Type: typ, Base: ocmtest.Transport(s)}))(t)
		if got, err := p.Policies(t.Context()); (err == nil) != (want == upgradeconfig.ARO) || err == nil && got[0].Spec.Desired.Channel != "stable-4.17" {
			t.Errorf("%q, no channel group: %v, %v", typ, got, err)
		}
	}
}

// TestWhichCount: the states that do not, and the order in which they are asked
// for.
func TestWhichCount(t *testing.T) {
	const early, middle, late = "2031-01-01T00:00:00Z", "2031-01-01T05:00:00+05:00", "2031-01-01T00:00:01Z" // the first two are the same
	addon, pool := pol("addon", "4.17.4", early, ""), pol("pool", "4.17.4", early, "")
	addon.UpgradeType, pool.UpgradeType = "ADDON", "NodePool"
	cve := pol("cve", "4.17.4", late, "")
	cve.UpgradeType = "ControlPlaneCVE"
	broken := pol("broken", "4.17.4", "never", "")
	automatic := func(p ocmtest.Policy) ocmtest.Policy { p.Schedule = "0 3 * * 2"; return p }
	noRun := pol("no-run", "4.17.4", "", "")
	for _, tt := range []struct {
		name   string
		list   []ocmtest.Policy
		want   []string
		states []string // that were asked for; nil: all of want
		err    error
		faults []string
	}{
		{"none", nil, nil, nil, nil, nil},
		{"scheduled", []ocmtest.Policy{pol("a", "4.17.4", late, "scheduled")}, []string{"a"}, nil, nil, nil},
		{"started", []ocmtest.Policy{pol("a", "4.17.4", late, "started")}, []string{"a"}, nil, nil, nil},
		{"delayed", []ocmtest.Policy{pol("a", "4.17.4", late, "delayed")}, []string{"a"}, nil, nil, nil},
		{"failed", []ocmtest.Policy{pol("a", "4.17.4", late, "failed")}, []string{"a"}, nil, nil, nil},
		{"unknown", []ocmtest.Policy{pol("a", "4.17.4", late, "on holiday")}, []string{"a"}, nil, nil, nil},
		{"pending", []ocmtest.Policy{pol("a", "4.17.4", late, "pending")}, nil, []string{"a"}, nil, nil},
		{"completed", []ocmtest.Policy{pol("a", "4.17.4", late, "COMPLETED")}, nil, []string{"a"}, nil, nil},
		{"cancelled", []ocmtest.Policy{pol("a", "4.17.4", late, "Cancelled")}, nil, []string{"a"}, nil, nil},
		{"up to date", []ocmtest.Policy{automatic(pol("a", "", late, "pending"))}, nil, []string{"a"}, nil, nil},
		{"pending without a version", []ocmtest.Policy{pol("a", "", late, "pending")}, nil, []string{"a"}, upgradeconfig.ErrNoVersion, nil},
		{"started without a version", []ocmtest.Policy{pol("a", "", late, "started")}, nil, []string{"a"}, ocm.ErrProcessingPolicies, nil},
		{"automatic without a version", []ocmtest.Policy{automatic(pol("a", "", late, "scheduled"))}, nil, []string{"a"}, upgradeconfig.ErrNoVersion, nil},
		{"completed without a version", []ocmtest.Policy{pol("a", "", early, "completed"), pol("b", "4.17.4", late, "")}, nil, []string{"a"}, upgradeconfig.ErrNoVersion, nil},
		{"second without a version", []ocmtest.Policy{pol("a", "4.17.4", early, ""), pol("b", "", late, "started")}, []string{"a"}, []string{"a", "b"}, nil, []string{"b"}},
		{"others' policies", []ocmtest.Policy{addon, pool, cve}, []string{"cve"}, nil, nil, nil},
		{"only others' policies", []ocmtest.Policy{addon, pool}, nil, nil, nil, nil},
		{"in order", []ocmtest.Policy{pol("c", "4.17.4", late, ""), pol("a", "4.17.4", middle, ""), pol("b", "4.17.4", early, "")}, []string{"a", "b", "c"}, nil, nil, nil},
		{"earliest pending", []ocmtest.Policy{pol("b", "4.17.5", late, ""), pol("a", "4.17.4", early, "pending")}, []string{"b"}, []string{"a", "b"}, nil, nil},
		{"without a time last", []ocmtest.Policy{noRun, broken, pol("a", "4.17.4", early, "")}, []string{"a"}, []string{"a", "no-run", "broken"}, nil, []string{"no-run", "broken"}},
		{"first without a time", []ocmtest.Policy{noRun, pol("a", "4.17.4", early, "pending")}, nil, []string{"a", "no-run"}, ocm.ErrProcessingPolicies, nil},
		{"first cannot be converted", []ocmtest.Policy{pol("a", "4.17", early, ""), pol("b", "4.17.4", late, "")}, nil, []string{"a"}, ocm.ErrProcessingPolicies, nil},
		{"second cannot be converted", []ocmtest.Policy{pol("b", "4.17", late, ""), pol("a", "4.17.4", early, "")}, []string{"a"}, []string{"a", "b"}, nil, []string{"b"}},
		{"ignored one cannot be converted", []ocmtest.Policy{pol("a", "4.17", early, "pending"), pol("b", "4.17.4", late, "")}, []string{"b"}, []string{"a", "b"}, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i, p := range tt.list {
				if p.State == "" {
					tt.list[i].State = "scheduled"
				}
			}
			s := newServer(tt.list...)
			var faults []string
			p := newProvider(t, s, ocm.Options{Observe: func(e clusterapi.Event) {
				if e.Type != upgradeconfig.EventPolicyFault || e.Err == nil || e.Time.IsZero() || !strings.Contains(e.Message, e.Data.(*upgradeconfig.EventData).Policy) {
					t.Errorf("%+v", e)
				}
				faults = append(faults, e.Data.(*upgradeconfig.EventData).Policy)
			}})
			got, err := p.Policies(t.Context())
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Fatal(err)
			}
			checktest.Same(t, tt.want, ids(got))
			checktest.Same(t, tt.faults, faults)
			states := tt.states
			if states == nil {
				states = tt.want
			}
			want := []string{"GET ", "GET /1a2b/upgrade_policies"}
			for _, id := range states {
				want = append(want, "GET /1a2b/upgrade_policies/"+id+"/state")
			}
			checktest.Same(t, want, asked(s))
		})
	}
}

// TestStateErrors: a state that cannot be read matters up to the first policy
// that counts.
func TestStateErrors(t *testing.T) {
	list := []ocmtest.Policy{pol("a", "4.17.4", "2031-01-01T00:00:00Z", "pending"), pol("b", "4.17.4", "2031-01-02T00:00:00Z", "scheduled"), pol("c", "4.17.4", "2031-01-03T00:00:00Z", "scheduled")}
	for fails, want := range map[string][]string{"a": nil, "b": nil, "c": {"b"}} {
		s := newServer(list...)
		s.Fail(ocmtest.Fault{Path: "/" + fails + "/state", Status: 500})
		var faults []string
		got, err := newProvider(t, s, ocm.Options{Observe: func(e clusterapi.Event) { faults = append(faults, e.Data.(*upgradeconfig.EventData).Policy) }}).Policies(t.Context())
		if want == nil {
			request := new(ocm.RequestError)
			if !errors.As(err, &request) || request.StatusCode != 500 || !strings.HasPrefix(err.Error(), "can't pull upgrade policy state: GET ") {
				t.Errorf("%s: %v, %v", fails, got, err)
			}
			continue
		}
		if err != nil || cmp.Diff(want, ids(got)) != "" || cmp.Diff([]string{fails}, faults) != "" {
			t.Errorf("%s: %v, %v, %v", fails, got, err, faults)
		}
	}
	// A client that goes meanwhile is not a fault of the policy.
	ctx, cancel := context.WithCancel(t.Context())
	s := newServer(list...)
	s.Fail(ocmtest.Fault{Path: "/c/state", Handler: handlerFunc(func(w http.ResponseWriter, r *http.Request) { cancel(); w.WriteHeader(500) })})
	if got, err := newProvider(t, s, ocm.Options{}).Policies(ctx); err == nil {
		t.Errorf("%v after a cancel", got)
	}
}

func TestClusterLookup(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		is         []error
		text       string
	}{
		{"none", `{"kind":"ClusterList","page":1,"size":0,"total":0,"items":[]}`, []error{ocm.ErrNoClusterID, ocm.ErrClusterNotFound}, "OCM did not return a valid cluster ID: pull-secret may be invalid OR cluster's owner is disabled/banned in OCM: cluster id not found"},
		{"two", `{"total":2,"items":[{"id":"a"}]}`, []error{ocm.ErrNoClusterID, ocm.ErrClusterNotFound}, "cluster id not found"},
		{"no items", `{"total":1,"items":[]}`, []error{ocm.ErrNoClusterID}, "the answer counts 1 cluster and has 0"},
		{"another", `{"total":1,"items":[{"id":"a","external_id":"x"}]}`, []error{ocm.ErrNoClusterID, ocm.ErrClusterNotFound}, "the answer is about external_id 'x'"},
		{"no id", `{"total":1,"items":[{"external_id":"` + strings.ToUpper(uuid) + `"}]}`, []error{ocm.ErrNoClusterID}, ""},
		{"empty id", `{"total":1,"items":[{"id":""}]}`, []error{ocm.ErrNoClusterID}, ""},
		{"null", `{"total":1,"items":[null]}`, []error{ocm.ErrNoClusterID}, ""},
		{"id leads elsewhere", `{"total":1,"items":[{"id":".."}]}`, []error{ocm.ErrNoClusterID}, ""},
		{"id is a number", `{"total":1,"items":[{"id":5}]}`, []error{ocm.ErrProviderUnavailable}, "malformed cluster"},
		{"not a list", `{"id":"a"}`, []error{ocm.ErrProviderUnavailable}, "OCM Provider unavailable: can't query OCM cluster service for external_id '" + uuid + "': GET https://api.openshift.com/api/clusters_mgmt/v1/clusters?search="},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(p7)
			s.Fail(ocmtest.Fault{Body: tt.body})
			_, err := newProvider(t, s, ocm.Options{}).Policies(t.Context())
			for _, is := range tt.is {
				checktest.ErrorIs(t, is, err)
			}
			if err == nil || !strings.HasPrefix(err.Error(), tt.is[0].Error()) || !strings.Contains(err.Error(), tt.text) || !strings.HasSuffix(err.Error(), "(operation id operation-1)") || len(s.Requests()) != 1 {
				t.Errorf("%v after %v", err, asked(s))
			}
		})
	}
}

func TestPages(t *testing.T) {
	many := func(n int) []ocmtest.Policy {
		var out []ocmtest.Policy
		for i := range n {
			out = append(out, pol(fmt.Sprintf("p-%04d", i), "4.17.4", time.Date(2031, 1, 1, 0, 0, i, 0, time.UTC).Format(time.RFC3339), "scheduled"))
		}
		return out
	}
	for _, tt := range []struct{ n, size, pages int }{{0, 0, 1}, {1, 0, 1}, {100, 0, 1}, {101, 0, 2}, {250, 0, 3}, {250, 50, 5}, {1000, 0, 10}} {
		s := newServer(many(tt.n)...)
		s.PageSize = tt.size
		got := checktest.Get(newProvider(t, s, ocm.Options{}).Policies(t.Context()))(t)
		checktest.Equal(t, tt.n, len(got), "len(got) of %v", tt)
		pages := 0
		for _, r := range s.Requests() {
			if r.Path == policies {
				pages++
				if r.Query.Get("page") != fmt.Sprint(pages) || r.Query.Get("size") != "100" {
					t.Errorf("%+v: %v", tt, r.Query)
				}
			}
		}
		checktest.Equal(t, tt.pages, pages, "%+v: pages", tt)
	}
	for _, tt := range []struct{ n, limit, max int }{{1001, 0, 1000}, {3, 2, 2}} {
		_, err := newProvider(t, newServer(many(tt.n)...), ocm.Options{MaxPolicies: tt.limit}).Policies(t.Context())
		limit := new(clusterapi.LimitError)
		if !errors.As(err, &limit) || limit.Max != int64(tt.max) || !errors.Is(err, ocm.ErrRetrievingPolicies) || !strings.Contains(err.Error(), fmt.Sprintf("more than %d policies (limit MaxPolicies) (operation id operation-2)", tt.max)) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// TestLimitOfItems: a page that has more than it counts is not read forever.
func TestLimitOfItems(t *testing.T) {
	s := newServer(p7)
	s.Fail(ocmtest.Fault{Path: "/upgrade_policies", Body: `{"total":1,"items":[{"id":"a"},{"id":"b"},{"id":"c"}]}`})
	_, err := newProvider(t, s, ocm.Options{MaxPolicies: 2}).Policies(t.Context())
	limit := new(clusterapi.LimitError)
	if !errors.As(err, &limit) || limit.Max != 2 {
		t.Error(err)
	}
}

// TestChangingList: a list whose pages do not fit together is read again.
func TestChangingList(t *testing.T) {
	page := func(total int, ids ...string) ocmtest.Fault {
		var items []string
		for _, id := range ids {
			items = append(items, fmt.Sprintf(`{"id":%q,"version":"4.17.4","next_run":"2031-02-04T03:00:00Z","upgrade_type":"OSD"}`, id))
		}
		return ocmtest.Fault{Path: "/upgrade_policies", Body: fmt.Sprintf(`{"total":%d,"items":[%s]}`, total, strings.Join(items, ","))}
	}
	for _, tt := range []struct {
		name  string
		pages []ocmtest.Fault
		ok    bool
	}{
		{"one removed", []ocmtest.Fault{page(2, "p-6"), page(1), page(1, "p-7")}, true},
		{"one added in front", []ocmtest.Fault{page(2, "p-7"), page(2, "p-7"), page(1, "p-7")}, true},
		{"always the same page", []ocmtest.Fault{page(2, "p-7"), page(2, "p-7"), page(2, "p-7"), page(2, "p-7"), page(2, "p-7"), page(2, "p-7")}, false},
		{"to none", []ocmtest.Fault{page(2, "p-6"), page(0), page(2, "p-6"), page(0), page(2, "p-6"), page(0)}, false},
		{"end too early", []ocmtest.Fault{page(2, "p-6"), page(2)}, false},
		{"more than it says", []ocmtest.Fault{page(1, "p-7", "p-8")}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(p7, pol("p-8", "4.17.5", "2032-01-01T00:00:00Z", "pending"))
			s.Fail(tt.pages...)
			got, err := newProvider(t, s, ocm.Options{}).Policies(t.Context())
			if tt.ok != (err == nil) || tt.ok && cmp.Diff([]string{"p-7"}, ids(got)) != "" || !tt.ok && !errors.Is(err, ocm.ErrRetrievingPolicies) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// TestOnePolicyMustNotSpoilTheOthers, and a list must not lose what it cannot
// read.
func TestMalformedPolicies(t *testing.T) {
	const good = `{"id":"p-7","version":"4.17.4","next_run":"2031-02-04T03:00:00Z"}`
	for _, tt := range []struct {
		name, item string
		ok         bool
		faults     int
	}{
		{"unknown keys", `{"id":"p-8","version":"4.17.5","next_run":"2032-01-01T00:00:00Z","colour":[1,{"a":null}]}`, true, 1}, // its state does not exist
		{"next_run null", `{"id":"p-8","version":"4.17.5","next_run":null}`, true, 1},
		{"next_run object", `{"id":"p-8","version":"4.17.5","next_run":{}}`, true, 1},
		{"no id", `{"version":"4.17.5","next_run":"2032-01-01T00:00:00Z"}`, true, 1},
		{"two without an id", `{"version":"4.17.5","next_run":"2032-01-01T00:00:00Z"},{"version":"4.17.6","next_run":"2032-01-01T00:00:00Z"}`, true, 2},
		{"id leads elsewhere", `{"id":"..","version":"4.17.5","next_run":"2032-01-01T00:00:00Z"}`, true, 1},
		{"add-on without anything", `{"upgrade_type":"ADDON"}`, true, 0},
		{"null", `null`, false, 0},
		{"text", `"p-8"`, false, 0},
		{"list", `[]`, false, 0},
		{"id a number", `{"id":8}`, false, 0},
		{"version a number", `{"id":"p-8","version":4.17}`, false, 0},
		{"key twice", `{"id":"p-8","id":"p-9"}`, false, 0},
		{"of another cluster", `{"id":"p-8","cluster_id":"b","version":"4.17.5","next_run":"2031-01-01T00:00:00Z"}`, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(p7)
			s.Fail(ocmtest.Fault{Path: "/upgrade_policies", Body: fmt.Sprintf(`{"total":%d,"items":[%s,%s]}`, 2+strings.Count(tt.item, "},{"), tt.item, good)})
			faults := 0
			got, err := newProvider(t, s, ocm.Options{Observe: func(clusterapi.Event) { faults++ }}).Policies(t.Context())
			if tt.ok {
				if err != nil || cmp.Diff([]string{"p-7"}, ids(got)) != "" || faults != tt.faults {
					t.Errorf("%v, %v, %d faults", got, err, faults)
				}
				return
			}
			if !errors.Is(err, ocm.ErrRetrievingPolicies) || !strings.Contains(err.Error(), "item 0 of page 1: ") {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// TestOddIDs: whatever OCM calls things, requests stay below its paths.
func TestOddIDs(t *testing.T) {
	s := newServer(pol("a/b?c#d e%2F", "4.17.4", "2031-02-04T03:00:00Z", "scheduled"))
	var uri string
	h := handlerFunc(func(w http.ResponseWriter, r *http.Request) {
		uri = r.RequestURI
		if strings.HasSuffix(uri, "/state") {
			fmt.Fprint(w, `{"value":"scheduled"}`)
			return
		}
		s.ServeHTTP(w, r)
	})
	got := checktest.Get(newProvider(t, h, ocm.Options{}).Policies(t.Context()))(t)
	checktest.Equal(t, 1, len(got), "len(got) of %v, %v", got, uri)
	checktest.Equal(t, policies+"/a%2Fb%3Fc%23d%20e%252F/state", uri, "uri of %v", got)
}

func TestHosted(t *testing.T) {
	cve := pol("cve", "4.17.5", "2031-03-01T00:00:00Z", "scheduled")
	cve.UpgradeType = "ControlPlaneCVE"
	for _, tt := range []struct {
		kind   ocm.Kind
		hosted bool
		want   []string
		err    bool
	}{
		{ocm.Auto, true, []string{"GET ", "GET /1a2b/control_plane/upgrade_policies"}, false},
		{ocm.HostedControlPlane, true, []string{"GET ", "GET /1a2b/control_plane/upgrade_policies"}, false},
		{ocm.Auto, false, []string{"GET ", "GET /1a2b/upgrade_policies", "GET /1a2b/upgrade_policies/p-7/state", "GET /1a2b/upgrade_policies/cve/state"}, false},
		{ocm.Classic, false, []string{"GET ", "GET /1a2b/upgrade_policies", "GET /1a2b/upgrade_policies/p-7/state", "GET /1a2b/upgrade_policies/cve/state"}, false},
		{"", true, []string{"GET ", "GET /1a2b/upgrade_policies"}, true}, // which this cluster does not have
	} {
		s := newServer(p7, cve)
		c, _ := s.Cluster(clusterID)
		c.Hosted = tt.hosted
		s.SetCluster(c)
		got, err := newProvider(t, s, ocm.Options{Kind: tt.kind}).Policies(t.Context())
		if tt.err != (err != nil) || !tt.err && (cmp.Diff([]string{"p-7", "cve"}, ids(got)) != "" || got[0].State != "scheduled") {
			t.Errorf("%+v: %v, %v", tt, got, err)
		}
		checktest.SameIn(t, fmt.Sprintf("%+v", tt), tt.want, asked(s))
	}
	for name, state := range map[string]any{"none": nil, "text": "scheduled", "empty": map[string]any{}, "null": map[string]any{"value": nil}} {
		p := p7
		p.Extra = map[string]any{"state": state}
		s := newServer(p)
		c, _ := s.Cluster(clusterID)
		c.Hosted = true
		s.SetCluster(c)
		if got, err := newProvider(t, s, ocm.Options{Kind: ocm.Auto}).Policies(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "can't pull upgrade policy state: ") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestAgent(t *testing.T) {
	const agent = "http://ocm-agent.openshift-ocm-agent-operator.svc.cluster.local:8081"
	s := newServer(p7)
	p := newProvider(t, s, ocm.Options{URL: agent, Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New("a proxy was asked for") }})
	got := checktest.Get(p.Policies(t.Context()))(t)
	checktest.Equal(t, 1, len(got), "len(got) of %v", got)
	checktest.Same(t, p7Spec, got[0].Spec)
	checktest.Same(t, []string{"GET /", "GET /1a2b/upgrade_policies", "GET /1a2b/upgrade_policies/p-7/state"}, asked(s))
	for body, want := range map[string]error{
		`{}`: ocm.ErrNoClusterID, `{"id":""}`: ocm.ErrNoClusterID, `null`: ocm.ErrNoClusterID,
		`{"kind":"ClusterList","total":0,"items":[]}`: ocm.ErrNoClusterID,
		`[]`: ocm.ErrProviderUnavailable, ``: ocm.ErrProviderUnavailable, `{"kind":"Error","reason":"no"}`: ocm.ErrProviderUnavailable,
	} {
		s.Forget()
		s.Fail(ocmtest.Fault{Body: body, Empty: body == ""})
		checktest.ErrorIs(t, want, checktest.Err(p.Policies(t.Context())))
	}
}

func TestErrorTexts(t *testing.T) {
	s := newServer(p7)
	s.Fail(
		ocmtest.Fault{Path: "/upgrade_policies", Status: 404, Body: `{"kind":"Error","id":"404","code":"CLUSTERS-MGMT-404","reason":"Cluster '1a2b' not found","operation_id":"body-op"}`, Header: http.Header{"X-Operation-Id": {"header-op"}}},
		ocmtest.Fault{Path: "/upgrade_policies", Status: 403, Body: `{"kind":"Error","code":"CLUSTERS-MGMT-11","reason":"line\nbreak","operation_id":"body-op"}`, Header: http.Header{"X-Operation-Id": nil}},
		ocmtest.Fault{Path: "/upgrade_policies", Status: 502, Body: `<html>`, Header: http.Header{"X-Operation-Id": {"op-3"}}},
		ocmtest.Fault{Path: "/upgrade_policies", Body: `{}`, Header: http.Header{"X-Operation-Id": {"op-4"}}},
		ocmtest.Fault{Path: "/upgrade_policies", Body: `{"kind":"Error","reason":"so sorry","total":0}`, Header: http.Header{"X-Operation-Id": {"op-5"}}},
		ocmtest.Fault{Path: "/upgrade_policies", Status: 599, Body: "x", Header: http.Header{"X-Operation-Id": {"op-6"}}},
	)
	const prefix = "could not retrieve provider upgrade policies: can't pull upgrade policies for cluster ID: GET https://api.openshift.com/api/clusters_mgmt/v1/clusters/1a2b/upgrade_policies?page=1&size=100: "
	p := newProvider(t, s, ocm.Options{})
	for _, want := range []string{
		"status 404 Not Found: CLUSTERS-MGMT-404: Cluster '1a2b' not found (operation id header-op)",
		"status 403 Forbidden: CLUSTERS-MGMT-11: line break (operation id body-op)",
		"status 502 Bad Gateway (operation id op-3)",
		"malformed answer: it has no total, so it is not a list (operation id op-4)",
		"so sorry: malformed answer: it is an error (operation id op-5)",
		"status 599 (operation id op-6)",
	} {
		_, err := p.Policies(t.Context())
		if err == nil || err.Error() != prefix+want {
			t.Errorf("%v\nwant ...%s", err, want)
		}
	}
}

func TestOptions(t *testing.T) {
	cluster := newCluster(t)
	for _, u := range []string{"api.openshift.com", "/api", "ftp://x", "https://", "https://:443", "://x", "https://user:secret@x", "https://user@x", "https://x?a=b", "https://x?", "https://x#a", "https://x#", "https://x y:secret", "https://user:se cret@x", "http://[::1"} {
		if _, err := ocm.New(cluster, ocm.Options{URL: u}); !errors.As(err, new(*upgradeconfig.ConfigError)) || !strings.HasPrefix(err.Error(), "OCM Base URL is not a parseable URL") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", u, err)
		}
	}
	if _, err := connect(t, cluster, ocm.Options{URL: "x"}); !errors.As(err, new(*upgradeconfig.ConfigError)) {
		t.Error(err)
	}
	for _, u := range []string{"", "https://x", "http://x:8080/a/b/", "https://[::1]:80"} {
		if _, err := ocm.New(cluster, ocm.Options{URL: u}); err != nil {
			t.Errorf("%q: %v", u, err)
		}
	}
	for _, o := range []ocm.Options{{Kind: "hosted"}, {Type: "osd"}} {
		checktest.Fails(t, checktest.Err(ocm.New(cluster, o)), "%+v is accepted", o)
	}
	checktest.Fails(t, checktest.Err(ocm.New(nil, ocm.Options{})), "no cluster, no error")
}

// TestTransport: a transport that authenticates needs no pull secret.
func TestTransport(t *testing.T) {
	s := newServer(p7)
	s.Token = ""
	cluster := store(t, ocmtest.Objects(uuid, token)[1]) // the ClusterVersion
	var seen http.Header
	inner := ocmtest.Transport(s)
	p := must(ocm.New(cluster, ocm.Options{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		seen = r.Header.Clone()
		return inner.RoundTrip(r)
	})}))
	got, err := p.Policies(t.Context())
	if err != nil || len(got) != 1 || seen.Get("Authorization") != "" {
		t.Errorf("%v, %v, %v", got, err, seen)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestFromConfig(t *testing.T) {
	s := newServer(p7)
	cluster := newCluster(t)
	build := ocm.FromConfig(cluster, ocm.Options{Base: ocmtest.Transport(s), Kind: ocm.Auto})
	c := &upgradeconfig.Config{UpgradeType: "OSD"}
	if p, err := build(t.Context(), c); !errors.As(err, new(*upgradeconfig.ConfigError)) || p != nil {
		t.Errorf("%v, %v", p, err)
	}
	c.ConfigManager.OCMBaseURL = "https://ocm.example"
	p := checktest.Get(build(t.Context(), c))(t)
	checktest.Equal(t, "OCM https://ocm.example", p.String(), "p.String() of %v", p)
	got := checktest.Get(p.Policies(t.Context()))(t)
	checktest.Equal(t, 1, len(got), "len(got) of %v", got)
	checktest.Equal(t, upgradeconfig.OSD, got[0].Spec.Type, "got[0].Spec.Type of %v", got)
	for _, on := range []bool{false, true} {
		if on {
			c.FeatureGate.Enabled = []string{"ServiceLogNotification"}
		}
		p := must(build(t.Context(), c))
		n := upgrade.NewNotification(upgradeconfig.StateHealthCheckSL, &upgradeconfig.UpgradeConfig{Spec: p7Spec}, nil)
		if err := p.(upgradeconfig.Notifier).Notify(t.Context(), n); err != nil || (len(s.ServiceLogs()) == 1) != on {
			t.Errorf("service logs on %v: %v, %v", on, err, s.ServiceLogs())
		}
	}
	s.Forget()
	if p, err := ocm.FromConfig(store(t), ocm.Options{Base: ocmtest.Transport(s)})(t.Context(), c); !errors.Is(err, ocm.ErrAccessToken) || p != nil || len(s.Requests()) != 0 {
		t.Errorf("%v, %v, %v", p, err, asked(s))
	}
}

func TestLogger(t *testing.T) {
	var log bytes.Buffer
	s := newServer(pol("p-1", "4.17.4", "2031-02-04T03:00:00Z", "pending"))
	p := newProvider(t, s, ocm.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if _, err := p.Policies(t.Context()); err != nil || !strings.Contains(log.String(), "policy=p-1 reason=pending") {
		t.Errorf("%v\n%s", err, log.String())
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	for want, o := range map[string]ocm.Options{
		"Timeout is negative":     {Timeout: -1},
		"MaxBody is negative":     {MaxBody: -1},
		"MaxPolicies is negative": {MaxPolicies: -1},
		"Retries is negative":     {Retries: -1},
		"RetryWait is negative":   {RetryWait: -time.Second},
		"unknown kind":            {Kind: "Other"},
	} {
		checktest.ErrorHas(t, want, checktest.Err(ocm.New(newCluster(t), o)))
	}
}
