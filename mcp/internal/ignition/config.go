// Package ignition reads the Ignition config of a rendered MachineConfig, as far as
// it matters for the way from one config to the next. It does what a
// machine-config daemon does with it, and no more: nothing is fetched.
//
// See https://coreos.github.io/ignition/specs/.
package ignition

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Config is an Ignition config of version 3.
type Config struct {
	Ignition struct {
		Version string `json:"version"`
	} `json:"ignition"`
	KernelArguments struct {
		ShouldExist    []string `json:"shouldExist"`
		ShouldNotExist []string `json:"shouldNotExist"`
	} `json:"kernelArguments"`
	Passwd struct {
		Groups []any  `json:"groups"`
		Users  []User `json:"users"`
	} `json:"passwd"`
	Storage struct {
		Disks       []any  `json:"disks"`
		Filesystems []any  `json:"filesystems"`
		Raid        []any  `json:"raid"`
		Directories []Node `json:"directories"`
		Links       []Link `json:"links"`
		Files       []File `json:"files"`
	} `json:"storage"`
	Systemd struct {
		Units []Unit `json:"units"`
	} `json:"systemd"`
}

// User is a user of the host.
type User struct {
	Name              string   `json:"name"`
	PasswordHash      *string  `json:"passwordHash"`
	SSHAuthorizedKeys []string `json:"sshAuthorizedKeys"`
	Gecos             *string  `json:"gecos"`
	Groups            []string `json:"groups"`
	HomeDir           *string  `json:"homeDir"`
	NoCreateHome      *bool    `json:"noCreateHome"`
	NoLogInit         *bool    `json:"noLogInit"`
	NoUserGroup       *bool    `json:"noUserGroup"`
	PrimaryGroup      *string  `json:"primaryGroup"`
	Shell             *string  `json:"shell"`
	ShouldExist       *bool    `json:"shouldExist"`
	System            *bool    `json:"system"`
	UID               *int     `json:"uid"`
}

// Node is what files, directories and links have in common.
type Node struct {
	Path      string `json:"path"`
	Overwrite *bool  `json:"overwrite"`
	User      Owner  `json:"user"`
	Group     Owner  `json:"group"`
	Mode      *int   `json:"mode"` // not of links
}

// Owner is a user or a group by number or name.
type Owner struct {
	ID   *int    `json:"id"`
	Name *string `json:"name"`
}

// Link is a link.
type Link struct {
	Node
	Hard   *bool   `json:"hard"`
	Target *string `json:"target"`
}

// File is a file with its contents.
type File struct {
	Node
	Contents Resource   `json:"contents"`
	Append   []Resource `json:"append"`
}

// Resource is where contents come from.
type Resource struct {
	Source       *string `json:"source"`
	Compression  *string `json:"compression"`
	HTTPHeaders  []any   `json:"httpHeaders"`
	Verification struct {
		Hash *string `json:"hash"`
	} `json:"verification"`
}

// Unit is a systemd unit.
type Unit struct {
	Name     string   `json:"name"`
	Enabled  *bool    `json:"enabled"`
	Mask     *bool    `json:"mask"`
	Contents *string  `json:"contents"`
	Dropins  []Dropin `json:"dropins"`
}

// Dropin is a part of a unit in a file of its own.
type Dropin struct {
	Name     string  `json:"name"`
	Contents *string `json:"contents"`
}

var version = regexp.MustCompile(`^3\.[0-9]+\.[0-9]+$`)

// Parse reads a config. Nothing at all is the empty config; a version other than
// 3.x.y is an error, since no MachineConfig is rendered with one.
func Parse(raw []byte) (*Config, error) {
	c := &Config{}
	if len(raw) == 0 || string(raw) == "null" {
		return c, nil
	}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, err
	}
	if !version.MatchString(c.Ignition.Version) {
		return nil, fmt.Errorf("unknown version %q: want 3.x.y", c.Ignition.Version)
	}
	return c, nil
}

// Validate says what is wrong with a config, the first that it finds.
func (c *Config) Validate() error {
	paths, units := map[string]bool{}, map[string]bool{}
	node := func(n Node) error {
		switch {
		case n.Path == "":
			return fmt.Errorf("a path is missing")
		case !path.IsAbs(n.Path):
			return fmt.Errorf("path %q is not absolute", n.Path)
		case paths[path.Clean(n.Path)]:
			return fmt.Errorf("path %q is there twice", n.Path)
		case n.Mode != nil && (*n.Mode < 0 || *n.Mode > 0o7777):
			return fmt.Errorf("path %q has mode %d, which is not a mode", n.Path, *n.Mode)
		}
		paths[path.Clean(n.Path)] = true
		return nil
	}
	for _, d := range c.Storage.Directories {
		if err := node(d); err != nil {
			return err
		}
	}
	for _, l := range c.Storage.Links {
		if err := node(l.Node); err != nil {
			return err
		}
	}
	for _, f := range c.Storage.Files {
		if err := node(f.Node); err != nil {
			return err
		}
		for _, r := range append([]Resource{f.Contents}, f.Append...) {
			if err := r.validate(); err != nil {
				return fmt.Errorf("path %q: %w", f.Path, err)
			}
		}
	}
	for _, u := range c.Systemd.Units {
		if units[u.Name] {
			return fmt.Errorf("unit %q is there twice", u.Name)
		}
		units[u.Name] = true
		if err := u.validate(); err != nil {
			return err
		}
	}
	users := map[string]bool{}
	for _, u := range c.Passwd.Users {
		if u.Name == "" || users[u.Name] {
			return fmt.Errorf("user %q is there twice or has no name", u.Name)
		}
		users[u.Name] = true
	}
	return nil
}

func (r Resource) validate() error {
	if r.Compression != nil && *r.Compression != "" && *r.Compression != "gzip" {
		return fmt.Errorf("unknown compression %q", *r.Compression)
	}
	if r.Source == nil || *r.Source == "" {
		return nil
	}
	scheme, _, ok := strings.Cut(*r.Source, ":")
	switch strings.ToLower(scheme) {
	case "data":
		_, err := dataURL(*r.Source)
		return err
	case "http", "https", "tftp", "s3", "arn", "gs":
		if ok {
			return nil
		}
	}
	return fmt.Errorf("contents have a source of an unknown kind")
}

// unitTypes are the endings of the names of units.
var unitTypes = map[string]bool{
	".service": true, ".socket": true, ".device": true, ".mount": true, ".automount": true, ".swap": true,
	".target": true, ".path": true, ".timer": true, ".snapshot": true, ".slice": true, ".scope": true,
}

func (u Unit) validate() error {
	if !unitTypes[path.Ext(u.Name)] {
		return fmt.Errorf("unit %q has a name that is not one of a unit", u.Name)
	}
	names := map[string]bool{}
	for _, d := range u.Dropins {
		switch {
		case path.Ext(d.Name) != ".conf":
			return fmt.Errorf("unit %q: drop-in %q does not end in .conf", u.Name, d.Name)
		case names[d.Name]:
			return fmt.Errorf("unit %q: drop-in %q is there twice", u.Name, d.Name)
		}
		names[d.Name] = true
	}
	return nil
}
