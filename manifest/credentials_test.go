package manifest_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// names of requests with their Secrets.
func requestNames(requests []*manifest.CredentialsRequest) []string {
	var out []string
	for _, r := range requests {
		out = append(out, fmt.Sprintf("%s/%s for %s/%s", r.Namespace, r.Name, r.Spec.SecretRef.Namespace, r.Spec.SecretRef.Name))
	}
	slices.Sort(out)
	return out
}

func TestCredentialsRequests(t *testing.T) {
	const request = `apiVersion: cloudcredential.openshift.io/v1
kind: CredentialsRequest
metadata: {namespace: ns, name: NAME, annotations: {include.release.openshift.io/self-managed-high-availability: "true"EXTRA}}
spec:
  secretRef: {namespace: NAMESPACE, name: SECRET}
  providerSpec: PROVIDER
`
	write := func(name, provider, namespace, secret, extra string) string {
		return strings.NewReplacer("NAMESPACE", namespace, "NAME", name, "EXTRA", extra, "SECRET", secret, "PROVIDER", provider).Replace(request)
	}
	const aws, gcp = "{kind: AWSProviderSpec}", "{kind: GCPProviderSpec}"
	load := func(t *testing.T, manifests ...string) *manifest.Payload {
		p := checktest.Get(manifest.Load(t.Context(), testdata.Release("4.19.1", manifests...),
			manifest.LoadOptions{Image: "T", Filter: manifest.DefaultFilter()}))(t)
		return p
	}
	without := manifest.Filter{Capabilities: &manifest.Capabilities{Known: sets.New("Build"), Enabled: sets.New[string]()}}
	for _, tt := range []struct {
		name      string
		manifests []string
		platform  configv1.PlatformType
		filter    manifest.Filter
		want      []string
		err       string
	}{
		{name: "of the platform", platform: "AWS", manifests: []string{write("a", aws, "in", "s", ""), write("b", gcp, "in", "s", "")}, want: []string{"ns/a for in/s"}},
		{name: "of another", platform: "GCP", manifests: []string{write("a", aws, "in", "s", ""), write("b", gcp, "in", "s", "")}, want: []string{"ns/b for in/s"}},
		{name: "of none", platform: "None", manifests: []string{write("a", aws, "in", "s", "")}},
		{name: "to be deleted", platform: "AWS", manifests: []string{write("a", aws, "in", "s", `, release.openshift.io/delete: "true"`)}},
		{name: "not of this profile", platform: "AWS", manifests: []string{strings.Replace(write("a", aws, "in", "s", ""), "self-managed-high-availability", "other", 1)}},
		{name: "capability off", platform: "AWS", filter: without, manifests: []string{write("a", aws, "in", "s", `, capability.openshift.io/name: Build`), write("b", aws, "in", "s", "")}, want: []string{"ns/b for in/s"}},
		{name: "capability on", platform: "AWS", manifests: []string{write("a", aws, "in", "s", `, capability.openshift.io/name: Build`)}, want: []string{"ns/a for in/s"}},
		{name: "no provider", platform: "AWS", manifests: []string{write("a", "{}", "in", "s", ""), write("b", aws, "in", "s", "")}, want: []string{"ns/b for in/s"},
			err: "0000_50_x_00.yaml: CredentialsRequest ns/a: spec.providerSpec.kind is missing"},
		{name: "no Secret", platform: "AWS", manifests: []string{write("a", aws, "in", `""`, ""), write("b", aws, `""`, "s", ""), write("c", gcp, "in", `""`, "")},
			err: "0000_50_x_00.yaml: CredentialsRequest ns/a: spec.secretRef.name is missing\n0000_50_x_01.yaml: CredentialsRequest ns/b: spec.secretRef.namespace is missing"},
		{name: "malformed", platform: "AWS", manifests: []string{write("a", "text", "in", "s", "")}, err: "0000_50_x_00.yaml: CredentialsRequest ns/a: spec.providerSpec: got a JSON string, want map[string]interface {}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := load(t, tt.manifests...).CredentialsRequests(tt.platform, tt.filter)
			checktest.Same(t, tt.want, requestNames(got))
			text := ""
			if err != nil {
				text = err.Error()
				if fault := new(manifest.Error); !errors.As(err, &fault) || fault.Position() == "" {
					t.Errorf("%v does not say where", err)
				}
			}
			checktest.Equal(t, tt.err, text, "error")
			for _, r := range got {
				if r.Manifest == nil || r.Manifest.Filename == "" {
					t.Errorf("%s has no manifest", r.Name)
				}
			}
		})
	}
}

