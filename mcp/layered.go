package mcp

import (
	"fmt"
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Goal is what a pool wants of its nodes, as far as predicates ask.
type Goal struct {
	// Config is the pool's spec.configuration.name.
	Config string
	// Layered reports that a MachineOSConfig names the pool: its nodes get an image
	// that is built in the cluster.
	Layered bool
	// Image is the MachineOSConfig's current image; empty until there is one.
	Image string
	// HasBuild reports that there is a MachineOSBuild for Config, and BuildConfig
	// is the config that it was made from.
	HasBuild    bool
	BuildConfig string
}

// Target is the config and image that a node must reach.
type Target struct {
	Config string
	Image  string // empty: none, the annotation is removed
}

// String is the target as events and conditions name it.
func (t Target) String() string {
	if t.Image != "" {
		return fmt.Sprintf("MachineConfig %s / Image %s", t.Config, t.Image)
	}
	return "MachineConfig " + t.Config
}

// Target returns the target of the pool's nodes.
func (g Goal) Target() Target {
	if !g.Layered {
		return Target{Config: g.Config}
	}
	return Target{Config: g.BuildConfig, Image: g.Image}
}

// Label is the target as a pool's conditions name it, which can come before
// there is a build.
func (g Goal) Label() string {
	t := Target{Config: g.Config}
	if g.Layered {
		t.Image = g.Image
	}
	return t.String()
}

// build is what a pool's image build looks like; all zero if not layered.
type build struct {
	config *mcfgv1.MachineOSConfig
	build  *mcfgv1.MachineOSBuild
	// stale reports that the annotation of config names a build that is gone or was
	// made for another config, and has to be removed.
	stale bool
}

// findBuild picks the MachineOSConfig of a pool and its build for the config.
// Both slices are sorted by name.
func findBuild(pool, config string, configs []*mcfgv1.MachineOSConfig, builds []*mcfgv1.MachineOSBuild) build {
	i := slices.IndexFunc(configs, func(c *mcfgv1.MachineOSConfig) bool {
		return c.Spec.MachineConfigPool.Name == pool
	})
	if i < 0 {
		return build{}
	}
	b := build{config: configs[i]}
	if name, ok := b.config.Annotations[AnnotationCurrentMachineOSBuild]; ok {
		for _, o := range builds {
			if o.Name == name && o.Spec.MachineConfig.Name == config {
				b.build = o
				return b
			}
		}
		b.stale = true
	}
	for _, o := range builds {
		if o.Spec.MachineOSConfig.Name == b.config.Name && o.Spec.MachineConfig.Name == config {
			b.build = o
			return b
		}
	}
	return b
}

func (b build) goal(config string) Goal {
	g := Goal{Config: config, Layered: b.config != nil}
	if b.config != nil {
		g.Image = string(b.config.Status.CurrentImagePullSpec)
	}
	if b.build != nil {
		g.HasBuild, g.BuildConfig = true, b.build.Spec.MachineConfig.Name
	}
	return g
}

func (b build) is(condition mcfgv1.BuildProgress) bool {
	return b.build != nil && slices.ContainsFunc(b.build.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == string(condition) && c.Status == metav1.ConditionTrue
	})
}

func (b build) pushSpec() string {
	if b.build == nil {
		return ""
	}
	return string(b.build.Status.DigestedImagePushSpec)
}

func (b build) image() string {
	if b.config == nil {
		return ""
	}
	return string(b.config.Status.CurrentImagePullSpec)
}

// building reports that the pool's image is not yet the one to roll out.
func (b build) building() bool {
	if b.config == nil || b.build == nil {
		return false
	}
	return b.is(mcfgv1.MachineOSBuilding) || b.is(mcfgv1.MachineOSBuildPrepared) || b.is(mcfgv1.MachineOSBuildFailed) ||
		(b.is(mcfgv1.MachineOSBuildSucceeded) && b.pushSpec() != "" && b.pushSpec() != b.image())
}

// ready reports whether a layered pool can be rolled out, and in words why. A build
// that failed is an error.
func (b build) ready() (ok bool, text string, err error) {
	switch {
	case b.build == nil:
		return false, "No MachineOSConfig or MachineOSBuild for this pool", nil
	case b.image() == "":
		return false, "Desired image not set in MachineOSConfig", nil
	case b.is(mcfgv1.MachineOSBuildSucceeded) && b.pushSpec() == b.image():
		return true, fmt.Sprintf("Image built successfully, pullspec: %s", b.pushSpec()), nil
	case b.is(mcfgv1.MachineOSBuildSucceeded):
		return false, fmt.Sprintf("Image built successfully, pullspec: %s, but MachineOSConfig %q has not updated yet",
			b.pushSpec(), b.config.Name), nil
	case b.is(mcfgv1.MachineOSBuilding):
		return false, "Image build pending", nil
	case b.is(mcfgv1.MachineOSBuildFailed):
		err := fmt.Errorf("image build for MachineConfigPool %s failed", b.build.Name)
		return false, err.Error(), err
	}
	return false, "Image is not ready yet", nil
}

func sortedValues[T any](m map[string]T) []T {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	values := make([]T, 0, len(m))
	for _, name := range names {
		values = append(values, m[name])
	}
	return values
}
