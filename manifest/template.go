package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"text/template"
	"text/template/parse"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
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
	data   templateData
	limits Limits

	imageBytes int64 // of all keys and values of Images
	longest    int   // text that a template can refer to
}

func newRenderer(data templateData, limits Limits) *renderer {
	r := &renderer{data: data, limits: limits, longest: max(len(data.ReleaseImage), len(data.ClusterProfile))}
	for name, image := range data.Images {
		r.imageBytes += int64(len(name) + len(image) + 2)
		r.longest = max(r.longest, len(name), len(image))
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
	e := &execution{renderer: r, ctx: ctx, file: dir + "/" + name}
	if err := e.step(actionBytes(source)); err != nil {
		return nil, nil, err
	}
	t, err := template.New(name).Funcs(e.functions()).Parse(string(source))
	if err != nil {
		return nil, nil, err
	}
	if t.Tree != nil {
		e.defined = func(name string) bool { return t.Lookup(name) != nil }
		if err := e.admit(t.Tree); err != nil {
			return nil, nil, err
		}
	}
	out := &limitedBuffer{limit: r.limits.FileSize}
	out.Grow(len(source) + 1024)
	err = t.Funcs(template.FuncMap{stepName: e.stepFunction}).Execute(out, r.data)
	switch cause := (*LimitError)(nil); {
	case ctx.Err() != nil:
		return nil, nil, contextError(ctx)
	case errors.As(err, &cause):
		return nil, nil, fmt.Errorf("rendered: %w", cause)
	case err != nil:
		return nil, nil, err
	}
	if t.Tree != nil {
		missing = r.missingImages(t.Tree.Root)
	}
	return out.Bytes(), missing, nil
}

// actionBytes returns how many bytes of a template are within actions, which
// bounds what parsing them costs.
func actionBytes(source []byte) int {
	n := 0
	for {
		start := bytes.Index(source, []byte("{{"))
		if start < 0 {
			return n
		}
		source = source[start:]
		end := actionEnd(source)
		n += end
		source = source[end:]
	}
}

// actionEnd returns where the action ends that s starts with, as text/template sees
// it: not at braces within a quoted text or a comment.
func actionEnd(s []byte) int {
	i := len("{{")
	if trim := s[i:]; len(trim) > 1 && trim[0] == '-' && isBlank(trim[1]) {
		i += 2
	}
	if bytes.HasPrefix(s[i:], []byte("/*")) {
		end := bytes.Index(s[i:], []byte("*/"))
		if end < 0 {
			return len(s)
		}
		i += end + 2
	}
	for ; i < len(s); i++ {
		switch c := s[i]; c {
		case '}':
			if i+1 < len(s) && s[i+1] == '}' {
				return i + 2
			}
		case '"', '\'', '`':
			for i++; i < len(s) && s[i] != c; i++ {
				if s[i] == '\\' && c != '`' {
					i++
				}
			}
		}
	}
	return len(s)
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// execution is one run of one template.
type execution struct {
	renderer *renderer
	ctx      context.Context
	file     string
	defined  func(template string) bool
	steps    int
	text     int64 // made by functions
}

// step counts steps.
func (e *execution) step(n int) error {
	if e.ctx.Err() != nil {
		return contextError(e.ctx)
	}
	e.steps += n
	if e.steps > e.renderer.limits.TemplateSteps || e.steps < 0 {
		return &LimitError{Limit: "TemplateSteps", Max: int64(e.renderer.limits.TemplateSteps), What: "steps of a template"}
	}
	return nil
}

// admit walks a parsed template, refuses what it must not use, counts the
// steps that it takes outside of ranges, and makes each round of a range count
// its own.
func (e *execution) admit(tree *parse.Tree) error {
	n, err := e.list(tree, tree.Root)
	if err != nil {
		return err
	}
	return e.step(n)
}

// list returns how many steps the nodes of a list take, each executed once.
func (e *execution) list(tree *parse.Tree, list *parse.ListNode) (steps int, err error) {
	if list == nil {
		return 0, nil
	}
	for _, node := range list.Nodes {
		n, err := e.node(tree, node)
		if err != nil {
			return 0, err
		}
		steps += n
	}
	return steps, nil
}

func (e *execution) node(tree *parse.Tree, node parse.Node) (steps int, err error) {
	switch node := node.(type) {
	case *parse.ActionNode:
		return 1 + e.pipe(node.Pipe), nil
	case *parse.IfNode:
		return e.branch(tree, &node.BranchNode)
	case *parse.WithNode:
		return e.branch(tree, &node.BranchNode)
	case *parse.RangeNode:
		return e.ranges(tree, node)
	case *parse.TemplateNode:
		if !e.defined(node.Name) {
			return 1, nil
		}
		return 0, e.refuse(tree, node, "template "+strconv.Quote(node.Name), "a payload's template must not call others")
	default: // text, comments, break, continue
		return 1, nil
	}
}

// branch counts both ways, of which one is taken.
func (e *execution) branch(tree *parse.Tree, b *parse.BranchNode) (steps int, err error) {
	list, err := e.list(tree, b.List)
	if err != nil {
		return 0, err
	}
	otherwise, err := e.list(tree, b.ElseList)
	return 1 + e.pipe(b.Pipe) + list + otherwise, err
}

// ranges admits a range over the images. Sorting them is a step for each. One over
// any other field fails when it is executed, for there are only texts: a newer
// payload may know more fields.
func (e *execution) ranges(tree *parse.Tree, node *parse.RangeNode) (steps int, err error) {
	if !overField(node.Pipe) {
		return 0, e.refuse(tree, node, "range "+node.Pipe.String(), "a payload's template may range over .Images only")
	}
	body, err := e.list(tree, node.List)
	if err != nil {
		return 0, err
	}
	otherwise, err := e.list(tree, node.ElseList)
	if err != nil {
		return 0, err
	}
	count, err := countStep(1 + body)
	if err != nil {
		return 0, err
	}
	node.List.Nodes = append([]parse.Node{count}, node.List.Nodes...)
	return 1 + len(e.renderer.data.Images) + otherwise, nil
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

// pipe returns how many steps a pipeline takes. A function may have to look at
// all of its longest argument.
func (e *execution) pipe(pipe *parse.PipeNode) int {
	steps := 0
	if pipe == nil {
		return 0
	}
	for _, command := range pipe.Cmds {
		for _, arg := range command.Args {
			steps++
			switch arg := arg.(type) {
			case *parse.IdentifierNode:
				steps += e.renderer.longest / 1024
			case *parse.PipeNode:
				steps += e.pipe(arg)
			case *parse.ChainNode:
				if inner, ok := arg.Node.(*parse.PipeNode); ok {
					steps += e.pipe(inner)
				}
			}
		}
	}
	return steps
}

func (e *execution) refuse(tree *parse.Tree, node parse.Node, what, why string) error {
	return &TemplateError{File: e.file, Line: lineOf(tree, node), What: bounded.Text(what, 200), Why: why}
}

// lineOf reads the line out of a location "name:line:column".
func lineOf(tree *parse.Tree, node parse.Node) int {
	location, _ := tree.ErrorContext(node)
	rest := location[len(tree.ParseName)+1:]
	line, _, _ := bytes.Cut([]byte(rest), []byte(":"))
	n, _ := strconv.Atoi(string(line)) // 0 would say that the line is not known
	return n
}

// stepName is the function that counts the rounds of a range. Templates cannot
// call it themselves: it is not known when they are parsed.
const stepName = "countSteps"

func (e *execution) stepFunction(n int) (string, error) { return "", e.step(n) }

// countStep returns a node that counts n steps when it is executed.
func countStep(n int) (parse.Node, error) {
	trees, err := parse.Parse("steps", "{{"+stepName+" "+strconv.Itoa(n)+"}}", "", "", map[string]any{stepName: true})
	if err != nil {
		return nil, err
	}
	return trees["steps"].Root.Nodes[0], nil
}

// functions are the functions of text/template that make texts, each within the
// bound on a template's output. The rest make none.
func (e *execution) functions() template.FuncMap {
	joined := func(f func(...any) string, growth int64) func(...any) (string, error) {
		return func(args ...any) (string, error) {
			return e.make(growth*e.sizeOf(args), func() string { return f(args...) })
		}
	}
	return template.FuncMap{
		"print":    joined(fmt.Sprint, 1),
		"println":  joined(fmt.Sprintln, 1),
		"html":     joined(template.HTMLEscaper, 6),
		"js":       joined(template.JSEscaper, 6),
		"urlquery": joined(template.URLQueryEscaper, 3),
		"printf": func(format string, args ...any) (string, error) {
			return e.make(formattedSize(format, e.sizeOf(args)), func() string { return fmt.Sprintf(format, args...) })
		},
	}
}

// make calls f, which makes about size bytes, unless that is too much.
func (e *execution) make(size int64, f func() string) (string, error) {
	if err := e.step(1); err != nil {
		return "", err
	}
	if size > e.renderer.limits.TemplateText-e.text {
		return "", &LimitError{Limit: "TemplateText", Max: e.renderer.limits.TemplateText, What: "bytes of text made by the functions of a template"}
	}
	s := f()
	e.text += int64(len(s))
	return s, nil
}

// sizeOf returns how long the texts of values may be at most.
func (e *execution) sizeOf(values []any) int64 {
	var n int64
	for _, v := range values {
		switch v := v.(type) {
		case string:
			n += int64(len(v))
		case map[string]string:
			n += e.renderer.imageBytes
		case templateData:
			n += e.renderer.imageBytes + int64(len(v.ReleaseImage)+len(v.ClusterProfile))
		}
		n += 64
	}
	return n
}

// formattedSize returns how long the result of a format may be at most: a quoted or
// hexadecimal text may be six times as long as its argument, and each verb may have
// a width. A width that is an argument, and an argument that is named, have no
// bound that follows from the format.
func formattedSize(format string, args int64) int64 {
	size := int64(len(format)) + 6*args
	verb, number := false, int64(0)
	for i := range len(format) {
		switch c := format[i]; {
		case !verb:
			verb = c == '%'
		case c == '*' || c == '[':
			return math.MaxInt64
		case c >= '0' && c <= '9':
			number = min(number*10+int64(c-'0'), math.MaxInt32)
		default:
			size += number
			number = 0
			if c != '.' && c != '+' && c != '-' && c != '#' && c != ' ' {
				size += 64
				verb = false
			}
		}
	}
	return size
}

// limitedBuffer stops a template whose result passes the limit of a file.
type limitedBuffer struct {
	bytes.Buffer
	limit int64
}

var _ io.Writer = (*limitedBuffer)(nil)

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if int64(b.Len())+int64(len(p)) > b.limit {
		return 0, fileSizeError(b.limit)
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
