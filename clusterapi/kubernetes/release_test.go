package kubernetes_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// reason is one for which a plain Kubernetes API server cannot take an object
// of a payload, and how it says so.
type reason struct {
	text string
	is   func(error) bool
}

var (
	ofOpenShiftAPIServer = reason{"image.openshift.io is not a custom resource, but served by openshift-apiserver, which its operator installs", meta.IsNoMatchError}
	ofOAuthAPIServer     = reason{"oauth.openshift.io is not a custom resource, but served by oauth-apiserver, which its operator installs", meta.IsNoMatchError}
	defaulted            = reason{"its CRD requires allowedCapabilities, defaultAddCapabilities and priority, which an admission plug-in of OpenShift's kube-apiserver fills in", apierrors.IsInvalid}
)

// unappliable names all those objects, which are the same in both payloads, by
// file, kind and name. TestMainJob applies everything else, and shows that
// these are refused.
var unappliable = map[string]reason{
	"0000_30_machine-api-operator_09_security_context_constraint.yaml SecurityContextConstraints /machine-api-termination-handler": defaulted,
	"0000_50_cluster-samples-operator_08-openshift-imagestreams.yaml ImageStream openshift/cli":                                    ofOpenShiftAPIServer,
	"0000_50_cluster-samples-operator_08-openshift-imagestreams.yaml ImageStream openshift/cli-artifacts":                          ofOpenShiftAPIServer,
	"0000_50_cluster-samples-operator_08-openshift-imagestreams.yaml ImageStream openshift/hello-openshift":                        ofOpenShiftAPIServer,
	"0000_50_cluster-samples-operator_08-openshift-imagestreams.yaml ImageStream openshift/installer":                              ofOpenShiftAPIServer,
	"0000_50_cluster-samples-operator_08-openshift-imagestreams.yaml ImageStream openshift/installer-artifacts":                    ofOpenShiftAPIServer,
	"0000_50_cluster-samples-operator_08-openshift-imagestreams.yaml ImageStream openshift/must-gather":                            ofOpenShiftAPIServer,
	"0000_50_cluster-samples-operator_08-openshift-imagestreams.yaml ImageStream openshift/network-tools":                          ofOpenShiftAPIServer,
	"0000_50_cluster-samples-operator_08-openshift-imagestreams.yaml ImageStream openshift/oauth-proxy":                            ofOpenShiftAPIServer,
	"0000_50_cluster-samples-operator_08-openshift-imagestreams.yaml ImageStream openshift/tests":                                  ofOpenShiftAPIServer,
	"0000_50_cluster-samples-operator_08-openshift-imagestreams.yaml ImageStream openshift/tools":                                  ofOpenShiftAPIServer,
	"0000_50_console-operator_01-oauth.yaml OAuthClient /console":                                                                  ofOAuthAPIServer,
}

// unapplied is such an object, with the reason.
type unapplied struct {
	*manifest.Manifest
	reason
}

// release is a release laid out as in its image.
type release struct {
	fsys    fs.FS
	payload *manifest.Payload
}

func (r *release) version() string { return r.payload.Release.Version }
func (r *release) image() string   { return r.payload.Release.Image }

// realRelease reads a payload without the documents that skip names, each as
// name of manifest.
func realRelease(ctx context.Context, dir string, skip map[string]reason) (*release, []*manifest.Manifest, error) {
	files := fstest.MapFS{}
	var skipped []*manifest.Manifest
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		kept, left, err := without(filepath.Base(path), data, skip)
		skipped = append(skipped, left...)
		files[path] = &fstest.MapFile{Data: kept}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if len(skipped) != len(skip) {
		return nil, nil, fmt.Errorf("%s: of %d objects that cannot be applied, %d are there", dir, len(skip), len(skipped))
	}
	r, err := openRelease(ctx, filepath.Base(dir), files)
	return r, skipped, err
}

