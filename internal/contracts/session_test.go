package contracts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// session is a part of a terminal session in a page.
var session = regexp.MustCompile("(?s)```console\n(.*?)```")

// TestSession plays docs/session.md from the clone on, and compares what is printed.
func TestSession(t *testing.T) {
	t.Parallel()
	page := checktest.Get(os.ReadFile(filepath.Join(root, "docs", "session.md")))(t)
	lab := filepath.Join(t.TempDir(), "lab")
	dir := root
	for _, part := range session.FindAllStringSubmatch(string(page), -1) {
		for _, step := range strings.Split("\n"+part[1], "\n$ ")[1:] {
			command, want, _ := strings.Cut(step, "\n")
			args := strings.Fields(strings.ReplaceAll(command, "/tmp/lab", lab))
			switch {
			case args[0] == "git", command == "cd clusterupdate":
				continue
			case args[0] == "cd":
				dir = filepath.Join(dir, args[1])
				continue
			}
			program := exec.CommandContext(t.Context(), args[0], args[1:]...)
			program.Dir = dir
			out, err := program.CombinedOutput()
			if program.ProcessState == nil {
				t.Fatalf("%s: %v", command, err)
			}
			if !matches(want, string(out)) {
				t.Errorf("%s: got\n%s", command, out)
			}
		}
	}
}

// matches reports whether text is what the page shows, in which a line of ... stands
// for any lines.
func matches(shown, text string) bool {
	pattern := regexp.QuoteMeta(strings.TrimSuffix(shown, "\n"))
	pattern = strings.ReplaceAll("\n"+pattern, "\n"+regexp.QuoteMeta("..."), "(\n.*)*?")
	return regexp.MustCompile("^" + pattern + "$").MatchString("\n" + strings.TrimSuffix(text, "\n"))
}
