// Package olmtest makes the operators, catalogs and Subscriptions of tests.
package olmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
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

// NS is the namespace of all of them.
const NS = "ops"

type OperatorLine struct {
	Name, Package, Version string
	Channels               []string
	Replaces               string
	Skips                  []string
	SkipRange              string
	Properties             []olm.Property
	Provides, Requires     []string // APIs
}

func ParseOperator(line string) OperatorLine {
	words := strings.Fields(line)
	o := OperatorLine{Name: words[0]}
	o.Package, o.Version, _ = strings.Cut(words[0], ".v")
	if o.Version != "" && strings.Count(o.Version, ".") == 0 {
		o.Version += ".0.0"
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
	o.Properties = append(o.Properties, olm.Property{Type: "olm.package", Value: value(map[string]string{"packageName": o.Package, "version": o.Version})})
	for _, w := range words[1:] {
		text := strings.ReplaceAll(w, "_", " ")
		switch {
		case w == "deprecated":
			o.Properties = append(o.Properties, olm.Property{Type: "olm.deprecated", Value: json.RawMessage("{}")})
		case strings.HasPrefix(w, "@"):
			o.Channels = append(o.Channels, w[1:])
		case strings.HasPrefix(w, ">"):
			o.Replaces = w[1:]
		case strings.HasPrefix(w, "~"):
			o.Skips = append(o.Skips, w[1:])
		case strings.HasPrefix(w, "range="):
			o.SkipRange = text[len("range="):]
		case strings.HasPrefix(w, "label="):
			o.Properties = append(o.Properties, olm.Property{Type: "olm.label", Value: value(map[string]string{"label": w[len("label="):]})})
		case strings.HasPrefix(w, "-label="):
			o.Properties = append(o.Properties, olm.Property{Type: "olm.label.required", Value: value(map[string]string{"label": w[len("-label="):]})})
		case strings.HasPrefix(w, "-pkg="):
			pkg, rng, _ := strings.Cut(text[len("-pkg="):], ":")
			o.Properties = append(o.Properties, olm.Property{Type: "olm.package.required", Value: value(map[string]string{"packageName": pkg, "versionRange": rng})})
		case strings.HasPrefix(w, "prop="):
			typ, v, _ := strings.Cut(text[len("prop="):], ":")
			o.Properties = append(o.Properties, olm.Property{Type: typ, Value: json.RawMessage(v)})
		case strings.HasPrefix(w, "-"):
			o.Properties = append(o.Properties, olm.Property{Type: "olm.gvk.required", Value: api(w[1:])})
			o.Requires = append(o.Requires, w[1:])
		default:
			o.Properties = append(o.Properties, olm.Property{Type: "olm.gvk", Value: api(w)})
			o.Provides = append(o.Provides, w)
		}
	}
	if len(o.Channels) == 0 {
		o.Channels = []string{"stable"}
	}
	return o
}

// fatal is what both testing and rapid have.
type fatal interface{ Fatal(args ...any) }

// Contents makes a catalog of operators. The first channel named of a package
// is its default channel.
func Contents(t fatal, lines ...string) *olm.Contents {
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
		o := ParseOperator(line)
		if !slices.Contains(packages, o.Package) {
			packages = append(packages, o.Package)
		}
		for _, ch := range o.Channels {
			if !slices.Contains(channels[o.Package], ch) {
				channels[o.Package] = append(channels[o.Package], ch)
			}
			key := o.Package + "/" + ch
			entries[key] = append(entries[key], entry{o.Name, o.Replaces, o.Skips, o.SkipRange})
		}
		if written[o.Name] {
			continue
		}
		written[o.Name] = true
		write(map[string]any{"schema": "olm.bundle", "package": o.Package, "name": o.Name, "image": "registry.example/" + o.Package + ":" + o.Version, "properties": o.Properties})
	}
	for _, pkg := range packages {
		write(map[string]any{"schema": "olm.package", "name": pkg, "defaultChannel": channels[pkg][0]})
		for _, ch := range channels[pkg] {
			write(map[string]any{"schema": "olm.channel", "package": pkg, "name": ch, "entries": entries[pkg+"/"+ch]})
		}
	}
	c, err := catalog.Read(context.Background(), &buf, "catalog.json", catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Contents
}

// Installed makes CSVs as operators of a catalog leave them.
func Installed(lines ...string) []olmapi.ClusterServiceVersion {
	var out []olmapi.ClusterServiceVersion
	for _, line := range lines {
		o := ParseOperator(line)
		data, err := json.Marshal(map[string]any{"properties": o.Properties})
		if err != nil {
			panic(err)
		}
		csv := olmapi.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
			Namespace: NS, Name: o.Name, Annotations: map[string]string{olmapi.AnnotationProperties: string(data)},
		}}
		csv.Spec.Version, csv.Spec.Replaces, csv.Status.Phase = o.Version, o.Replaces, olmapi.CSVPhaseSucceeded
		out = append(out, csv)
	}
	return out
}

