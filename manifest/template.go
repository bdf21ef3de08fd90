package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// templateData is what the files of manifests/ can refer to, and all of it.
type templateData struct {
	ReleaseImage   string
	ClusterProfile string
	Images         map[string]string
}

// TemplateError is a construct that a template must not use, since its cost has no
// bound that is known before: ranges over anything but the images, and calls of
// other templates. A range over a field that is not a map or does not exist, and a
// call of a template that is not defined, need no bound: they fail when they are
// executed, and so cost nothing.
type TemplateError struct {
	// File and Line are its place; File is the path within the payload.
	File string
	Line int
	// What is the construct, such as "range 5".
	What string
	// Why it is refused.
	Why string
}

func (e *TemplateError) Error() string {
	return fmt.Sprintf("%s:%d: {{%s}}: %s", e.File, e.Line, e.What, e.Why)
}

// renderer executes the templates of a payload.
type renderer struct {
	data       templateData
	limits     Limits
	imageBytes int64 // of all keys and values of Images
}

func newRenderer(data templateData, limits Limits) *renderer {
	r := &renderer{data: data, limits: limits}
	for name, image := range data.Images {
		r.imageBytes += int64(len(name) + len(image) + 2)
	}
	return r
}

// render executes a file of manifests/ as a template. missing are the images that
// it looks up and the payload does not have. An error is the context's, a
// [*LimitError], a [*TemplateError], or reports that the template is not
// understood.
func (r *renderer) render(ctx context.Context, dir, name string, source []byte) (data []byte, missing []string, err error) {
	if !bytes.Contains(source, []byte("{{")) {
		return source, nil, nil
	}
	c := cost{renderer: r, file: dir + "/" + name, steps: len(source) / bytesPerStep}
	if err := c.check(); err != nil {
		return nil, nil, err
	}
	t, err := template.New(name).Funcs(r.functions()).Parse(string(source))
	if err != nil {
		return nil, nil, err
	}
	if t.Tree == nil { // only comments or definitions
		return nil, nil, t.Execute(io.Discard, r.data)
	}
	c.tree, c.defined = t.Tree, t.Lookup
	if err := c.list(t.Root, 1); err != nil {
		return nil, nil, err
	}
	out := &limitedBuffer{ctx: ctx, size: r.limits.fileSize()}
	out.Grow(len(source) + 1024)
	err = t.Execute(out, r.data)
	switch cause := (*LimitError)(nil); {
	case ctx.Err() != nil:
		return nil, nil, contextError(ctx)
	case errors.As(err, &cause):
		return nil, nil, fmt.Errorf("rendered: %w", cause)
	case err != nil:
		return nil, nil, err
	}
	return out.Bytes(), r.missingImages(t.Root), nil
}

// bytesPerStep is how many bytes of a template's file are a step, so that parsing it has
// a bound.
const bytesPerStep = 4

// cost counts the steps of a template before it is executed, and refuses what has no
// bound.
type cost struct {
	renderer *renderer
	file     string
	tree     *parse.Tree
	defined  func(name string) *template.Template
	steps    int
}

func (c *cost) check() error {
	most := limit.Limit{Max: int64(c.renderer.limits.TemplateSteps), Name: "TemplateSteps", What: "steps of a template"}
	return most.Check(int64(c.steps))
}

// list counts the nodes of a list, each of which is executed so many times.
func (c *cost) list(list *parse.ListNode, times int) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		if err := c.node(node, times); err != nil {
			return err
		}
	}
	return nil
}

