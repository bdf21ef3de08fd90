package dump

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/redact"
)

// RecordOptions describes what [Record] writes. The zero value works.
type RecordOptions struct {
	// Kinds are written beside those of [Kinds].
	Kinds []schema.GroupVersionKind
	// FileContents keeps the contents of files in MachineConfigs, which may be
	// secret. They are emptied by default.
	FileContents bool
	// Clock gives the times in the file timestamp; nil means one that stays at the
	// time of the reader (see [clusterapi.TimeOf]), if it has one, else the real one.
	Clock clock.PassiveClock
}

// Record writes what r has of the kinds that this library reads into a new folder,
// with its alerts, in the layout of oc adm inspect, for [Open]: that answers as r did
// for these kinds, and assumes what r does. They are written to another folder beside dir, which gets its name when
// it is complete; after an error nothing is left.
//
// A kind that is not served or that the caller may not list is not collected, and
// is listed in the file problems.txt. So does one that r, itself a recording, has
// in part: what it has is written.
//
// Secrets are taken out: the values of Secrets but for certificates, as oc adm
// inspect does, with the annotations that repeat them; the keys of Routes; the
// passwords of proxies, wherever their addresses are; the pull secret in
// ControllerConfigs; the contents of files in MachineConfigs. So is all else that
// looks like a credential: variables, arguments and headers of workloads, keys and
// kubeconfigs in ConfigMaps, hashes of passwords, users of URLs, and outside of the
// status queries of URLs. (redacted-12 digits) is in its place, the same for equal
// values of a recording.
//
// Errors are those of ctx, of r and of the file system, and fs.ErrExist where dir
// exists. Several calls may run at a time.
func Record(ctx context.Context, r clusterapi.Reader, dir string, o RecordOptions) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("recording to %s: %w", dir, err)
		}
	}()
	if now := clusterapi.TimeOf(r); o.Clock == nil && !now.IsZero() {
		o.Clock = stopped(now)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	dir = filepath.Clean(dir)
	if err := absent(dir); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) // nothing, once it is renamed
	rec := &recorder{reader: r, o: o, dir: tmp, definitions: make(map[schema.GroupKind]definition), namespaces: make(map[string]bool), hider: redact.New(nil)}
	if err := rec.run(ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := absent(dir); err != nil { // or some systems would replace an empty folder
		return err
	}
	return os.Rename(tmp, dir)
}

// stopped is a clock on which no time passes.
type stopped time.Time

func (s stopped) Now() time.Time                  { return time.Time(s) }
func (s stopped) Since(t time.Time) time.Duration { return time.Time(s).Sub(t) }

func absent(dir string) error {
	switch _, err := os.Lstat(dir); {
	case err == nil:
		return fs.ErrExist
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// recorder writes one recording.
type recorder struct {
	reader      clusterapi.Reader
	o           RecordOptions
	dir         string
	definitions map[schema.GroupKind]definition
	namespaces  map[string]bool // that are known
	proxies     []string        // addresses with a password, and without it
	hider       *redact.Redactor
	kinds       []recordedKind
	problems    []string
}

// definition is what a CustomResourceDefinition says about its kind.
type definition struct {
	plural     string
	namespaced bool
}

var (
	definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	proxyKind      = schema.GroupKind{Group: "config.openshift.io", Kind: "Proxy"}
)

// timeFormat is the format of time.Time.String.
const timeFormat = "2006-01-02 15:04:05.999999999 -0700 MST"

func (r *recorder) run(ctx context.Context) error {
	begun := r.o.Clock.Now()
	for _, versions := range r.wanted() {
		if err := r.record(ctx, versions); err != nil {
			return err
		}
	}
	if len(r.kinds) == 0 {
		return fmt.Errorf("no kind could be read: %s", strings.Join(r.problems, "; "))
	}
	if err := r.discovery(); err != nil {
		return err
	}
	data, err := json.MarshalIndent(recordedKinds{FormatVersion: kindsVersion, Kinds: r.kinds}, "", "  ")
	if err != nil {
		return err
	}
	if err := r.write(string(data)+"\n", "kinds.json"); err != nil {
		return err
	}
	if err := r.alerts(ctx); err != nil {
		return err
	}
	if len(r.problems) > 0 {
		if err := r.write(strings.Join(r.problems, "\n")+"\n", "problems.txt"); err != nil {
			return err
		}
	}
	lines := ""
	for _, t := range []time.Time{begun, r.o.Clock.Now()} {
		lines += t.Format(timeFormat) + "\n"
	}
	return r.write(lines, "timestamp")
}

// alerts writes the alerts, if the reader has some, as the monitoring answers.
func (r *recorder) alerts(ctx context.Context) error {
	alerts, err := clusterapi.AlertsOf(ctx, r.reader)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, clusterapi.ErrNotCollected):
		return nil
	case err != nil:
		r.problems = append(r.problems, "alerts: "+strings.ReplaceAll(err.Error(), "\n", " "))
		return nil
	}
	var answer struct {
		Data struct {
			Alerts []clusterapi.Alert `json:"alerts"`
		} `json:"data"`
	}
	answer.Data.Alerts = alerts
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	var content map[string]any
	if err := json.Unmarshal(text, &content); err != nil {
		return err
	}
	text, err = json.Marshal(r.hider.Recorded(content))
	if err != nil {
		return err
	}
	return r.write(string(text)+"\n", "monitoring", "prometheus", "alerts.json")
}

