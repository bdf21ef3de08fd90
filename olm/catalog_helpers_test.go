package olm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/clusterupdate/clusterupdate/olm"
)

// readCatalog reads a stream with the default options.
func readCatalog(t testing.TB, text string) *olm.Contents {
	t.Helper()
	c, err := olm.Read(t.Context(), strings.NewReader(text), "catalog", olm.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// channelCatalog is a catalog of package p with channel c, whose entries are
// written as "name", "name>replaced", "name>replaced!skipped!skipped" or, with
// a range at the end, "name>replaced!skipped@range".
func channelCatalog(entries ...string) string {
	var s strings.Builder
	fmt.Fprintln(&s, `{"schema":"olm.package","name":"p","defaultChannel":"c"}`)
	var list []string
	for i, e := range entries {
		e, skipRange, _ := strings.Cut(e, "@")
		e, skips, hasSkips := strings.Cut(e, "!")
		name, replaces, _ := strings.Cut(e, ">")
		text := fmt.Sprintf(`{"name":%q`, name)
		if replaces != "" {
			text += fmt.Sprintf(`,"replaces":%q`, replaces)
		}
		if hasSkips {
			text += `,"skips":["` + strings.Join(strings.Split(skips, "!"), `","`) + `"]`
		}
		if skipRange != "" {
			text += fmt.Sprintf(`,"skipRange":%q`, skipRange)
		}
		list = append(list, text+"}")
		if strings.Count(strings.Join(list, ""), fmt.Sprintf(`"name":%q`, name)) == 1 {
			fmt.Fprintf(&s, `{"schema":"olm.bundle","package":"p","name":%q,"image":"r/%s","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.%d"}}]}`+"\n", name, strings.ToLower(name), i)
		}
	}
	fmt.Fprintf(&s, `{"schema":"olm.channel","package":"p","name":"c","entries":[%s]}`+"\n", strings.Join(list, ","))
	return s.String()
}

func entryNames(entries []*olm.Entry) []string {
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names
}

func problemTexts(problems []olm.Problem) []string {
	var texts []string
	for _, p := range problems {
		texts = append(texts, string(p.Rule)+": "+p.Message)
	}
	return texts
}

func property(kind, value string) olm.Property {
	return olm.Property{Type: kind, Value: []byte(value)}
}

func version(t testing.TB, text string) *semver.Version {
	t.Helper()
	v, err := semver.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return &v
}
