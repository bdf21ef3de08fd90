package redact

import "strings"

// Value returns a value in which credentials are hidden. It shares nothing that
// has changed with the value, and copies maps and lists.
func (r *Redactor) Value(value any) any {
	return walker{r: r, anchors: true}.value("", value)
}

// Object is [Redactor.Value] of a whole object, by its kind: of a Secret all is
// hidden but its metadata, and of a CustomResourceDefinition only what is the
// example or default of a credential.
func (r *Redactor) Object(object map[string]any) map[string]any {
	return walker{r: r, anchors: true}.object(object)
}

// Recorded is [Redactor.Object] for programs: texts alone are hidden, one by one,
// so that all has the type that it had; so are URLs' queries and fragments, but
// not below status, where operators say where to read on.
func (r *Redactor) Recorded(object map[string]any) map[string]any {
	return walker{r: r, typed: true, anchors: true}.object(object)
}

// walker walks through an object.
type walker struct {
	r *Redactor
	// typed keeps the types of what is hidden.
	typed bool
	// anchors leaves words behind the # of a URL, by which objects refer to a part
	// of a page.
	anchors bool
	// mild leaves queries and fragments of URLs.
	mild bool
}

// plainParts are those of a Secret that hold no secret.
func plainPart(part string) bool {
	return part == "apiVersion" || part == "kind" || part == "metadata" || part == "type" || part == "immutable"
}

// kindOf returns group and kind of an object.
func kindOf(object map[string]any) (group, kind string) {
	version, _ := object["apiVersion"].(string)
	group, _, found := strings.Cut(version, "/")
	if !found {
		group = ""
	}
	kind, _ = object["kind"].(string)
	return group, kind
}

func isSecret(group, kind string) bool { return group == "" && kind == "Secret" }

func isDefinition(group, kind string) bool {
	return group == "apiextensions.k8s.io" && kind == "CustomResourceDefinition"
}

func (w walker) object(object map[string]any) map[string]any {
	group, kind := kindOf(object)
	out := make(map[string]any, len(object))
	for part, v := range object {
		switch {
		case isSecret(group, kind) && !plainPart(part):
			out[part] = w.hideEach(v)
		case isDefinition(group, kind) && part == "spec":
			out[part] = w.schema(v, false)
		case part == "apiVersion" || part == "kind":
			out[part] = v
		case part == "status" && w.typed:
			mild := w
			mild.mild = true
			out[part] = mild.value(part, v)
		default:
			out[part] = w.under("", part, object, v)
		}
	}
	return out
}

// hideEach hides the values of a Secret key by key.
func (w walker) hideEach(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return w.hidden(v)
	}
	out := make(map[string]any, len(m))
	for key, e := range m {
		out[key] = w.hidden(e)
	}
	return out
}

// under returns what stands under a key of a map. parent is the name of the map,
// or of the list that it is in.
func (w walker) under(parent, key string, in map[string]any, v any) any {
	switch {
	case key == "value" && namedHides(in):
		return w.hidden(v)
	case !hides(parent, key) || refers(key, v) || key == "value" && harmless(in):
		return w.value(key, v)
	}
	return w.hidden(v)
}

// refers reports what stands under a credential's key and only tells where it is:
// the Secret of a volume, or a reference.
func refers(key string, v any) bool {
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 {
		return false
	}
	if strings.EqualFold(key, "secret") {
		return true
	}
	for field := range m {
		if !isReference(field) {
			return false
		}
	}
	return true
}

// isReference reports a field of a reference.
func isReference(field string) bool {
	return field == "name" || field == "namespace" || field == "secretName" || field == "optional"
}

// harmless reports a header that has nothing to hide.
func harmless(header map[string]any) bool {
	name, _ := header["name"].(string)
	switch strings.ToLower(name) {
	case "host", "accept", "accept-encoding", "accept-language", "content-type", "user-agent":
		return true
	}
	return false
}

// value returns a value without credentials; name is that of the field or key.
func (w walker) value(name string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			out[key] = w.under(name, key, v, e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			previous := ""
			if i > 0 {
				previous, _ = v[i-1].(string)
			}
			if s, ok := e.(string); ok && isFlag(previous) && !strings.HasPrefix(s, "--") && !isFile(s) {
				out[i] = w.hidden(s)
			} else {
				out[i] = w.value(name, e)
			}
		}
		return out
	case string:
		return w.text(v)
	}
	return value
}

// hidden stands for a value.
func (w walker) hidden(value any) any {
	if !w.typed {
		return w.r.Hidden(value)
	}
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			out[key] = w.hidden(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = w.hidden(e)
		}
		return out
	case string:
		if v == "" {
			return v
		}
		return w.r.Hidden(v)
	}
	return value
}

// SchemaField returns a field of a schema without credentials: its path, and its
// value. That a property may hold one is none; its default and its example are.
func (r *Redactor) SchemaField(path string, value any) (string, any) {
	shown, credential := r.Path(path)
	steps := Split(path)
	last := Name(steps[len(steps)-1])
	w := walker{r: r, anchors: true}
	switch {
	case value == nil:
		return shown, nil
	case credential && isExample(last):
		return shown, w.hidden(value)
	case isExample(last):
		return shown, w.value(last, value)
	case last == "description":
		return shown, value
	}
	return shown, w.schema(value, credential)
}

func (w walker) schema(value any, credential bool) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			_, isText := e.(string)
			switch {
			case isText && key == "description":
				out[key] = e
			case isExample(key) && credential:
				out[key] = w.hidden(e)
			case isExample(key):
				out[key] = w.value(key, e)
			default:
				out[key] = w.schema(e, credential || IsCredential(key))
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = w.schema(v[i], credential)
		}
		return out
	case string:
		w.mild = true // links to read on
		return w.text(v)
	}
	return value
}

func isExample(name string) bool { return name == "default" || name == "example" }
