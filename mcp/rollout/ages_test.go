package rollout_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// poolDefinition returns the definition of MachineConfigPool as a release ships it.
func poolDefinition(t testing.TB, age string) *unstructured.Unstructured {
	t.Helper()
	data := checktest.Get(os.ReadFile(filepath.Join(testdata.Dir(t), "definitions", "machineconfigpool-"+age+".yaml")))(t)
	u := &unstructured.Unstructured{}
	checktest.OK(t, yaml.Unmarshal(data, &u.Object))
	return u
}

// derivedPool returns one that no release ships: with short texts, a list of the
// conditions that there are, and no certificates.
func derivedPool(t testing.TB) *unstructured.Unstructured {
	u := poolDefinition(t, "4.19")
	versions, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "versions")
	root := versions.([]any)[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	status := root["properties"].(map[string]any)["status"].(map[string]any)["properties"].(map[string]any)
	delete(status, "certExpirys")
	delete(status, "degradedMachineCount")
	condition := status["conditions"].(map[string]any)["items"].(map[string]any)["properties"].(map[string]any)
	condition["message"].(map[string]any)["maxLength"] = int64(12)
	condition["type"].(map[string]any)["enum"] = []any{"Updated", "Updating"}
	return u
}

func definePool(t testing.TB, c *memory.Cluster, definition *unstructured.Unstructured) {
	t.Helper()
	stored := checktest.Get(c.Get(t.Context(), definition.GroupVersionKind(), clusterapi.Key("", definition.GetName())))(t)
	u := definition.DeepCopy()
	u.SetResourceVersion(stored.GetResourceVersion())
	checktest.OK(t, checktest.Err(c.Update(t.Context(), u, clusterapi.UpdateOptions{})))
}

// TestAges rolls a config out to clusters of other ages than this package, whose
// definition of pools is replaced on the way: the status of a pool is what fits it.
func TestAges(t *testing.T) {
	names := []string{"4.12", "4.14", "4.15", "4.17", "4.19", "4.22", "5.0"}
	definitions := map[string]*unstructured.Unstructured{"derived": derivedPool(t)}
	for _, name := range names {
		definitions[name] = poolDefinition(t, name)
	}
	names = append(names, "derived", "4.12")
	for i := range names[1:] {
		t.Run(names[i]+" to "+names[i+1], func(t *testing.T) {
			if testing.Short() && i%3 > 0 {
				t.Skip("a third of them in short tests")
			}
			synctest.Test(t, func(t *testing.T) { rollAge(t, definitions[names[i]], definitions[names[i+1]]) })
		})
	}
}

func rollAge(t *testing.T, first, second *unstructured.Unstructured) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	var mu sync.Mutex
	writes := 0
	c := smallCluster(t, memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		err := do(ctx)
		if call.Verb == "UpdateStatus" && call.GVK.Kind == "MachineConfigPool" {
			mu.Lock()
			defer mu.Unlock()
			writes++
		}
		return err
	}})
	expiry := metav1.Unix(2e9, 0)
	if err := c.Delete(ctx, mcfgv1.GroupVersion.WithKind("ControllerConfig"), clusterapi.Key("", mcp.ControllerConfigName), clusterapi.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	config := mcptest.Topology("HighlyAvailable")
	config.Status.ControllerCertificates = []mcfgv1.ControllerCertificate{{Subject: "CN=a", Signer: "b", BundleFile: "c", NotBefore: &expiry, NotAfter: &expiry}}
	load(t, c, config)
	definePool(t, c, first)
	startDaemons(ctx, t, c, &group, time.Second, 2*time.Minute)
	r := start(t, rollout.Options{API: c, Mode: rollout.Drive})

	time.Sleep(5 * time.Minute)
	definePool(t, c, second)
	for start := time.Now(); !rolledOut(ctx, t, c, "N"); time.Sleep(10 * time.Second) {
		if time.Since(start) > time.Hour {
			t.Fatalf("not done:\n%s", describeNodes(ctx, t, c))
		}
	}
	time.Sleep(11 * time.Minute)
	mu.Lock()
	before := writes
	mu.Unlock()
	time.Sleep(20 * time.Minute) // at rest, however often it looks
	mu.Lock()
	if writes > before {
		t.Errorf("%d statuses of pools at rest", writes-before)
	}
	mu.Unlock()
	if told := errorTexts(r.recorder); len(told) > 0 {
		t.Errorf("errors: %s", strings.Join(told, "\n"))
	}
	pools := checktest.Get(clusterapi.List[mcfgv1.MachineConfigPool](ctx, c, clusterapi.ListOptions{}))(t)
	for _, p := range pools {
		if p.Status.UpdatedMachineCount == 0 || p.Status.UpdatedMachineCount != p.Status.MachineCount {
			t.Errorf("pool %s: %+v", p.Name, p.Status)
		}
	}
	r.stop()
}
