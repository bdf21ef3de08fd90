package dump

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const machineGroup = "machineconfiguration.openshift.io"

// redact takes the secrets out of an object: those of kinds that oc adm inspect
// knows as it does, and what the redactor finds.
func (r *recorder) redact(gk schema.GroupKind, u *unstructured.Unstructured) {
	switch gk {
	case schema.GroupKind{Kind: "Secret"}:
		emptyAnnotations(u)
		elide(u.Object, "data", func(v string) int {
			plain, err := base64.StdEncoding.DecodeString(v)
			if err != nil {
				return len(v)
			}
			return len(plain)
		})
		elide(u.Object, "stringData", func(v string) int { return len(v) })
	case proxyKind: // passwords in its spec are those of r.proxies
		emptyAnnotations(u)
	case schema.GroupKind{Group: "route.openshift.io", Kind: "Route"}:
		emptyAnnotations(u)
		spec, _ := u.Object["spec"].(map[string]any)
		empty(spec["tls"], "key")
	case schema.GroupKind{Group: machineGroup, Kind: "ControllerConfig"}:
		emptyAnnotations(u)
		empty(u.Object["spec"], "internalRegistryPullSecret")
	case schema.GroupKind{Group: machineGroup, Kind: "MachineConfig"}:
		if !r.o.FileContents {
			emptyAnnotations(u)
			emptyFiles(u)
		}
	}
	if len(r.proxies) > 0 {
		replacer := strings.NewReplacer(r.proxies...)
		u.Object, _ = replaced(u.Object, replacer).(map[string]any)
	}
	if gk == (schema.GroupKind{Kind: "Secret"}) {
		return // only lengths are left
	}
	files := takeFiles(u)
	u.Object = r.hider.Recorded(u.Object)
	if files != nil {
		setFiles(u, files)
	}
}

// emptyAnnotations empties those that repeat secrets.
func emptyAnnotations(u *unstructured.Unstructured) {
	m, _ := u.Object["metadata"].(map[string]any)
	for _, name := range secretAnnotations {
		empty(m["annotations"], name)
	}
}

// empty empties a text, if it is there.
func empty(in any, name string) {
	if m, ok := in.(map[string]any); ok {
		if _, there := m[name]; there {
			m[name] = ""
		}
	}
}

// elide puts lengths in the place of values.
func elide(object map[string]any, part string, length func(string) int) {
	values, _ := object[part].(map[string]any)
	for key, v := range values {
		s, _ := v.(string)
		if !slices.Contains(publicKeys, key) && !elided(s) {
			values[key] = fmt.Sprintf("%d bytes long", length(s))
		}
	}
}

// takeFiles takes the files of a MachineConfig out, which stay as they are; nil if
// it has none.
func takeFiles(u *unstructured.Unstructured) any {
	if u.GroupVersionKind().Group != machineGroup {
		return nil
	}
	storage, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "config", "storage")
	m, _ := storage.(map[string]any)
	files := m["files"]
	delete(m, "files")
	return files
}

func setFiles(u *unstructured.Unstructured, files any) {
	storage, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "config", "storage")
	storage.(map[string]any)["files"] = files
}

// emptyFiles empties the contents of the files of a MachineConfig, and what is
// appended to them.
func emptyFiles(u *unstructured.Unstructured) {
	all, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "config", "storage", "files")
	files, _ := all.([]any)
	for _, f := range files {
		file, _ := f.(map[string]any)
		empty(file["contents"], "source")
		more, _ := file["append"].([]any)
		for _, m := range more {
			empty(m, "source")
		}
	}
}

// masked is an address without its password.
func masked(address string) string {
	if has, taken := password(address); !has || taken {
		return address
	}
	scheme, rest, found := strings.Cut(address, "://")
	if found {
		scheme += "://"
	} else {
		scheme, rest = "", address
	}
	at := strings.LastIndex(rest, "@")
	if slash := strings.IndexAny(rest, "/?#"); slash >= 0 && strings.Contains(rest[:slash], "@") {
		at = strings.LastIndex(rest[:slash], "@")
	}
	user, _, _ := strings.Cut(rest[:at], ":")
	return scheme + user + ":****" + rest[at:]
}

// replaced is a tree with other texts.
func replaced(v any, by *strings.Replacer) any {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			v[key] = replaced(e, by)
		}
	case []any:
		for i, e := range v {
			v[i] = replaced(e, by)
		}
	case string:
		return by.Replace(v)
	}
	return v
}
