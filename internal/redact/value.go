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
	// typed keeps the types of hidden values.
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
	return eachOf(object, func(part string, v any) any {
		switch {
		case isSecret(group, kind) && !plainPart(part):
			return w.hideEach(v)
		case isDefinition(group, kind) && part == "spec":
			return w.schema(v, false)
		case part == "apiVersion" || part == "kind":
			return v
		case part == "status" && w.typed:
			mild := w
			mild.mild = true
			return mild.value(part, v)
		}
		return w.under("", part, object, v)
	})
}

// eachOf returns a copy of a map with what f makes of each element.
func eachOf(in map[string]any, f func(key string, e any) any) map[string]any {
	out := make(map[string]any, len(in))
	for key, e := range in {
		out[key] = f(key, e)
	}
	return out
}

// each is eachOf for a map or a list, whose elements have no key; any other value
// stays.
func each(value any, f func(key string, e any) any) any {
	switch v := value.(type) {
	case map[string]any:
		return eachOf(v, f)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = f("", e)
		}
		return out
	}
	return value
}

// hideEach hides the values of a Secret key by key.
func (w walker) hideEach(v any) any {
	if m, ok := v.(map[string]any); ok {
		return eachOf(m, func(_ string, e any) any { return w.hidden(e) })
	}
	return w.hidden(v)
}

// under returns the value of a key of a map. parent is the name of the map, or of
// the list that it is in.
func (w walker) under(parent, key string, in map[string]any, v any) any {
	switch {
	case key == "value" && namedHides(in):
		return w.hidden(v)
	case !hides(parent, key) || refers(key, v) || key == "value" && harmless(in):
		return w.value(key, v)
	}
	return w.hidden(v)
}

// refers reports a value that is under a credential's key and only says where the
// credential is: the Secret of a volume, or a reference.
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

// value returns a value without credentials; name is the field's or key's.
func (w walker) value(name string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		return eachOf(v, func(key string, e any) any { return w.under(name, key, v, e) })
	case []any:
		previous := ""
		return each(v, func(_ string, e any) any {
			s, isText := e.(string)
			argument := isText && isFlag(previous) && !strings.HasPrefix(s, "--") && !isFile(s)
			previous = s
			if argument {
				return w.hidden(s)
			}
			return w.value(name, e)
		})
	case string:
		return w.text(v)
	}
	return value
}

// hidden stands for a value.
func (w walker) hidden(value any) any {
	text, isText := value.(string)
	switch {
	case w.typed && !isText:
		return each(value, func(_ string, e any) any { return w.hidden(e) })
	case w.typed && text == "":
		return value
	}
	return w.r.Hidden(value)
}

// SchemaField returns a field of a schema without credentials: its path, and its
// value. That a property may hold a credential is not one itself; its default and
// its example are.
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
	if s, ok := value.(string); ok {
		w.mild = true // links to read on
		return w.text(s)
	}
	return each(value, func(key string, e any) any {
		_, isText := e.(string)
		switch {
		case isText && key == "description":
			return e
		case isExample(key) && credential:
			return w.hidden(e)
		case isExample(key):
			return w.value(key, e)
		}
		return w.schema(e, credential || IsCredential(key))
	})
}

func isExample(name string) bool { return name == "default" || name == "example" }
