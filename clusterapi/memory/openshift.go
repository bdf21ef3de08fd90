package memory

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/internal/objects"
)

//go:generate go run ./internal/gendefinitions -out definitions.json.gz

// definitionsFile has the definitions of github.com/openshift/api;
// internal/gendefinitions writes it.
//
//go:embed definitions.json.gz
var definitionsFile []byte

var embedded = sync.OnceValue(func() []map[string]any {
	list, err := readDefinitions(definitionsFile)
	if err != nil {
		panic(err) // the embedded file is a part of the program
	}
	return list
})

func readDefinitions(file []byte) ([]map[string]any, error) {
	zip, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("embedded definitions: %w", err)
	}
	var list []map[string]any
	decoder := json.NewDecoder(zip)
	decoder.UseNumber()
	if err := decoder.Decode(&list); err != nil {
		return nil, fmt.Errorf("embedded definitions: %w", err)
	}
	for _, o := range others {
		for _, name := range o.kinds {
			list = append(list, Definition(o.gv.WithKind(name), o.scope).Object)
		}
	}
	for i, d := range list {
		content, err := copyTree(d, nil, "")
		if err != nil {
			return nil, fmt.Errorf("embedded definitions: %w", err)
		}
		list[i], _ = content.(map[string]any)
	}
	return list, nil
}

// others are kinds of every OpenShift cluster whose definitions are not in
// github.com/openshift/api, or that an aggregated API serves.
var others = []struct {
	gv    schema.GroupVersion
	scope string
	kinds []string
}{
	{schema.GroupVersion{Group: "build.openshift.io", Version: "v1"}, "Namespaced", []string{"BuildConfig"}},
	{schema.GroupVersion{Group: "cloudcredential.openshift.io", Version: "v1"}, "Namespaced", []string{"CredentialsRequest"}},
	{schema.GroupVersion{Group: "image.openshift.io", Version: "v1"}, "Namespaced", []string{"ImageStream"}},
	{schema.GroupVersion{Group: "migration.k8s.io", Version: "v1alpha1"}, "Cluster", []string{"StorageVersionMigration"}},
	{schema.GroupVersion{Group: "monitoring.coreos.com", Version: "v1"}, "Namespaced", []string{"PodMonitor", "PrometheusRule", "ServiceMonitor"}},
	{schema.GroupVersion{Group: "oauth.openshift.io", Version: "v1"}, "Cluster", []string{"OAuthClient"}},
	{schema.GroupVersion{Group: "operators.coreos.com", Version: "v1"}, "Namespaced", []string{"OperatorGroup"}},
	{schema.GroupVersion{Group: "operators.coreos.com", Version: "v1"}, "Cluster", []string{"OLMConfig", "Operator"}},
	{schema.GroupVersion{Group: "operators.coreos.com", Version: "v1alpha1"}, "Namespaced", []string{"CatalogSource", "ClusterServiceVersion", "InstallPlan", "Subscription"}},
	{schema.GroupVersion{Group: "operators.coreos.com", Version: "v2"}, "Namespaced", []string{"OperatorCondition"}},
	{schema.GroupVersion{Group: "route.openshift.io", Version: "v1"}, "Namespaced", []string{"Route"}},
	{schema.GroupVersion{Group: "template.openshift.io", Version: "v1"}, "Namespaced", []string{"Template"}},
}

// embeddedSpecs are the specs of the embedded definitions, by name.
var embeddedSpecs = sync.OnceValue(func() map[string]map[string]any {
	out := make(map[string]map[string]any)
	for _, d := range embedded() {
		u := &unstructured.Unstructured{Object: d}
		out[u.GetName()], _ = d["spec"].(map[string]any)
	}
	return out
})

// embeddedKinds holds what was made of the embedded definitions, by name.
var embeddedKinds = sync.OnceValue(func() map[string]*prepared {
	out := make(map[string]*prepared)
	for _, d := range embedded() {
		out[(&unstructured.Unstructured{Object: d}).GetName()] = &prepared{kinds: make(map[string]*kind)}
	}
	return out
})

// preparedOf returns what was made of an embedded definition that is stored as
// it is, else nothing yet.
func preparedOf(obj *unstructured.Unstructured) *prepared {
	s, _ := obj.Object["spec"].(map[string]any)
	if e, ok := embeddedSpecs()[obj.GetName()]; ok && objects.SameMap(e, s) {
		return embeddedKinds()[obj.GetName()]
	}
	return &prepared{kinds: make(map[string]*kind)}
}

// NewOpenShift returns a cluster that has the CustomResourceDefinitions that
// github.com/openshift/api has for kinds of config.openshift.io,
// operator.openshift.io, machine.openshift.io, security.openshift.io and
// machineconfiguration.openshift.io, with the fields of all feature gates and
// without descriptions. Further kinds of every OpenShift cluster (those of OLM
// and of the monitoring stack, Routes, ImageStreams and some more) have
// definitions that take any field. Else the cluster is empty.
func NewOpenShift(o Options) *Cluster {
	c := New(o)
	for _, d := range embedded() {
		// Nothing is stored in any version, so that a release may bring
		// definitions of other versions.
		d = maps.Clone(d)
		status := definitionStatus(&unstructured.Unstructured{Object: d}, c.clock.Now(), true)
		status["storedVersions"] = []any{}
		d["status"] = status
		if err := c.loadTree(d); err != nil {
			panic(err) // the embedded file is a part of the program
		}
	}
	return c
}

// Definition returns a CustomResourceDefinition of one kind in one version
// which has a status subresource and takes every field: what a test needs
// whose point is not the schema. scope is "Namespaced" or "Cluster".
func Definition(gvk schema.GroupVersionKind, scope string) *unstructured.Unstructured {
	plural := (&kind{gvk: gvk}).resource().Resource
	free := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": plural + "." + gvk.Group},
		"spec": map[string]any{
			"group": gvk.Group,
			"names": map[string]any{"kind": gvk.Kind, "listKind": gvk.Kind + "List", "plural": plural, "singular": strings.ToLower(gvk.Kind)},
			"scope": scope,
			"versions": []any{map[string]any{
				"name": gvk.Version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema":       map[string]any{"openAPIV3Schema": free},
			}},
		},
	}}
}
