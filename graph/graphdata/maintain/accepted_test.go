package maintain_test

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/maintain"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
)

// TestAccepted: a finding is accepted wherever it stands in its file, and no other is.
func TestAccepted(t *testing.T) {
	twice := func(line string) graphdata.Problem {
		return graphdata.Problem{File: "channels/a.yaml", Line: 9, Column: 3, Field: "versions[7]", Rule: "version-twice", Message: "4.1.0 is there twice, first on line " + line}
	}
	other := graphdata.Problem{File: "channels/b.yaml", Field: "versions[7]", Rule: "version-twice", Message: "4.1.0 is there twice, first on line 3"}
	several := graphdata.Problem{File: "channels/b.yaml", Rule: "filter", Message: "two\nlines"}
	checktest.Equal(t, "version-twice channels/a.yaml: versions: 4.1.0 is there twice", maintain.AcceptedLine(twice("3")), "line")
	text := "# known\n\n" + maintain.AcceptedLine(twice("3")) + "\r\n" + maintain.AcceptedLine(several) + "\nfilter gone\n"
	accepted := checktest.Get(maintain.ReadAccepted(strings.NewReader(text)))(t)
	rest, stale := accepted.Rest([]graphdata.Problem{twice("12"), other, several})
	checktest.Same(t, []graphdata.Problem{other}, rest)
	checktest.Same(t, []string{"filter gone"}, stale)
	rest, stale = maintain.Accepted{}.Rest([]graphdata.Problem{other})
	checktest.Same(t, []graphdata.Problem{other}, rest)
	checktest.Same(t, []string(nil), stale)
	broken := errors.New("broken")
	checktest.ErrorIs(t, broken, checktest.Err(maintain.ReadAccepted(iotest.ErrReader(broken))))
}

func TestLimits(t *testing.T) {
	const mib = 1 << 20
	limittest.Walk(t, []limittest.Case{
		{Limit: "bytes in a file of accepted findings", Default: mib, Bytes: 64 * mib, Run: func(t *testing.T) int64 {
			_, err := maintain.ReadAccepted(strings.NewReader(strings.Repeat("a\n", mib)))
			var e *graphdata.LimitError
			if !errors.As(err, &e) || e.Max != mib {
				t.Error(err)
			}
			return 0
		}},
	})
}
