package manifest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"text/template"

	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// TestTemplatesOfRealPayloads: every template of both payloads renders as
// text/template alone does it, and none is skipped.
func TestTemplatesOfRealPayloads(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"payload-4.17.30", "payload-4.18.15"} {
		dir := filepath.Join(testdata.Dir(t), name)
		p, err := manifest.Load(t.Context(), os.DirFS(dir), manifest.LoadOptions{Image: "example.com/release@sha256:abc"})
		checktest.OK(t, err)
		checktest.Equal(t, 0, len(p.Warnings), "len(p.Warnings) (%v)", p.Warnings)
		raws := map[string]string{}
		for _, e := range p.Excluded {
			p.Manifests = append(p.Manifests, e.Manifest)
		}
		for _, m := range p.Manifests {
			raws[fmt.Sprint(m.Filename, m.Document)] = string(m.Raw)
		}
		files, err := filepath.Glob(filepath.Join(dir, "manifests", "*.yaml"))
		if err != nil || len(files) < 5 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			var out bytes.Buffer
			data := map[string]any{"ReleaseImage": "example.com/release@sha256:abc", "ClusterProfile": manifest.DefaultProfile, "Images": p.Images}
			checktest.OK(t, template.Must(template.ParseFiles(file)).Execute(&out, data))
			want := checktest.Get(manifest.Parse(filepath.Base(file), out.Bytes(), manifest.Limits{}))(t)
			for _, m := range want {
				if got := raws[fmt.Sprint(m.Filename, m.Document)]; got != string(m.Raw) {
					t.Errorf("%s, document %d: %s\nwant %s", m.Filename, m.Document, got, m.Raw)
				}
			}
		}
	}
}

// own returns a payload with one template of the version operator's.
func own(source string) map[string]string {
	return map[string]string{"manifests/own.yaml": object("own", included) + source}
}

// TestTemplateRefused has templates whose cost nobody can tell before.
func TestTemplateRefused(t *testing.T) {
	tests := []struct {
		name, source, what string
		line               int
	}{
		{"a number", "x: {{range 9000000000000}}{{end}}", "range 9000000000000", 4},
		{"a variable", "{{$n := 9000000000000}}\n{{range $n}}{{end}}", "range $n", 5},
		{"within if", "{{if true}}{{range 9000000000000}}a{{end}}{{end}}", "range 9000000000000", 4},
		{"within else", "{{if false}}{{else}}\n\n{{range 9000000000000}}a{{end}}{{end}}", "range 9000000000000", 6},
		{"within with", "{{with .ReleaseImage}}{{else}}{{range 9000000000000}}a{{end}}{{end}}", "range 9000000000000", 4},
		{"within a range", "{{range .Images}}{{range 9000000000000}}{{end}}{{end}}", "range 9000000000000", 4},
		{"after a range", "{{range .Images}}{{else}}{{range 9000000000000}}{{end}}{{end}}", "range 9000000000000", 4},
		{"a length", "{{range len .ReleaseImage}}{{end}}", "range len .ReleaseImage", 4},
		{"a field of a variable", "{{$d := .}}{{range $d.Images}}{{end}}", "range $d.Images", 4},
		{"recursion", "{{define \"a\"}}{{template \"a\"}}{{end}}\n{{template \"a\"}}", `template "a"`, 5},
		{"a block", "{{block \"b\" .}}{{template \"b\" .}}{{end}}", `template "b"`, 4},
		{"itself", "{{template \"own.yaml\" .}}", `template "own.yaml"`, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, payload(own(tt.source)))
			var refused *manifest.TemplateError
			var fault *manifest.Error
			if !errors.As(err, &refused) || !errors.As(err, &fault) {
				t.Fatalf("%v", err)
			}
			if refused.File != "manifests/own.yaml" || refused.Line != tt.line || refused.What != tt.what || fault.Faults[0].File != "manifests/own.yaml" {
				t.Errorf("%+v", refused)
			}
			checktest.Has(t, err.Error(), fmt.Sprintf("manifests/own.yaml:%d: {{%s}}: ", tt.line, tt.what))
		})
	}
}

