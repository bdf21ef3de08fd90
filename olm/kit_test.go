package olm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/olm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The tests write operators in one line each:
//
//	a.v2 X Y -Z >a.v1 ~a.v0 range=<3.0.0 @beta
//
// is version 2.0.0 of package a. It provides the APIs X and Y, requires Z,
// replaces a.v1, skips a.v0, has a skipRange, and is in channel beta (else
// stable). Further: label=l, -label=l, -pkg=p:RANGE, deprecated, and
// prop=TYPE:JSON. Blanks in ranges and JSON are written "_".

const ns = "ops"

type operatorLine struct {
	name, pkg, version string
	channels           []string
	replaces           string
	skips              []string
	skipRange          string
	props              []olm.Property
	provides, requires []string // APIs
}

func parseOperator(line string) operatorLine {
	words := strings.Fields(line)
	o := operatorLine{name: words[0]}
	o.pkg, o.version, _ = strings.Cut(words[0], ".v")
	if o.version != "" && strings.Count(o.version, ".") == 0 {
		o.version += ".0.0"
	}
	value := func(v any) json.RawMessage {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return data
	}
	api := func(kind string) json.RawMessage {
		return value(map[string]string{"group": "g", "version": "v1", "kind": kind})
	}
	o.props = append(o.props, olm.Property{Type: "olm.package", Value: value(map[string]string{"packageName": o.pkg, "version": o.version})})
	for _, w := range words[1:] {
		text := strings.ReplaceAll(w, "_", " ")
		switch {
		case w == "deprecated":
			o.props = append(o.props, olm.Property{Type: "olm.deprecated", Value: json.RawMessage("{}")})
		case strings.HasPrefix(w, "@"):
			o.channels = append(o.channels, w[1:])
		case strings.HasPrefix(w, ">"):
			o.replaces = w[1:]
		case strings.HasPrefix(w, "~"):
			o.skips = append(o.skips, w[1:])
		case strings.HasPrefix(w, "range="):
			o.skipRange = text[len("range="):]
		case strings.HasPrefix(w, "label="):
			o.props = append(o.props, olm.Property{Type: "olm.label", Value: value(map[string]string{"label": w[len("label="):]})})
		case strings.HasPrefix(w, "-label="):
			o.props = append(o.props, olm.Property{Type: "olm.label.required", Value: value(map[string]string{"label": w[len("-label="):]})})
		case strings.HasPrefix(w, "-pkg="):
			pkg, rng, _ := strings.Cut(text[len("-pkg="):], ":")
			o.props = append(o.props, olm.Property{Type: "olm.package.required", Value: value(map[string]string{"packageName": pkg, "versionRange": rng})})
		case strings.HasPrefix(w, "prop="):
			typ, v, _ := strings.Cut(text[len("prop="):], ":")
			o.props = append(o.props, olm.Property{Type: typ, Value: json.RawMessage(v)})
		case strings.HasPrefix(w, "-"):
			o.props = append(o.props, olm.Property{Type: "olm.gvk.required", Value: api(w[1:])})
			o.requires = append(o.requires, w[1:])
		default:
			o.props = append(o.props, olm.Property{Type: "olm.gvk", Value: api(w)})
			o.provides = append(o.provides, w)
		}
	}
	if len(o.channels) == 0 {
		o.channels = []string{"stable"}
	}
	return o
}

// contents makes a catalog of operators. The first channel named of a package
// is its default channel.
func contents(t testing.TB, lines ...string) *olm.Contents {
	t.Helper()
	return readLines(t, lines...)
}

// fatal is what both testing and rapid have.
type fatal interface{ Fatal(args ...any) }

