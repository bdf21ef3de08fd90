package rhel

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// release is the operating system of a host.
type release struct {
	ID      string // "rhel"
	Version *semver.Version
	Name    string // for people
}

// parseRelease reads an os-release file. It fails if that has no ID, or no version.
func parseRelease(text string) (release, error) {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		if unquoted, err := strconv.Unquote(value); err == nil {
			value = unquoted
		} else if len(value) > 1 && value[0] == '\'' && value[len(value)-1] == '\'' {
			value = value[1 : len(value)-1]
		}
		fields[name] = value
	}
	r := release{ID: fields["ID"], Name: fields["PRETTY_NAME"]}
	if r.ID == "" {
		return release{}, fmt.Errorf("os-release names no ID")
	}
	if r.Name == "" {
		r.Name = strings.TrimSpace(r.ID + " " + fields["VERSION_ID"])
	}
	var err error
	r.Version, err = semver.NewVersion(fields["VERSION_ID"])
	if err != nil {
		return release{}, fmt.Errorf("os-release: VERSION_ID %q: %w", fields["VERSION_ID"], err)
	}
	return r, nil
}

// Supported returns an error for an operating system that cannot be updated in
// place: anything but RHEL from 8.6 on.
func (r release) Supported() error {
	switch {
	case r.ID == "rhcos":
		return fmt.Errorf("%s is updated by its machine config pool, not by packages", r.Name)
	case r.ID != "rhel":
		return fmt.Errorf("%s is not Red Hat Enterprise Linux", r.Name)
	case r.Version.Major() < 8:
		return fmt.Errorf("%s cannot be updated in place: replace the machine by one with RHEL 8.6 or later", r.Name)
	case r.Version.LessThan(semver.New(8, 6, 0, "", "")):
		return fmt.Errorf("%s is too old: update it to RHEL 8.6 or later first", r.Name)
	}
	return nil
}

// parseRepositories returns the repositories in a list of subscription-manager,
// in its order.
func parseRepositories(text string) []string {
	var ids []string
	for line := range strings.Lines(text) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "Repo ID:"); ok {
			id = strings.TrimSpace(id)
			if id != "" {
				ids = append(ids, id)
			}
		}
	}
	return ids
}