// manyImages is an image-references file with n images.
func manyImages(n int) string {
	tags := make([]string, n)
	for i := range tags {
		tags[i] = fmt.Sprintf(`{"name":"i%d","from":{"kind":"DockerImage","name":"example.com/i@sha256:%d"}}`, i, i)
	}
	return `{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":"4.20.1"},"spec":{"tags":[` + strings.Join(tags, ",") + `]}}`
}

func TestTemplateLimits(t *testing.T) {
	double := "{{$x := .ReleaseImage}}" + strings.Repeat("{{$x = print $x $x}}", 60)
	tests := []struct{ name, source, limit string }{
		{"a long comment", "{{/*" + strings.Repeat(" ", 400_000) + "*/}}", "TemplateSteps"},
		{"nested ranges", strings.Repeat("{{range $.Images}}", 8) + strings.Repeat("{{end}}", 8), "TemplateSteps"},
		{"nested ranges that end at once", strings.Repeat("{{range .Images}}{{break}}{{end}}", 600), "TemplateSteps"},
		{"a long template", strings.Repeat("{{.ReleaseImage}}", 24000), "TemplateSteps"},
		{"nested branches", strings.Repeat("{{if 1}}", 30000) + strings.Repeat("{{end}}", 30000), "TemplateSteps"},
		{"a long action", "{{range .Images}}{{eq 1" + strings.Repeat(" 1", 2000) + "}}{{end}}", "TemplateSteps"},
		{"doubling", double, "TemplateText"},
		{"doubling by html", "{{$x := \"&\"}}" + strings.Repeat("{{$x = html $x}}", 20000/16) + strings.Repeat("{{$x = js $x $x}}", 60), "TemplateText"},
		{"doubling in a range", "{{$x := \"a\"}}{{range .Images}}{{$x = printf \"%s%s\" $x $x}}{{end}}", "TemplateText"},
		{"a width", `{{printf "%1000000d" 1}}`, "TemplateText"},
		{"a width of each image", `{{$x := printf "%10000v" .Images}}`, "TemplateText"},
		{"a width that is an argument", `{{printf "%*d" 1000000 1}}`, "TemplateText"},
		{"a precision", `{{printf "%.999999f" 1.5}}`, "TemplateText"},
		{"a named argument", `{{printf "%[1]s%[1]s" .ReleaseImage}}`, "TemplateText"},
		{"all images again and again", "{{range .Images}}{{$x := print $.Images}}{{end}}", "TemplateText"},
		{"output", `{{range .Images}}{{printf "%1000d" 1}}{{end}}`, "FileSize"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := own("x: |\n  " + tt.source)
			files["release-manifests/image-references"] = manyImages(200)
			limits := manifest.Limits{}
			if tt.limit == "FileSize" {
				limits = manifest.Limits{FileSize: 50_000, TemplateText: 1 << 20}
			}
			_, err := manifest.Load(t.Context(), payload(files), manifest.LoadOptions{Image: "example.com/release", Limits: limits})
			var limit *manifest.LimitError
			if !errors.As(err, &limit) || limit.Limit != tt.limit || !strings.Contains(err.Error(), "manifests/own.yaml: ") {
				t.Errorf("%.300v", err)
			}
		})
	}
}

