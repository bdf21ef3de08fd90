package rhel

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/hosttest"
)

const release86 = "NAME=\"Red Hat Enterprise Linux\"\nVERSION=\"8.6 (Ootpa)\"\nID=\"rhel\"\nVERSION_ID=\"8.6\"\nPRETTY_NAME=\"Red Hat Enterprise Linux 8.6 (Ootpa)\"\n"

func TestRelease(t *testing.T) {
	for _, tt := range []struct{ name, text, err string }{
		{"8.6", release86, ""},
		{"8.10", "ID='rhel'\nVERSION_ID='8.10'", ""},
		{"9.4", "# a comment=1\nID=rhel\nVERSION_ID=9.4\nPRETTY_NAME=\"Red Hat Enterprise Linux 9.4 (Plow)\"\n", ""},
		{"8.5", strings.ReplaceAll(release86, "8.6", "8.5"), "Red Hat Enterprise Linux 8.5 (Ootpa) is too old: update it to RHEL 8.6 or later first"},
		{"7.9", "ID=rhel\nVERSION_ID=7.9\nPRETTY_NAME=\"RHEL 7.9\"", "RHEL 7.9 cannot be updated in place: replace the machine by one with RHEL 8.6 or later"},
		{"RHCOS", "ID=rhcos\nVERSION_ID=4.18\nPRETTY_NAME=RHCOS", "RHCOS is updated by its machine config pool, not by packages"},
		{"Fedora", "ID=fedora\nVERSION_ID=41", "fedora 41 is not Red Hat Enterprise Linux"},
		{"empty", "", "os-release names no ID"},
		{"no version", "ID=rhel", `os-release: VERSION_ID "": invalid semantic version`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := parseRelease(tt.text)
			if err == nil {
				err = r.Supported()
			}
			if err != nil && !strings.HasPrefix(err.Error(), tt.err) || (err == nil) != (tt.err == "") {
				t.Errorf("%v, want %s", err, tt.err)
			}
		})
	}
}

func TestParseRepositories(t *testing.T) {
	text := "+---+\n    Available Repositories in /etc/yum.repos.d/redhat.repo\n+---+\nRepo ID:   rhocp-4.17-for-rhel-8-x86_64-rpms\nRepo Name: Red Hat OpenShift\nEnabled:   1\n\nRepo ID: \nRepo ID:   fast\n"
	checktest.Same(t, []string{"rhocp-4.17-for-rhel-8-x86_64-rpms", "fast"}, parseRepositories(text))
	if got := parseRepositories("This system has no repositories available through subscriptions."); got != nil {
		t.Error(got)
	}
}

func FuzzParseRelease(f *testing.F) {
	f.Add(release86)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseRelease(text)
		if err != nil {
			return
		}
		if r.ID == "" || r.Name == "" || r.Version == nil {
			t.Errorf("%+v", r)
		}
		if r.Supported() == nil && (r.ID != "rhel" || r.Version.Major() < 8) {
			t.Errorf("%+v is supported", r)
		}
	})
}

func FuzzParseRepositories(f *testing.F) {
	f.Add("Repo ID:   a\nRepo ID: b\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, id := range parseRepositories(text) {
			if id == "" || strings.TrimSpace(id) != id || !strings.Contains(text, id) {
				t.Errorf("%q", id)
			}
		}
	})
}

func TestOptions(t *testing.T) {
	hosts := hosttest.Hosts{}
	for name, o := range map[string]Options{
		"no hosts":                 {Version: "4.18"},
		"a later version":          {Hosts: hosts, Version: "4.19.0"},
		"another major":            {Hosts: hosts, Version: "5.0.1"},
		"no version":               {Hosts: hosts},
		"another product":          {Hosts: hosts, Version: "5.1"},
		"a package like an option": {Hosts: hosts, Version: "4.18", Packages: []string{"--nogpgcheck"}},
		"a repository with blanks": {Hosts: hosts, Version: "4.18", Repositories: []string{"a b"}},
		"a bad transaction":        {Hosts: hosts, Version: "4.18", Transaction: "a/b"},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
