package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
)

// documented is the cluster of the documentation's example: an update to 4.17.1
// with the control plane's last operator and the first nodes under way.
func documented() *view.Objects {
	o := updating()
	st := &o.ClusterVersion.Status
	st.Desired.Version = "4.17.1"
	st.History = []configv1.UpdateHistory{partial("4.17.1", after(0)), complete("4.17.0", after(-48*time.Hour), time.Hour)}
	o.ClusterOperators = nil
	for i := range 32 {
		o.ClusterOperators = append(o.ClusterOperators, platformOperator(fmt.Sprintf("operator-%02d", i), "4.17.1"))
	}
	o.ClusterOperators = append(o.ClusterOperators, platformOperator("machine-config", "4.17.0",
		says("Progressing=True", after(40*time.Minute)), says("Available=Unknown", after(40*time.Minute))))
	draining := func(name, pool string) *corev1.Node {
		return changingNode(name+".us-east-2.compute.internal", pool, "Working", "desiredDrain=drain-new", "lastAppliedDrain=uncordon-old")
	}
	o = withNodes(o,
		oldNode("ip-10-0-92-180.us-east-2.compute.internal", "master"), draining("ip-10-0-53-40", "master"), oldNode("ip-10-0-30-217.us-east-2.compute.internal", "master"),
		oldNode("ip-10-0-99-40.us-east-2.compute.internal", "worker"), draining("ip-10-0-4-159", "worker"),
		newNode("ip-10-0-20-162.us-east-2.compute.internal", "infra"), draining("ip-10-0-4-159-infra", "infra"),
	)
	o.MachineConfigs = []*mcfgv1.MachineConfig{configOf("old", "4.17.0"), configOf("new", "4.17.1")}
	o.MachineConfigPools = append(o.MachineConfigPools, configPool("infra"))
	return o
}

// The example of the documentation of 4.18 comes out, in its wording; its tables
// have lost their columns there, the name of the pool was written in capitals by
// hand, and the title of the health section lost a character.
func TestDocumentedStatus(t *testing.T) {
	want := `= Control Plane =
Assessment:      Progressing
Target Version:  4.17.1 (from 4.17.0)
Updating:        machine-config
Completion:      97% (32 operators updated, 1 updating, 0 waiting)
Duration:        54m (Est. Time Remaining: <10m)
Operator Status: 32 Healthy, 1 Unavailable

Control Plane Nodes
NAME                                        ASSESSMENT    PHASE      VERSION   EST    MESSAGE
ip-10-0-53-40.us-east-2.compute.internal    Progressing   Draining   4.17.0    +10m   ` + `
ip-10-0-30-217.us-east-2.compute.internal   Outdated      Pending    4.17.0    ?      ` + `
ip-10-0-92-180.us-east-2.compute.internal   Outdated      Pending    4.17.0    ?      ` + `

= Worker Upgrade =

WORKER POOL   ASSESSMENT    COMPLETION   STATUS
worker        Progressing   0% (0/2)     1 Available, 1 Progressing, 1 Draining
infra         Progressing   50% (1/2)    1 Available, 1 Progressing, 1 Draining

Worker Pool Nodes: worker
NAME                                       ASSESSMENT    PHASE      VERSION   EST    MESSAGE
ip-10-0-4-159.us-east-2.compute.internal   Progressing   Draining   4.17.0    +10m   ` + `
ip-10-0-99-40.us-east-2.compute.internal   Outdated      Pending    4.17.0    ?      ` + `

Worker Pool Nodes: infra
NAME                                             ASSESSMENT    PHASE      VERSION   EST    MESSAGE
ip-10-0-4-159-infra.us-east-2.compute.internal   Progressing   Draining   4.17.0    +10m   ` + `
ip-10-0-20-162.us-east-2.compute.internal        Completed     Updated    4.17.1    -      ` + `

= Update Health =
SINCE   LEVEL   IMPACT   MESSAGE
54m4s   Info    None     Update is proceeding well
`
	const now = 54*time.Minute + 4*time.Second
	same(t, "documented wording", want, statusText(t, documented(), now, view.StatusText{Docs418: true}))
	same(t, "today's", strings.Replace(want, "Operator Status:", "Operator Health:", 1), statusText(t, documented(), now, view.StatusText{}))
}
