package maintain

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// Accepted are findings that the maintainers of a tree know and leave. The zero value
// accepts none.
type Accepted struct {
	lines []string
}

const (
	maxAcceptedBytes = 1 << 20
	acceptedLimit    = "bytes in a file of accepted findings"
)

// ReadAccepted reads a file of accepted findings: one a line as [AcceptedLine] writes
// it, empty lines, and comments that start with #. The error is the reader's, or a
// [*graphdata.LimitError] for more than 1 MiB.
func ReadAccepted(r io.Reader) (Accepted, error) {
	var a Accepted
	text, err := io.ReadAll(io.LimitReader(r, maxAcceptedBytes+1))
	if err != nil {
		return a, err
	}
	if len(text) > maxAcceptedBytes {
		return a, &limit.LimitError{What: acceptedLimit, Max: maxAcceptedBytes}
	}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	lines.Buffer(nil, maxAcceptedBytes+1)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line != "" && !strings.HasPrefix(line, "#") {
			a.lines = append(a.lines, line)
		}
	}
	return a, lines.Err()
}

// AcceptedLine is the line that accepts a finding: its rule, file, field and message.
// It has no number of a line or of an element, so that an edit above the place does
// not matter.
func AcceptedLine(p graphdata.Problem) string {
	p.Line, p.Column = 0, 0
	p.Field, _, _ = strings.Cut(p.Field, "[")
	p.Message = lineNumber.ReplaceAllString(p.Message, "")
	return fmt.Sprintf("%s %s", p.Rule, strings.Join(strings.Fields(p.String()), " "))
}

var lineNumber = regexp.MustCompile(`(, first)? on line [0-9]+`)

// Rest returns the problems that are not accepted, and the lines that accept nothing
// any more, both in their order.
func (a Accepted) Rest(problems []graphdata.Problem) (rest []graphdata.Problem, stale []string) {
	used := make(map[string]bool, len(a.lines))
	for _, line := range a.lines {
		used[line] = false
	}
	for _, p := range problems {
		line := AcceptedLine(p)
		if _, accepted := used[line]; accepted {
			used[line] = true
			continue
		}
		rest = append(rest, p)
	}
	for _, line := range a.lines {
		if !used[line] {
			stale = append(stale, line)
		}
	}
	return rest, stale
}
