package manifest

import (
	"slices"
	"text/template/parse"
)

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
