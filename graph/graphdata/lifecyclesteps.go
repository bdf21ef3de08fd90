package graphdata

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"go.yaml.in/yaml/v3"

	"github.com/clusterupdate/clusterupdate/graph/internal/minor"
)

// lifeCycle is a step in the life of a minor.
type lifeCycle struct {
	*editor
	tree  *Tree
	minor minor.Minor
}

func newLifeCycle(ctx context.Context, fsys fs.FS, minorVersion string) (*lifeCycle, error) {
	m, err := minor.Parse(minorVersion)
	if err != nil {
		return nil, err
	}
	tree, err := Load(ctx, fsys, LoadOptions{InternalChannels: true})
	if err != nil {
		return nil, err
	}
	return &lifeCycle{newEditor(fsys), tree, m}, nil
}

// find returns a channel by its name.
func (l *lifeCycle) find(name string) (Channel, error) {
	for _, c := range slices.Concat(l.tree.Channels, l.tree.Internal) {
		if c.Name == name {
			return c, nil
		}
	}
	return Channel{}, fmt.Errorf("channel %s: %w", name, fs.ErrNotExist)
}

// channel makes a channel of the minor, which is fed without delay.
func (l *lifeCycle) channel(kind, feeder, filter string, versions []string) error {
	name := kind + "-" + l.minor.String()
	if c, err := l.find(name); err == nil {
		return &fs.PathError{Op: "create", Path: c.File, Err: fs.ErrExist}
	}
	return l.create("channels/"+name+".yaml", yamlMap(
		yamlText("feeder"), yamlMap(yamlText("delay"), yamlText("PT0H"), yamlText("filter"), yamlText(filter), yamlText("name"), yamlText(feeder)),
		yamlText("name"), yamlText(name),
		yamlText("versions"), yamlList(versions...),
	))
}

// filter sets the filter of a channel that is fed.
func (l *lifeCycle) filter(kind string, m minor.Minor, filter string) error {
	c, err := l.find(kind + "-" + m.String())
	if err != nil || c.Feeder == nil {
		return err
	}
	channel, err := l.open(c.File)
	if err != nil {
		return err
	}
	setText(child(channel, "feeder"), "filter", filter)
	return nil
}

// released returns the releases of the minor in the internal channel fast.
func (l *lifeCycle) released() ([]string, error) {
	c, err := l.find("fast")
	if err != nil {
		return nil, err
	}
	var versions []string
	for _, e := range c.Versions {
		if strings.HasPrefix(e.Version, l.minor.String()+".") && !slices.Contains(versions, e.Version) {
			versions = append(versions, e.Version)
		}
	}
	if len(versions) == 0 {
		return nil, fmt.Errorf("channel fast has no release of %s", l.minor)
	}
	slices.SortFunc(versions, PromotionOrder)
	return versions, nil
}

// suggestFrom sets where the suggestions of a minor begin, if there are any.
func (l *lifeCycle) suggestFrom(m minor.Minor, key, version string) error {
	at := slices.IndexFunc(l.tree.Suggestions, func(s Suggestion) bool { return s.Minor == m.String() })
	if at < 0 {
		return nil
	}
	suggestions, err := l.open(l.tree.Suggestions[at].File)
	if err != nil {
		return err
	}
	for i := 1; i < len(suggestions.Content); i += 2 {
		setText(suggestions.Content[i], key, version)
	}
	return nil
}

// preReleases makes the risk of each pre-release of the minor's first version that
// does not have it.
func (l *lifeCycle) preReleases(fixedIn string, opts GAOptions) error {
	c, err := l.find("candidate-" + l.minor.String())
	if err != nil {
		return err
	}
	risk := preReleaseRisk(l.tree, opts)
	has := map[string]bool{}
	for _, b := range l.tree.Risks {
		has[b.To] = has[b.To] || b.Risk.Name == risk.Risk.Name
	}
	for _, e := range c.Versions {
		if !strings.HasPrefix(e.Version, l.minor.String()+".0-") || has[e.Version] {
			continue
		}
		has[e.Version] = true
		if risk.Risk.URL == "" || risk.Risk.Message == "" {
			return errors.New("the tree has no risk PreRelease, and the options have no URL or message for it")
		}
		risk.File, risk.To, risk.FixedIn = "blocked-edges/"+e.Version+"-"+risk.Risk.Name+".yaml", e.Version, fixedIn
		file, err := risk.Encode()
		if err != nil {
			return err
		}
		content := &yaml.Node{}
		if err := yaml.Unmarshal(file.Text, content); err != nil {
			return err
		}
		if err := l.create(risk.File, content); err != nil {
			return err
		}
	}
	return nil
}

// preReleaseRisk is the risk of the tree's pre-releases, or that of the options.
func preReleaseRisk(tree *Tree, opts GAOptions) BlockedEdge {
	const name = "PreRelease"
	b := BlockedEdge{From: ".*"}
	for _, other := range tree.Risks {
		if other.Risk.Name == name {
			b.Risk, b.AutoExtend = other.Risk, other.AutoExtend
			return b
		}
	}
	b.Risk = &configv1.ConditionalUpdateRisk{URL: opts.URL, Name: name, Message: opts.Message, MatchingRules: []configv1.ClusterCondition{{Type: "Always"}}}
	return b
}