// node counts a node. Of two branches it counts both.
func (c *cost) node(node parse.Node, times int) error {
	switch node := node.(type) {
	case *parse.ActionNode:
		return c.pipe(node.Pipe, times)
	case *parse.IfNode:
		return c.branch(&node.BranchNode, times, times)
	case *parse.WithNode:
		return c.branch(&node.BranchNode, times, times)
	case *parse.RangeNode:
		// Whether the field is a map shows when the template is executed: a newer payload
		// may know more fields.
		if !overField(node.Pipe) {
			return c.refuse(node, "range "+node.Pipe.String(), "a payload's template may range over .Images only")
		}
		return c.branch(&node.BranchNode, times, times*len(c.renderer.data.Images))
	case *parse.TemplateNode:
		if c.defined(node.Name) != nil {
			return c.refuse(node, "template "+strconv.Quote(node.Name), "a payload's template must not call others")
		}
	}
	c.steps += times // text, comments, break, continue
	return c.check()
}

// branch counts a condition or a range whose body is executed so many times.
func (c *cost) branch(b *parse.BranchNode, times, body int) error {
	c.steps += body
	if err := c.pipe(b.Pipe, times); err != nil {
		return err
	}
	if err := c.list(b.List, body); err != nil {
		return err
	}
	return c.list(b.ElseList, times)
}

// pipe counts a pipeline by its length.
func (c *cost) pipe(pipe *parse.PipeNode, times int) error {
	c.steps += times * (1 + len(pipe.String())/bytesPerStep)
	return c.check()
}

// overField reports whether a pipeline is a field, as .Images or $.Images.
func overField(pipe *parse.PipeNode) bool {
	if len(pipe.Cmds) != 1 || len(pipe.Cmds[0].Args) != 1 {
		return false
	}
	switch node := pipe.Cmds[0].Args[0].(type) {
	case *parse.FieldNode:
		return true
	case *parse.VariableNode:
		return len(node.Ident) > 1 && node.Ident[0] == "$"
	}
	return false
}

func (c *cost) refuse(node parse.Node, what, why string) error {
	// The location is "name:line:column".
	location, _ := c.tree.ErrorContext(node)
	line, _, _ := strings.Cut(location[len(c.tree.ParseName)+1:], ":")
	n, _ := strconv.Atoi(line) // 0 would say that the line is not known
	return &TemplateError{File: c.file, Line: n, What: bounded.Text(what, 200), Why: why}
}

// functions are the functions of text/template that make texts, within a bound for each
// template on what they make. The rest make none.
func (r *renderer) functions() template.FuncMap {
	most := limit.Limit{Max: r.limits.TemplateText, Name: "TemplateText"}
	most.What = "bytes of text made by the functions of a template"
	made := int64(0)
	text := func(size int64, f func() string) (string, error) { // which makes about size bytes
		if err := most.Check(made + min(size, math.MaxInt64-made)); err != nil {
			return "", err
		}
		s := f()
		made += int64(len(s))
		return s, nil
	}
	joined := func(f func(...any) string, growth int64) func(...any) (string, error) {
		return func(args ...any) (string, error) {
			bytes, _ := r.sizeOf(args)
			return text(growth*bytes, func() string { return f(args...) })
		}
	}
	return template.FuncMap{
		"print":    joined(fmt.Sprint, 1),
		"println":  joined(fmt.Sprintln, 1),
		"html":     joined(template.HTMLEscaper, 6),
		"js":       joined(template.JSEscaper, 6),
		"urlquery": joined(template.URLQueryEscaper, 3),
		"printf": func(format string, args ...any) (string, error) {
			bytes, texts := r.sizeOf(args)
			return text(formattedSize(format, bytes, texts), func() string { return fmt.Sprintf(format, args...) })
		},
	}
}

// sizeOf returns how long the texts of values may be at most, and how many they are: a
// format writes each element of a map with its width.
func (r *renderer) sizeOf(values []any) (bytes, texts int64) {
	images := int64(len(r.data.Images))
	for _, v := range values {
		bytes += 64
		texts++
		switch v := v.(type) {
		case string:
			bytes += int64(len(v))
		case map[string]string:
			bytes += r.imageBytes
			texts += 2 * images
		case templateData:
			bytes += r.imageBytes + int64(len(v.ReleaseImage)+len(v.ClusterProfile))
			texts += 2*images + 2
		}
	}
	return bytes, texts
}

