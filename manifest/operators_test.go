package manifest_test

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestOperators(t *testing.T) {
	co := "apiVersion: config.openshift.io/v1\nkind: ClusterOperator\nmetadata: {name: dns, annotations: {" + included + "}}\nstatus: {versions: [{name: operator, version: 4.20.1}, {name: coredns, version: 4.20.1}]}\n"
	workload := func(api, kind, name string) string {
		return "apiVersion: " + api + "\nkind: " + kind + "\nmetadata: {name: " + name + ", annotations: {" + included + "}}\n"
	}
	p := checktest.Get(load(t, payload(map[string]string{
		"release-manifests/0000_70_dns-operator_01.yaml":  workload("apps/v1", "Deployment", "d") + "---\n" + workload("v1", "Service", "s"),
		"release-manifests/0000_70_dns-operator_02.yaml":  co,
		"release-manifests/0000_60_dns-operator_01.yaml":  workload("batch/v1", "Job", "j") + "---\n" + strings.Replace(workload("apps/v1", "DaemonSet", "gone"), "{include", "{release.openshift.io/delete: 'true', include", 1),
		"release-manifests/0000_80_dns-operator_01.yaml":  workload("apps/v1", "StatefulSet", "later"),
		"release-manifests/0000_80_other-operator_1.yaml": workload("apps/v1", "DaemonSet", "o"),
		"release-manifests/zz.yaml":                       workload("apps/v1", "DaemonSet", "z"),
	})))(t)
	operators := p.Operators()
	if len(operators) != 1 {
		t.Fatal(operators)
	}
	o := operators[0]
	var workloads []string
	for _, m := range o.Workloads {
		workloads = append(workloads, m.Identity().Name)
	}
	if o.Name != "dns" || o.Component != "dns-operator" || len(o.Versions) != 2 || o.Versions[1].Name != "coredns" || o.Versions[1].Version != "4.20.1" || strings.Join(workloads, " ") != "j d" || o.Manifest.Identity().Kind != "ClusterOperator" {
		t.Errorf("%+v %v", o, workloads)
	}
}