// wanted are the kinds in the order in which they are read, with their versions:
// definitions, which have the names of further resources, then namespaces, and proxies,
// whose passwords occur again in further objects.
func (r *recorder) wanted() [][]schema.GroupVersionKind {
	var out [][]schema.GroupVersionKind
	for _, gvk := range slices.Concat(Kinds(), r.o.Kinds) {
		i := slices.IndexFunc(out, func(k []schema.GroupVersionKind) bool { return k[0].GroupKind() == gvk.GroupKind() })
		switch {
		case i < 0:
			out = append(out, []schema.GroupVersionKind{gvk})
		case !slices.Contains(out[i], gvk):
			out[i] = append(out[i], gvk)
		}
	}
	first := []schema.GroupKind{definitionKind, namespaceKind, proxyKind}
	place := func(k []schema.GroupVersionKind) int {
		if i := slices.Index(first, k[0].GroupKind()); i >= 0 {
			return i
		}
		return len(first)
	}
	slices.SortStableFunc(out, func(a, b []schema.GroupVersionKind) int { return place(a) - place(b) })
	return out
}

// record reads and writes a kind in the first of its versions that is served.
func (r *recorder) record(ctx context.Context, versions []schema.GroupVersionKind) error {
	var list *unstructured.UnstructuredList
	var err error
	var gvk schema.GroupVersionKind
	for _, gvk = range versions {
		list, err = r.reader.List(ctx, gvk, clusterapi.ListOptions{})
		if !meta.IsNoMatchError(err) {
			break
		}
	}
	if fault := ctx.Err(); fault != nil {
		return fault
	}
	missing := errors.Is(err, clusterapi.ErrNotCollected)
	if err != nil {
		if !missing && !meta.IsNoMatchError(err) && !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("listing %s: %w", gvk.Kind, err)
		}
		r.problems = append(r.problems, fmt.Sprintf("%s: %s", gvk.GroupKind(), strings.ReplaceAll(err.Error(), "\n", " ")))
	}
	switch {
	case list == nil && err == nil:
		return fmt.Errorf("listing %s: neither objects nor an error", gvk.Kind)
	case list == nil || err != nil && len(list.Items) == 0:
		return nil
	}
	k := r.describe(gvk, list.Items)
	k.Whole = err == nil
	k.Assumed = k.Whole && clusterapi.Assumed(r.reader, gvk)
	if partial := (*PartialError)(nil); errors.As(err, &partial) && partial.AllKnown && k.Namespaced {
		for _, item := range list.Items {
			r.namespaces[item.GetNamespace()] = true
		}
		for ns := range r.namespaces {
			if !slices.Contains(partial.Namespaces, ns) {
				k.Namespaces = append(k.Namespaces, ns)
			}
		}
		slices.Sort(k.Namespaces)
	}
	for i := range list.Items {
		r.take(gvk.GroupKind(), &list.Items[i])
	}
	r.kinds = append(r.kinds, k)
	return r.writeKind(ctx, gvk, k, list.Items)
}

// describe describes how a kind is called and whether it is namespaced.
func (r *recorder) describe(gvk schema.GroupVersionKind, items []unstructured.Unstructured) recordedKind {
	gk := gvk.GroupKind()
	k := recordedKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Resource: guess(gk).Resource, Namespaced: builtins().namespaced[gk]}
	if d, ok := r.definitions[gk]; ok {
		k.Resource, k.Namespaced = d.plural, d.namespaced
	}
	k.Namespaced = k.Namespaced || slices.ContainsFunc(items, func(u unstructured.Unstructured) bool { return u.GetNamespace() != "" })
	return k
}

// take learns from an object what the kinds after it need, and takes its secrets
// out.
func (r *recorder) take(gk schema.GroupKind, u *unstructured.Unstructured) {
	switch gk {
	case definitionKind:
		group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
		plural, _, _ := unstructured.NestedString(u.Object, "spec", "names", "plural")
		scope, _, _ := unstructured.NestedString(u.Object, "spec", "scope")
		if kind != "" && plural != "" {
			r.definitions[schema.GroupKind{Group: group, Kind: kind}] = definition{plural, scope == "Namespaced"}
		}
	case namespaceKind:
		r.namespaces[u.GetName()] = true
	case proxyKind:
		for _, part := range []string{"spec", "status"} {
			for _, name := range []string{"httpProxy", "httpsProxy"} {
				address, _, _ := unstructured.NestedString(u.Object, part, name)
				if masked := masked(address); masked != address && !slices.Contains(r.proxies, address) {
					r.proxies = append(r.proxies, address, masked)
				}
			}
		}
	}
	r.redact(gk, u)
}

