package bootloader

import (
	"fmt"
	"strings"
)

// status is what bootupctl says of the boot loader of a host.
type status struct {
	Components []component
	// Adoptable are the components that were installed before bootupd managed
	// them, as on machines installed with OpenShift 4.4 or earlier.
	Adoptable []adoptable
}

// component is a part of the boot loader, as "EFI" or "BIOS".
type component struct {
	Name      string
	Installed string // its packages
	Update    string // the packages that it can be updated to; "": it is up to date
	// Interrupted is the update that did not come to its end; "": none.
	Interrupted string
}

// adoptable is a component that has to be adopted before it can be updated.
type adoptable struct {
	Name    string
	Version string
}

// Needed reports whether there is something to do.
func (s status) Needed() bool { return len(s.Adoptable) > 0 || s.updates() }

func (s status) updates() bool {
	for _, c := range s.Components {
		if c.Update != "" || c.Interrupted != "" {
			return true
		}
	}
	return false
}

// parseStatus reads the output of "bootupctl status". It fails for one that
// says neither of components nor that there are none, and for what it says of
// an update that is not known.
func parseStatus(text string) (status, error) {
	var s status
	known := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "Component "); ok {
			s.Components = append(s.Components, component{Name: strings.TrimSpace(name)})
			known = true
			continue
		}
		if line == "No components installed." || line == "No components are adoptable." {
			known = true
			continue
		}
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if key == "Adoptable" || key == "Detected" {
			name, version, _ := strings.Cut(value, ":")
			s.Adoptable = append(s.Adoptable, adoptable{Name: strings.TrimSpace(name), Version: strings.TrimSpace(version)})
			known = true
			continue
		}
		if len(s.Components) == 0 {
			continue
		}
		c := &s.Components[len(s.Components)-1]
		switch key {
		case "Installed":
			c.Installed = value
		case "WARNING":
			if rest, ok := strings.CutPrefix(value, "Previous update to "); ok {
				c.Interrupted = strings.TrimSuffix(rest, " was interrupted")
			}
		case "Update":
			update, err := parseUpdate(value)
			if err != nil {
				return status{}, fmt.Errorf("component %s: %w", c.Name, err)
			}
			c.Update = update
		}
	}
	if !known {
		return status{}, fmt.Errorf("not the output of bootupctl status: %.80q", text)
	}
	return s, nil
}

// parseUpdate reads what a component says of its update.
func parseUpdate(value string) (string, error) {
	switch {
	case value == "At latest version", value == "No update found", value == "Ignoring downgrade":
		return "", nil
	case strings.HasPrefix(value, "Available"):
		update := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(value, "Available"), ":"))
		if update == "" {
			update = "Available"
		}
		return update, nil
	}
	return "", fmt.Errorf("its update is not understood: %.80q", value)
}
