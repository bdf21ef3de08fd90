package sample_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

func load(t *testing.T, image string, o manifest.LoadOptions) *manifest.Payload {
	t.Helper()
	fsys, err := sample.Payload(image)
	checktest.OK(t, err)
	o.Image = image
	o.Architecture = "amd64"
	p := checktest.Get(manifest.Load(t.Context(), fsys, o))(t)
	return p
}

func TestReleases(t *testing.T) {
	tests := []struct {
		image, version string
		kept           int
		excluded       []string
	}{
		{sample.FromImage, sample.FromVersion, 101, []string{
			"ConfigMap monitoring-preview: \"Default\" is required, and release.openshift.io/feature-set=TechPreviewNoUpgrade",
			"Deployment ingress-operator: include.release.openshift.io/self-managed-high-availability unset",
		}},
		{sample.ToImage, sample.ToVersion, 102, []string{
			"ConfigMap monitoring-preview: \"Default\" is required, and release.openshift.io/feature-set=TechPreviewNoUpgrade",
			"Deployment ingress-operator: include.release.openshift.io/self-managed-high-availability unset",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.version, func(t *testing.T) {
			p := load(t, tt.image, manifest.LoadOptions{Filter: manifest.DefaultFilter()})
			if p.Release.Version != tt.version || p.Release.Image != tt.image {
				t.Errorf("release %s %s, want %s %s", p.Release.Version, p.Release.Image, tt.version, tt.image)
			}
			if len(p.Manifests) != tt.kept {
				t.Errorf("%d manifests included, want %d", len(p.Manifests), tt.kept)
			}
			var excluded []string
			for _, e := range p.Excluded {
				id := e.Manifest.Identity()
				excluded = append(excluded, id.Kind+" "+id.Name+": "+e.Reason)
			}
			checktest.SameIn(t, "excluded", tt.excluded, excluded)
			if len(p.Warnings) != 0 {
				t.Errorf("warnings: %v", p.Warnings)
			}
			names := []string{}
			for _, op := range p.Operators() {
				names = append(names, op.Name)
				if len(op.Workloads) == 0 {
					t.Errorf("operator %s has no workloads", op.Name)
				}
				i := slices.IndexFunc(op.Versions, func(v configv1.OperandVersion) bool { return v.Name == "operator" })
				if i < 0 || op.Versions[i].Version != tt.version {
					t.Errorf("operator %s declares versions %v, want operator %s", op.Name, op.Versions, tt.version)
				}
			}
			slices.Sort(names)
			want := []string{"authentication", "dns", "etcd", "ingress", "kube-apiserver", "kube-controller-manager",
				"kube-scheduler", "machine-config", "monitoring", "network"}
			checktest.SameIn(t, "operators", want, names)
		})
	}
}

func TestToFollowsFrom(t *testing.T) {
	p := load(t, sample.ToImage, manifest.LoadOptions{Filter: manifest.DefaultFilter()})
	if !slices.Contains(p.Previous, sample.FromVersion) {
		t.Errorf("previous %v lacks %s", p.Previous, sample.FromVersion)
	}
	deleted := 0
	for _, m := range p.Manifests {
		if m.Object().GetAnnotations()["release.openshift.io/delete"] == "true" {
			deleted++
		}
	}
	if deleted != 1 {
		t.Errorf("%d delete manifests, want 1", deleted)
	}
}

func TestTemplatesAreFilled(t *testing.T) {
	for _, image := range []string{sample.FromImage, sample.ToImage} {
		p := load(t, image, manifest.LoadOptions{Filter: manifest.DefaultFilter()})
		found := false
		for _, m := range p.Manifests {
			if m.Identity().Kind == "Deployment" && m.Identity().Name == "cluster-version-operator" {
				found = true
				raw := string(m.Raw)
				if !strings.Contains(raw, image) || !strings.Contains(raw, p.Images["cli"]) {
					t.Errorf("rendered Deployment lacks the release's or the cli's image: %s", raw)
				}
			}
		}
		if !found {
			t.Error("no Deployment of the version operator")
		}
	}
}

func TestUpdatingGraph(t *testing.T) {
	p := load(t, sample.ToImage, manifest.LoadOptions{Filter: manifest.DefaultFilter()})
	g := manifest.UpdateGraph(p.Tasks())
	checktest.OK(t, g.Validate())
	widest, barriers := 0, 0
	for _, n := range g.Nodes {
		widest = max(widest, len(n.Out))
		if len(n.Tasks) == 1 && n.Tasks[0].Manifest.Identity().Kind == "Job" {
			barriers++
		}
	}
	if widest < 3 {
		t.Errorf("at most %d nodes in parallel, want 3 or more", widest)
	}
	if barriers != 1 {
		t.Errorf("%d Jobs alone in their node, want 1", barriers)
	}
}

func TestGraph(t *testing.T) {
	var g struct {
		Nodes []struct {
			Version, Payload string
			Metadata         map[string]string
		}
		Edges [][2]int
	}
	checktest.OK(t, json.Unmarshal(sample.Graph(), &g))
	edge := false
	for _, e := range g.Edges {
		edge = edge || g.Nodes[e[0]].Version == sample.FromVersion && g.Nodes[e[1]].Version == sample.ToVersion
	}
	if !edge {
		t.Errorf("no edge from %s to %s", sample.FromVersion, sample.ToVersion)
	}
	for _, n := range g.Nodes {
		channels := strings.Split(n.Metadata["io.openshift.upgrades.graph.release.channels"], ",")
		if !slices.Contains(channels, sample.Channel) {
			t.Errorf("%s is not in channel %s", n.Version, sample.Channel)
		}
		images := map[string]string{sample.FromVersion: sample.FromImage, sample.ToVersion: sample.ToImage}
		if image, ok := images[n.Version]; ok && image != n.Payload {
			t.Errorf("%s has payload %s in the graph, want %s", n.Version, n.Payload, image)
		}
	}
	sample.Graph()[0] = 'x' // the caller's copy
	if sample.Graph()[0] != '{' {
		t.Error("Graph returns shared bytes")
	}
}

func TestUnknown(t *testing.T) {
	if _, err := sample.Payload("registry.example/other"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Payload of an unknown image: %v, want fs.ErrNotExist", err)
	}
}
