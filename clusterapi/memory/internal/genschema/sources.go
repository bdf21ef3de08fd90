package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
)

// tags are the "+name" lines of a comment.
type tags []string

func (t tags) has(name string) bool {
	for _, tag := range t {
		if tag == name {
			return true
		}
	}
	return false
}

// sources is what the generator needs of the comments of API packages.
type sources struct {
	types map[string]tags // by package path and type name
	// keys are the list-map keys of fields, by package path, type name and Go
	// field name. Of the packages of Kubernetes, "=set" stands for those of a
	// list that is one, and "=atomic" for those of a map or a type that is one
	// value.
	keys map[string][]string
}

// readSources parses the packages that match the patterns.
func readSources(patterns ...string) (*sources, error) {
	args := append([]string{"list", "-e", "-f", "{{.ImportPath}} {{.Dir}}"}, patterns...)
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	s := &sources{types: make(map[string]tags), keys: make(map[string][]string)}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		pkg, dir, ok := strings.Cut(line, " ")
		if !ok {
			continue
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			if base := filepath.Base(name); strings.HasSuffix(base, "_test.go") || strings.HasPrefix(base, "zz_") || base == "generated.pb.go" {
				continue
			}
			if err := s.readFile(pkg, name); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

func (s *sources) readFile(pkg, name string) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	previous := f.Name.End()
	for _, decl := range f.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if ok && gen.Tok == token.TYPE {
			// The +genclient block stands apart from the doc comment, so all
			// comments since the previous declaration count.
			found := tagsBetween(f, previous, gen.TokPos)
			for _, sp := range gen.Specs {
				ts := sp.(*ast.TypeSpec)
				id := pkg + "." + ts.Name.Name
				s.types[id] = found
				if strings.HasPrefix(pkg, "k8s.io/") && found.has("structType=atomic") {
					s.keys[id] = []string{"=atomic"}
				}
				if st, ok := ts.Type.(*ast.StructType); ok {
					s.readFields(id, st)
				}
			}
		}
		previous = decl.End()
	}
	return nil
}

func tagsBetween(f *ast.File, from, to token.Pos) tags {
	var found tags
	for _, group := range f.Comments {
		if group.Pos() >= from && group.End() <= to {
			found = append(found, tagsOf(group)...)
		}
	}
	return found
}

func tagsOf(group *ast.CommentGroup) tags {
	if group == nil {
		return nil
	}
	var found tags
	for _, c := range group.List {
		line := strings.TrimSpace(strings.TrimPrefix(c.Text, "//"))
		if tag, ok := strings.CutPrefix(line, "+"); ok {
			found = append(found, strings.TrimSpace(tag))
		}
	}
	return found
}

func (s *sources) readFields(id string, st *ast.StructType) {
	for _, field := range st.Fields.List {
		if len(field.Names) != 1 {
			continue
		}
		var keys []string
		all := append(tagsOf(field.Doc), tagsOf(field.Comment)...)
		switch {
		case !strings.HasPrefix(id, "k8s.io/"):
		case all.has("listType=set"):
			keys = []string{"=set"}
		case all.has("mapType=atomic"), all.has("structType=atomic"):
			keys = []string{"=atomic"}
		}
		for _, tag := range all {
			if key, ok := strings.CutPrefix(tag, "listMapKey="); ok {
				keys = append(keys, strings.Trim(key, `"`))
			} else if key, ok := strings.CutPrefix(tag, "k8s:listMapKey="); ok {
				keys = append(keys, strings.Trim(key, `"`))
			}
		}
		if len(keys) == 0 && field.Tag != nil {
			tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
			if key := tag.Get("patchMergeKey"); key != "" && strings.Contains(tag.Get("patchStrategy"), "merge") {
				keys = append(keys, key)
			}
		}
		if len(keys) > 0 {
			s.keys[id+"."+field.Names[0].Name] = unique(keys)
		}
	}
}

func unique(list []string) []string {
	seen := make(map[string]bool)
	var out []string
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// listKeys returns one line per field or type: its name, then its keys.
func (s *sources) listKeys() []byte {
	names := make([]string, 0, len(s.keys))
	for name := range s.keys {
		names = append(names, name)
	}
	sort.Strings(names)
	var buf bytes.Buffer
	for _, name := range names {
		fmt.Fprintf(&buf, "%s %s\n", name, strings.Join(s.keys[name], " "))
	}
	return buf.Bytes()
}
