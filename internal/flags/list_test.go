package flags_test

import (
	"flag"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/internal/flags"
)

func TestList(t *testing.T) {
	var l flags.List
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Var(&l, "v", "values")
	if err := set.Parse([]string{"-v", "a,b", "-v", "c"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(flags.List{"a", "b", "c"}, l); diff != "" || l.String() != "a,b,c" {
		t.Errorf("%s (-want +got):\n%s", l.String(), diff)
	}
	if set.Parse([]string{"-v", "a,,b"}) == nil {
		t.Error("an empty value is accepted")
	}
}
