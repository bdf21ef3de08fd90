package upgradeconfig

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"time"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/internal/regular"
	"github.com/clusterupdate/clusterupdate/internal/yamljson"
)

// GitDir is a provider whose policies are files in a working tree of Git: one YAML
// file for each policy. A merge to the branch plans an upgrade, and the history of
// the repository shows who planned what.
//
// Anything that is not a complete set of valid files is an error, as it might
// hide the policy that is due: a directory that is not there, a file that
// cannot be read as a policy, or a checkout that is under way. A directory
// without such files has no policy. It is safe for concurrent use.
type GitDir struct {
	// Tree is the root of the working tree, where .git is.
	Tree fs.FS
	// Dir is the directory with the policies, with slashes; empty means the
	// root.
	Dir string
}

// policyFile is a policy as people write it.
type policyFile struct {
	// ID of the policy; empty means the file's name.
	ID string `json:"id"`
	// Version to upgrade to, and the group of channels to get it from; an empty
	// group is stable.
	Version      string `json:"version"`
	ChannelGroup string `json:"channelGroup"`
	// UpgradeAt is when, in RFC 3339.
	UpgradeAt string `json:"upgradeAt"`
	// State such as completed or cancelled takes the policy out; empty means
	// scheduled.
	State        string `json:"state"`
	DrainMinutes int32  `json:"drainMinutes"`
	// Type is OSD or ARO; empty means OSD.
	Type                UpgradeType `json:"type"`
	CapacityReservation bool        `json:"capacityReservation"`
}

const (
	maxPolicyFiles    = 1000
	maxPolicyFileSize = 64 << 10 // bytes
)

// Policies implements [Provider]. An error names the file.
func (g GitDir) Policies(ctx context.Context) ([]Policy, error) {
	before, err := g.index()
	if err != nil {
		return nil, err
	}
	policies, err := g.read(ctx)
	if err != nil {
		return nil, err
	}
	// Files that were read while Git exchanged them are a mixture.
	after, err := g.index()
	if err != nil {
		return nil, err
	}
	if !before.Equal(after) {
		return nil, errBusy
	}
	return Select(policies)
}

// String implements [Provider].
func (g GitDir) String() string { return path.Join("git", g.Dir) }

var errBusy = errors.New("Git is changing the working tree")

// index returns when Git last changed the working tree, or errBusy if it is
// about to. Without an index, nobody knows.
func (g GitDir) index() (time.Time, error) {
	_, err := fs.Stat(g.Tree, ".git/index.lock")
	if err == nil {
		return time.Time{}, errBusy
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, err
	}
	info, err := fs.Stat(g.Tree, ".git/index")
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

func (g GitDir) read(ctx context.Context) ([]Policy, error) {
	dir := cmp.Or(g.Dir, ".")
	entries, err := fs.ReadDir(g.Tree, dir)
	if err != nil {
		return nil, err
	}
	var out []Policy
	files := 0
	for _, e := range entries {
		if ext := path.Ext(e.Name()); e.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if files == maxPolicyFiles {
			return nil, fmt.Errorf("%s has more than %d policies", g, maxPolicyFiles)
		}
		files++
		name := path.Join(dir, e.Name())
		p, counts, err := g.policy(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if counts {
			out = append(out, p)
		}
	}
	return out, nil
}

// policy reads a file. What else a file says does not matter if its state takes
// the policy out.
func (g GitDir) policy(name string) (p Policy, counts bool, err error) {
	file, err := regular.Open(g.Tree, name)
	if err != nil {
		return p, false, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxPolicyFileSize+1))
	if err != nil {
		return p, false, err
	}
	if len(data) > maxPolicyFileSize {
		return p, false, fmt.Errorf("larger than %d bytes", maxPolicyFileSize)
	}
	var f policyFile
	if err := f.decode(data); err != nil {
		return p, false, err
	}
	f.ID = cmp.Or(f.ID, path.Base(name))
	f.State = cmp.Or(f.State, "scheduled")
	f.Type = cmp.Or(f.Type, OSD)
	if isOut(f.State) {
		return p, false, nil
	}
	p, err = f.policy()
	return p, err == nil, err
}

// decode reads a document, which must be the only one, and have no other keys.
func (f *policyFile) decode(data []byte) error {
	if _, err := yamljson.Measure(data, math.MaxInt64); err != nil {
		return err
	}
	if hasMore(data) {
		return errors.New("it has more than one document, of which one would be ignored")
	}
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return err
	}
	unknown, err := json.UnmarshalStrict(asJSON, f)
	return cmp.Or(err, errors.Join(unknown...))
}

// hasMore reports whether anything but empty documents follows the first one of a text.
func hasMore(data []byte) bool {
	var document yamlv3.Node
	documents := yamlv3.NewDecoder(bytes.NewReader(data))
	if documents.Decode(&document) != nil {
		return false // which is the fault of the first
	}
	for {
		switch err := documents.Decode(&document); {
		case err == io.EOF:
			return false
		case err != nil, document.Content[0].Tag != "!!null":
			return true
		}
	}
}

func (f policyFile) policy() (Policy, error) {
	p := Policy{ID: f.ID, State: f.State, Spec: Spec{
		Desired:              Update{Version: f.Version},
		UpgradeAt:            f.UpgradeAt,
		PDBForceDrainTimeout: f.DrainMinutes,
		Type:                 f.Type,
		CapacityReservation:  f.CapacityReservation,
	}}
	var err error
	if f.DrainMinutes < 0 {
		return p, fmt.Errorf("drainMinutes: %d is negative", f.DrainMinutes)
	}
	if f.Type != OSD && f.Type != ARO {
		return p, fmt.Errorf("type: %q is neither OSD nor ARO", f.Type)
	}
	p.NextRun, err = time.Parse(time.RFC3339, f.UpgradeAt)
	if err != nil {
		return p, fmt.Errorf("upgradeAt: %w", err)
	}
	p.Spec.Desired.Channel, err = InferChannel(f.ChannelGroup, f.Version)
	return p, err
}
