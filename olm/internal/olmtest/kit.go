// Package olmtest makes the operators, catalogs and Subscriptions of tests.
package olmtest

import (
	"context"
	"encoding/json"
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

// Contents makes a catalog of operators. The first channel named of a package
// is its default channel.
func Contents(lines ...string) *olm.Contents {
	var blobs catalog.Blobs
	channels := map[string]int{} // by package and name
	written := map[string]bool{}
	for _, line := range lines {
		o := ParseOperator(line)
		if !written["package "+o.Package] {
			blobs.Packages = append(blobs.Packages, catalog.PackageBlob{Name: o.Package, DefaultChannel: o.Channels[0]})
		}
		if !written[o.Name] {
			blobs.Bundles = append(blobs.Bundles, catalog.BundleBlob{
				Package: o.Package, Name: o.Name, Image: "registry.example/" + o.Package + ":" + o.Version, Properties: o.Properties,
			})
		}
		written["package "+o.Package], written[o.Name] = true, true
		for _, ch := range o.Channels {
			at, ok := channels[o.Package+"/"+ch]
			if !ok {
				at = len(blobs.Channels)
				channels[o.Package+"/"+ch] = at
				blobs.Channels = append(blobs.Channels, catalog.ChannelBlob{Package: o.Package, Name: ch})
			}
			blobs.Channels[at].Entries = append(blobs.Channels[at].Entries, catalog.ChannelEntry{
				Name: o.Name, Replaces: o.Replaces, Skips: o.Skips, SkipRange: o.SkipRange,
			})
		}
	}
	return catalog.New(blobs).Contents
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