// TestTemplateFits has what a payload may well use.
func TestTemplateFits(t *testing.T) {
	for source, want := range map[string]string{
		`{{range $name, $image := .Images}}{{$name}}={{$image}} {{end}}`:                         "a-b=example.com/ab@sha256:2 cli=example.com/cli@sha256:1 ",
		`{{range .Images}}{{if eq . "example.com/cli@sha256:1"}}{{break}}{{end}}{{.}}{{end}}`:    "example.com/ab@sha256:2",
		`{{with index .Images "cli"}}{{.}}{{else}}none{{end}}`:                                   "example.com/cli@sha256:1",
		`{{if and (eq .ClusterProfile "self-managed-high-availability") (len .Images)}}a{{end}}`: "a",
		`{{printf "%-25s|%q [%d]*" .ReleaseImage "x" 5}}`:                                        `i                        |"x" [5]*`,
		`{{.ReleaseImage | html | printf "%s"}}{{/* "}}" */}}`:                                   "i",
		`{{define "unused"}}{{.Nothing}}{{end}}{{slice .ReleaseImage 0 1}}`:                      "i",
		strings.Repeat("{{if 1}}", 5000) + "a" + strings.Repeat("{{end}}", 5000):                 "a",
		"{{/* }} \" */ -}} {{- `}}\"` -}} " + strings.Repeat("text ", 40_000):                    "}}\"" + strings.TrimSpace(strings.Repeat("text ", 40_000)),
		`{{print .Images}}`: "map[a-b:example.com/ab@sha256:2 cli:example.com/cli@sha256:1]",
		`{{.Images}}`:       "map[a-b:example.com/ab@sha256:2 cli:example.com/cli@sha256:1]",
	} {
		p, err := manifest.Load(t.Context(), payload(own("x: |-\n  "+source)), manifest.LoadOptions{Image: "i", Filter: manifest.DefaultFilter()})
		if err != nil || len(p.Warnings) != 0 {
			t.Errorf("%.200s: %v %v", source, err, p)
			continue
		}
		checktest.SameIn(t, source, strings.TrimRight(want, " "),
			strings.TrimRight(fmt.Sprint(p.Manifests[0].Object().Object["x"]), " "))
	}
}

// templateData has the fields of the type that templates see, whose name some
// formats show.
type templateData struct {
	ReleaseImage, ClusterProfile string
	Images                       map[string]string
}

// TestTemplateAsTextTemplate compares templates made of all that is admitted
// with text/template alone.
func TestTemplateAsTextTemplate(t *testing.T) {
	value := rapid.SampledFrom([]string{".ReleaseImage", `"a b"`, "7", `(index $.Images "cli")`, "$.ClusterProfile", "$.Images", "true", "(len $.Images)", `(printf "%5d|%-3v|%q" 3 $.ReleaseImage "z")`, `(print 1 2 "x")`, `(html "<a>")`})
	var list func(depth int) *rapid.Generator[string]
	list = func(depth int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			var b strings.Builder
			for range rapid.IntRange(1, 4).Draw(t, "n") {
				kind := rapid.IntRange(0, 8).Draw(t, "kind")
				if depth == 0 {
					kind %= 4
				}
				switch v := value.Draw(t, "value"); kind {
				case 0:
					b.WriteString("text ")
				case 1:
					b.WriteString("{{- " + v + " -}}")
				case 2:
					b.WriteString("{{" + v + ` | printf "%v%v" 1}}`)
				case 3:
					b.WriteString("{{.}}")
				case 4:
					b.WriteString("{{range $.Images}}" + list(depth-1).Draw(t, "body") + "{{else}}none{{end}}")
				case 5:
					b.WriteString("{{range $k, $v := $.Images}}{{$k}}" + list(depth-1).Draw(t, "body") + "{{continue}}{{$v}}{{end}}")
				case 6:
					b.WriteString("{{if ne " + v + ` "a b"}}` + list(depth-1).Draw(t, "body") + "{{else}}{{$v := 1}}{{$v}}{{end}}")
				case 7:
					b.WriteString("{{with " + v + "}}" + list(depth-1).Draw(t, "body") + "{{end}}")
				case 8:
					b.WriteString("{{range .Images}}{{break}}{{end}}")
				}
			}
			return b.String()
		})
	}
	rapid.Check(t, func(rt *rapid.T) {
		source := "^" + list(2).Draw(rt, "source") + "$"
		data := templateData{"i", manifest.DefaultProfile, map[string]string{"a-b": "example.com/ab@sha256:2", "cli": "example.com/cli@sha256:1"}}
		var out bytes.Buffer
		wantErr := template.Must(template.New("own.yaml").Parse(source)).Execute(&out, data)
		p := checktest.Get(manifest.Load(t.Context(),
			payload(map[string]string{"manifests/own.yaml": object("own",
				included) + "x: |\n  " + source}), manifest.LoadOptions{Image: "i", Filter: manifest.DefaultFilter()}))(rt)
		if skipped := len(p.Manifests) == 0; skipped != (wantErr != nil) {
			rt.Fatalf("skipped: %v %v; text/template: %v", skipped, p.Warnings, wantErr)
		} else if skipped {
			return
		}
		if got := p.Manifests[0].Object().Object["x"]; got != out.String()+"\n" {
			rt.Errorf("%q\nwant %q", got, out.String())
		}
	})
}

