package olm_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/olm"
)

var update = flag.Bool("update", false, "write the wanted generations of testdata/resolve")

// TestResolveFiles resolves the files of testdata/resolve, archives in the
// format of golang.org/x/tools/txtar. The sections of a file:
//
//	catalog NAME        operators, a line each (see package olmtest); priorities fall from file to file
//	installed           operators in the same form
//	subscriptions       a line each (see parseSub)
//	generation          what the resolution comes to
//	all or nothing      the same with Options.AllOrNothing
//	explain NAME        why the operator is as it is
//
// The last three are wanted; go test -run TestResolveFiles -update writes them.
func TestResolveFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/resolve/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			comment, sections := unpack(string(text))
			s := snapshot(nil, nil)
			s.Catalogs = nil
			got := comment
			for _, section := range sections {
				lines := strings.Split(strings.TrimSpace(section.text), "\n")
				name, rest, _ := strings.Cut(section.name, " ")
				result := section.text
				switch name {
				case "catalog":
					s.Catalogs = append(s.Catalogs, olm.SnapshotCatalog{
						Key: types.NamespacedName{Namespace: "olm", Name: rest}, Priority: -len(s.Catalogs), Contents: contents(t, lines...),
					})
				case "installed":
					s.Installed = installed(lines...)
				case "subscriptions":
					for _, line := range lines {
						s.Subscriptions = append(s.Subscriptions, parseSub(line))
					}
				case "generation":
					result = resolve(t, s, olm.Options{}).String()
				case "all":
					g, err := olm.Resolve(t.Context(), s, olm.Options{AllOrNothing: true})
					if result = fmt.Sprintln(err); err == nil {
						result = g.String()
					}
				case "explain":
					e, err := resolve(t, s, olm.Options{}).Explain(t.Context(), rest)
					if err != nil {
						t.Fatal(err)
					}
					result = e.String()
				default:
					t.Fatalf("unknown section %q", section.name)
				}
				got += "-- " + section.name + " --\n" + strings.TrimRight(result, "\n") + "\n"
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(text), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

type section struct{ name, text string }

// unpack reads an archive: a comment, then sections behind lines "-- NAME --".
func unpack(text string) (comment string, sections []section) {
	for line := range strings.Lines(text) {
		name, isHead := strings.CutPrefix(strings.TrimRight(line, "\n"), "-- ")
		if name, ok := strings.CutSuffix(name, " --"); ok && isHead {
			sections = append(sections, section{name: name})
		} else if len(sections) == 0 {
			comment += line
		} else {
			sections[len(sections)-1].text += line
		}
	}
	return comment, slices.Clip(sections)
}
