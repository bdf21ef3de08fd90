package graphdata

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// newestSchema is the newest schema version of trees that [Load] knows. Those
// with the same major are read, newer ones with warnings.
const newestSchema = "1.2.0"

var schemaVersion = semver.MustParse(newestSchema)

// loadVersion reads the file version, without which there is no tree.
func (l *loader) loadVersion() error {
	const name = "version"
	fatal := func(rule string, err error) {
		l.fatal = true
		l.add(Problem{File: name, Rule: rule, Message: err.Error(), Err: err})
	}
	text, stop, err := l.read(name)
	if stop != nil {
		return stop
	}
	if err != nil {
		fatal(ruleRead, fmt.Errorf("Reading %q: %w", name, err)) //nolint:staticcheck // in the words of the update service
		return nil
	}
	version := strings.TrimSpace(string(text))
	l.tree.SchemaVersion = version
	read := version
	if l.opts.Compat {
		read = compatNumbers(version)
	}
	v, err := graph.ParseVersion(read)
	switch {
	case err != nil:
		fatal(ruleSchema, &SchemaError{Version: bounded.Text(version, bounded.MaxQuoted), Malformed: true})
	case v.Major() != schemaVersion.Major():
		fatal(ruleSchema, &SchemaError{Version: bounded.Text(version, bounded.MaxQuoted)})
	case v.Minor() > schemaVersion.Minor():
		l.newer = true
		l.add(Problem{File: name, Rule: ruleSchemaNewer, Warning: true,
			Message: fmt.Sprintf("%s is newer than %s: what it adds is not understood", bounded.Text(version, bounded.MaxQuoted), newestSchema)})
	}
	return nil
}