// Sub is a Subscription that bears the name of its package. What is
// Installed may be empty.
func Sub(pkg, installedCSV string, changes ...func(*olmapi.Subscription)) olmapi.Subscription {
	s := olmapi.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: NS, Name: pkg}}
	s.Spec = olmapi.SubscriptionSpec{Source: "c", SourceNamespace: "olm", Package: pkg, Channel: "stable"}
	s.Status.InstalledCSV = installedCSV
	s.Status.CurrentCSV = installedCSV
	for _, f := range changes {
		f(&s)
	}
	return s
}

func Named(name string) func(*olmapi.Subscription) {
	return func(s *olmapi.Subscription) { s.Name = name }
}

func Channel(name string) func(*olmapi.Subscription) {
	return func(s *olmapi.Subscription) { s.Spec.Channel = name }
}

func Source(name, namespace string) func(*olmapi.Subscription) {
	return func(s *olmapi.Subscription) { s.Spec.Source, s.Spec.SourceNamespace = name, namespace }
}

// Snapshot of one catalog, c in the global namespace olm.
func Snapshot(c *olm.Contents, csvs []olmapi.ClusterServiceVersion, subs ...olmapi.Subscription) olm.Snapshot {
	return olm.Snapshot{
		Namespace: NS, GlobalNamespace: "olm",
		Subscriptions:  subs,
		Installed:      csvs,
		OperatorGroups: []olmapi.OperatorGroup{{ObjectMeta: metav1.ObjectMeta{Namespace: NS, Name: "og"}}},
		Catalogs:       []olm.SnapshotCatalog{{Key: types.NamespacedName{Namespace: "olm", Name: "c"}, Contents: c}},
	}
}

func Resolve(t testing.TB, s olm.Snapshot, o olm.Options) *olm.Generation {
	t.Helper()
	g, err := olm.Resolve(context.Background(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// NewCSV makes a ClusterServiceVersion without an annotation.
func NewCSV(name string, changes ...func(*olmapi.ClusterServiceVersion)) olmapi.ClusterServiceVersion {
	c := olmapi.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: NS, Name: name}}
	c.Status.Phase = olmapi.CSVPhaseSucceeded
	for _, f := range changes {
		f(&c)
	}
	return c
}

func WithAnnotation(key, value string) func(*olmapi.ClusterServiceVersion) {
	return func(c *olmapi.ClusterServiceVersion) {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[key] = value
	}
}

// Maxed is an operator whose annotation has these values of
// olm.maxOpenShiftVersion.
func Maxed(name string, values ...string) olmapi.ClusterServiceVersion {
	props := []string{`{"type":"olm.label","value":{"label":"x"}}`}
	for _, v := range values {
		props = append(props, `{"type":"olm.maxOpenShiftVersion","value":`+v+`}`)
	}
	return NewCSV(name, WithAnnotation(olmapi.AnnotationProperties, `{"properties":[`+strings.Join(props, ",")+`]}`))
}
