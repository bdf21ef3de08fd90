package clusterupdate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// phases bring a cluster to each phase of its life, with the history that it has then.
var phases = []struct {
	name, history string
	options       func(*clusterupdate.Options)
	reach         func(*sampleTest)
}{
	{"installing", "4.20.3 Partial", nil, func(s *sampleTest) {
		s.hold["dns"] = true
		modify(s, s.Cluster, true, func(cv *configv1.ClusterVersion) {
			cv.Status.History = []configv1.UpdateHistory{{State: configv1.PartialUpdate, Version: sample.FromVersion, Image: sample.FromImage, StartedTime: metav1.Now()}}
		})
		checktest.Get(clusterapi.Modify(s.Context(), s.Cluster, clusterapi.Key("", "dns"), clusterapi.ModifyOptions{Status: true}, func(co *configv1.ClusterOperator) error {
			co.Status.Versions, co.Status.Conditions = nil, nil
			return nil
		}))(s)
	}},
	{"reconciling", "4.20.3 Completed", nil, func(*sampleTest) {}},
	{"refused", "4.20.3 Completed", func(o *clusterupdate.Options) { o.Verifier = refusing{} }, func(s *sampleTest) { s.request(s.T, configv1.Update{Version: sample.ToVersion}) }},
	{"updating", "4.21.1 Partial, 4.20.3 Completed", nil, func(s *sampleTest) {
		s.hold["dns"] = true
		s.request(s.T, configv1.Update{Version: sample.ToVersion})
	}},
	{"done", "4.21.1 Completed, 4.20.3 Completed", nil, func(s *sampleTest) { s.request(s.T, configv1.Update{Version: sample.ToVersion}) }},
}

// modify changes the ClusterVersion: its status, or all else.
func modify(t testing.TB, api clusterapi.ClusterAPI, status bool, f func(*configv1.ClusterVersion)) {
	t.Helper()
	o := clusterapi.ModifyOptions{Status: status}
	checktest.Get(clusterapi.Modify(t.Context(), api, clusterapi.Key("", "version"), o, func(cv *configv1.ClusterVersion) error {
		f(cv)
		return nil
	}))(t)
}

// In every phase a capability is enabled as soon as it is asked for, stays when it is
// not any more, and an override keeps its object as somebody else made it.
func TestCapabilitiesAndOverridesInEveryPhase(t *testing.T) {
	for _, phase := range phases {
		t.Run(phase.name, func(t *testing.T) {
			withSample(t, phase.options, func(s *sampleTest) {
				goOn := func() {
					for range 12 {
						time.Sleep(max(s.sync().After, time.Minute))
					}
				}
				modify(s, s.Cluster, false, func(cv *configv1.ClusterVersion) {
					cv.Spec.Capabilities = &configv1.ClusterVersionCapabilitiesSpec{BaselineCapabilitySet: configv1.ClusterVersionCapabilitySetNone}
				})
				phase.reach(s)
				goOn()
				s.wantHistory(phase.history)
				has := func(want bool) {
					s.Helper()
					if got := slices.Contains(s.version(s).Status.Capabilities.EnabledCapabilities, "openshift-samples"); got != want {
						s.Errorf("the capability is enabled: %v", got)
					}
				}
				has(false)
				ask := func(names ...configv1.ClusterVersionCapability) {
					modify(s, s.Cluster, false, func(cv *configv1.ClusterVersion) { cv.Spec.Capabilities.AdditionalEnabledCapabilities = names })
					goOn()
				}
				ask("openshift-samples")
				has(true)
				s.wantCondition(clusterversion.ConditionImplicitlyEnabledCapabilities, "False AsExpected: Capabilities match configured spec")
				ask()
				has(true)
				s.wantCondition(clusterversion.ConditionImplicitlyEnabledCapabilities, "True CapabilitiesImplicitlyEnabled: The following capabilities could not be disabled: openshift-samples")

				const overrides = "Disabling ownership via cluster version overrides prevents updates between minor or major versions."
				if got := condition(s.version(s), configv1.OperatorUpgradeable); strings.Contains(got, overrides) {
					s.Errorf("Upgradeable is %s", got)
				}
				deployment := anyDeployment(s)
				modify(s, s.Cluster, false, func(cv *configv1.ClusterVersion) {
					cv.Spec.Overrides = []configv1.ComponentOverride{{Kind: "Deployment", Group: "apps", Namespace: deployment.Namespace, Name: deployment.Name, Unmanaged: true}}
				})
				goOn()
				key := clusterapi.Key(deployment.Namespace, deployment.Name)
				checktest.Get(clusterapi.Modify(s.Context(), s.Cluster, key, clusterapi.ModifyOptions{}, func(d *appsv1.Deployment) error {
					seven := int32(7)
					d.Spec.Replicas = &seven
					return nil
				}))(s)
				goOn()
				if d, err := clusterapi.Get[appsv1.Deployment](s.Context(), s.Cluster, key); err != nil || *d.Spec.Replicas != 7 {
					s.Errorf("the object is managed all the same: %v", err)
				}
				got := condition(s.version(s), configv1.OperatorUpgradeable)
				if !strings.HasPrefix(got, "False ") || !strings.Contains(got, overrides) {
					s.Errorf("Upgradeable is %s", got)
				}
				if strings.Contains(phase.history, "Partial") && !strings.HasPrefix(got, "False MultipleReasons: ") {
					s.Errorf("Upgradeable is %s", got)
				}
				s.wantHistory(phase.history)
				modify(s, s.Cluster, false, func(cv *configv1.ClusterVersion) { cv.Spec.Overrides = nil })
				goOn()
				if d, err := clusterapi.Get[appsv1.Deployment](s.Context(), s.Cluster, key); err != nil || *d.Spec.Replicas == 7 {
					s.Errorf("the object is not managed again: %v", err)
				}
				if cv := s.version(s); cv.Status.ObservedGeneration != cv.Generation || cv.Status.VersionHash == "" {
					s.Errorf("generation %d of %d, hash %q", cv.Status.ObservedGeneration, cv.Generation, cv.Status.VersionHash)
				}
			})
		})
	}
}

// anyDeployment is one that the cluster has from its release: of the operator of etcd.
func anyDeployment(s *sampleTest) appsv1.Deployment {
	s.Helper()
	all := checktest.Get(clusterapi.List[appsv1.Deployment](s.Context(), s.Cluster, clusterapi.ListOptions{}))(s)
	for _, d := range all {
		if strings.Contains(d.Namespace, "etcd") {
			return d
		}
	}
	s.Fatal("no Deployment")
	return appsv1.Deployment{}
}