var (
	numbers = regexp.MustCompile(`[0-9]+`)
	// anyWidth finds a width that is an argument, and an argument that is named.
	anyWidth = regexp.MustCompile(`%[^a-zA-Z%]*[*[]`)
)

// formattedSize returns how long the result of a format may be at most: a quoted or
// hexadecimal text may be six times as long as its argument, a verb without an argument
// ten times as long as itself, a verb that does not fit takes 16 bytes of each text, and a
// number may be a width of each.
func formattedSize(format string, bytes, texts int64) int64 {
	const most = 1 << 40 // so that no sum overflows: nothing of it fits in memory
	if anyWidth.MatchString(format) {
		return math.MaxInt64
	}
	size := 10*int64(len(format)) + 6*bytes + 16*texts
	for _, number := range numbers.FindAllString(format, -1) {
		width, err := strconv.ParseInt(number, 10, 21) // fmt takes no more than a million
		if err != nil || size > most {
			return math.MaxInt64
		}
		size += width * texts
	}
	return size
}

// limitedBuffer stops a template whose result passes the limit of a file, or whose
// context has ended.
type limitedBuffer struct {
	bytes.Buffer
	ctx  context.Context
	size limit.Limit
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if err := b.size.Check(int64(b.Len()) + int64(len(p))); err != nil {
		return 0, err
	}
	return b.Buffer.Write(p)
}

// missingImages returns the images that a template looks up by index, though the
// payload does not have them: they are written as nothing. Conditions may look up
// what they like, and what they have looked up counts as known in what they decide
// on.
func (r *renderer) missingImages(list *parse.ListNode) []string {
	f := lookups{images: r.data.Images}
	f.list(list)
	slices.Sort(f.missing)
	return slices.Compact(f.missing)
}

// lookups finds those of images that are not there.
type lookups struct {
	images  map[string]string
	asked   []string // by the conditions around
	missing []string
}

func (f *lookups) list(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.ActionNode:
			for _, name := range lookedUp(node.Pipe) {
				if _, ok := f.images[name]; !ok && !slices.Contains(f.asked, name) {
					f.missing = append(f.missing, name)
				}
			}
		case *parse.IfNode:
			f.branch(&node.BranchNode)
		case *parse.WithNode:
			f.branch(&node.BranchNode)
		case *parse.RangeNode:
			f.branch(&node.BranchNode)
		}
	}
}

func (f *lookups) branch(b *parse.BranchNode) {
	before := f.asked
	f.asked = append(slices.Clip(before), lookedUp(b.Pipe)...)
	f.list(b.List)
	f.list(b.ElseList)
	f.asked = before
}

// lookedUp returns the names in a pipeline's calls of the form index .Images "name".
func lookedUp(pipe *parse.PipeNode) (names []string) {
	if pipe == nil {
		return nil
	}
	for _, command := range pipe.Cmds {
		for _, arg := range command.Args {
			if inner, ok := arg.(*parse.PipeNode); ok {
				names = append(names, lookedUp(inner)...)
			}
		}
		if len(command.Args) != 3 {
			continue
		}
		function, isFunction := command.Args[0].(*parse.IdentifierNode)
		name, isText := command.Args[2].(*parse.StringNode)
		if isFunction && function.Ident == "index" && isImages(command.Args[1]) && isText {
			names = append(names, name.Text)
		}
	}
	return names
}

// isImages reports whether a node is .Images or $.Images.
func isImages(node parse.Node) bool {
	switch node := node.(type) {
	case *parse.FieldNode:
		return len(node.Ident) == 1 && node.Ident[0] == "Images"
	case *parse.VariableNode:
		return len(node.Ident) == 2 && node.Ident[0] == "$" && node.Ident[1] == "Images"
	}
	return false
}