// The requests of real releases, as a walk over their files finds them.
func TestRealCredentialsRequests(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"payload-4.17.30", "payload-4.18.15"} {
		dir := filepath.Join(testdata.Dir(t), release)
		p, err := manifest.Load(t.Context(), os.DirFS(dir), manifest.LoadOptions{Filter: manifest.DefaultFilter()})
		checktest.OK(t, err)
		all, requests := 0, walkRequests(t, dir)
		for _, platform := range []configv1.PlatformType{"AWS", "Azure", "GCP", "IBMCloud", "PowerVS", "Nutanix", "OpenStack", "VSphere"} {
			kind := string(platform) + "ProviderSpec"
			if platform == "PowerVS" {
				kind = "IBMCloudPowerVSProviderSpec"
			}
			got, err := p.CredentialsRequests(platform, manifest.Filter{})
			if err != nil {
				t.Errorf("%s, %s: %v", release, platform, err)
			}
			want := requests[kind]
			if diff := cmp.Diff(want, requestNames(got)); diff != "" || len(want) == 0 {
				t.Errorf("%s, %s: %s", release, platform, diff)
			}
			all += len(got)
		}
		if all < 30 {
			t.Errorf("%s: %d requests", release, all)
		}
		// Without the image registry there is one request less.
		without := manifest.Filter{Capabilities: &manifest.Capabilities{Known: sets.New("ImageRegistry", "CloudCredential", "MachineAPI", "Ingress", "Storage", "CloudControllerManager"),
			Enabled: sets.New("CloudCredential", "MachineAPI", "Ingress", "Storage", "CloudControllerManager")}}
		before, _ := p.CredentialsRequests("AWS", manifest.Filter{})
		after, err := p.CredentialsRequests("AWS", without)
		if err != nil || len(after) != len(before)-1 {
			t.Errorf("%s: %d requests without the image registry, %d with it: %v", release, len(after), len(before), err)
		}
	}
}

// walkRequests reads every document of a release, whatever is in it, and returns
// the requests by the kind of their provider.
func walkRequests(t *testing.T, dir string) map[string][]string {
	t.Helper()
	out := make(map[string][]string)
	checktest.OK(t,
		filepath.WalkDir(filepath.Join(dir, "release-manifests"), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, document := range bytes.Split(data, []byte("\n---")) {
				var r struct {
					Kind     string
					Metadata struct {
						Namespace, Name string
						Annotations     map[string]string
					}
					Spec struct {
						SecretRef    struct{ Namespace, Name string }
						ProviderSpec struct{ Kind string }
					}
				}
				if yaml.Unmarshal(document, &r) != nil || r.Kind != "CredentialsRequest" {
					continue
				}
				a := r.Metadata.Annotations
				if a["include.release.openshift.io/self-managed-high-availability"] != "true" || a["release.openshift.io/delete"] != "" ||
					strings.Contains(a["release.openshift.io/feature-set"],
						"NoUpgrade") || a["release.openshift.io/feature-gate"] != "" {
					continue
				}
				kind := r.Spec.ProviderSpec.Kind
				out[kind] = append(out[kind],
					fmt.Sprintf("%s/%s for %s/%s", r.Metadata.Namespace, r.Metadata.Name, r.Spec.SecretRef.Namespace,
						r.Spec.SecretRef.Name))
			}
			return nil
		}))
	for _, names := range out {
		slices.Sort(names)
	}
	return out
}