// countdown is a context that ends when it has been asked n times.
type countdown struct {
	context.Context
	left atomic.Int64
}

func endsAfter(ctx context.Context, n int64) *countdown {
	c := &countdown{Context: ctx}
	c.left.Store(n)
	return c
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestContextWithinAFile: a template and a file of many documents end soon
// after the context, not when they are done.
func TestContextWithinAFile(t *testing.T) {
	forever := own("x: |\n  " + strings.Repeat("{{range $.Images}}", 5) + "a" + strings.Repeat("{{end}}", 5))
	forever["release-manifests/image-references"] = manyImages(200)
	var documents strings.Builder
	for i := range 3000 {
		documents.WriteString(object(fmt.Sprintf("a%d", i), included) + "---\n")
	}
	var objects strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&objects, `{"kind":"K","metadata":{"name":"a%d"}}`, i)
	}
	for name, files := range map[string]map[string]string{
		"template": forever,
		"YAML":     {"release-manifests/a.yaml": documents.String()},
		"JSON":     {"release-manifests/a.json": objects.String()},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := endsAfter(t.Context(), 1000)
			_, err := manifest.Load(ctx, payload(files), manifest.LoadOptions{Limits: manifest.Limits{TemplateSteps: 1 << 40}, Workers: 1})
			checktest.ErrorIs(t, context.Canceled, err)
			if asked := -ctx.left.Load(); asked > 100 {
				t.Errorf("went on for %d looks at the context", asked)
			}
		})
	}
}

// FuzzTemplate: whatever a template is, a load ends within its limits, and
// what it renders is what text/template alone does.
func FuzzTemplate(f *testing.F) {
	for _, source := range []string{
		"{{.ReleaseImage}}", "{{range $k, $v := .Images}}{{$k}}{{break}}{{end}}", `{{printf "%5s" .ClusterProfile | html}}`,
		"{{range 9000000000000}}{{end}}", `{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`, `{{"}}"}}`, "{{/* }} */}}", `{{if and true (lt 1 2)}}{{else}}{{end}}`,
	} {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		source = "^" + source + "$"
		if !printable(source) || !strings.Contains(source, "{{") {
			return
		}
		limits := manifest.Limits{TemplateSteps: 2_000, FileSize: 1 << 16}
		p, err := manifest.Load(t.Context(), payload(own("x: |\n  "+source)), manifest.LoadOptions{Image: "i", Limits: limits})
		if err != nil || len(p.Manifests) == 0 {
			return
		}
		parsed, err := template.New("own.yaml").Parse(source)
		if err != nil {
			t.Fatalf("%q: rendered, but text/template says %v", source, err)
		}
		var out bytes.Buffer
		data := templateData{"i", manifest.DefaultProfile, map[string]string{"a-b": "example.com/ab@sha256:2", "cli": "example.com/cli@sha256:1"}}
		if err := parsed.Execute(&out, data); err != nil {
			t.Fatalf("%q: rendered, but text/template says %v", source, err)
		}
		want := strings.ReplaceAll(out.String(), "manifest_test.templateData", "manifest.templateData")
		if got := p.Manifests[0].Object().Object["x"]; printable(want) && got != want+"\n" {
			t.Errorf("%q: %q\nwant %q", source, got, want)
		}
	})
}

func printable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}