// writeKind writes the objects of a kind, each namespace's into a file.
func (r *recorder) writeKind(ctx context.Context, gvk schema.GroupVersionKind, k recordedKind, items []unstructured.Unstructured) error {
	group := cmp.Or(gvk.Group, "core")
	byNamespace := make(map[string][]any)
	var names []string
	for i := range items {
		if err := ctx.Err(); err != nil {
			return err
		}
		u := &items[i]
		u.SetGroupVersionKind(gvk)
		at := []string{clusterFolder, group, k.Resource, u.GetName() + ".yaml"}
		switch ns := u.GetNamespace(); {
		case ns != "":
			if byNamespace[ns] == nil {
				names = append(names, ns)
			}
			byNamespace[ns] = append(byNamespace[ns], u.Object)
			continue
		case gvk.GroupKind() == namespaceKind:
			at = []string{namespaceFolder, u.GetName(), u.GetName() + ".yaml"}
		}
		if err := r.writeYAML(u.Object, at...); err != nil {
			return err
		}
	}
	list := func(objects []any) map[string]any {
		return map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind + "List", "metadata": map[string]any{}, "items": objects}
	}
	if strings.HasSuffix(gvk.Group, "config.openshift.io") && !k.Namespaced { // where other programs look for them
		all := make([]any, len(items))
		for i := range items {
			all[i] = items[i].Object
		}
		if err := r.writeYAML(list(all), clusterFolder, group, k.Resource+".yaml"); err != nil {
			return err
		}
	}
	slices.Sort(names)
	for _, ns := range names {
		if err := r.writeYAML(list(byNamespace[ns]), namespaceFolder, ns, group, k.Resource+".yaml"); err != nil {
			return err
		}
	}
	return nil
}

// discovery writes which of the kinds are served.
func (r *recorder) discovery() error {
	core, named := []apidiscovery.APIGroupDiscovery{}, []apidiscovery.APIGroupDiscovery{}
	for _, k := range r.kinds {
		list := &named
		if k.Group == "" {
			list = &core
		}
		g := slices.IndexFunc(*list, func(g apidiscovery.APIGroupDiscovery) bool { return g.Name == k.Group })
		if g < 0 {
			g = len(*list)
			*list = append(*list, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: k.Group}})
		}
		group := &(*list)[g]
		v := slices.IndexFunc(group.Versions, func(v apidiscovery.APIVersionDiscovery) bool { return v.Version == k.Version })
		if v < 0 {
			v = len(group.Versions)
			group.Versions = append(group.Versions, apidiscovery.APIVersionDiscovery{Version: k.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent})
		}
		scope := apidiscovery.ScopeCluster
		if k.Namespaced {
			scope = apidiscovery.ScopeNamespace
		}
		group.Versions[v].Resources = append(group.Versions[v].Resources, apidiscovery.APIResourceDiscovery{
			Resource: k.Resource, SingularResource: strings.ToLower(k.Kind), Scope: scope, Verbs: []string{"get", "list"},
			ResponseKind: &metav1.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind},
		})
	}
	for name, items := range map[string][]apidiscovery.APIGroupDiscovery{"aggregated-discovery-api.yaml": core, "aggregated-discovery-apis.yaml": named} {
		if len(items) == 0 {
			continue
		}
		list := &apidiscovery.APIGroupDiscoveryList{Items: items}
		list.APIVersion, list.Kind = "apidiscovery.k8s.io/v2", "APIGroupDiscoveryList"
		if err := r.writeYAML(list, name); err != nil {
			return err
		}
	}
	return nil
}

func (r *recorder) writeYAML(v any, at ...string) error {
	data, err := json.Marshal(v)
	if err == nil {
		data, err = yaml.JSONToYAML(escaped(data))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(at...), err)
	}
	return r.write("---\n"+string(data), at...)
}

// escaped is JSON without the characters that it may have as they are and YAML
// may not, or takes for the end of a line.
func escaped(data []byte) []byte {
	special := func(c rune) bool { return c >= 0x7f && c <= 0x9f || c == 0xfeff || c >= 0xfff0 && c <= 0xffff }
	if !bytes.ContainsFunc(data, special) {
		return data
	}
	var out []byte
	for _, c := range string(data) {
		if special(c) {
			out = fmt.Appendf(out, "\\u%04x", c)
		} else {
			out = utf8.AppendRune(out, c)
		}
	}
	return out
}

// write makes a file. Names that would lead elsewhere are errors.
func (r *recorder) write(text string, at ...string) error {
	for _, part := range at {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "/\\\x00") {
			return fmt.Errorf("%q cannot be the name of a file", part)
		}
	}
	name := filepath.Join(append([]string{r.dir}, at...)...)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o600)
}