func readLines(t fatal, lines ...string) *olm.Contents {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	type entry struct {
		Name      string   `json:"name"`
		Replaces  string   `json:"replaces,omitempty"`
		Skips     []string `json:"skips,omitempty"`
		SkipRange string   `json:"skipRange,omitempty"`
	}
	var packages []string
	channels := map[string][]string{}
	entries := map[string][]entry{}
	write := func(v any) {
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	written := map[string]bool{}
	for _, line := range lines {
		o := parseOperator(line)
		if !slices.Contains(packages, o.pkg) {
			packages = append(packages, o.pkg)
		}
		for _, ch := range o.channels {
			if !slices.Contains(channels[o.pkg], ch) {
				channels[o.pkg] = append(channels[o.pkg], ch)
			}
			key := o.pkg + "/" + ch
			entries[key] = append(entries[key], entry{o.name, o.replaces, o.skips, o.skipRange})
		}
		if written[o.name] {
			continue
		}
		written[o.name] = true
		write(map[string]any{"schema": "olm.bundle", "package": o.pkg, "name": o.name, "image": "registry.example/" + o.pkg + ":" + o.version, "properties": o.props})
	}
	for _, pkg := range packages {
		write(map[string]any{"schema": "olm.package", "name": pkg, "defaultChannel": channels[pkg][0]})
		for _, ch := range channels[pkg] {
			write(map[string]any{"schema": "olm.channel", "package": pkg, "name": ch, "entries": entries[pkg+"/"+ch]})
		}
	}
	c, err := olm.Read(context.Background(), &buf, "catalog.json", olm.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// installed makes CSVs as operators of a catalog leave them.
func installed(lines ...string) []olm.ClusterServiceVersion {
	var out []olm.ClusterServiceVersion
	for _, line := range lines {
		o := parseOperator(line)
		data, err := json.Marshal(map[string]any{"properties": o.props})
		if err != nil {
			panic(err)
		}
		csv := olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
			Namespace: ns, Name: o.name, Annotations: map[string]string{olm.AnnotationProperties: string(data)},
		}}
		csv.Spec.Version, csv.Spec.Replaces, csv.Status.Phase = o.version, o.replaces, olm.CSVPhaseSucceeded
		out = append(out, csv)
	}
	return out
}

// sub is a Subscription that bears the name of its package. What is
// installed may be empty.
func sub(pkg, installedCSV string, changes ...func(*olm.Subscription)) olm.Subscription {
	s := olm.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: pkg}}
	s.Spec = olm.SubscriptionSpec{Source: "c", SourceNamespace: "olm", Package: pkg, Channel: "stable"}
	s.Status.InstalledCSV = installedCSV
	s.Status.CurrentCSV = installedCSV
	for _, f := range changes {
		f(&s)
	}
	return s
}

func named(name string) func(*olm.Subscription) {
	return func(s *olm.Subscription) { s.Name = name }
}

func channel(name string) func(*olm.Subscription) {
	return func(s *olm.Subscription) { s.Spec.Channel = name }
}

func source(name, namespace string) func(*olm.Subscription) {
	return func(s *olm.Subscription) { s.Spec.Source, s.Spec.SourceNamespace = name, namespace }
}

func startingCSV(name string) func(*olm.Subscription) {
	return func(s *olm.Subscription) { s.Spec.StartingCSV = name }
}

// snapshot of one catalog, c in the global namespace olm.
func snapshot(c *olm.Contents, csvs []olm.ClusterServiceVersion, subs ...olm.Subscription) olm.Snapshot {
	return olm.Snapshot{
		Namespace: ns, GlobalNamespace: "olm",
		Subscriptions:  subs,
		Installed:      csvs,
		OperatorGroups: []olm.OperatorGroup{{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "og"}}},
		Catalogs:       []olm.SnapshotCatalog{{Key: types.NamespacedName{Namespace: "olm", Name: "c"}, Contents: c}},
	}
}

// members are the names of a generation's operators, sorted and joined.
func members(g *olm.Generation) string {
	var names []string
	for _, s := range g.Slots {
		if s.Current != nil {
			names = append(names, s.Current.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func resolve(t testing.TB, s olm.Snapshot, o olm.Options) *olm.Generation {
	t.Helper()
	g, err := olm.Resolve(context.Background(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// outcome is the members, or the error.
func outcome(s olm.Snapshot, o olm.Options) string {
	g, err := olm.Resolve(context.Background(), s, o)
	if err != nil {
		return fmt.Sprintf("error: %v", err)
	}
	return members(g)
}