// without takes documents out of a file.
func without(file string, data []byte, skip map[string]reason) ([]byte, []*manifest.Manifest, error) {
	concerned := false
	for name := range skip {
		concerned = concerned || strings.HasPrefix(name, file+" ")
	}
	if !concerned {
		return data, nil, nil
	}
	all, err := manifest.Parse(file, data, manifest.Limits{})
	if err != nil {
		return nil, nil, err
	}
	var kept bytes.Buffer
	var skipped []*manifest.Manifest
	for _, m := range all {
		if _, ok := skip[nameOf(m)]; ok {
			skipped = append(skipped, m)
			continue
		}
		fmt.Fprintf(&kept, "---\n%s\n", m.Raw)
	}
	return kept.Bytes(), skipped, nil
}

// nameOf is how the lists above name an object.
func nameOf(m *manifest.Manifest) string {
	return fmt.Sprintf("%s %s %s", m.Filename, m.GVK().Kind, clusterapi.KeyOf(m.Object()))
}

func openRelease(ctx context.Context, name string, fsys fs.FS) (*release, error) {
	image := fmt.Sprintf("registry.example/ocp/release@sha256:%x", sha256.Sum256([]byte(name)))
	p, err := manifest.Load(ctx, fsys, manifest.LoadOptions{Image: image, Filter: manifest.DefaultFilter(), Dir: name})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &release{fsys: fsys, payload: p}, nil
}

// releases are a [manifest.PayloadSource]; the first one is that which a new
// cluster gets.
type releases []*release

func (r releases) Payload(ctx context.Context, want configv1.Release) (fs.FS, error) {
	for _, one := range r {
		if one.image() == want.Image {
			return one.fsys, ctx.Err()
		}
	}
	return nil, fmt.Errorf("no release %s here", want.Image)
}

func (r releases) InitialRelease(context.Context) (configv1.Release, error) {
	return configv1.Release{Version: r[0].version(), Image: r[0].image()}, nil
}

// lacking returns the kinds that manifests need, and ClusterVersion,
// and for which they bring no definition.
func lacking(manifests []*manifest.Manifest) []schema.GroupVersionKind {
	out := []schema.GroupVersionKind{configv1.GroupVersion.WithKind("ClusterVersion")}
	var brought []schema.GroupVersionKind
	for _, m := range manifests {
		if strings.HasSuffix(m.GVK().Group, ".openshift.io") {
			out = append(out, m.GVK())
		}
		brought = append(brought, served(m.Object())...)
	}
	return slices.DeleteFunc(out, func(gvk schema.GroupVersionKind) bool { return slices.Contains(brought, gvk) })
}

// definitions returns those CustomResourceDefinitions of
// github.com/openshift/api for the default feature set that define some kind of
// these. What it lacks is an API service, and is left out.
func definitions(t testing.TB, kinds []schema.GroupVersionKind) []*unstructured.Unstructured {
	t.Helper()
	needed := map[schema.GroupVersionKind]bool{}
	for _, gvk := range kinds {
		needed[gvk] = true
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	checktest.OK(t, err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "*", "*", "zz_generated.crd-manifests", "*.yaml"))
	checktest.FatalIf(t, err != nil || len(files) == 0, "no definitions in github.com/openshift/api: %v", err)
	filter := manifest.DefaultFilter()
	var crds []*unstructured.Unstructured
	for _, file := range files {
		data := checktest.Get(os.ReadFile(file))(t)
		all := checktest.Get(manifest.Parse(filepath.Base(file), data, manifest.Limits{}))(t)
		for _, m := range all {
			if !filter.Judge(m).Included || !slices.ContainsFunc(served(m.Object()), func(gvk schema.GroupVersionKind) bool { return needed[gvk] }) {
				continue
			}
			for _, gvk := range served(m.Object()) {
				delete(needed, gvk)
			}
			crds = append(crds, m.Object())
		}
	}
	return crds
}

// served returns the kinds of a CustomResourceDefinition.
func served(crd *unstructured.Unstructured) []schema.GroupVersionKind {
	if crd.GetKind() != "CustomResourceDefinition" {
		return nil
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var out []schema.GroupVersionKind
	for _, v := range versions {
		if m, ok := v.(map[string]any); ok && m["served"] == true {
			name, _ := m["name"].(string)
			out = append(out, schema.GroupVersionKind{Group: group, Version: name, Kind: kind})
		}
	}
	return out
}
