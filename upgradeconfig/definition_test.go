package upgradeconfig_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// The definition and the Go types name the same fields.
func TestDefinition(t *testing.T) {
	var properties func(schema map[string]any, path string) []string
	properties = func(schema map[string]any, path string) (out []string) {
		fields, _, err := unstructured.NestedMap(schema, "properties")
		checktest.OK(t, err)
		for name, field := range fields {
			f := field.(map[string]any)
			if items, ok := f["items"].(map[string]any); ok {
				f = items
			}
			out = append(out, path+name)
			out = append(out, properties(f, path+name+".")...)
		}
		return out
	}
	var fields func(typ reflect.Type, path string) []string
	fields = func(typ reflect.Type, path string) (out []string) {
		if typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct {
			return nil
		}
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			out = append(out, path+name)
			out = append(out, fields(typ.Field(i).Type, path+name+".")...)
		}
		return out
	}
	versions, _, err := unstructured.NestedSlice(upgradeconfig.Definition().Object, "spec", "versions")
	if err != nil || len(versions) != 1 {
		t.Fatal(versions, err)
	}
	for part, typ := range map[string]reflect.Type{"spec": reflect.TypeFor[upgradeconfig.Spec](), "status": reflect.TypeFor[upgradeconfig.Status]()} {
		schema, ok, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", part)
		if err != nil || !ok {
			t.Fatal(part, err)
		}
		got, want := properties(schema, ""), fields(typ, "")
		slices.Sort(got)
		slices.Sort(want)
		checktest.SameIn(t, fmt.Sprintf("%s (-Go +definition)", part), want, got)
	}
}

// A manager works on a cluster that knows nothing but the definition.
func TestSyncWithDefinition(t *testing.T) {
	cluster := memory.NewOpenShift(memory.Options{})
	m := must(upgradeconfig.NewManager(upgradeconfig.ManagerOptions{API: cluster, Provider: policies(specA)}))
	checktest.ErrorIs(t, upgradeconfig.ErrRetrieveConfig, checktest.Err(m.Sync(t.Context())))
	must(cluster.Create(t.Context(), upgradeconfig.Definition(), clusterapi.CreateOptions{}))
	mustSync(t, m, upgradeconfig.EventCreated, true)
	mustSync(t, m, "", false)
	got := setStatus(t, cluster, underWay("4.20.3"))
	if d := cmp.Diff(underWay("4.20.3"), got.Status); d != "" || got.Spec != specA {
		t.Errorf("(-want +got):\n%s", d)
	}
	checktest.Equal(t, "upgrade.managed.openshift.io/v1alpha1, Kind=UpgradeConfig", fmt.Sprint(got.APIKind()),
		"fmt.Sprint(got.APIKind()) (%v)", got.APIKind())
}
