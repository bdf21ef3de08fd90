package trial

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

// Way is how an operator of a package is updated.
type Way struct {
	Package  *olm.Package
	Channel  string         // empty: all
	From, To string         // names of operators; empty From: no way was asked for
	Steps    []olm.PathStep // none if nothing replaces From
}

// FindWay finds the updates of an operator from one name to another; an empty to
// means as far as updates go, an empty from none, an empty channel all channels.
// Errors are a package that is not there, an operator that nothing in it replaces and
// that it does not have, and those of [olm.Contents.Path] and
// [olm.Contents.PathTo], which name to.
func FindWay(c *catalog.Catalog, pkg, channel, from, to string) (*Way, error) {
	w := &Way{Package: c.Package(pkg), Channel: channel, From: from, To: to}
	if w.Package == nil {
		return nil, fmt.Errorf("the catalog has no package %q", pkg)
	}
	var err error
	switch {
	case from == "":
	case to == "":
		w.Steps, err = c.Path(pkg, channel, olm.Origin{Name: from})
	default:
		w.Steps, err = c.PathTo(pkg, channel, olm.Origin{Name: from}, func(e *olm.Entry) bool { return e.Name == to })
		if none := new(olm.PathError); errors.As(err, &none) {
			none.To = to
		}
	}
	if err == nil && from != "" && len(w.Steps) == 0 && !has(w.Package, from) {
		return nil, fmt.Errorf("package %q has no operator %q, and nothing that replaces it", pkg, from)
	}
	return w, err
}

// has reports whether an operator is in a channel of a package.
func has(p *olm.Package, operator string) bool {
	return slices.ContainsFunc(p.Channels, func(c *olm.Channel) bool { return c.Entry(operator) != nil })
}

// Text says in a line for each step which operator follows which; without From it
// is the package's text.
func (w *Way) Text() string {
	if w.From == "" {
		return Package(w.Package)
	}
	if len(w.Steps) == 0 {
		return fmt.Sprintf("Nothing replaces %s.\n", w.From)
	}
	var b strings.Builder
	for i, s := range w.Steps {
		fmt.Fprintf(&b, "%d. %s -> %s by %s in channel %s\n", i+1, s.From, s.To, s.Edge, s.Channel)
	}
	return b.String()
}

// Draw draws the way as dot or mermaid, by options whose Path and Channels are the
// way's. Errors are those of [catalog.NewPicture].
func (w *Way) Draw(format string, o catalog.PictureOptions) (string, error) {
	o.Path = w.Steps
	if w.Channel != "" {
		o.Channels = []string{w.Channel}
	}
	picture, err := catalog.NewPicture(w.Package, o)
	switch {
	case err != nil:
		return "", err
	case format == "dot":
		return picture.DOT(), nil
	}
	return picture.Mermaid(), nil
}
