package dump

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/yamljson"
)

// object is one object as a file has it. The JSON text is a fraction of the size of
// the maps that it stands for, so these are made when somebody asks.
type object struct {
	gvk      schema.GroupVersionKind
	key      types.NamespacedName
	uid      string
	revision string // metadata.resourceVersion
	text     string

	path     string
	document int
	// latest is the latest time of the object, and moved the latest transition
	// of its conditions.
	latest, moved time.Time
	secrecy       secrecy

	once   sync.Once
	shared *clusterapi.Object
	err    error
}

// content returns the generic object, a new one each time.
func (o *object) content() (map[string]any, error) {
	content, err := contentOf(o.text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.path, err)
	}
	// An item of a typed list need not say these.
	content["apiVersion"], content["kind"] = o.gvk.GroupVersion().String(), o.gvk.Kind
	return content, nil
}

// share returns the object to look at, the same one each time.
func (o *object) share() (*clusterapi.Object, error) {
	o.once.Do(func() {
		content, err := o.content()
		if err != nil {
			o.err = err
			return
		}
		o.shared = clusterapi.NewObject(&unstructured.Unstructured{Object: content})
	})
	return o.shared, o.err
}

// contentOf returns the value of a JSON text that is a map.
func contentOf(text string) (content map[string]any, err error) {
	if content, ok := yamljson.Object(text); ok {
		return content, nil
	}
	if err := utiljson.Unmarshal([]byte(text), &content); err != nil {
		return nil, err
	}
	if content == nil {
		return nil, errors.New("it is null")
	}
	return content, nil
}

// readObject reads what identifies an object. of is the kind that its list gives
// it, if it does not say one itself.
func readObject(text string, of schema.GroupVersionKind) (*object, error) {
	o := &object{text: text}
	var apiVersion, kind, metadata, status string
	for key, value := range fields(text) {
		switch key {
		case "apiVersion":
			apiVersion = value
		case "kind":
			kind = value
		case "metadata":
			metadata = value
		case "status":
			status = value
		}
	}
	version := of.GroupVersion().String()
	if of.Kind == "" {
		version = ""
	}
	var err error
	version, err = identity("apiVersion", apiVersion, version)
	if err != nil {
		return nil, err
	}
	gv, err := schema.ParseGroupVersion(version)
	if err == nil && gv.Version == "" {
		err = errors.New("it does not say a version")
	}
	if err != nil {
		return nil, fmt.Errorf("apiVersion: %w", err)
	}
	name, err := identity("kind", kind, of.Kind)
	if err != nil {
		return nil, err
	}
	o.gvk = gv.WithKind(name)
	if err := o.readMetadata(metadata); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if o.gvk.Kind == "Secret" || o.gvk.Kind == "Proxy" || o.gvk.Kind == "Route" || strings.Contains(metadata, `":""`) {
		o.secrecy = secrecyOf(o.gvk.GroupKind(), text)
	}
	for condition := range elements(field(status, "conditions")) {
		for key, value := range fields(condition) {
			switch key {
			case "lastTransitionTime":
				o.moved = latest(o.moved, value)
			case "lastHeartbeatTime", "lastProbeTime", "lastUpdateTime":
				o.latest = latest(o.latest, value)
			}
		}
	}
	if o.moved.After(o.latest) {
		o.latest = o.moved
	}
	return o, nil
}

func (o *object) readMetadata(metadata string) (err error) {
	var name, namespace string
	for key, value := range fields(metadata) {
		switch key {
		case "name":
			name = value
		case "namespace":
			namespace = value
		case "uid":
			o.uid, _ = textOf(value)
		case "resourceVersion":
			o.revision, _ = textOf(value)
		case "creationTimestamp":
			o.latest = latest(o.latest, value)
		case "managedFields":
			for entry := range elements(value) {
				o.latest = latest(o.latest, field(entry, "time"))
			}
		}
	}
	o.key.Name, err = identity("metadata.name", name, "")
	if err != nil {
		return err
	}
	if namespace == "" || namespace == "null" || namespace == `""` {
		return nil
	}
	o.key.Namespace, err = identity("metadata.namespace", namespace, "")
	return err
}

// identity reads a string that identifies an object. If it is missing, it is other,
// if that is not empty.
func identity(what, value, other string) (string, error) {
	if value == "" || value == "null" || value == `""` {
		if other != "" {
			return other, nil
		}
		return "", fmt.Errorf("%s is missing", what)
	}
	text, ok := textOf(value)
	if !ok {
		return "", fmt.Errorf("%s is %s, not a string: it must be quoted in YAML", what, bounded.Text(value, 64))
	}
	return text, nil
}

// latest returns the later one of a time and a JSON string that has one.
func latest(t time.Time, value string) time.Time {
	text, ok := textOf(value)
	if !ok || text == "" {
		return t
	}
	if other, err := time.Parse(time.RFC3339Nano, text); err == nil && other.After(t) {
		return other
	}
	return t
}

var namedKind = regexp.MustCompile(`(?m)^[ -]*["']?kind["']?: *["']?([A-Za-z0-9]+)`)

// namedKinds finds what might be kinds in a text that cannot be decoded.
func namedKinds(text []byte) []string {
	const most = 1000
	var out []string
	seen := map[string]bool{}
	for _, m := range namedKind.FindAllSubmatch(text, most) {
		if kind := strings.TrimSuffix(string(m[1]), "List"); kind != "" && !seen[kind] {
			seen[kind] = true
			out = append(out, kind)
		}
	}
	return out
}
